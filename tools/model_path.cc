#include "tools/model_path.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

namespace heddle::tools {
namespace fs = std::filesystem;

Result<std::string> FindProgramFile(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error))
    return Status(StatusCode::kNotFound, path + ": no such file or directory");
  if (!fs::is_directory(path, error)) return path;
  const fs::path directory(path);
  for (const char* name : {"model.pdmodel", "inference.pdmodel"})
    if (fs::is_regular_file(directory / name, error)) return (directory / name).string();
  std::vector<std::string> models;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (entry.path().extension() == ".pdmodel") models.push_back(entry.path().string());
  if (models.size() == 1) return models.front();
  if (models.size() > 1)
    return Status(StatusCode::kInvalidArgument,
                  path + ": holds " + std::to_string(models.size()) + " .pdmodel files; name one");
  if (fs::is_regular_file(directory / "__model__", error))
    return (directory / "__model__").string();
  return Status(StatusCode::kNotFound, path + ": holds no .pdmodel file and no __model__");
}

std::string FindParameterFile(const std::string& program_file) {
  std::error_code error;
  fs::path path(program_file);
  if (path.extension() != ".pdmodel") return "";
  path.replace_extension(".pdiparams");
  return fs::is_regular_file(path, error) ? path.string() : "";
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
