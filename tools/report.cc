#include "tools/report.h"

#include <string_view>

namespace heddle::tools {
namespace {

constexpr std::string_view kPage =
#include "tools/report_page.inc"  // generated from tools/report_page.html
    ;

// JSON as it may stand within a script element, which "</script" or "<!--" would end or change.
std::string ForScript(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

void Replace(std::string_view mark, const std::string& text, std::string* page) {
  if (const size_t at = page->find(mark); at != std::string::npos)
    page->replace(at, mark.size(), text);
}

}  // namespace

std::string ReportPage(const Json& profile, const Json& before) {
  Json earlier;  // what the page compares
  if (before.is_object())
    for (const char* key :
         {"program", "threads", "dispatch", "run_us", "kernels_us", "outside_share", "operators"})
      if (before.contains(key)) earlier[key] = before[key];
  std::string page(kPage);
  Replace("@BEFORE@", ForScript(earlier), &page);
  Replace("@PROFILE@", ForScript(profile), &page);
  return page;
}

}  // namespace heddle::tools
