// The corpora of the fuzz targets, and what is left of each file when it is cut or a byte is
// changed.
#include <gtest/gtest.h>

#include "tests/fuzz/tensorflow_target.h"
#include "tests/support/fuzz_corpus.h"

namespace heddle::testing {
namespace {

template <typename Read>
void Replay(const std::string& name, size_t least, Read read) {
  const std::vector<std::string> files = Corpus(name);
  ASSERT_GE(files.size(), least);
  EXPECT_EQ(ReadableFiles(files, read), files.size());
  std::mt19937 random(11);
  for (const std::string& file : files)
    for (size_t at = 0; at < file.size(); ++at)
      ExpectAnswersToDamage(file, at, static_cast<char>(random()), read);
}

TEST(TensorflowCorpus, GraphsAreRead) {
  Replay("graph", 12, [](std::string_view bytes) { return ReadGraph(bytes); });
}

TEST(TensorflowCorpus, TextsAreRead) {
  Replay("text", 2, [](std::string_view bytes) { return ReadText(bytes); });
}

TEST(TensorflowCorpus, IndicesAreRead) {
  Replay("bundle", 4, [](std::string_view bytes) { return ReadBundleIndex(bytes); });
}

}  // namespace
}  // namespace heddle::testing
