// The corpus of the fuzz target, and what is left of each file when it is cut or a byte is changed.
#include <gtest/gtest.h>

#include "tests/fuzz/pir_target.h"
#include "tests/support/fuzz_corpus.h"

namespace heddle::testing {
namespace {

TEST(PirCorpus, IsRead) {
  const std::vector<std::string> files = Corpus("pir");
  ASSERT_GE(files.size(), 10u);
  EXPECT_GE(ReadableFiles(files, ReadPir), files.size() / 2)
      << "a corpus of damaged files finds little";
}

TEST(PirCorpus, CutOrChangedItIsOneError) { ExpectAnswersToDamage(Corpus("pir"), 40, ReadPir); }

}  // namespace
}  // namespace heddle::testing
