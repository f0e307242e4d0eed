// Small programs whose groups can be told by looking at them, on the accelerator of
// examples/targets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/partition.h"
#include "tests/partition/program_text.h"

namespace heddle::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Target Accelerator() {
  auto target = LoadTarget(std::string(HEDDLE_SOURCE_DIR) + "/examples/targets/opu.json");
  EXPECT_TRUE(target.ok()) << target.status().ToString();
  return *target;
}

// A program whose operators make t0, t1, ... of what they are given.
class Net {
 public:
  Net() {
    text_.Parameter("w", {4, 4, 3, 3});
    text_.Feed("x");
  }
  std::string Op(const std::string& type, const std::string& x, const std::string& y = "") {
    const std::string out = "t" + std::to_string(count_++);
    text_.Tensor(out);
    if (type == "conv2d")
      text_.Op(type, {{"Input", {x}}, {"Filter", {"w"}}}, {{"Output", {out}}},
               {AttrText("dilations", 3, {1, 1})});
    else if (type == "concat")
      text_.Op(type, {{"X", {x, y}}}, {{"Out", {out}}}, {AttrText("axis", 0, {1})});
    else if (type == "pool2d")
      text_.Op(type, {{"X", {x}}}, {{"Out", {out}}}, {TextAttr("pooling_type", "max")});
    else if (!y.empty())
      text_.Op(type, {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}});
    else
      text_.Op(type, {{"X", {x}}}, {{"Out", {out}}});
    return out;
  }
  void Fetch(const std::string& name) { text_.Fetch(name); }
  BlockPartition Groups() const {
    const auto partition = PartitionBytes(text_.Text(), {Accelerator()});
    EXPECT_TRUE(partition.ok()) << partition.status().ToString();
    return partition->blocks[0];
  }

 private:
  ProgramText text_;
  int count_ = 0;
};

std::vector<std::vector<std::string>> UnitsOf(const BlockPartition& block) {
  std::vector<std::vector<std::string>> units;
  for (const PlacedGroup& group : block.groups) units.push_back(group.units);
  return units;
}

TEST(Examples, AGroupEndsWhereNoLinkLeadsOn) {
  Net net;
  const std::string conv = net.Op("conv2d", net.Op("concat", "x", "x"));
  net.Fetch(net.Op("pool2d", net.Op("conv2d", net.Op("relu", conv))));
  EXPECT_THAT(UnitsOf(net.Groups()),
              ElementsAre(ElementsAre("concat", "ipa", "compare"), ElementsAre("ipa", "pool")));
}

TEST(Examples, AUnitIsPassedOnceWithoutACycle) {
  Net twice;
  twice.Fetch(twice.Op("relu", twice.Op("relu", twice.Op("conv2d", "x"))));
  EXPECT_THAT(UnitsOf(twice.Groups()),
              ElementsAre(ElementsAre("ipa", "compare"), ElementsAre("compare")));
  Net around;
  around.Fetch(around.Op("relu", around.Op("pool2d", around.Op("relu", "x"))));
  EXPECT_THAT(UnitsOf(around.Groups()), ElementsAre(ElementsAre("compare", "pool", "compare")));
}

TEST(Examples, NoPathLeavesAGroupAndComesBack) {
  Net net;
  const std::string conv = net.Op("conv2d", "x"), soft = net.Op("softmax", conv);
  net.Fetch(net.Op("elementwise_add", conv, soft));
  const BlockPartition block = net.Groups();
  EXPECT_THAT(UnitsOf(block), ElementsAre(ElementsAre("ipa"), ElementsAre("res_add")));
  ASSERT_EQ(block.rest.size(), 3u);
  EXPECT_EQ(block.rest[0].reason, "feed");
  EXPECT_EQ(block.rest[1].reason, "no unit of opu takes softmax");
}

TEST(Examples, AGroupHasTheOutputsThatAreFetched) {
  Net net;
  const std::string conv = net.Op("conv2d", "x"), relu = net.Op("relu", conv);
  net.Fetch(conv);
  net.Fetch(relu);
  const BlockPartition block = net.Groups();
  ASSERT_EQ(block.groups.size(), 1u);
  EXPECT_THAT(block.groups[0].inputs, ElementsAre("x"));
  EXPECT_THAT(block.groups[0].outputs, ElementsAre(conv, relu));
}

TEST(Examples, WhatStaysSaysWhichConditionFailed) {
  ProgramText text;
  text.Parameter("w", {4, 4, 3, 3});
  text.Feed("x");
  for (const char* name : {"a", "b", "c", "d"}) text.Tensor(name);
  text.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"a"}}},
          {AttrText("dilations", 3, {1, 8})});
  text.Op("conv2d", {{"Input", {"a"}}, {"Filter", {"x"}}}, {{"Output", {"b"}}},
          {AttrText("dilations", 3, {1, 1})});
  text.Op("concat", {{"X", {"b", "x"}}}, {{"Out", {"c"}}});
  text.Op("fill_constant", {}, {{"Out", {"d"}}});
  text.Op("print", {{"In", {"c"}}}, {{"Out", {"d"}}});
  const auto partition = PartitionBytes(text.Text(), {Accelerator()});
  ASSERT_TRUE(partition.ok());
  std::vector<std::string> reasons;
  for (const RestOperator& rest : partition->blocks[0].rest) reasons.push_back(rest.reason);
  EXPECT_THAT(reasons, ElementsAre("feed", HasSubstr("'dilations' is [1, 8], not at most 4"),
                                   HasSubstr("slot Filter: 'x' is no parameter"),
                                   HasSubstr("attribute 'axis' is absent"),
                                   HasSubstr("that nothing reads"), "it has side effects"));
}

}  // namespace
}  // namespace heddle::partition
