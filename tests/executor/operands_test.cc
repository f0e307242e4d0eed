// Operands that are not what their operators' definitions say: the same error or the same result at
// every level, whatever lay in memory before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Operands : public ::testing::TestWithParam<int> {
 protected:
  Result<std::vector<Value>> Run(const ProgramBuilder& b, const std::vector<heddle::Feed>& feeds,
                                 std::shared_ptr<Scope> scope = nullptr) {
    auto compiled = executor_.Compile(b.Build(), std::move(scope), {.opt_level = GetParam()});
    if (!compiled.ok()) return compiled.status();
    return executor_.RunValues(*compiled, feeds);
  }
  std::string Fails(const ProgramBuilder& b, const std::vector<heddle::Feed>& feeds,
                    std::shared_ptr<Scope> scope = nullptr) {
    const auto out = Run(b, feeds, std::move(scope));
    if (out.ok()) return "accepted";
    EXPECT_EQ(out.status().code(), StatusCode::kInvalidArgument) << out.status().ToString();
    EXPECT_TRUE(out.status().location().has_value()) << out.status().ToString();
    return out.status().ToString();
  }

  Executor executor_{{.threads = 2}};
};
INSTANTIATE_TEST_SUITE_P(Levels, Operands, ::testing::Values(0, 1, 2));

TEST_P(Operands, OfAnotherDTypeAreRefused) {
  // The kernel is that of X. Elements of `Alpha` are as large, or larger.
  for (const DType alpha : {DType::kI32, DType::kI64, DType::kF64}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {1, 2}).Feed("a", alpha, {1});
    b.Op("prelu", {{"X", {"x"}}, {"Alpha", {"a"}}}, {{"Out", {"y"}}},
         {{"mode", std::string("all")}});
    b.Fetch("y");
    const std::string error =
        Fails(b, {{"x", F32({1, 2}, {-1, 2})}, {"a", Tensor::Zeros(alpha, {1})}});
    EXPECT_THAT(error, AllOf(HasSubstr("(prelu"), HasSubstr(std::string(Name(alpha)))));
  }
}

TEST_P(Operands, OfAnotherKindAreRefused) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 2}).Feed("y", DType::kF32, {2, 2});
  b.Op("einsum", {{"Operands", {"x", "y"}}}, {{"Out", {"z"}}},
       {{"equation", std::string("ij,jk->ik")}});
  b.Fetch("z");
  const Tensor x = F32({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(Fails(b, {{"x", x}, {"y", Value(TensorArray{x})}}),
              AllOf(HasSubstr("(einsum"), HasSubstr("'Operands' holds a tensor array")));
}

TEST_P(Operands, SelectedRowsHaveDataForEachRow) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {4, 2}).Feed("ids", DType::kI64, {1});
  b.Op("lookup_table_v2", {{"W", {"w"}}, {"Ids", {"ids"}}}, {{"Out", {"y"}}}).Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(SelectedRows{{0, 1, 3}, 4, F32({1, 2}, {1, 2})}));
  EXPECT_THAT(Fails(b, {{"ids", I64({1}, {3})}}, scope), HasSubstr("3 row numbers"));
}

TEST_P(Operands, AnOutputThatIsNotWrittenIsNotRead) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 2});
  b.Op("norm", {{"X", {"x"}}}, {{"Out", {"y"}}, {"Norm", {"n"}}}, {{"is_test", true}});
  b.Scale("n", "z", 2).Fetch("z");
  EXPECT_THAT(Fails(b, {{"x", F32({2, 2}, {1, 2, 3, 4})}}), HasSubstr("holds nothing"));
}

TEST_P(Operands, AnOutputOverAnInputOfAnotherKindIsRefused) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Array("a").Fill("i", {1}, 0, DType::kI64);
  b.Op("write_to_array", {{"X", {"x"}}, {"I", {"i"}}}, {{"Out", {"a"}}});
  b.Op("tensor_array_to_tensor", {{"X", {"a"}}}, {{"Out", {"a"}}, {"OutIndex", {"k"}}},
       {{"axis", 0}, {"use_stack", false}});
  b.Fetch("a");
  EXPECT_THAT(b.TryBuild().status().message(),
              AllOf(HasSubstr("(tensor_array_to_tensor)"), HasSubstr("'a', declared as a tensor")));
}

TEST_P(Operands, ADeclaredDTypeThatIsWrongChangesNothing) {
  ProgramBuilder b;  // without feed operators anything may be fed
  b.Var("x", DType::kF32, {2}).Var("y", DType::kF32, {2}).Var("z", DType::kF32, {2});
  b.Op("cast", {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"in_dtype", 5}, {"out_dtype", 5}});
  b.Fill("f", {2}, 0.5);
  b.Binary("elementwise_mul", "y", "f", "z");
  const auto compiled =
      executor_.Compile(b.Build(), nullptr, {.fetches = {"z"}, .opt_level = GetParam()});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const auto out = executor_.Run(*compiled, {{"x", Tensor::Of<int32_t>(DType::kI32, {2}, {3, 5})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{1.5f, 2.5f}));
}

TEST_P(Operands, ABiasOfAnotherShapeIsBroadcastAsInTheFile) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 2}).Param("w", DType::kF32, {2, 2}).Param("c", DType::kF32, {2});
  b.Binary("matmul_v2", "x", "w", "xw").Binary("elementwise_add", "xw", "c", "y").Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(F32({2, 2}, {1, 0, 0, 1})));
  scope->Set("c", Value(F32({2, 2}, {1, 2, 3, 4})));
  const auto out = Run(b, {{"x", F32({2, 2}, {10, 20, 30, 40})}}, scope);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0].tensor()), (std::vector<float>{11, 22, 33, 44}));
}

TEST_P(Operands, AParameterWithoutAValueIsNoOptionalOne) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 2}).Param("w", DType::kF32, {2, 2}).Param("c", DType::kF32, {2});
  b.Binary("matmul_v2", "x", "w", "xw").Binary("elementwise_add", "xw", "c", "y").Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(F32({2, 2}, {1, 0, 0, 1})));
  const auto absent = Run(b, {{"x", F32({2, 2}, {10, 20, 30, 40})}}, scope);
  EXPECT_EQ(absent.status().code(), StatusCode::kNotFound) << absent.status().ToString();
  EXPECT_THAT(absent.status().ToString(), HasSubstr("'c'"));
  scope->Set("c", Value(TensorArray{F32({2}, {1, 2})}));
  EXPECT_THAT(Fails(b, {{"x", F32({2, 2}, {10, 20, 30, 40})}}, scope),
              AllOf(HasSubstr("(elementwise_add"), HasSubstr("tensor array")));
}

TEST_P(Operands, ANaNIsTheSameAtEveryLevel) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1, 4}).Param("w", DType::kF32, {4, 4}).Param("c", DType::kF32, {4});
  b.Binary("matmul_v2", "x", "w", "xw").Binary("elementwise_add", "xw", "c", "s");
  b.Unary("relu", "s", "y").Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(F32({4, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1})));
  scope->Set("c", Value(F32({4}, {0, NAN, 0, 1})));
  const auto out = Run(b, {{"x", F32({1, 4}, {1, 2, -3, 4})}}, scope);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0].tensor()), (std::vector<float>{1, 0, 0, 5}));
}

// Steps of a fused loop are told apart by their numbers, of which one may be NaN.
TEST_P(Operands, ANaNAmongAttributesIsNoOtherNumber) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Scale("x", "a", -1, 1).Scale("a", "b", -1, NAN);
  b.Binary("elementwise_mul", "a", "b", "y").Fetch("y");
  const auto out = Run(b, {{"x", F32({2}, {1, 2})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  for (float y : Floats((*out)[0].tensor())) EXPECT_TRUE(std::isnan(y)) << y;
}

// A loop's variable that its body reads before writing it: nothing of an earlier run is found.
TEST_P(Operands, AVariableOfALoopIsWrittenBeforeItIsRead) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1}).Feed("go", DType::kBool, {1});
  const int body = b.Block(0);
  b.Op("while", {{"X", {"x"}}, {"Condition", {"go"}}},
       {{"Out", {"x", "go"}}, {"StepScopes", {"s"}}},
       {{"sub_block", BlockRef{body}}, {"is_test", true}});
  b.Fetch("x");
  b.In(body).Scale("t", "u", 2).Scale("x", "t", 3);
  b.Binary("elementwise_add", "u", "t", "v").Op("assign", {{"X", {"v"}}}, {{"Out", {"x"}}});
  b.Op("logical_not", {{"X", {"go"}}}, {{"Out", {"go"}}});
  const Tensor go = Tensor::Of<uint8_t>(DType::kBool, {1}, {1});
  EXPECT_THAT(Fails(b, {{"x", F32({1}, {1})}, {"go", go}}),
              AllOf(HasSubstr("(scale"), HasSubstr("'t'"), HasSubstr("written")));
}

}  // namespace
}  // namespace heddle::testing
