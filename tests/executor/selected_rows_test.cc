// Sparse gradients: from a lookup through a factor to the optimizer.
#include <gtest/gtest.h>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

void DeclareRows(ProgramBuilder& b, const std::string& name) {
  auto* var = b.desc().mutable_blocks(0)->add_vars();
  var->set_name(name);
  var->mutable_type()->set_type(proto::VarType::SELECTED_ROWS);
  var->mutable_type()->mutable_selected_rows()->set_data_type(proto::VarType::FP32);
}

// table [3, 2]; the gradient of rows `ids` is `d` times `factor`, and ends in adam.
ProgramBuilder Training() {
  ProgramBuilder b;
  b.Param("table", DType::kF32, {3, 2}).Feed("ids", DType::kI64, {-1});
  b.Feed("d", DType::kF32, {-1, 2}).Feed("factor", DType::kF32, {1});
  DeclareRows(b, "table@GRAD");
  DeclareRows(b, "scaled");
  b.Op("lookup_table_v2_grad", {{"W", {"table"}}, {"Ids", {"ids"}}, {"Out@GRAD", {"d"}}},
       {{"W@GRAD", {"table@GRAD"}}}, {{"is_sparse", true}});
  b.Binary("elementwise_mul", "table@GRAD", "factor", "scaled").Fetch("scaled");
  b.Fill("rate", {1}, 0.5);
  for (const char* name : {"m", "v"}) b.Param(name, DType::kF32, {3, 2});
  for (const char* name : {"p1", "p2"}) b.Param(name, DType::kF32, {1});
  b.Op("adam",
       {{"Param", {"table"}},
        {"Grad", {"scaled"}},
        {"LearningRate", {"rate"}},
        {"Moment1", {"m"}},
        {"Moment2", {"v"}},
        {"Beta1Pow", {"p1"}},
        {"Beta2Pow", {"p2"}}},
       {{"ParamOut", {"table"}},
        {"Moment1Out", {"m"}},
        {"Moment2Out", {"v"}},
        {"Beta1PowOut", {"p1"}},
        {"Beta2PowOut", {"p2"}}});
  return b;
}

// Rows that a branch wrote in one run are gone in the next, as if no run had been before.
TEST(SelectedRows, HoldNothingWhereNoBranchOfTheRunWroteThem) {
  for (const char* reader : {"get_tensor_from_selected_rows", "merge_selected_rows", "scale"}) {
    SCOPED_TRACE(reader);
    ProgramBuilder b;
    b.Feed("table", DType::kF32, {3, 2}).Feed("ids", DType::kI64, {2});
    b.Feed("d", DType::kF32, {2, 2}).Feed("go", DType::kBool, {1});
    DeclareRows(b, "g");
    const int body = b.Block(0);
    b.In(body).Op("lookup_table_v2_grad", {{"W", {"table"}}, {"Ids", {"ids"}}, {"Out@GRAD", {"d"}}},
                  {{"W@GRAD", {"g"}}}, {{"is_sparse", true}});
    b.In(0).Op("conditional_block", {{"Cond", {"go"}}, {"Input", {"table", "ids", "d"}}},
               {{"Out", {"g"}}, {"Scope", {}}},
               {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
    if (reader == std::string("get_tensor_from_selected_rows"))
      b.Var("y", DType::kF32, {-1, 2});
    else
      DeclareRows(b, "y");
    b.Unary(reader, "g", "y").Fetch("y");
    const auto feeds = [](bool go) {
      Tensor flag = Tensor::Zeros(DType::kBool, {1});
      flag.mutable_data<bool>()[0] = go;
      return std::vector<heddle::Feed>{{"table", F32({3, 2}, std::vector<float>(6, 1))},
                                       {"ids", I64({2}, {2, 0})},
                                       {"d", F32({2, 2}, {4, -4, 8, 8})},
                                       {"go", flag}};
    };
    Executor executor({.threads = 1});
    auto fresh = MustCompile(executor, b.Build(), nullptr);
    auto used = MustCompile(executor, b.Build(), nullptr);
    const auto before = executor.RunValues(fresh, feeds(false));
    const auto first = executor.RunValues(used, feeds(true));
    EXPECT_TRUE(first.ok()) << first.status().ToString();
    const auto after = executor.RunValues(used, feeds(false));
    EXPECT_EQ(before.status().ToString(), after.status().ToString());
  }
}

TEST(SelectedRows, GradientsAreScaledAndSteppedAsPaddleDoes) {
  Executor executor({.threads = 1});
  auto scope = std::make_shared<Scope>();
  scope->Set("table", F32({3, 2}, {1, 1, 1, 1, 1, 1}));
  for (const char* name : {"m", "v"}) scope->Set(name, F32({3, 2}, std::vector<float>(6, 0.f)));
  scope->Set("p1", F32({1}, {0.9f}));
  scope->Set("p2", F32({1}, {0.999f}));
  auto compiled = MustCompile(executor, Training().Build(), scope);
  auto out = executor.RunValues(
      compiled,
      {{"ids", I64({2}, {2, 0})}, {"d", F32({2, 2}, {4, -4, 8, 8})}, {"factor", F32({1}, {0.25})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  ASSERT_TRUE((*out)[0].is_rows());
  EXPECT_EQ((*out)[0].rows().rows, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(Floats((*out)[0].rows().value), (std::vector<float>{1, -1, 2, 2}));
  // A first step with the powers of the second: 0.5 * sqrt(1 - 0.999^2) / (1 - 0.9^2) * 0.1 /
  // sqrt(0.001) in the gradient's direction.
  const auto table = Floats(scope->Find("table")->tensor());
  const float step = 0.372068f;
  const std::vector<float> want{1 - step, 1 - step, 1, 1, 1 - step, 1 + step};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(table[i], want[i], 1e-4f) << i;
  EXPECT_FLOAT_EQ(Floats(scope->Find("p1")->tensor())[0], 0.81f);
}

}  // namespace
}  // namespace heddle::testing
