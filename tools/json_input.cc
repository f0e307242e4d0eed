#include "tools/json_input.h"

#include <fstream>
#include <sstream>

namespace heddle::tools {

Result<Json> ReadJsonObject(const std::string& path, const std::string& command) {
  std::ifstream file(path);
  std::ostringstream text;  // a directory opens and cannot be read: then this stays empty
  if (file) text << file.rdbuf();
  if (!file) return Status(StatusCode::kNotFound, path + ": no such file, or not readable");
  // Objects of `Json` copy their members when they grow, and copies go down on the stack.
  constexpr int kMostLevels = 100;
  bool too_deep = false;
  const auto keep = [&](int level, Json::parse_event_t, const Json&) {
    too_deep = too_deep || level > kMostLevels;
    return !too_deep;
  };
  Json json = Json::parse(text.view(), keep, /*allow_exceptions=*/false);
  if (too_deep || !json.is_object())
    return Status(StatusCode::kInvalidArgument,
                  path + ": not what `heddle " + command + " --json` prints");
  return json;
}

}  // namespace heddle::tools
