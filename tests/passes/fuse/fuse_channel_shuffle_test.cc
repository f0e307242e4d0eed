// A channel shuffle as one pass over memory, and when it stays what it was.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Shuffle {
  std::vector<int64_t> widths = {6, 6};
  int64_t height = 5, width = 7, batch = 3;
  Ints apart = {-1, 5, 7, 2, 6}, axis = {0, 1, 2, 4, 3}, together = {-1, 5, 7, 12};
  int64_t concat_axis = 3;
  bool split = true;
  int64_t num = 2;
  Ints sections = {};
  std::string fetch_between = "";  // a result in the middle
  bool overwritten = false;        // the first part, before the last operator
};

// The outputs at this level; whether the plan has the fused operator.
std::vector<Tensor> Results(const Shuffle& s, int level, int threads, bool* fused) {
  ProgramBuilder b;
  std::vector<Feed> feeds;
  std::vector<std::string> parts;
  for (size_t i = 0; i < s.widths.size(); ++i) {
    const std::string name = "x" + std::to_string(i), part = "p" + std::to_string(i);
    const int64_t channels = s.widths[i];
    b.Feed(name, DType::kF32, {-1, s.height, s.width, channels});
    b.Var(part, DType::kF32, {-1, s.height, s.width, channels});
    b.Scale(name, part, 2);
    feeds.push_back({name, RandomF32({s.batch, s.height, s.width, channels}, int(i) + 1)});
    parts.push_back(part);
  }
  int64_t all = 0;
  for (int64_t w : s.widths) all += w;
  b.Var("c", DType::kF32, {-1, s.height, s.width, all});
  b.Op("concat", {{"X", parts}}, {{"Out", {"c"}}}, {{"axis", s.concat_axis}});
  b.Op("reshape2", {{"X", {"c"}}}, {{"Out", {"d"}}, {"XShape", {"dx"}}}, {{"shape", s.apart}});
  b.Op("transpose2", {{"X", {"d"}}}, {{"Out", {"e"}}, {"XShape", {"ex"}}}, {{"axis", s.axis}});
  b.Op("reshape2", {{"X", {"e"}}}, {{"Out", {"f"}}, {"XShape", {"fx"}}}, {{"shape", s.together}});
  if (s.overwritten) b.Scale("p0", "p0", 3);
  std::vector<std::string> outs{"f"};
  if (s.split) {
    outs.clear();
    const size_t count = s.num > 0 ? static_cast<size_t>(s.num) : s.sections.size();
    for (size_t i = 0; i < count; ++i) outs.push_back("o" + std::to_string(i));
    b.Op("split", {{"X", {"f"}}}, {{"Out", outs}},
         {{"axis", int64_t{3}}, {"num", s.num}, {"sections", s.sections}});
  }
  for (const std::string& o : outs) b.Scale(o, o + "y", 0.5).Fetch(o + "y");
  if (!s.fetch_between.empty()) b.Fetch(s.fetch_between);
  if (s.overwritten) b.Scale("p0", "p", 1).Fetch("p");
  Executor executor({.threads = threads});
  auto compiled = MustCompile(executor, b.Build(), std::make_shared<Scope>(), {.opt_level = level});
  const auto plan = executor.PlanText(compiled, feeds);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  *fused = plan.ok() && plan->find("fused_channel_shuffle") != std::string::npos;
  return MustRun(executor, compiled, feeds);
}

// Whether they became one, after a check that results are those of level 0.
bool Fused(const std::function<void(Shuffle&)>& change = [](Shuffle&) {}) {
  Shuffle s;
  change(s);
  bool plain = false, fused = false;
  const auto want = Results(s, 0, 1, &plain);
  EXPECT_FALSE(plain);
  for (const int threads : {1, 3}) {
    const auto got = Results(s, 2, threads, &fused);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].shape(), want[i].shape());
      EXPECT_EQ(Bits(got[i]), Bits(want[i])) << "output " << i;
    }
  }
  return fused;
}

TEST(FuseChannelShuffle, WithASplitAndWithout) {
  EXPECT_TRUE(Fused());
  EXPECT_TRUE(Fused([](Shuffle& s) { s.split = false; }));
  EXPECT_TRUE(Fused([](Shuffle& s) { s.num = 3; }));
  EXPECT_TRUE(Fused([](Shuffle& s) { s.num = 0, s.sections = {5, 1, 6}; }));
  EXPECT_TRUE(Fused([](Shuffle& s) { s.batch = 50; }));
}

TEST(FuseChannelShuffle, OtherGroups) {
  EXPECT_TRUE(Fused([](Shuffle& s) {
    s.widths = {4, 4, 4};
    s.apart = {-1, 5, 7, 3, 4};
  }));
  EXPECT_TRUE(Fused([](Shuffle& s) {
    s.widths = {3, 3};
    s.apart = {-1, 5, 7, 2, 3}, s.together = {-1, 5, 7, 6};
  }));
}

// Reshapes may go by other dimensions than those of the parts.
TEST(FuseChannelShuffle, ShapesOfTheReshapes) {
  EXPECT_TRUE(Fused([](Shuffle& s) {
    s.apart = {-1, 2, 6}, s.axis = {0, 2, 1}, s.together = {3, 7, -1, 12};
  }));
  EXPECT_FALSE(Fused([](Shuffle& s) { s.apart[0] = 0; }));
  EXPECT_FALSE(Fused([](Shuffle& s) { s.together[0] = 0; }));
  EXPECT_FALSE(Fused([](Shuffle& s) { s.together = {-1, 5, 14, 6}, s.num = 2; }));
}

TEST(FuseChannelShuffle, WhatIsNoShuffleStays) {
  EXPECT_FALSE(Fused([](Shuffle& s) { s.widths = {4, 8}; }));
  EXPECT_FALSE(Fused([](Shuffle& s) { s.apart = {-1, 5, 7, 3, 4}; }));
  EXPECT_FALSE(Fused([](Shuffle& s) { s.axis = {0, 2, 1, 4, 3}; }));
  EXPECT_FALSE(Fused([](Shuffle& s) {
    s.concat_axis = 0;
    s.widths = {12, 12};
  }));
}

TEST(FuseChannelShuffle, WhatOthersReadStays) {
  for (const char* between : {"c", "d", "e"})
    EXPECT_FALSE(Fused([&](Shuffle& s) { s.fetch_between = between; })) << between;
  EXPECT_FALSE(Fused([](Shuffle& s) { s.overwritten = true; }));
}

// The result of the shuffle is one of its outputs then.
TEST(FuseChannelShuffle, AFetchedResultIsNotCut) {
  EXPECT_TRUE(Fused([](Shuffle& s) { s.fetch_between = "f"; }));
}

}  // namespace
}  // namespace heddle::testing
