// Sums of gradients: which parts are added in the memory of those before them.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

int Count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
  return n;
}

// What writes the parts of a sum: 'p' a product's gradient, 's' another operator, 'f' a feed.
struct Case {
  std::string parts = "pp";
  bool fetched = false;  // the last part, too
  bool twice = false;    // the last part is added twice
  std::string op = "sum";
  int sums = 0;  // that are left in the plan
};

void Check(const Case& c) {
  const Shape shape = {4, 6};
  ProgramBuilder b;
  std::vector<Feed> feeds;
  const auto feed = [&](const std::string& name, const Shape& s) {
    b.Feed(name, DType::kF32, s);
    feeds.push_back({name, RandomF32(s, static_cast<uint32_t>(feeds.size()) + 1)});
    return name;
  };
  feed("y", {6, 5});
  std::vector<std::string> names;
  for (size_t i = 0; i < c.parts.size(); ++i) {
    const std::string n = std::to_string(i);
    names.push_back("g" + n);
    if (c.parts[i] == 'f') {
      feed("g" + n, shape);
      continue;
    }
    b.Var("g" + n, DType::kF32, shape);
    if (c.parts[i] == 's') {
      b.Op("softmax", {{"X", {feed("x" + n, shape)}}}, {{"Out", {"g" + n}}});
      continue;
    }
    b.Op("matmul_v2_grad",
         {{"X", {feed("x" + n, shape)}}, {"Y", {"y"}}, {"Out@GRAD", {feed("d" + n, {4, 5})}}},
         {{"X@GRAD", {"g" + n}}});
  }
  if (c.twice) names.push_back(names.back());
  b.Var("g", DType::kF32, shape);
  if (c.op == "sum")
    b.Op("sum", {{"X", names}}, {{"Out", {"g"}}});
  else
    b.Op(c.op, {{"X", {names[0]}}, {"Y", {names[1]}}}, {{"Out", {"g"}}});
  b.Var("end", DType::kF32, shape);
  b.Op("softmax", {{"X", {"g"}}}, {{"Out", {"end"}}}).Fetch("end").Fetch("g");
  if (c.fetched) b.Fetch(names.back());
  const Program program = b.Build();
  for (const int threads : {1, 2}) {
    Executor executor({.threads = threads});
    auto plain = MustCompile(executor, program, nullptr, {.opt_level = 0});
    for (const Schedule schedule : {Schedule::kAuto, Schedule::kLanes, Schedule::kParallel}) {
      auto added = MustCompile(executor, program, nullptr, {.opt_level = 2, .schedule = schedule});
      for (int run = 0; run < 2; ++run) {
        const auto want = MustRun(executor, plain, feeds), got = MustRun(executor, added, feeds);
        ASSERT_EQ(want.size(), got.size());
        for (size_t i = 0; i < want.size(); ++i) {
          const std::vector<float> x = Floats(want[i]), y = Floats(got[i]);
          for (size_t k = 0; k < x.size(); ++k)
            ASSERT_NEAR(x[k], y[k], 1e-5f) << c.parts << " " << i << ", " << k;
        }
      }
      const std::string text = *executor.PlanText(added, feeds);
      EXPECT_EQ(Count(text, "  sum [") + Count(text, "fused_elementwise") + Count(text, "grad_add"),
                c.sums)
          << c.parts << "\n"
          << text;
    }
  }
}

TEST(AddGradients, OfProductsGoWhereTheFirstPartLies) {
  Check({});
  Check({.parts = "ppp"});
  Check({.parts = "sp"});
  Check({.parts = "fp"});
  Check({.parts = "fpp"});
  Check({.op = "grad_add"});
}

TEST(AddGradients, WhatCannotAddIsAddedByTheSum) {
  Check({.parts = "ps", .sums = 1});
  Check({.parts = "psp", .sums = 1});
  Check({.parts = "fsp", .sums = 1});
}

TEST(AddGradients, LeavesAlone) {
  Check({.fetched = true, .sums = 1});
  Check({.twice = true, .sums = 1});
  Check({.parts = "ff", .sums = 1});
}

// Where nothing is fused, each part has memory of its own.
TEST(AddGradients, NeedsNoMemoryForFurtherParts) {
  const Shape shape = {64, 64};
  ProgramBuilder b;
  b.Feed("x", DType::kF32, shape);
  std::vector<Feed> feeds = {{"x", RandomF32(shape, 1)}};
  std::vector<std::string> parts;
  for (int i = 0; i < 3; ++i) {
    const std::string d = "d" + std::to_string(i);
    b.Feed(d, DType::kF32, shape);
    feeds.push_back({d, RandomF32(shape, 2 + static_cast<uint32_t>(i))});
    parts.push_back("g" + std::to_string(i));
    b.Var(parts.back(), DType::kF32, shape);
    b.Op("matmul_v2_grad", {{"X", {"x"}}, {"Y", {"x"}}, {"Out@GRAD", {d}}},
         {{"X@GRAD", {parts.back()}}});
  }
  b.Var("g", DType::kF32, shape).Op("sum", {{"X", parts}}, {{"Out", {"g"}}});
  b.Var("end", DType::kF32, shape).Op("softmax", {{"X", {"g"}}}, {{"Out", {"end"}}}).Fetch("end");
  const Program program = b.Build();
  Executor executor({.threads = 1});
  const auto bytes = [&](std::vector<std::string> disabled) {
    CompileOptions options;
    options.passes.disable = std::move(disabled);
    auto compiled = MustCompile(executor, program, nullptr, options);
    MustRun(executor, compiled, feeds);
    return executor.Prepare(compiled, feeds)->arena_bytes;
  };
  EXPECT_EQ(bytes({}), 64u * 64 * 4);
  EXPECT_GE(bytes({"add_gradients"}), 2u * 64 * 64 * 4);
}

}  // namespace
}  // namespace heddle::testing
