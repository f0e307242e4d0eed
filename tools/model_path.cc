#include "tools/model_path.h"

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "heddle/model_files.h"

namespace heddle::tools {
namespace fs = std::filesystem;

std::string FindParameterFile(const std::string& program_file) {
  std::error_code error;
  const std::string path = DefaultParameters(program_file);
  return fs::is_regular_file(path, error) ? path : "";
}

std::string VersionText(int64_t version) {
  if (version <= 0) return std::to_string(version);
  return std::to_string(version / 1000000) + "." + std::to_string(version / 1000 % 1000) + "." +
         std::to_string(version % 1000);
}

std::string BytesText(double bytes) {
  const char* unit = "B";
  for (const char* larger : {"kB", "MB", "GB", "TB"}) {
    if (bytes < 1000) break;
    bytes /= 1000;
    unit = larger;
  }
  char text[32];
  std::snprintf(text, sizeof(text), *unit == 'B' ? "%.0f %s" : "%.1f %s", bytes, unit);
  return text;
}

}  // namespace heddle::tools
