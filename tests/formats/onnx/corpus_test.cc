// The corpus of the fuzz target, and what is left of each file when it is cut or a byte is changed.
#include <gtest/gtest.h>

#include "tests/fuzz/onnx_target.h"
#include "tests/support/fuzz_corpus.h"

namespace heddle::testing {
namespace {

TEST(OnnxCorpus, IsRead) {
  const std::vector<std::string> files = Corpus("onnx");
  ASSERT_GE(files.size(), 10u);
  EXPECT_GE(ReadableFiles(files, ReadOnnx), files.size() / 2)
      << "a corpus of damaged files finds little";
}

TEST(OnnxCorpus, CutOrChangedItIsOneError) { ExpectAnswersToDamage(Corpus("onnx"), 40, ReadOnnx); }

}  // namespace
}  // namespace heddle::testing
