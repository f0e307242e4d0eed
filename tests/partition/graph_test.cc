// Values, edges and the walk.
#include "partition/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/partition/program_text.h"

namespace heddle::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Description Parsed(const std::string& text) {
  auto description = Description::Parse(text);
  EXPECT_TRUE(description.ok()) << description.status().ToString();
  return *std::move(description);
}

std::vector<OpIndex> Copy(std::span<const OpIndex> ops) { return {ops.begin(), ops.end()}; }

TEST(Graph, AWriterComesBehindTheReadersOfWhatItOverwrites) {
  ProgramText text;
  const int feed = text.Feed("x");
  text.Tensor("y");
  text.Tensor("z");
  const int reader = text.Op("tanh", {{"X", {"x"}}}, {{"Out", {"y"}}});
  const int writer = text.Op("relu", {{"X", {"x"}}}, {{"Out", {"x"}}});
  const int after = text.Op("tanh", {{"X", {"x"}}}, {{"Out", {"z"}}});
  text.Fetch("z");
  const std::string bytes = text.Text();
  const Description description = Parsed(bytes);
  const Graph graph(description, 0);
  EXPECT_THAT(Copy(graph.before(writer)), ElementsAre(feed, reader));
  EXPECT_THAT(Copy(graph.makers(writer)), ElementsAre(feed));
  EXPECT_THAT(Copy(graph.before(after)), ElementsAre(writer));
  EXPECT_THAT(Copy(graph.after(feed)), ElementsAre(reader, writer));
}

TEST(Graph, TheWalkEndsOneBranchBeforeTheNext) {
  ProgramText text;
  const int feed = text.Feed("x");
  for (const char* name : {"a", "b", "c", "d", "e"}) text.Tensor(name);
  const int a = text.Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}});
  const int b = text.Op("relu", {{"X", {"x"}}}, {{"Out", {"b"}}});
  const int c = text.Op("tanh", {{"X", {"a"}}}, {{"Out", {"c"}}});
  const int d = text.Op("tanh", {{"X", {"b"}}}, {{"Out", {"d"}}});
  const int sum = text.Op("elementwise_add", {{"X", {"d"}}, {"Y", {"c"}}}, {{"Out", {"e"}}});
  const int fetch = text.Fetch("e");
  const std::string bytes = text.Text();
  const Description description = Parsed(bytes);
  EXPECT_THAT(Graph(description, 0).walk(), ElementsAre(feed, b, d, a, c, sum, fetch));
}

TEST(Graph, SideEffectsStayInTheirOrder) {
  ProgramText text;
  text.Feed("x");
  for (const char* name : {"a", "b", "c"}) text.Tensor(name);
  const int one = text.Op("print", {{"In", {"x"}}}, {{"Out", {"a"}}});
  const int two = text.Op("uniform_random", {}, {{"Out", {"b"}}});
  const int three = text.Op("dropout", {{"X", {"x"}}}, {{"Out", {"c"}}});
  const std::string bytes = text.Text();
  const Description description = Parsed(bytes);
  const Graph graph(description, 0);
  EXPECT_THAT(Copy(graph.before(two)), ElementsAre(one));
  EXPECT_THAT(Copy(graph.before(three)), ElementsAre(0, two));
  EXPECT_EQ(graph.never(one), Never::kSideEffect);
  EXPECT_EQ(graph.never(two), Never::kRandom);
  EXPECT_EQ(graph.never(three), Never::kRandom);
}

TEST(Graph, AnOperatorReadsAndWritesWhatItsBlocksDo) {
  ProgramText text(2);
  const int feed = text.Feed("x");
  text.Tensor("y");
  text.Tensor("z");
  text.Var(VarText("inner", {1}), 1);
  const int loop = text.Op("while", {}, {}, {AttrText("sub_block", 8, {1})});
  text.Op("relu", {{"X", {"x"}}}, {{"Out", {"inner"}}}, {}, 1);
  text.Op("relu", {{"X", {"inner"}}}, {{"Out", {"y"}}}, {}, 1);
  const int after = text.Op("tanh", {{"X", {"y"}}}, {{"Out", {"z"}}});
  const std::string bytes = text.Text();
  const Description description = Parsed(bytes);
  const Graph outer(description, 0), inner(description, 1);
  EXPECT_THAT(Copy(outer.before(loop)), ElementsAre(feed));
  EXPECT_THAT(Copy(outer.before(after)), ElementsAre(loop));
  EXPECT_EQ(outer.never(loop), Never::kControlFlow);
  // The block's result is needed outside of it.
  EXPECT_TRUE(inner.value(inner.writes(1)[0].value).kept);
  EXPECT_FALSE(inner.value(inner.writes(0)[0].value).kept);
  EXPECT_THAT(Copy(inner.before(0)), IsEmpty());
}

TEST(Graph, DamagedProgramsAreRefused) {
  ProgramText text;
  text.Feed("x");
  const std::string bytes = text.Text();
  EXPECT_FALSE(Description::Parse("").ok());
  for (size_t n = 1; n < bytes.size(); ++n)
    (void)Description::Parse(bytes.substr(0, n));  // no crash
  EXPECT_FALSE(Description::Parse(bytes.substr(0, bytes.size() - 1)).ok());
}

}  // namespace
}  // namespace heddle::partition
