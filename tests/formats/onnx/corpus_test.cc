// The corpus of the fuzz target, and what is left of each file when it is cut or a byte is changed.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <vector>

#include "tests/fuzz/onnx_target.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

std::vector<std::string> Corpus() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/fuzz/onnx"))
    files.push_back(ReadAll(entry.path().string()));
  return files;
}

void ExpectAnAnswer(std::string_view bytes) {
  const Status status = ReadOnnx(bytes);
  EXPECT_TRUE(status.ok() || !status.message().empty());
}

TEST(OnnxCorpus, IsRead) {
  const std::vector<std::string> files = Corpus();
  ASSERT_GE(files.size(), 10u);
  size_t read = 0;
  for (const std::string& file : files) {
    ExpectAnAnswer(file);
    read += ReadOnnx(file).ok();
  }
  EXPECT_GE(read, files.size() / 2) << "a corpus of damaged files finds little";
}

TEST(OnnxCorpus, CutOrChangedItIsOneError) {
  std::mt19937 random(1);
  for (const std::string& file : Corpus()) {
    for (int i = 0; i < 40; ++i) {
      const size_t at = random() % file.size();
      ExpectAnAnswer(std::string_view(file).substr(0, at));
      std::string changed = file;
      changed[at] = static_cast<char>(random() % 128);
      ExpectAnAnswer(changed);
    }
  }
}

}  // namespace
}  // namespace heddle::testing
