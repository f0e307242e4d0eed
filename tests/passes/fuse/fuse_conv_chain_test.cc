// Pointwise, depthwise and pointwise convolutions become one operator where that is allowed and the
// results in between are large.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;

Tensor Values(const Shape& shape, double seed) {
  Tensor t = Tensor::Empty(DType::kF32, shape);
  for (int64_t i = 0; i < shape.numel(); ++i)
    t.mutable_data<float>()[i] = static_cast<float>(std::sin(static_cast<double>(i) * seed)) / 4;
  return t;
}

struct Block {
  int64_t channels = 8, wide = 48, side = 16;
  int64_t kernel = 3, stride = 1, dilation = 1;
  bool project = true, residual = false, open = false;
  std::string fetch_too = "";     // a variable in the middle
  std::string read_too = "";      // another reader of one
  bool filter_written = false;    // the first filter is no constant
  bool sum_of_expansion = false;  // the depthwise convolution's result is added to its input
};

// As a network has them: NCHW, biases as sums of their own. Declared sizes may be open.
struct Net {
  explicit Net(const Block& k) : block(k) {
    const int64_t open = k.open ? -1 : k.side;
    b.Feed("x", DType::kF32, {-1, k.channels, open, open});
    Convolve("x", k.channels, "e", k.wide, 1, open);
    Convolve("e.y", k.wide, "d", k.wide, k.kernel, k.open ? -1 : (k.side - 1) / k.stride + 1);
    if (k.project)
      Convolve("d.y", k.wide, "p", k.channels, 1, k.open ? -1 : (k.side - 1) / k.stride + 1);
    std::string last = k.project ? "p.y" : "d.y";
    if (k.residual || k.sum_of_expansion) {
      b.Var("s", DType::kF32, {-1, k.residual ? k.channels : k.wide, open, open});
      b.Op("elementwise_add", {{"X", {last}}, {"Y", {k.residual ? "x" : "e.y"}}}, {{"Out", {"s"}}});
      last = "s";
    }
    // At least two convolutions move to channels last, whatever becomes of these.
    b.Fetch(last);
    if (!k.fetch_too.empty()) b.Fetch(k.fetch_too);
    if (!k.read_too.empty()) b.Scale(k.read_too, "again", 2).Fetch("again");
    if (k.filter_written) b.Op("scale", {{"X", {"e.w"}}}, {{"Out", {"e.w"}}}, {{"scale", 1.0}});
  }

  void Convolve(const std::string& x, int64_t from, const std::string& n, int64_t to,
                int64_t kernel, int64_t side) {
    const bool depthwise = kernel > 1;
    const Shape filter{to, depthwise ? 1 : from, kernel, kernel};
    b.Param(n + ".w", DType::kF32, filter).Param(n + ".b", DType::kF32, {to});
    scope->Set(n + ".w", Value(Values(filter, 78.233)));
    scope->Set(n + ".b", Value(Values({to}, 3.7)));
    const int64_t pad = (kernel - 1) / 2 * block.dilation, step = depthwise ? block.stride : 1;
    const Shape out{-1, to, side, side};
    b.Var(n + ".c", DType::kF32, out)
        .Var(n + ".a", DType::kF32, out)
        .Var(n + ".y", DType::kF32, out);
    b.Op(depthwise ? "depthwise_conv2d" : "conv2d", {{"Input", {x}}, {"Filter", {n + ".w"}}},
         {{"Output", {n + ".c"}}},
         {{"paddings", depthwise ? Ints{pad, pad} : Ints{0, 0}},
          {"strides", Ints{step, step}},
          {"dilations", depthwise ? Ints{block.dilation, block.dilation} : Ints{1, 1}},
          {"groups", depthwise ? to : int64_t{1}}});
    b.Op("elementwise_add", {{"X", {n + ".c"}}, {"Y", {n + ".b"}}}, {{"Out", {n + ".a"}}},
         {{"axis", int64_t{1}}});
    b.Op("relu", {{"X", {n + ".a"}}}, {{"Out", {n + ".y"}}});
  }

  std::vector<Tensor> Run(int level, int threads, std::vector<std::string> disable = {}) {
    Executor executor({.threads = threads});
    CompileOptions options{.opt_level = level};
    options.passes.disable = std::move(disable);
    return MustRun(executor, MustCompile(executor, b.Build(), scope, options), feeds());
  }
  std::vector<heddle::Feed> feeds() const {
    return {{"x", Values({2, block.channels, block.side, block.side}, 12.9898)}};
  }

  // How many chains and single convolutions there are at level 2, once results were seen to be
  // those of level 0.
  std::vector<int> Counts() {
    const auto plain = Run(0, 1);
    for (const int threads : {1, 2}) {
      const auto fused = Run(2, threads);
      for (size_t i = 0; i < plain.size(); ++i) {
        const auto want = Floats(plain[i]), got = Floats(fused[i]);
        EXPECT_EQ(plain[i].shape(), fused[i].shape());
        for (size_t e = 0; e < want.size(); ++e)
          if (std::abs(want[e] - got[e]) > 1e-5 * (1 + std::abs(want[e]))) {
            ADD_FAILURE() << "output " << i << ", element " << e << ": " << want[e] << ", "
                          << got[e];
            break;
          }
      }
    }
    return CountsAfter({2, {}, {}});
  }
  std::vector<int> CountsAfter(const OptimizeOptions& options) {
    const auto optimized = passes::Optimize(b.Build().impl(), scope, options);
    if (!optimized.ok()) {
      ADD_FAILURE() << optimized.status().ToString();
      return {};
    }
    std::vector<int> counts(2, 0);
    for (const ir::Op& op : optimized->program->blocks[0].ops) {
      counts[0] += op.type() == "fused_conv_chain";
      counts[1] += op.type().find("conv2d") != std::string::npos;
    }
    return counts;
  }

  Block block;
  ProgramBuilder b = {};
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();
};

std::vector<int> Counts(const Block& block) { return Net(block).Counts(); }

TEST(FuseConvChain, BlocksOfMobileNetworks) {
  EXPECT_THAT(Counts({}), ElementsAre(1, 0));
  EXPECT_THAT(Counts({.residual = true}), ElementsAre(1, 0));
  EXPECT_THAT(Counts({.wide = 40, .side = 31, .kernel = 5, .stride = 2}), ElementsAre(1, 0));
  EXPECT_THAT(Counts({.open = true}), ElementsAre(1, 0));
}

TEST(FuseConvChain, WithoutTheLastConvolution) {
  EXPECT_THAT(Counts({.side = 80, .project = false}), ElementsAre(1, 0));
  EXPECT_THAT(Counts({.project = false}), ElementsAre(0, 2));
  // The chain ends where something else reads its results.
  EXPECT_THAT(Counts({.side = 80, .fetch_too = "d.y"}), ElementsAre(1, 1));
}

TEST(FuseConvChain, OnlyWhereItPays) {
  EXPECT_THAT(Counts({.channels = 16, .wide = 192, .side = 8}), ElementsAre(0, 3)) << "few rows";
  EXPECT_THAT(Counts({.wide = 16, .side = 12}), ElementsAre(0, 3)) << "little in between";
  EXPECT_THAT(Counts({.channels = 96, .wide = 192, .side = 12}), ElementsAre(0, 3)) << "filters";
  EXPECT_THAT(Counts({.channels = 32, .wide = 96, .open = true}), ElementsAre(0, 3)) << "open";
}

TEST(FuseConvChain, WhatOthersSeeIsLeft) {
  EXPECT_THAT(Counts({.fetch_too = "e.y"}), ElementsAre(0, 3));
  EXPECT_THAT(Counts({.read_too = "e.y"}), ElementsAre(0, 3));
  EXPECT_THAT(Counts({.fetch_too = "d.y"}), ElementsAre(0, 3));
  EXPECT_THAT(Counts({.project = false, .sum_of_expansion = true}), ElementsAre(0, 2));
}

TEST(FuseConvChain, OtherConvolutionsAreLeft) {
  EXPECT_THAT(Counts({.dilation = 2}), ElementsAre(0, 3));
  EXPECT_THAT(Counts({.kernel = 7}), ElementsAre(0, 3));
  EXPECT_THAT(Counts({.side = 40, .stride = 3}), ElementsAre(0, 3));
  EXPECT_EQ(Counts({.filter_written = true})[0], 0);
  Net half{{}};
  OptimizeOptions options{2, {}, {}};
  options.passes.precision = Precision::kBFloat16;
  EXPECT_THAT(half.CountsAfter(options), ElementsAre(0, 3));
}

TEST(FuseConvChain, PairsThatMultiplyInBfloat16) {
  OptimizeOptions low{2, {}, {}};
  low.passes.precision = Precision::kBFloat16;
  const auto counts = [&](const Block& block) { return Net(block).CountsAfter(low); };
  EXPECT_THAT(counts({.kernel = 1, .project = false}), ElementsAre(1, 0));
  EXPECT_THAT(counts({.kernel = 1, .project = false, .open = true}), ElementsAre(1, 0));
  EXPECT_THAT(counts({.kernel = 1}), ElementsAre(1, 1)) << "the third stays";
  EXPECT_THAT(counts({.kernel = 1, .project = false, .fetch_too = "e.y"}), ElementsAre(0, 2));
  EXPECT_THAT(counts({.kernel = 1, .project = false, .read_too = "e.y"}), ElementsAre(0, 2));
  EXPECT_THAT(counts({.kernel = 1, .stride = 2}), ElementsAre(1, 1));
  // In float32 there is nothing to round in between.
  EXPECT_THAT(Counts({.kernel = 1, .project = false}), ElementsAre(0, 2));
}

TEST(FuseConvChain, PairsStayNear) {
  for (const Precision precision : {Precision::kBFloat16, Precision::kInt8Products}) {
    Net net({.channels = 32, .wide = 64, .kernel = 1, .project = false, .open = true});
    CompileOptions low;
    low.passes.precision = precision;
    Executor executor({.threads = 2});
    const auto exact = Floats(net.Run(0, 1)[0]);
    const auto near = Floats(
        MustRun(executor, MustCompile(executor, net.b.Build(), net.scope, low), net.feeds())[0]);
    ASSERT_EQ(exact.size(), near.size());
    double norm = 0, distance = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      norm += double{exact[i]} * exact[i];
      distance += std::pow(double{exact[i]} - near[i], 2);
    }
    EXPECT_LT(std::sqrt(distance / norm), 4 * std::ldexp(1.0, -8)) << static_cast<int>(precision);
  }
}

TEST(FuseConvChain, TakesLessMemory) {
  Net net{{.side = 40}};
  size_t arena[2];
  for (const bool chained : {false, true}) {
    Executor executor({.threads = 1});
    CompileOptions options;
    if (!chained) options.passes.disable = {"fuse_conv_chain"};
    const auto stats =
        executor.Prepare(MustCompile(executor, net.b.Build(), net.scope, options), net.feeds());
    ASSERT_TRUE(stats.ok()) << stats.status().ToString();
    arena[chained] = stats->arena_bytes;
  }
  EXPECT_LT(2 * arena[1], arena[0]);
}

}  // namespace
}  // namespace heddle::testing
