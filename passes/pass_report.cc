#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "heddle/pass.h"

namespace heddle {

std::string PassReport::ToString() const {
  std::string text;
  char line[200];
  std::snprintf(line, sizeof(line), "%-22s %-24s %5s %8s %9s %8s\n", "grouping", "pass", "round",
                "changed", "operators", "ms");
  text += line;
  for (const Run& r : runs) {
    const std::string ops = StrCat(r.ops_before, r.changed ? StrCat("->", r.ops_after) : "");
    std::snprintf(line, sizeof(line), "%-22s %-24s %5d %8s %9s %8.3f\n", Name(r.grouping),
                  r.name.c_str(), r.round, r.changed ? "yes" : "no", ops.c_str(), r.ms);
    text += line;
  }
  for (const std::string& w : warnings) text += "warning: " + w + "\n";
  double own = 0;
  for (const Run& r : runs) own += r.ms;
  std::snprintf(line, sizeof(line), "%.3f ms in passes, %.3f ms all in all\n", own, ms);
  return text + line;
}

}  // namespace heddle
