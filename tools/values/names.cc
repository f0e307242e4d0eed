#include "tools/values/names.h"

#include <algorithm>
#include <cctype>

namespace heddle::tools {
namespace {

// The first `=` that has something before it and behind it; npos where there is none.
size_t CutFrom(const std::string& text, size_t from) {
  const size_t at = text.find('=', std::max<size_t>(from, 1));
  return at == std::string::npos || at + 1 >= text.size() ? std::string::npos : at;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Letters to add, leave out, change, or swap with their neighbours until `a` is `b`; `most + 1`
// where it is more than `most`.
size_t Distance(const std::string& a, const std::string& b, size_t most) {
  if (a.size() > b.size() + most || b.size() > a.size() + most) return most + 1;
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return std::min(last[b.size()], most + 1);
}

}  // namespace

std::string CheckPair(const std::string& text) {
  return CutFrom(text, 1) != std::string::npos ? ""
                                               : "'" + text + "' is not of the form NAME=VALUE";
}

std::pair<std::string, std::string> SplitPair(const std::string& text,
                                              const std::vector<std::string>& known) {
  size_t best = 0;
  for (const std::string& name : known)
    if (name.size() > best && name.size() + 1 < text.size() && text[name.size()] == '=' &&
        text.starts_with(name))
      best = name.size();
  const size_t at = best > 0 ? best : CutFrom(text, 1);
  return {text.substr(0, at), text.substr(at + 1)};
}

std::pair<std::string, std::string> SplitAtLast(const std::string& text) {
  const size_t at = text.rfind('=');
  return {text.substr(0, at), text.substr(at + 1)};
}

bool IsAmbiguousPair(const std::string& text) {
  const size_t first = CutFrom(text, 1);
  return first != std::string::npos && CutFrom(text, first + 1) != std::string::npos;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& known) {
  const std::string meant = Lower(word);
  size_t nearest = meant.size() / 3 + 1;
  const std::string* found = nullptr;
  for (const std::string& name : known) {
    if (nearest == 0) break;
    const size_t distance = Distance(meant, Lower(name), nearest - 1);
    // All letters of a short name changed are another name.
    if (distance >= nearest || distance >= name.size()) continue;
    nearest = distance;
    found = &name;
  }
  return found == nullptr ? "" : "; did you mean '" + *found + "'?";
}

std::vector<std::string> SplitNames(const std::vector<std::string>& values) {
  std::vector<std::string> names;
  for (const std::string& value : values)
    for (size_t begin = 0; begin <= value.size();) {
      const size_t end = std::min(value.find(',', begin), value.size());
      if (end > begin) names.push_back(value.substr(begin, end - begin));
      begin = end + 1;
    }
  return names;
}

}  // namespace heddle::tools
