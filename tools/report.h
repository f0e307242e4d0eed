// The page that `heddle profile --html` writes.
#pragma once

#include <string>

#include "tools/json_output.h"

namespace heddle::tools {

// One HTML document that needs nothing else: tools/report_page.html with the profile inside, as
// ProfileJson makes it. `before`: an earlier one to compare with, or null.
std::string ReportPage(const Json& profile, const Json& before);

}  // namespace heddle::tools
