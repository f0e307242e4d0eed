// The corpora of the fuzz targets, and what is left of each file when it is cut or a byte is
// changed.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/tensorflow_target.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

std::vector<std::string> Corpus(const std::string& name) {
  std::vector<std::string> files;
  const std::string folder = HEDDLE_SOURCE_DIR "/tests/fuzz/" + name;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(ReadAll(entry.path().string()));
  return files;
}

template <typename Read>
void Replay(const std::string& name, size_t least, Read read) {
  const std::vector<std::string> files = Corpus(name);
  ASSERT_GE(files.size(), least);
  std::mt19937 random(11);
  for (const std::string& file : files) {
    EXPECT_TRUE(read(file).ok()) << read(file).ToString();
    for (size_t n = 0; n < file.size(); ++n) {
      const Status cut = read(std::string_view(file).substr(0, n));
      EXPECT_TRUE(cut.ok() || !cut.message().empty());
      std::string changed = file;
      changed[n] = static_cast<char>(random());
      const Status status = read(changed);
      EXPECT_TRUE(status.ok() || !status.message().empty());
    }
  }
}

TEST(TensorflowCorpus, GraphsAreRead) {
  Replay("graph", 9, [](std::string_view bytes) { return ReadGraph(bytes); });
}

TEST(TensorflowCorpus, IndicesAreRead) {
  Replay("bundle", 3, [](std::string_view bytes) { return ReadBundleIndex(bytes); });
}

}  // namespace
}  // namespace heddle::testing
