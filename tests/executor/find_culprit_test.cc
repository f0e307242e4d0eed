// Errors and NaN behind what passes made: the file's operator and variable are named.
#include "executor/find_culprit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Culprit : public ::testing::TestWithParam<Schedule> {
 protected:
  // Of a run that fails, at the highest level; the program without passes says the same.
  std::string Failure(const ProgramBuilder& b, const std::vector<heddle::Feed>& feeds,
                      CompileOptions options = {}) {
    options.schedule = GetParam();
    const auto compiled = MustCompile(executor_, b.Build(), nullptr, options);
    const Status status = executor_.Run(compiled, feeds, {.check_nan_inf = true}).status();
    EXPECT_FALSE(status.ok());
    return status.ToString();
  }
  // With shapes passes dare to fuse.
  static void Declare(ProgramBuilder* b, std::initializer_list<const char*> names) {
    for (const char* name : names) b->Var(name, DType::kF32, {2});
  }
  Executor executor_{{.threads = 2}};
};

TEST_P(Culprit, InAnElementwiseFusionIsNamed) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  Declare(&b, {"a", "s", "t", "y"});
  b.Unary("log", "x", "a").Unary("sigmoid", "a", "s");
  b.Scale("s", "t", 2).Binary("elementwise_add", "a", "t", "y").Fetch("y");
  const std::vector<heddle::Feed> feeds = {{"x", F32({2}, {1, -1})}};
  EXPECT_THAT(*executor_.PlanText(MustCompile(executor_, b.Build()), feeds),
              HasSubstr("fused_elementwise"));
  EXPECT_THAT(Failure(b, feeds),
              AllOf(HasSubstr("block 0, op 1 (log -> a)"), HasSubstr("variable 'a', float32 [2]"),
                    HasSubstr("nan at [1]"), Not(HasSubstr("fused"))));
  // The program is kept as what it takes to read it again.
  EXPECT_THAT(Failure(b, feeds, {.lean = true}), HasSubstr("op 1 (log -> a)"));
  EXPECT_EQ(Failure(b, feeds), Failure(b, feeds, {.opt_level = 0}));
}

// A fusion may have the place of any operator that it is made of.
TEST_P(Culprit, InAFusionAtThePlaceOfItsFirstOperatorIsNamed) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 2}).Feed("w", DType::kF32, {2, 2}).Feed("c", DType::kF32, {2});
  for (const char* name : {"product", "sum", "y"}) b.Var(name, DType::kF32, {2, 2});
  b.Binary("matmul_v2", "x", "w", "product").Binary("elementwise_add", "product", "c", "sum");
  b.Unary("tanh", "sum", "y").Fetch("y");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor ones = F32({2, 2}, {1, 1, 1, 1});
  const auto feeds = [&](float w, float c) {
    return std::vector<heddle::Feed>{
        {"x", ones}, {"w", F32({2, 2}, {1, 1, 1, w})}, {"c", F32({2}, {0, c})}};
  };
  EXPECT_THAT(*executor_.PlanText(MustCompile(executor_, b.Build()), feeds(1, 1)),
              HasSubstr("fused_matmul"));
  EXPECT_THAT(Failure(b, feeds(nan, 1)),
              AllOf(HasSubstr("(matmul_v2 -> product)"), HasSubstr("nan at [0, 1]")));
  EXPECT_THAT(Failure(b, feeds(1, nan)),
              AllOf(HasSubstr("(elementwise_add -> sum)"), HasSubstr("nan at [0, 1]")));
}

// With channels last the values between convolutions have names of the pass's.
TEST_P(Culprit, InAnotherLayoutIsNamed) {
  ProgramBuilder b;
  auto scope = std::make_shared<Scope>();
  b.Feed("x", DType::kF32, {1, 8, 6, 6});
  std::string last = "x";
  for (const std::string k : {"1", "2", "3"}) {
    b.Param("w" + k, DType::kF32, {8, 8, 3, 3});
    Tensor w = Tensor::Zeros(DType::kF32, {8, 8, 3, 3});
    if (k == "2") w.mutable_data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    scope->Set("w" + k, w);
    for (const char* name : {"c", "s"}) b.Var(name + k, DType::kF32, {1, 8, 6, 6});
    b.Op("conv2d", {{"Input", {last}}, {"Filter", {"w" + k}}}, {{"Output", {"c" + k}}},
         {{"strides", Ints{1, 1}},
          {"paddings", Ints{1, 1}},
          {"dilations", Ints{1, 1}},
          {"groups", int64_t{1}}});
    b.Unary("sigmoid", "c" + k, "s" + k);
    last = "s" + k;
  }
  b.Fetch(last);
  const std::vector<heddle::Feed> feeds = {{"x", Tensor::Zeros(DType::kF32, {1, 8, 6, 6})}};
  const auto compiled = MustCompile(executor_, b.Build(), scope, {.schedule = GetParam()});
  EXPECT_THAT(*executor_.PlanText(compiled, feeds), HasSubstr("s2.nhwc"));
  const Status status = executor_.Run(compiled, feeds, {.check_nan_inf = true}).status();
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr("(conv2d -> c2)"), Not(HasSubstr("nhwc"))));
}

// An infinity that a fusion computes and does not keep is none of the failed operator's.
TEST_P(Culprit, IsNotWhatAnotherFusionHides) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Feed("w", DType::kF32, {2, 2});
  Declare(&b, {"hidden", "finite", "f", "product", "negative", "bad"});
  const Tensor ones = F32({2, 2}, {1, 1, 1, 1});
  b.Unary("log", "x", "hidden").Unary("sigmoid", "hidden", "finite").Scale("finite", "f", 2);
  b.Binary("matmul_v2", "f", "w", "product");
  b.Scale("product", "negative", -1).Unary("sqrt", "negative", "bad").Scale("bad", "y", 3);
  b.Fetch("y");
  // sigmoid of -infinity is 0, and so is the product.
  const CompiledProgram compiled = MustCompile(executor_, b.Build());
  const auto hides =
      executor_.Run(compiled, {{"x", F32({2}, {0, 0})}, {"w", ones}}, {.check_nan_inf = true});
  ASSERT_TRUE(hides.ok()) << hides.status().ToString();
  EXPECT_THAT(Failure(b, {{"x", F32({2}, {0, 1})}, {"w", ones}}),
              AllOf(HasSubstr("(sqrt -> bad)"), HasSubstr("nan at [0]")));
}

// 't' changes with 's', which shares its storage.
TEST_P(Culprit, BehindAWriteUnderAnotherNameIsNamed) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  Declare(&b, {"t", "s", "a", "y"});
  b.Scale("x", "t", 1).Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
  b.Scale("s", "s", -1).Unary("log", "t", "a").Scale("a", "y", 2).Fetch("y");
  EXPECT_THAT(Failure(b, {{"x", F32({2}, {1, 2})}}),
              AllOf(HasSubstr("(log -> a)"), HasSubstr("nan at [0]"), Not(HasSubstr("fused"))));
}

TEST_P(Culprit, InABodyIsNamed) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Feed("n", DType::kI64, {1}).Var("y", DType::kF32, {2});
  b.Fill("i", {1}, 0, DType::kI64).Fill("y", {2}, 3).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  Declare(&b.In(body), {"less", "logged"});
  b.Binary("elementwise_sub", "y", "x", "less").Unary("log", "less", "logged");
  b.Scale("logged", "y", 1).Increment("i").Binary("less_than", "i", "n", "go");
  b.In(0).Op("while", {{"X", {"i", "n", "x", "y", "go"}}, {"Condition", {"go"}}},
             {{"Out", {"i", "y", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Fetch("y");
  EXPECT_THAT(Failure(b, {{"x", F32({2}, {1, 0})}, {"n", I64({1}, {5})}}),
              AllOf(HasSubstr("block 1, op 1 (log -> logged)"), HasSubstr("nan at [0]")));
}

// Parameters are neither written again nor left changed; random numbers are those of the run.
TEST_P(Culprit, IsFoundWithoutTouchingWhatRunsKeep) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Param("w", DType::kF32, {2}).Param("lr", DType::kF32, {1});
  b.Op("sgd", {{"Param", {"w"}}, {"Grad", {"x"}}, {"LearningRate", {"lr"}}}, {{"ParamOut", {"w"}}});
  Declare(&b, {"u", "d", "a", "y"});
  b.Op("uniform_random", {}, {{"Out", {"u"}}},
       {{"shape", Ints{2}}, {"min", 1.0}, {"max", 2.0}, {"dtype", int64_t{5}}});
  b.Binary("elementwise_sub", "w", "u", "d").Unary("log", "d", "a").Scale("a", "y", 2).Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2}, {2, 5}));
  scope->Set("lr", F32({1}, {1}));
  const auto compiled = MustCompile(executor_, b.Build(), scope, {.schedule = GetParam()});
  Generator generator(3);
  const std::string before = generator.State();
  const Status status = executor_
                            .Run(compiled, {{"x", F32({2}, {1, 1})}},
                                 {.generator = &generator, .check_nan_inf = true})
                            .status();
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr("(log -> a)"), HasSubstr("nan at [0]")));
  EXPECT_EQ(generator.State(), before);
  EXPECT_EQ(Floats(scope->Find("w")->tensor()), (std::vector<float>{1, 4}))
      << "the failed run's step, once";
}

INSTANTIATE_TEST_SUITE_P(Schedules, Culprit,
                         ::testing::Values(Schedule::kSerial, Schedule::kParallel,
                                           Schedule::kLanes),
                         [](const auto& info) { return ScheduleName(info.param); });

}  // namespace
}  // namespace heddle::testing
