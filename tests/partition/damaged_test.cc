// Damaged targets and programs: an error or an answer, never a crash.
#include <gtest/gtest.h>

#include <random>

#include "partition/partition.h"
#include "partition/parts.h"
#include "tests/partition/random_programs.h"

namespace heddle::partition {
namespace {

// Changes, drops or doubles a few bytes.
std::string Damaged(std::string text, RandomPrograms& random) {
  for (int n = random.Below(4) + 1; n > 0 && !text.empty(); --n) {
    const auto at = static_cast<size_t>(random.Below(static_cast<int>(text.size())));
    const auto length = std::min(text.size() - at, static_cast<size_t>(random.Below(8) + 1));
    switch (random.Below(4)) {
      case 0:
        text[at] = static_cast<char>(random.Below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text[at] = static_cast<char>(text[at] ^ (1 << random.Below(8)));
    }
  }
  return text;
}

TEST(Damaged, TargetsAreRefusedInOneLine) {
  RandomPrograms random(7);
  int refused = 0;
  for (int k = 0; k < 3000; ++k) {
    const auto target = ParseTarget(Damaged(random.Target(), random), "t.json");
    if (target.ok()) continue;
    ++refused;
    ASSERT_EQ(target.status().message().find('\n'), std::string::npos)
        << target.status().ToString();
    ASSERT_NE(target.status().message().find("t.json"), std::string::npos);
  }
  EXPECT_GT(refused, 1500);
}

TEST(Damaged, ProgramsAreRefusedOrGrouped) {
  RandomPrograms random(8);
  const Target target = *ParseTarget(random.Target(), "t.json");
  int refused = 0;
  for (int k = 0; k < 1500; ++k) {
    const std::string program = Damaged(random.Program(10 + random.Below(10)), random);
    const auto partition = PartitionBytes(program, {target});
    refused += !partition.ok();
    if (!partition.ok()) continue;
    (void)PartsOf(program, *partition);
    (void)PartitionDot(program, *partition);
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace heddle::partition
