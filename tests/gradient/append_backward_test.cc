// The pass over whole programs: names, several uses, versions, blocks, what stops gradients, and
// refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradient/gradient.h"
#include "tests/gradient/differences.h"

namespace heddle::gradient {
namespace {

using ::testing::HasSubstr;

class Net {
 public:
  Variable Feed(const std::string& name, const Shape& shape, DType dtype = DType::kF64) {
    return Take(b_.Feed(name, dtype, shape));
  }
  Variable Op(const char* type, const Operands& in, const Attributes& attributes = {}) {
    return Take(b_.Apply(type, in, attributes));
  }
  Variable Named(const char* type, const Operands& in, const std::string& name,
                 const Attributes& attributes = {}) {
    const auto made = b_.Add(type, in, attributes, {{"Out", std::vector<std::string>{name}}});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? (*made)[0].second[0] : Variable();
  }
  Variable Number(DType dtype, double value) {
    return Op("fill_constant", {},
              {{"shape", std::vector<int64_t>{1}}, {"value", value}, {"dtype", dtype}});
  }
  ProgramBuilder& builder() { return b_; }
  Model Finish(Variable loss) {
    EXPECT_TRUE(b_.Fetch(loss).ok());
    auto model = std::move(b_).Finish();
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    return *std::move(model);
  }

 private:
  Variable Take(Result<Variable> made) {
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? *made : Variable();
  }
  ProgramBuilder b_;
};

Status Refused(const Model& model, const std::vector<std::string>& losses,
               const std::vector<std::string>& wrt) {
  GradientRequest request;
  request.losses = losses;
  request.wrt = wrt;
  return AppendBackward(model.program, request).status();
}

TEST(AppendBackward, GivesTheGradientItsName) {
  Net net;
  const Variable x = net.Feed("x", {2});
  const Model model = net.Finish(net.Named("square", {{"X", {x}}}, "y"));
  const auto made = AppendBackward(model.program, {{"y"}, std::vector<std::string>{"x"}, {}});
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  ASSERT_EQ(made->gradients.size(), 1u);
  EXPECT_EQ(made->gradients[0].gradient, "x@GRAD");
  const Feeds feeds{{"x", Doubles({2}, {3, -1})}};
  const auto got = RunProgram(made->program, model.scope, feeds, {"x@GRAD"});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_DOUBLE_EQ(ElementOf(got[0], 0), 6);
  EXPECT_DOUBLE_EQ(ElementOf(got[0], 1), -2);
}

TEST(AppendBackward, AppliesToItsOwnResult) {
  Net net;
  const Variable x = net.Feed("x", {1});
  const Variable cube =
      net.Op("elementwise_mul", {{"X", {net.Op("square", {{"X", {x}}})}}, {"Y", {x}}});
  const Model model = net.Finish(net.Named("tanh", {{"X", {cube}}}, "y"));
  const auto first = AppendBackward(model.program, {{"y"}, std::vector<std::string>{"x"}, {}});
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  const auto second =
      AppendBackward(first->program, {{"x@GRAD"}, std::vector<std::string>{"x"}, {}});
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_EQ(second->gradients[0].gradient, "x@GRAD@2");
  const auto third =
      AppendBackward(second->program, {{"x@GRAD@2"}, std::vector<std::string>{"x"}, {}});
  ASSERT_TRUE(third.ok()) << third.status().ToString();
  EXPECT_EQ(third->gradients[0].gradient, "x@GRAD@3");
  ExpectDifferences(first->program, model.scope, {{"x", Doubles({1}, {0.7})}}, "x@GRAD", {"x"});
  ExpectDifferences(second->program, model.scope, {{"x", Doubles({1}, {0.7})}}, "x@GRAD@2", {"x"});
}

TEST(AppendBackward, ReadsAValueThatIsOverwrittenLater) {
  Net net;
  const Variable x = net.Feed("x", {2});
  const Variable t = net.Named("scale", {{"X", {x}}}, "t", {{"scale", 2.0}});
  const Variable s = net.Op("square", {{"X", {t}}});
  ASSERT_TRUE(net.builder().Assign(net.Op("sin", {{"X", {t}}}), t).ok());
  const Model model = net.Finish(net.Named("elementwise_mul", {{"X", {s}}, {"Y", {t}}}, "y"));
  ExpectDifferences(model.program, model.scope, {{"x", Doubles({2}, {0.3, -0.8})}}, "y", {"x"});
}

TEST(AppendBackward, LetsNothingThroughNamedVariables) {
  Net net;
  const Variable x = net.Feed("x", {2});
  const Variable t = net.Named("square", {{"X", {x}}}, "t");
  const Model model = net.Finish(net.Named("elementwise_mul", {{"X", {x}}, {"Y", {t}}}, "y"));
  const auto made = AppendBackward(model.program, {{"y"}, std::vector<std::string>{"x"}, {"t"}});
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const auto got =
      RunProgram(made->program, model.scope, {{"x", Doubles({2}, {3, 2})}}, {"x@GRAD"});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_DOUBLE_EQ(ElementOf(got[0], 0), 9);  // t alone
  EXPECT_DOUBLE_EQ(ElementOf(got[0], 1), 4);
}

TEST(AppendBackward, SumsAllLosses) {
  Net net;
  const Variable x = net.Feed("x", {2});
  const Variable y = net.Named("square", {{"X", {x}}}, "y");
  const Model model = net.Finish(net.Named("exp", {{"X", {y}}}, "z"));
  const auto made = AppendBackward(model.program, {{"y", "z"}, std::vector<std::string>{"x"}, {}});
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const auto got =
      RunProgram(made->program, model.scope, {{"x", Doubles({2}, {0.5, -1})}}, {"x@GRAD"});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_NEAR(ElementOf(got[0], 0), 1 + std::exp(0.25), 1e-12);
  EXPECT_NEAR(ElementOf(got[0], 1), -2 - 2 * std::exp(1.0), 1e-12);
}

TEST(AppendBackward, GoesThroughALoop) {
  Net net;
  const Variable x = net.Feed("x", {2, 2}), w = net.Feed("w", {2, 2});
  const Variable n = net.Feed("n", {1}, DType::kI64);
  const Variable i = net.Number(DType::kI64, 0);
  const Variable h = net.Named("scale", {{"X", {x}}}, "h", {{"scale", 1.5}});
  const Variable more = net.Op("less_than", {{"X", {i}}, {"Y", {n}}});
  ASSERT_TRUE(net.builder().BeginWhile(more).ok());
  const Variable next = net.Op("tanh", {{"X", {net.Op("matmul_v2", {{"X", {h}}, {"Y", {w}}})}}});
  ASSERT_TRUE(net.builder().Assign(net.Op("elementwise_add", {{"X", {next}}, {"Y", {x}}}), h).ok());
  ASSERT_TRUE(net.builder().Assign(net.Op("scale", {{"X", {i}}}, {{"bias", 1.0}}), i).ok());
  ASSERT_TRUE(net.builder().Assign(net.Op("less_than", {{"X", {i}}, {"Y", {n}}}), more).ok());
  ASSERT_TRUE(net.builder().EndBlock().ok());
  const Model model = net.Finish(net.Named("square", {{"X", {h}}}, "y"));
  for (const int64_t turns : {0, 1, 3}) {
    const Feeds feeds{{"x", Doubles({2, 2}, {0.1, 0.5, -0.4, 0.2})},
                      {"w", Doubles({2, 2}, {0.3, -0.7, 0.9, 0.4})},
                      {"n", Tensor::Of<int64_t>(DType::kI64, {1}, {turns})}};
    ExpectDifferences(model.program, model.scope, feeds, "y", {"x", "w"});
  }
}

TEST(AppendBackward, GoesThroughTheBranchThatRuns) {
  Net net;
  const Variable x = net.Feed("x", {2}), k = net.Feed("k", {1}, DType::kI64);
  const Variable y = net.Named("sin", {{"X", {x}}}, "t");
  const Variable holds = net.Op("greater_than", {{"X", {k}}, {"Y", {net.Number(DType::kI64, 0)}}});
  ASSERT_TRUE(net.builder().BeginIf(holds).ok());
  const Variable s = net.Op("square", {{"X", {y}}});
  ASSERT_TRUE(net.builder().Assign(net.Op("elementwise_mul", {{"X", {s}}, {"Y", {x}}}), y).ok());
  ASSERT_TRUE(net.builder().EndBlock().ok());
  const Model model = net.Finish(net.Named("exp", {{"X", {y}}}, "y"));
  for (const int64_t taken : {0, 1}) {
    const Feeds feeds{{"x", Doubles({2}, {0.4, -1.1})},
                      {"k", Tensor::Of<int64_t>(DType::kI64, {1}, {taken})}};
    ExpectDifferences(model.program, model.scope, feeds, "y", {"x"});
  }
}

TEST(AppendBackward, NamesWhatItDoesNotFind) {
  Net net;
  const Variable x = net.Feed("x", {2});
  const Model model = net.Finish(net.Named("square", {{"X", {x}}}, "y"));
  EXPECT_EQ(Refused(model, {"z"}, {"x"}).code(), StatusCode::kNotFound);
  EXPECT_THAT(Refused(model, {"z"}, {"x"}).message(), HasSubstr("the loss 'z'"));
  EXPECT_THAT(Refused(model, {"y"}, {"v"}).message(), HasSubstr("'v'"));
}

TEST(AppendBackward, RefusesAVariableThatNoLossDependsOn) {
  Net net;
  const Variable x = net.Feed("x", {2});
  const Variable other = net.Feed("other", {2});
  net.Op("exp", {{"X", {other}}});
  const Model model = net.Finish(net.Named("square", {{"X", {x}}}, "y"));
  const Status status = Refused(model, {"y"}, {"x", "other"});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("no loss depends on the wanted variable 'other'"));
}

TEST(AppendBackward, NamesAllOperatorsInTheWayWithTheirPaths) {
  Net net;
  const Variable x = net.Feed("x", {4}), z = net.Feed("z", {4});
  const Variable best = net.Named("arg_max", {{"X", {x}}}, "best", {{"axis", int64_t{0}}});
  const Variable at = net.Named("cast", {{"X", {best}}}, "at", {{"out_dtype", DType::kF64}});
  const Variable above = net.Named("greater_than", {{"X", {x}}, {"Y", {z}}}, "above");
  const Variable count = net.Op("cast", {{"X", {above}}}, {{"out_dtype", DType::kF64}});
  const Variable part = net.Op("elementwise_mul", {{"X", {count}}, {"Y", {z}}});
  const Model model = net.Finish(net.Named("elementwise_add", {{"X", {part}}, {"Y", {at}}}, "y"));
  const Status status = Refused(model, {"y"}, {"x"});
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("arg_max (block 0, operator"));
  EXPECT_THAT(status.message(), HasSubstr("greater_than (block 0, operator"));
  EXPECT_THAT(status.message(), HasSubstr("'y' <- elementwise_add <- 'at' <- cast <- 'best'"));
  // z leads to the loss in another way.
  EXPECT_TRUE(Refused(model, {"y"}, {"z"}).ok());
}

TEST(AppendBackward, RefusesALoopThatDrawsNumbers) {
  Net net;
  const Variable x = net.Feed("x", {2}), n = net.Feed("n", {1}, DType::kI64);
  const Variable i = net.Number(DType::kI64, 0);
  const Variable h = net.Named("scale", {{"X", {x}}}, "h");
  const Variable more = net.Op("less_than", {{"X", {i}}, {"Y", {n}}});
  ASSERT_TRUE(net.builder().BeginWhile(more).ok());
  const Variable noise =
      net.Op("gaussian_random", {}, {{"shape", std::vector<int64_t>{2}}, {"dtype", DType::kF64}});
  ASSERT_TRUE(
      net.builder().Assign(net.Op("elementwise_mul", {{"X", {h}}, {"Y", {noise}}}), h).ok());
  ASSERT_TRUE(net.builder().Assign(net.Op("scale", {{"X", {i}}}, {{"bias", 1.0}}), i).ok());
  ASSERT_TRUE(net.builder().Assign(net.Op("less_than", {{"X", {i}}, {"Y", {n}}}), more).ok());
  ASSERT_TRUE(net.builder().EndBlock().ok());
  const Model model = net.Finish(net.Named("square", {{"X", {h}}}, "y"));
  const Status status = Refused(model, {"y"}, {"x"});
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("while (block 0, operator"));
  EXPECT_THAT(status.message(), HasSubstr("draws random numbers"));
}

}  // namespace
}  // namespace heddle::gradient
