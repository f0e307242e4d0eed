// Operands that do not fit each other are refused before a kernel reads or writes behind one of
// them, and operands without elements give defined results.
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Feeds = std::vector<Feed>;

Tensor Filled(const Shape& shape, float value) {
  return F32(shape, std::vector<float>(static_cast<size_t>(shape.numel()), value));
}
Tensor Zeros(DType dtype, const Shape& shape) { return Tensor::Zeros(dtype, shape); }

// Runs operators that are fed everything they do not make themselves.
class Case {
 public:
  explicit Case(Feeds feeds) : feeds_(std::move(feeds)) {
    for (const Feed& f : feeds_) b_.Feed(f.name, f.value.tensor().dtype(), AnyOf(f.value.tensor()));
  }
  Case& Op(const std::string& type, const Slots& in, const Slots& out, const Attrs& attrs = {}) {
    b_.Op(type, in, out, attrs);
    return *this;
  }
  Result<std::vector<Tensor>> Fetch(const std::vector<std::string>& names) {
    for (const auto& name : names) b_.Fetch(name);
    Executor executor({.threads = 2});
    auto program = b_.TryBuild();
    if (!program.ok()) return program.status();
    auto compiled = executor.Compile(*program, nullptr, {.opt_level = 0});
    if (!compiled.ok()) return compiled.status();
    return executor.Run(*compiled, feeds_);
  }
  void ExpectRefused(const std::string& fetched, const std::string& told) {
    const auto out = Fetch({fetched});
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(out.status().message().find(told), std::string::npos) << out.status().ToString();
  }

 private:
  static Shape AnyOf(const Tensor& t) {
    Shape s = t.shape();
    for (int i = 0; i < s.rank(); ++i) s[i] = -1;
    return s;
  }
  ProgramBuilder b_;
  Feeds feeds_;
};

TEST(Operands, SparseShapesAreNotNegative) {
  for (const Ints& shape : {Ints{-5, 3}, Ints{3, -1}, Ints{int64_t{1} << 40, int64_t{1} << 40}}) {
    Case run(Feeds{{"v", Filled({0}, 0)}, {"i", I64({2, 0}, {})}});
    run.Op("sparse_sparse_coo_tensor", {{"values", {"v"}}, {"indices", {"i"}}}, {{"out", {"s"}}},
           {{"shape", shape}});
    run.Op("sparse_to_dense", {{"x", {"s"}}}, {{"out", {"d"}}});
    run.ExpectRefused("d", "sparse tensor");
  }
}

TEST(Operands, CoalescedPartsHaveRoom) {
  for (const auto& [align, size] : {std::pair{int64_t{4}, int64_t{1} << 62},
                                    std::pair{std::numeric_limits<int64_t>::max(), int64_t{4}}}) {
    Case run(Feeds{{"x", Filled({3}, 1)}, {"y", Filled({5}, 2)}});
    run.Op("coalesce_tensor", {{"Input", {"x", "y"}}},
           {{"Output", {"a", "b"}}, {"FusedOutput", {"f"}}},
           {{"dtype", int64_t{5}},
            {"copy_data", true},
            {"align_size", align},
            {"user_defined_size_of_dtype", size}});
    run.ExpectRefused("f", "memory");
  }
}

Case MulDoubleGrad(Tensor ddx, Tensor ddy, int64_t split) {
  Case run(Feeds{{"x", Filled({2, 3}, 1)},
                 {"y", Filled({3, 4}, 1)},
                 {"dout", Filled({2, 4}, 1)},
                 {"ddx", std::move(ddx)},
                 {"ddy", std::move(ddy)}});
  run.Op("mul_grad_grad",
         {{"X", {"x"}}, {"Y", {"y"}}, {"DOut", {"dout"}}, {"DDX", {"ddx"}}, {"DDY", {"ddy"}}},
         {{"DX", {"dx"}}, {"DY", {"dy"}}, {"DDOut", {"ddout"}}},
         {{"x_num_col_dims", split}, {"y_num_col_dims", int64_t{1}}});
  return run;
}

TEST(Operands, SecondGradientsOfProducts) {
  const Tensor x = Filled({2, 3}, 1), y = Filled({3, 4}, 1);
  const auto out = MulDoubleGrad(x, y, 1).Fetch({"dx", "dy", "ddout"});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0]), std::vector<float>(6, 4));
  EXPECT_EQ(Floats((*out)[2]), std::vector<float>(8, 6));
  MulDoubleGrad(Filled({1, 1}, 1), y, 1).ExpectRefused("ddout", "DDX and DDY");
  MulDoubleGrad(x, Filled({1, 1}, 1), 1).ExpectRefused("dx", "DDX and DDY");
  MulDoubleGrad(Zeros(DType::kI8, {2, 3}), y, 1).ExpectRefused("ddout", "int8");
  MulDoubleGrad(x, y, 9).ExpectRefused("dx", "x_num_col_dims");
}

TEST(Operands, SplitSequencesLieInTheTensor) {
  for (const LoD& lod : {LoD{{size_t{1} << 40, 1}, {0, 8}}, LoD{{0, 1}, {9, 8}}}) {
    Tensor x = Filled({8, 1}, 1);
    x.set_lod(lod);
    Case run(Feeds{{"x", x}, {"m", Bool(true)}});
    run.Op("split_lod_tensor", {{"X", {"x"}}, {"Mask", {"m"}}},
           {{"OutTrue", {"t"}}, {"OutFalse", {"f"}}});
    run.ExpectRefused("t", "there");
  }
}

Case Attention(int64_t keys, DType k, DType mask) {
  Case run(Feeds{{"q", Filled({1, 2, 5, 8}, 1)},
                 {"k", Zeros(k, {1, 2, keys, 8})},
                 {"v", Filled({1, 2, keys, 4}, 1)},
                 {"m", Zeros(mask, {1, 1, 1, keys})}});
  run.Op("scaled_dot_attention", {{"Q", {"q"}}, {"K", {"k"}}, {"V", {"v"}}, {"Mask", {"m"}}},
         {{"Out", {"o"}}});
  return run;
}

TEST(Operands, AttentionToNothingIsZero) {
  const auto out = Attention(0, DType::kF32, DType::kF32).Fetch({"o"});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0]), std::vector<float>(40, 0));
  const auto ones = Attention(3, DType::kF32, DType::kF32).Fetch({"o"});
  ASSERT_TRUE(ones.ok()) << ones.status().ToString();
  for (const float x : Floats((*ones)[0])) EXPECT_NEAR(x, 1, 1e-6);
}

TEST(Operands, FusedOperatorsReadOneDType) {
  Attention(7, DType::kI8, DType::kF32).ExpectRefused("o", "int8");
  Attention(7, DType::kF32, DType::kF64).ExpectRefused("o", "float64");
  Case norm(
      Feeds{{"x", Filled({2, 3, 4}, 1)}, {"s", Zeros(DType::kI8, {3})}, {"b", Filled({3}, 1)}});
  norm.Op("fused_batch_norm", {{"X", {"x"}}, {"Scale", {"s"}}, {"Bias", {"b"}}}, {{"Y", {"y"}}});
  norm.ExpectRefused("y", "int8");
  Case grad(Feeds{{"y", Filled({1, 1, 3, 3}, 1)}, {"g", Zeros(DType::kI8, {1, 1, 3, 3})}});
  grad.Op("fused_softmax_mask_grad", {{"Softmax", {"y"}}, {"Out@GRAD", {"g"}}},
          {{"X@GRAD", {"x"}}});
  grad.ExpectRefused("x", "one dtype");
}

// A GRU of 4 to 5 units over `steps` steps of three sequences.
Case Gru(int64_t steps, DType state, DType weight) {
  Tensor h = Zeros(state, {1, 3, 5});
  if (state == DType::kF32) h = Filled({1, 3, 5}, 0.25f);
  Case run(Feeds{{"x", Filled({steps, 3, 4}, 1)},
                 {"h", h},
                 {"ih", Zeros(DType::kF32, {15, 4})},
                 {"hh", Zeros(weight, {15, 5})},
                 {"b1", Zeros(DType::kF32, {15})},
                 {"b2", Zeros(DType::kF32, {15})},
                 {"g", Filled({1, 3, 5}, 0.5f)}});
  const Slots in = {
      {"Input", {"x"}}, {"PreState", {"h"}}, {"WeightList", {"ih", "hh", "b1", "b2"}}};
  const Attrs attrs = {{"mode", "GRU"}, {"hidden_size", int64_t{5}}, {"is_test", true}};
  run.Op("rnn", in, {{"Out", {"out"}}, {"State", {"after"}}}, attrs);
  Slots with_grads = in;
  with_grads.push_back({"State@GRAD", {"g"}});
  run.Op("rnn_grad", with_grads, {{"PreState@GRAD", {"h_grad"}}, {"Input@GRAD", {"x_grad"}}},
         attrs);
  return run;
}

TEST(Operands, WithoutStepsRecurrentStatesStay) {
  const auto out = Gru(0, DType::kF32, DType::kF32).Fetch({"after", "h_grad"});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0]), std::vector<float>(15, 0.25f));
  EXPECT_EQ(Floats((*out)[1]), std::vector<float>(15, 0.5f));
}

TEST(Operands, RecurrentNetworksReadOneDType) {
  ASSERT_TRUE(Gru(2, DType::kF32, DType::kF32).Fetch({"after"}).ok());
  Gru(2, DType::kI8, DType::kF32).ExpectRefused("after", "int8");
  Gru(2, DType::kF32, DType::kI8).ExpectRefused("after", "int8");
}

Case LayerNormGrad(int64_t grads, int64_t biases, DType scale) {
  Case run({Feed{"x", Filled({2, 4}, 1)}, Feed{"s", Zeros(scale, {4})},
            Feed{"b", Filled({biases}, 1)}, Feed{"m", Filled({2}, 1)}, Feed{"v", Filled({2}, 1)},
            Feed{"g", Filled({grads, 4}, 1)}});
  run.Op("layer_norm_grad",
         {{"X", {"x"}},
          {"Scale", {"s"}},
          {"Bias", {"b"}},
          {"Mean", {"m"}},
          {"Variance", {"v"}},
          {"Y@GRAD", {"g"}}},
         {{"X@GRAD", {"dx"}}, {"Bias@GRAD", {"db"}}});
  return run;
}

TEST(Operands, GradientsOfLayerNorm) {
  const auto out = LayerNormGrad(2, 4, DType::kF32).Fetch({"db"});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0]), std::vector<float>(4, 2));
  LayerNormGrad(1, 4, DType::kF32).ExpectRefused("dx", "Y@GRAD");
  LayerNormGrad(2, 1, DType::kF32).ExpectRefused("db", "Bias");
  LayerNormGrad(2, 4, DType::kI8).ExpectRefused("dx", "int8");
}

// x[begin:end] with the axis dropped, as x[i] is where i is a variable.
Case Picked(const std::string& type, int64_t begin, int64_t end) {
  Case run({Feed{"x", F32({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7})}, Feed{"b", I64({1}, {begin})},
            Feed{"e", I64({1}, {end})}, Feed{"one", I64({1}, {1})}});
  Slots in = {{"Input", {"x"}}, {"StartsTensorList", {"b"}}, {"EndsTensorList", {"e"}}};
  Attrs attrs = {{"axes", Ints{0}},
                 {"starts", Ints{-1}},
                 {"ends", Ints{-1}},
                 {"infer_flags", Ints{-1}},
                 {"decrease_axis", Ints{0}}};
  if (type == "strided_slice") {
    in.push_back({"StridesTensorList", {"one"}});
    attrs.push_back({"strides", Ints{-1}});
  }
  run.Op(type, in, {{"Out", {"y"}}}, attrs);
  return run;
}

TEST(Operands, AnElementIsPickedByOneIndexWithinTheTensor) {
  for (const char* type : {"slice", "strided_slice"}) {
    const auto out = Picked(type, 2, 3).Fetch({"y"});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{4, 5}));
    Picked(type, 1, 1000).ExpectRefused("y", "decrease_axis");  // three rows
    Picked(type, 7, 8).ExpectRefused("y", "decrease_axis");     // none
  }
}

Case ConvSecondGrad(const Tensor& dd_input, const Tensor& dd_filter, const Tensor& grad) {
  Case run({Feed{"x", Filled({1, 2, 5, 5}, 1)}, Feed{"w", Filled({3, 2, 3, 3}, 1)}, Feed{"g", grad},
            Feed{"ddx", dd_input}, Feed{"ddw", dd_filter}});
  run.Op("conv2d_grad_grad",
         {{"Input", {"x"}},
          {"Filter", {"w"}},
          {"grad_out", {"g"}},
          {"grad_input@GRAD", {"ddx"}},
          {"grad_filter@GRAD", {"ddw"}}},
         {{"Input@GRAD", {"dx"}}, {"Filter@GRAD", {"dw"}}, {"grad_out@GRAD", {"dg"}}});
  return run;
}

TEST(Operands, GradientsOfConvolutions) {
  const Tensor ddx = Filled({1, 2, 5, 5}, 1), ddw = Filled({3, 2, 3, 3}, 1),
               grad = Filled({1, 3, 3, 3}, 1);
  const auto out = ConvSecondGrad(ddx, ddw, grad).Fetch({"dg", "dx", "dw"});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0]), std::vector<float>(27, 36));
  ConvSecondGrad(Filled({1, 1, 1, 1}, 1), ddw, grad).ExpectRefused("dw", "Input");
  ConvSecondGrad(ddx, Filled({3, 2, 3, 2}, 1), grad).ExpectRefused("dx", "Filter");
  ConvSecondGrad(Zeros(DType::kI8, {1, 2, 5, 5}), ddw, grad).ExpectRefused("dg", "int8");
  ConvSecondGrad(ddx, ddw, Zeros(DType::kI8, {1, 3, 3, 3})).ExpectRefused("dx", "int8");
}

TEST(Operands, SmallerElementsAreNotReadAsLargerOnes) {
  const Tensor bytes = Zeros(DType::kI8, {3});
  EXPECT_THROW(bytes.data<float>(), std::invalid_argument);
  EXPECT_NO_THROW(Zeros(DType::kI8, {0}).data<float>());
  EXPECT_NO_THROW(Filled({3}, 1).data<uint32_t>());
  Case norm({Feed{"x", Filled({2, 3, 4}, 1)}, Feed{"s", Filled({3}, 1)}, Feed{"b", bytes},
             Feed{"m", Filled({3}, 0)}, Feed{"v", Filled({3}, 1)}});
  norm.Op("batch_norm",
          {{"X", {"x"}}, {"Scale", {"s"}}, {"Bias", {"b"}}, {"Mean", {"m"}}, {"Variance", {"v"}}},
          {{"Y", {"y"}}}, {{"is_test", true}});
  norm.ExpectRefused("y", "int8");
}

}  // namespace
}  // namespace heddle::testing
