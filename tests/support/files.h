// Folders and files of tests.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace heddle::testing {

// The recorded models and operator cases; empty when this checkout has none.
inline std::string SharedDir() {
  const std::string path = HEDDLE_SHARED_DIR;
  return std::filesystem::exists(path + "/models") ? path : "";
}

// Files below the shared models (and the repository's examples) that end with `extension`.
inline std::vector<std::string> ModelFiles(const std::string& extension) {
  std::vector<std::string> files;
  for (const std::string& root : {SharedDir(), std::string(HEDDLE_SOURCE_DIR "/examples")}) {
    if (root.empty()) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
      if (entry.path().extension() == extension) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// How often a test repeats itself: what the environment says, for runs longer than the usual ones.
inline int Repeats(const char* variable, int usual) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr ? std::max(1, std::atoi(value)) : usual;
}

// A directory that goes away with the object.
class TempDir {
 public:
  TempDir() {
    std::string pattern = std::filesystem::temp_directory_path() / "heddle_test_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace heddle::testing
