// Programs of parts.
#include "partition/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/heddle.h"
#include "partition/description.h"
#include "tests/partition/program_text.h"

namespace heddle::partition {
namespace {

using ::testing::ElementsAre;

// Loops that take turns with convolutions: a part has the blocks that its own loop runs, under
// their numbers.
TEST(Parts, HaveTheBlocksThatTheirOperatorsRun) {
  ProgramText text(5);  // blocks 1 and 2 are loops; 3 is one in block 2; nothing runs 4
  text.Feed("x");
  text.Feed("go");
  text.Parameter("w", {4, 4, 3, 3});
  for (const char* name : {"a", "b", "c", "d"}) text.Tensor(name);
  const auto convolve = [&](const char* x, const char* y) {
    text.Op("conv2d", {{"Input", {x}}, {"Filter", {"w"}}}, {{"Output", {y}}},
            {AttrText("dilations", 3, {1, 1})});
  };
  const auto loop = [&](int64_t block, const char* x, const char* y, size_t in) {
    text.Op("while", {{"X", {x}}, {"Condition", {"go"}}}, {{"Out", {y}}},
            {AttrText("sub_block", 8, {block})}, in);
  };
  text.Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}}, {}, 1);
  text.Op("relu", {{"X", {"c"}}}, {{"Out", {"d"}}}, {}, 3);
  text.Op("relu", {{"X", {"x"}}}, {{"Out", {"d"}}}, {}, 4);
  loop(1, "x", "a", 0);
  convolve("a", "b");
  loop(2, "b", "c", 0);
  loop(3, "b", "c", 2);
  text.Fetch("c");
  const std::string bytes = text.Text();
  const auto target = LoadTarget(std::string(HEDDLE_SOURCE_DIR) + "/examples/targets/opu.json");
  ASSERT_TRUE(target.ok());
  const auto partition = PartitionBytes(bytes, {*target});
  ASSERT_TRUE(partition.ok()) << partition.status().ToString();
  const auto parts = PartsOf(bytes, *partition);
  ASSERT_TRUE(parts.ok()) << parts.status().ToString();
  std::vector<std::vector<size_t>> counts;  // operators of the inner blocks
  for (const Part& part : *parts) {
    const auto description = Description::Parse(part.program);
    ASSERT_TRUE(description.ok());
    const auto read = Program::Parse(part.program, part.name);
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    counts.emplace_back();
    for (size_t b = 1; b < description->blocks().size(); ++b)
      counts.back().push_back(description->blocks()[b].ops.size());
  }
  EXPECT_THAT(counts, ElementsAre(ElementsAre(1), ElementsAre(), ElementsAre(0, 1, 1)));
}

}  // namespace
}  // namespace heddle::partition
