// What the tests of the readers do with the corpora of the fuzz targets (tests/fuzz/<name>).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/status.h"
#include "tests/support/files.h"

namespace heddle::testing {

// The files of a corpus, in the order of their names.
inline std::vector<std::string> Corpus(const std::string& name) {
  std::vector<std::string> paths, files;
  for (const auto& entry :
       std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/fuzz/" + name))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) files.push_back(ReadAll(path));
  return files;
}

// How many files are read; the others are an error that says something.
template <typename Read>
size_t ReadableFiles(const std::vector<std::string>& files, Read read) {
  size_t readable = 0;
  for (const std::string& file : files) {
    const Status status = read(file);
    EXPECT_TRUE(status.ok() || !status.message().empty());
    readable += status.ok();
  }
  return readable;
}

// The file cut at `at`, and with another byte there, is read, or is one error.
template <typename Read>
void ExpectAnswersToDamage(const std::string& file, size_t at, char byte, Read read) {
  const Status cut = read(std::string_view(file).substr(0, at));
  EXPECT_TRUE(cut.ok() || !cut.message().empty()) << "cut at " << at;
  std::string changed = file;
  changed[at] = byte;
  const Status status = read(changed);
  EXPECT_TRUE(status.ok() || !status.message().empty()) << "changed at " << at;
}

// The same for each file at so many random places.
template <typename Read>
void ExpectAnswersToDamage(const std::vector<std::string>& files, int places, Read read) {
  std::mt19937 random(1);
  for (const std::string& file : files)
    for (int i = 0; i < places && !file.empty(); ++i) {
      const size_t at = random() % file.size();
      ExpectAnswersToDamage(file, at, static_cast<char>(random()), read);
    }
}

}  // namespace heddle::testing
