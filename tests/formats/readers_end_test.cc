// Readers of all formats end at any look for interrupts, with the error that was asked for.
// HEDDLE_ENDS=<n> ends n readings instead of 600, HEDDLE_TEST_SEED=<n> others than usual.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/guard.h"
#include "tests/fuzz/onnx_target.h"
#include "tests/fuzz/pir_target.h"
#include "tests/fuzz/tensorflow_target.h"
#include "tests/support/ends_at_look.h"
#include "tests/support/fuzz_corpus.h"

namespace heddle::testing {
namespace {

struct Readable {
  const char* corpus;
  std::function<Status(std::string_view)> read;
  std::vector<std::string> files = {};
};

TEST(ReadersEnd, AtAnyLook) {
  std::vector<Readable> formats = {
      {"onnx", ReadOnnx}, {"pir", ReadPir}, {"graph", ReadGraph}, {"text", ReadText}};
  std::mt19937 random(static_cast<uint32_t>(Repeats("HEDDLE_TEST_SEED", 1)));
  const int count = Repeats("HEDDLE_ENDS", 600);
  std::map<std::string, int> ended;
  for (Readable& f : formats) f.files = Corpus(f.corpus);
  for (int k = 0; k < count; ++k) {
    const Readable& format = formats[random() % formats.size()];
    const std::string& file = format.files[random() % format.files.size()];
    const auto read = [&](EndsAtLook* ends) {
      const LimitScope limits(ends->limits());
      return Guard([&] { return format.read(file); });
    };
    EndsAtLook counts(0);
    const Status whole = read(&counts);
    if (counts.looks() == 0) continue;
    const auto at = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(counts.looks()));
    const auto way = random() % 8 == 0   ? EndsAtLook::kDeadline
                     : random() % 2 == 0 ? EndsAtLook::kStop
                                         : EndsAtLook::kHost;
    EndsAtLook ends(at, way);
    const Status status = read(&ends);
    EXPECT_TRUE(ends.EndsWell(status) || (!whole.ok() && status.code() == whole.code()))
        << format.corpus << ", look " << at << " of " << counts.looks() << ", way " << way << ": "
        << status.ToString();
    ended[format.corpus] += !status.ok();
    EXPECT_EQ(format.read(file).ToString(), whole.ToString());
  }
  for (const Readable& f : formats) EXPECT_GT(ended[f.corpus], 0) << f.corpus;
}

}  // namespace
}  // namespace heddle::testing
