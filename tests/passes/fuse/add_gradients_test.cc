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

// The writers of a sum's parts: 'p' a product's gradient, 'l' that of layer_norm, 'e' that of a
// table, 's' another operator, 'f' a feed.
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
    if (c.parts[i] == 'l') {
      b.Op("layer_norm_grad",
           {{"X", {feed("x" + n, shape)}},
            {"Mean", {feed("m" + n, {4})}},
            {"Variance", {feed("v" + n, {4})}},
            {"Y@GRAD", {feed("d" + n, shape)}}},
           {{"X@GRAD", {"g" + n}}}, {{"epsilon", 2.0}});
      continue;
    }
    if (c.parts[i] == 'e') {
      const std::string ids = "i" + n;
      b.Feed(ids, DType::kI64, {3});
      feeds.push_back({ids, I64({3}, {2, 0, 2})});
      b.Op("lookup_table_v2_grad",
           {{"W", {feed("x" + n, shape)}}, {"Ids", {ids}}, {"Out@GRAD", {feed("d" + n, {3, 6})}}},
           {{"W@GRAD", {"g" + n}}});
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

TEST(AddGradients, OfNormsAndTablesGoWhereTheFirstPartLies) {
  Check({.parts = "sl"});
  Check({.parts = "ll"});
  Check({.parts = "se"});
  Check({.parts = "ee"});
  Check({.parts = "lpe"});
  Check({.parts = "fel"});
}

// A convolution's gradient and another one, whose sums are compared with those of the program as it
// is. One filter of two convolutions, or one input.
struct ConvCase {
  std::string op = "conv2d";
  std::string layout = "NCHW";
  Shape filter = {6, 3, 3, 3};
  Ints paddings = {1, 1}, strides = {1, 1};
  int64_t groups = 1;
  int sums = 0;  // that are left in the plan, of two
};

void CheckConv(const ConvCase& c) {
  const bool transposed = c.op.find("transpose") != std::string::npos;
  const int64_t in_c = transposed ? c.filter[0] : c.filter[1] * c.groups,
                out_c = transposed ? c.filter[1] * c.groups : c.filter[0];
  const int64_t side = 7;
  const auto out_side = [&](size_t d) {
    const int64_t k = c.filter[static_cast<int>(d) + 2];
    return transposed ? (side - 1) * c.strides[d] - 2 * c.paddings[d] + k
                      : (side + 2 * c.paddings[d] - k) / c.strides[d] + 1;
  };
  const bool last = c.layout == "NHWC";
  const auto image = [&](int64_t channels, int64_t h, int64_t w) {
    return last ? Shape{2, h, w, channels} : Shape{2, channels, h, w};
  };
  const Shape in = image(in_c, side, side), out = image(out_c, out_side(0), out_side(1));
  ProgramBuilder b;
  std::vector<Feed> feeds;
  const auto feed = [&](const std::string& name, const Shape& s) {
    b.Feed(name, DType::kF32, s);
    feeds.push_back({name, RandomF32(s, static_cast<uint32_t>(feeds.size()) + 1)});
    return name;
  };
  feed("x", in);
  feed("w", c.filter);
  std::vector<std::string> inputs, filters;
  for (const std::string n : {"0", "1"}) {
    inputs.push_back("gx" + n);
    filters.push_back("gw" + n);
    b.Var(inputs.back(), DType::kF32, in).Var(filters.back(), DType::kF32, c.filter);
    b.Op(c.op + "_grad",
         {{"Input", {"x"}}, {"Filter", {"w"}}, {"Output@GRAD", {feed("d" + n, out)}}},
         {{"Input@GRAD", {inputs.back()}}, {"Filter@GRAD", {filters.back()}}},
         {{"data_format", c.layout},
          {"paddings", c.paddings},
          {"strides", c.strides},
          {"groups", c.groups}});
  }
  b.Var("gx", DType::kF32, in).Op("sum", {{"X", inputs}}, {{"Out", {"gx"}}}).Fetch("gx");
  b.Var("gw", DType::kF32, c.filter).Op("sum", {{"X", filters}}, {{"Out", {"gw"}}}).Fetch("gw");
  const Program program = b.Build();
  for (const int threads : {1, 2}) {
    Executor executor({.threads = threads});
    auto plain = MustCompile(executor, program, nullptr, {.opt_level = 0});
    auto added = MustCompile(executor, program, nullptr, {.opt_level = 2});
    for (int run = 0; run < 2; ++run) {
      const auto want = MustRun(executor, plain, feeds), got = MustRun(executor, added, feeds);
      ASSERT_EQ(want.size(), got.size());
      for (size_t i = 0; i < want.size(); ++i) {
        const std::vector<float> x = Floats(want[i]), y = Floats(got[i]);
        for (size_t k = 0; k < x.size(); ++k)
          ASSERT_NEAR(x[k], y[k], 1e-5f * 16) << c.op << " " << c.layout << ", " << i << ", " << k;
      }
    }
    EXPECT_EQ(Count(*executor.PlanText(added, feeds), "  sum ["), c.sums)
        << c.op << " " << c.layout;
  }
}

TEST(AddGradients, OfConvolutionsGoWhereTheFirstPartLies) {
  CheckConv({});
  CheckConv({.filter = {4, 3, 1, 1}, .paddings = {0, 0}});
  CheckConv({.filter = {16, 32, 3, 3}});
  CheckConv({.filter = {6, 2, 3, 5}, .paddings = {0, 2}, .strides = {2, 1}, .groups = 2});
  CheckConv({.op = "depthwise_conv2d", .filter = {8, 1, 3, 3}, .groups = 8});
  CheckConv({.op = "conv2d_transpose", .filter = {3, 6, 3, 3}});
  CheckConv({.op = "conv2d_transpose", .filter = {4, 2, 4, 4}, .strides = {2, 2}, .groups = 2});
}

TEST(AddGradients, OfConvolutionsWithChannelsLastAreLeftAlone) {
  CheckConv({.layout = "NHWC", .sums = 2});
}

// A sparse gradient is no tensor, whatever the program says about its variable.
TEST(AddGradients, OfSparseTablesAreLeftAlone) {
  ProgramBuilder b;
  const Shape shape = {4, 6};
  b.Feed("ids", DType::kI64, {3}).Feed("w", DType::kF32, shape).Feed("d", DType::kF32, {3, 6});
  b.Feed("x", DType::kF32, shape).Var("g0", DType::kF32, shape).Var("g1", DType::kF32, shape);
  b.Op("softmax", {{"X", {"x"}}}, {{"Out", {"g0"}}});
  b.Op("lookup_table_v2_grad", {{"W", {"w"}}, {"Ids", {"ids"}}, {"Out@GRAD", {"d"}}},
       {{"W@GRAD", {"g1"}}}, {{"is_sparse", true}});
  b.Var("g", DType::kF32, shape).Op("sum", {{"X", {"g0", "g1"}}}, {{"Out", {"g"}}}).Fetch("g");
  const std::vector<Feed> feeds = {{"ids", I64({3}, {2, 0, 2})},
                                   {"w", RandomF32(shape, 1)},
                                   {"d", RandomF32({3, 6}, 2)},
                                   {"x", RandomF32(shape, 3)}};
  const Program program = b.Build();
  Executor executor({.threads = 1});
  auto plain = MustCompile(executor, program, nullptr, {.opt_level = 0});
  auto added = MustCompile(executor, program, nullptr, {.opt_level = 2});
  EXPECT_EQ(Floats(MustRun(executor, plain, feeds)[0]), Floats(MustRun(executor, added, feeds)[0]));
}

TEST(AddGradients, WhatCannotAddIsAddedByTheSum) {
  Check({.parts = "ps", .sums = 1});
  Check({.parts = "psp", .sums = 1});
  Check({.parts = "fsp", .sums = 1});
}

// A fetched part, a part that is added twice, and parts that no operator writes.
TEST(AddGradients, SumsThatAreNotAbsorbed) {
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
