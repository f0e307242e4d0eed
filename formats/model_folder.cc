#include "formats/model_folder.h"

#include <algorithm>
#include <filesystem>

namespace heddle::formats {

namespace fs = std::filesystem;

std::string FolderBehindLink(const std::string& model) {
  std::error_code error;
  if (model.empty() || !fs::is_symlink(model, error)) return {};
  const fs::path file = fs::canonical(model, error);
  return error ? std::string() : file.parent_path().string();
}

std::string FileIn(const std::string& folder, const std::string& path) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  if (folder.empty() || error) return {};
  const fs::path base(folder);
  const auto [rest, unused] = std::mismatch(base.begin(), base.end(), file.begin(), file.end());
  return rest == base.end() ? file.string() : std::string();
}

std::string FileBehind(const std::string& behind, const std::string& link) {
  std::error_code error;
  if (behind.empty() || !fs::is_symlink(link, error)) return {};
  const fs::path file = fs::canonical(link, error);
  return !error && file.parent_path() == behind ? file.string() : std::string();
}

}  // namespace heddle::formats
