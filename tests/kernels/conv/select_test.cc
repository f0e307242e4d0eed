// The choice among implementations of convolutions and products: forced, for another machine, and
// as plans and errors show it. What they compute: implementations_test.cc, here and of products.
#include "kernels/conv/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/machine.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kOldMachine = R"({"name": "old", "instructions": "avx2 fma"})";
constexpr const char* kNewMachine =
    R"({"name": "new", "instructions": "avx2 fma avx512 avx512_vnni avx512_bf16 amx_bf16"})";

// A convolution 3x3 of 32 channels, channels last, and a product with a constant matrix.
class Choice : public ::testing::Test {
 protected:
  Choice() {
    const Shape image = {1, 28, 28, 32}, filter = {32, 32, 3, 3}, matrix = {32, 8};
    b_.Feed("x", DType::kF32, image).Param("w", DType::kF32, filter);
    b_.Var("y", DType::kF32, image).Param("m", DType::kF32, matrix);
    b_.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"y"}}},
          {{"paddings", Ints{1, 1}}, {"data_format", "NHWC"}});
    b_.Op("fused_matmul", {{"X", {"y"}}, {"Y", {"m"}}}, {{"Out", {"z"}}}).Fetch("z");
    scope_->Set("w", Value(Ones(filter)));
    scope_->Set("m", Value(Ones(matrix)));
    feeds_ = {{"x", Ones(image)}};
  }

  static Tensor Ones(const Shape& shape) {
    return F32(shape, std::vector<float>(static_cast<size_t>(shape.numel()), 1.f));
  }
  Result<CompiledProgram> Compile(const CompileOptions& options) {
    return executor_.Compile(b_.Build(), scope_, options);
  }
  // Of the convolution and of the product, or the error.
  std::pair<std::string, std::string> Names(CompileOptions options) {
    options.opt_level = 0;
    auto compiled = Compile(options);
    if (!compiled.ok()) return {compiled.status().message(), ""};
    auto plan = executor_.DescribePlan(*compiled, feeds_);
    if (!plan.ok()) return {plan.status().ToString(), ""};
    return {plan->instructions[0].implementation, plan->instructions[1].implementation};
  }

  ProgramBuilder b_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::vector<heddle::Feed> feeds_;
  Executor executor_{{.threads = 1}};
};

TEST_F(Choice, TheFirstThatCoversIsTakenOfSeveral) {
  EXPECT_EQ(Names({.force = "conv=depthwise:im2col"}).first, "im2col + gemm");
}

TEST_F(Choice, WhatDoesNotCoverIsRefusedWithWhatDoes) {
  const std::string why = Names({.force = "conv=depthwise"}).first;
  EXPECT_THAT(why, HasSubstr("force: conv=depthwise does not cover this case; implementations that "
                             "do are "));
  EXPECT_THAT(why, HasSubstr("im2col"));
  EXPECT_THAT(why, HasSubstr("conv2d -> y"));
  EXPECT_THAT(Names({.force = "convs=direct"}).first, HasSubstr("there is no family \"convs\""));
}

TEST_F(Choice, PlansForOtherMachinesAreShownAndNotRun) {
  EXPECT_EQ(Names({.machine = kNewMachine}).first, "winograd 4x4, avx512");
  EXPECT_EQ(Names({.machine = kOldMachine}).first, "winograd 4x4, avx2");
  EXPECT_EQ(Names({.force = "conv=direct", .machine = kNewMachine}).first, "direct, avx512");
  EXPECT_THAT(Names({.machine = "{"}).first, HasSubstr("machine: no JSON object"));
  auto compiled = Compile({.machine = kNewMachine});
  ASSERT_TRUE(compiled.ok());
  EXPECT_THAT(executor_.Run(*compiled, feeds_).status().message(),
              HasSubstr("machine 'new' as described: its plans can be shown, not run"));
}

// One choice for one case and machine, whatever machine asks.
TEST(Ranking, IsAFunctionOfCaseAndMachine) {
  ConvGeometry g;
  g.channels_last = true;
  g.batch = 1, g.in_c = g.out_c = 64;
  g.in = g.out = {1, 56, 56};
  g.kernel = {1, 3, 3}, g.pad_lo = g.pad_hi = {0, 1, 1};
  const Tensor filter = Tensor::Empty(DType::kF32, {64, 64, 3, 3});
  const Epilogue none;
  const ConvCase c{g, DType::kF32, ConvDirection::kForward, &filter, none, 1, false};
  Machine wide;
  wide.instructions = kAvx2 | kFma | kAvx512;
  EXPECT_EQ(DescribeConv(c, wide), "winograd 4x4, avx512");
  const auto ranked = Ranked(ConvImplementations(), c, wide);
  EXPECT_STREQ(ranked.back()->name, "im2col");
  for (size_t i = 1; i < ranked.size(); ++i)
    EXPECT_LE(ranked[i - 1]->cost_ns(c, wide), ranked[i]->cost_ns(c, wide));
  // A filter that is read once per run costs as much as a vector takes to come.
  wide.cycles_to_read_vector = 1e6;
  EXPECT_NE(DescribeConv(c, wide), "winograd 4x4, avx512");
}

// oneDNN computes a whole vector of channels, of which one is wanted here.
TEST(ChooseConv, TransposedToOneChannelIsNotLeftToBfloat16) {
  ConvGeometry g;
  g.channels_last = true;
  g.batch = g.in_c = 1;
  g.out_c = 24;
  g.in = {1, 400, 300};
  g.out = {1, 200, 150};
  g.kernel = g.stride = {1, 2, 2};
  const Tensor filter = Tensor::Zeros(DType::kF32, {24, 1, 2, 2});
  Epilogue epilogue;
  epilogue.bf16 = true;
  const ConvCase c{g, DType::kF32, ConvDirection::kBackwardData, &filter, epilogue, 1, false};
  const auto machine = Machine::Parse(kNewMachine);
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(DescribeConv(c, *machine), "patches, avx512");
}

}  // namespace
}  // namespace heddle::testing
