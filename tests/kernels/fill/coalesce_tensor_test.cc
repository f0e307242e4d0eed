// Parts of a storage that do not exist are refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// Reads a part of 2 elements from a storage of 6, or the message why not.
std::string ReadPart(int64_t part, const std::vector<int64_t>& layout) {
  ProgramBuilder b;
  b.Feed("storage", DType::kF32, {6}).Feed("old", DType::kF32, {2});
  b.Feed("layout", DType::kI64, {4}).Var("part", DType::kF32, {2});
  b.Op("read_storage", {{"Storage", {"storage"}}, {"Old", {"old"}}, {"Layout", {"layout"}}},
       {{"Out", {"part"}}}, {{"part", part}});
  b.Fetch("part");
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build());
  const auto out = executor.Run(compiled, {{"storage", F32({6}, {0, 1, 2, 3, 4, 5})},
                                           {"old", F32({2}, {0, 0})},
                                           {"layout", I64({4}, layout)}});
  if (!out.ok()) return out.status().ToString();
  return std::to_string(Floats((*out)[0])[0]);
}

TEST(CoalesceTensor, PartsBeyondTheStorageAreRefused) {
  EXPECT_EQ(ReadPart(1, {0, 16, 16, 8}), std::to_string(4.0f));
  for (const int64_t part : {int64_t{2}, int64_t{1} << 62})
    EXPECT_NE(ReadPart(part, {0, 16, 16, 8}).find("Layout has no part " + std::to_string(part)),
              std::string::npos);
  EXPECT_NE(ReadPart(1, {0, 16, -8, 8}).find("part 1 lies at -8, 8 bytes, beyond"),
            std::string::npos);
  EXPECT_NE(ReadPart(1, {0, 16, 16, 4}).find("has outgrown"), std::string::npos);
}

}  // namespace
}  // namespace heddle::testing
