// Each kernel that takes float16 and bfloat16, by itself, against the host's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/dtype_of.h"
#include "heddle/program_builder.h"
#include "tests/grid/grid_device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using List = std::vector<int64_t>;

// An operand: random numbers, or whole ones.
struct Operand {
  const char* slot;
  Shape shape;
  DType dtype = DType::kUnknown;  // kUnknown: the type that is tested
  float low = -1, high = 1;       // the range; of whole numbers without its end
};
struct Call {
  std::string op;
  std::vector<Operand> in;
  Attributes attrs = {};
  std::vector<std::string> outs = {};  // slots to ask for besides the required ones
  double units = 1;                    // roundings that results may differ by
};

Operand X(const Shape& shape, float low = -1, float high = 1) {
  return {"X", shape, DType::kUnknown, low, high};
}
Operand Whole(const char* slot, const Shape& shape, float below, DType dtype = DType::kI64) {
  return {slot, shape, dtype, 0, below};
}
Operand Float(const char* slot, const Shape& shape, float low = -1, float high = 1) {
  return {slot, shape, DType::kF32, low, high};
}

Tensor ValueOf(const Operand& o, DType real, uint32_t seed) {
  const DType dtype = o.dtype == DType::kUnknown ? real : o.dtype;
  const Tensor unit = RandomF32(o.shape, seed);
  Tensor t = Tensor::Empty(dtype, o.shape);
  VisitDType<float, float16, bfloat16, int32_t, int64_t, bool>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < t.numel(); ++i) {
      const float at = o.low + (o.high - o.low) * (unit.data<float>()[i] * 0.4999f + 0.5f);
      t.mutable_data<T>()[i] = static_cast<T>(std::is_integral_v<T> ? std::floor(at) : at);
    }
  });
  return t;
}

struct Results {
  std::vector<Tensor> values;
  size_t refused = 0;
};
Results RunCall(const Call& call, DType real, std::shared_ptr<GridDevice> device) {
  heddle::ProgramBuilder b;
  std::vector<heddle::Feed> feeds;
  Operands operands;
  for (const Operand& o : call.in) {
    const std::string name = "in" + std::to_string(feeds.size());
    const Tensor value = ValueOf(o, real, static_cast<uint32_t>(feeds.size()) + 11);
    feeds.push_back({name, value});
    auto v = b.Feed(name, value.dtype(), o.shape);
    EXPECT_TRUE(v.ok()) << v.status().ToString();
    if (!operands.empty() && operands.back().first == o.slot)
      operands.back().second.push_back(*v);
    else
      operands.emplace_back(o.slot, std::vector<Variable>{*v});
  }
  Targets targets;
  for (const std::string& slot : call.outs) targets.push_back({slot, 1});
  auto made = b.Add(call.op, operands, call.attrs, targets);
  EXPECT_TRUE(made.ok()) << call.op << ": " << made.status().ToString();
  if (!made.ok()) return {};
  for (const auto& [slot, variables] : *made)
    if (slot != "XShape") {
      for (const Variable v : variables) EXPECT_TRUE(b.Fetch(v).ok());
    }
  auto model = std::move(b).Finish();
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  Executor executor(device ? ExecutorOptions{.threads = 1, .device = device}
                           : ExecutorOptions{.threads = 1});
  const auto compiled = MustCompile(executor, model->program, model->scope, {.opt_level = 0});
  Results results{MustRun(executor, compiled, feeds), 0};
  if (device) results.refused = device->refused().size();
  return results;
}

double At(const Tensor& t, int64_t i) {
  double value = 0;
  VisitDType<float, float16, bfloat16, int32_t, int64_t, bool>(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    value = static_cast<double>(static_cast<ComputeType<T>>(t.data<T>()[i]));
  });
  return value;
}

void Compare(const Call& call, DType real) {
  SCOPED_TRACE(call.op + " of " + std::string(Name(real)));
  const Results want = RunCall(call, real, nullptr);
  const Results got = RunCall(call, real, std::make_shared<GridDevice>());
  EXPECT_EQ(got.refused, 0u) << "the host was asked";
  ASSERT_EQ(got.values.size(), want.values.size());
  const double unit = real == DType::kF16 ? 0x1p-10 : 0x1p-7;  // from one number to the next
  for (size_t r = 0; r < got.values.size(); ++r) {
    const Tensor &a = got.values[r], &b = want.values[r];
    ASSERT_EQ(a.dtype(), b.dtype());
    ASSERT_EQ(a.shape().ToString(), b.shape().ToString());
    const bool half = a.dtype() == real;
    for (int64_t i = 0; i < a.numel(); ++i) {
      const double x = At(a, i), y = At(b, i);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y) continue;
      const double room = half                       ? call.units * unit * std::fabs(y) + 1e-6
                          : a.dtype() == DType::kF32 ? 1e-4 * (1 + std::fabs(y))
                                                     : 0;
      ASSERT_LE(std::fabs(x - y), room) << "result " << r << " [" << i << "]: " << x << ", " << y;
    }
  }
}
void CompareAll(const std::vector<Call>& calls) {
  for (const Call& call : calls)
    for (const DType real : {DType::kF16, DType::kBF16}) Compare(call, real);
}

TEST(GridHalfKernels, FunctionsOfOneElement) {
  std::vector<Call> calls;
  for (const char* op : {"relu",     "sigmoid", "tanh",  "relu6",    "hard_swish", "hard_sigmoid",
                         "swish",    "silu",    "elu",   "softplus", "leaky_relu", "logsigmoid",
                         "softsign", "mish",    "stanh", "gelu",     "exp",        "abs",
                         "square",   "erf",     "floor", "ceil",     "round",      "sin",
                         "cos",      "brelu",   "clip",  "pow",      "tanh_shrink"})
    calls.push_back({op, {X({3, 70}, -3, 3)}});
  for (const char* op : {"log", "sqrt", "rsqrt", "reciprocal"})
    calls.push_back({op, {X({3, 70}, 0.2f, 3)}});
  calls.push_back({"gelu", {X({5})}, {{"approximate", true}}});
  calls.push_back({"scale", {X({4, 5})}, {{"scale", 0.3}, {"bias", 2.0}}});
  calls.push_back(
      {"scale", {X({7})}, {{"scale", 3.0}, {"bias", 0.1}, {"bias_after_scale", false}}});
  for (const char* op : {"relu_grad", "sigmoid_grad", "tanh_grad", "relu6_grad", "sqrt_grad",
                         "rsqrt_grad", "exp_grad", "reciprocal_grad", "hard_sigmoid_grad"})
    calls.push_back(
        {op, {{"Out", {3, 40}, DType::kUnknown, 0.1f, 1}, {"Out@GRAD", {3, 40}}}, {}, {"X@GRAD"}});
  for (const char* op : {"gelu_grad", "swish_grad", "silu_grad", "hard_swish_grad", "square_grad",
                         "log_grad", "abs_grad", "sin_grad", "cos_grad", "clip_grad", "pow_grad"})
    calls.push_back({op, {X({3, 40}, 0.1f, 2), {"Out@GRAD", {3, 40}}}, {}, {"X@GRAD"}});
  CompareAll(calls);
}

TEST(GridHalfKernels, FunctionsOfTwoElements) {
  std::vector<Call> calls;
  for (const char* op : {"elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div",
                         "elementwise_max", "elementwise_min", "elementwise_mod",
                         "elementwise_floordiv", "elementwise_pow", "less_than", "less_equal",
                         "greater_than", "greater_equal", "equal", "not_equal"}) {
    calls.push_back({op, {X({2, 3, 4}, 0.5f, 2), {"Y", {2, 3, 4}, DType::kUnknown, 0.5f, 2}}});
    calls.push_back(
        {op, {X({2, 3, 4}, 0.5f, 2), {"Y", {3}, DType::kUnknown, 0.5f, 2}}, {{"axis", 1}}});
  }
  for (const char* op : {"elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_max",
                         "elementwise_min", "elementwise_pow"})
    calls.push_back({std::string(op) + "_grad",
                     {X({5, 3, 4}, 1.2f, 2),
                      {"Y", {3, 4}, DType::kUnknown, 0.5f, 2},
                      {"Out@GRAD", {5, 3, 4}, DType::kUnknown, 0.5f, 1}},
                     {},
                     {"X@GRAD", "Y@GRAD"},
                     2});
  calls.push_back({"sum", {X({3, 4}), X({3, 4}), X({3, 4})}});
  CompareAll(calls);
}

TEST(GridHalfKernels, Reductions) {
  std::vector<Call> calls;
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"})
    for (const List& dims : {List{0}, List{1}, List{0, 2}})
      calls.push_back({op, {X({4, 5, 6}, 0.5f, 1.5f)}, {{"dim", dims}, {"keep_dim", false}}});
  // So long that it is cut in parts, which are added up in float32.
  calls.push_back({"reduce_sum", {X({2, 30000}, 0, 1)}, {{"dim", List{1}}}});
  calls.push_back({"mean", {X({5, 7}, 0, 1)}});
  calls.push_back({"cumsum", {X({3, 50}, 0, 1)}, {{"axis", 1}}});
  for (const char* op : {"reduce_sum_grad", "reduce_mean_grad"})
    calls.push_back({op, {X({4, 5}), {"Out@GRAD", {4}}}, {{"dim", List{1}}}});
  calls.push_back({"mean_grad", {X({4, 5}), {"Out@GRAD", {}}}});
  calls.push_back({"expand_v2_grad", {X({3, 1}), {"Out@GRAD", {3, 40}}}});
  CompareAll(calls);
}

TEST(GridHalfKernels, MovesAndLookups) {
  const Shape s{4, 6};
  CompareAll({
      {"cast", {X(s, -9, 9)}, {{"in_dtype", DType::kF16}, {"out_dtype", DType::kF32}}},
      {"cast", {X(s, -9, 9)}, {{"in_dtype", DType::kF16}, {"out_dtype", DType::kI64}}},
      {"cast", {X(s, -9, 9)}, {{"in_dtype", DType::kF16}, {"out_dtype", DType::kBF16}}},
      {"cast", {X(s, -1, 1)}, {{"in_dtype", DType::kF16}, {"out_dtype", DType::kBool}}},
      {"cast", {Float("X", s, -9, 9)}, {{"in_dtype", DType::kF32}, {"out_dtype", DType::kF16}}},
      {"cast", {Whole("X", s, 900)}, {{"in_dtype", DType::kI64}, {"out_dtype", DType::kBF16}}},
      {"fill_any_like", {X(s)}, {{"value", 0.3}}},
      {"fill_any_like", {Float("X", s)}, {{"value", 0.3}, {"dtype", DType::kF16}}},
      {"fill_zeros_like", {X(s)}},
      {"assign", {X(s)}},
      {"transpose2", {X({2, 3, 4})}, {{"axis", List{2, 0, 1}}}},
      {"concat", {X(s), X(s)}, {{"axis", 1}}},
      {"slice", {{"Input", s}}, {{"axes", List{1}}, {"starts", List{2}}, {"ends", List{5}}}},
      {"expand_v2", {X({1, 6})}, {{"shape", List{4, 6}}}},
      {"tril_triu", {X(s)}, {{"diagonal", 0}, {"lower", true}}},
      {"gather", {X({5, 3}), Whole("Index", {4}, 5)}},
      {"lookup_table_v2", {{"W", {7, 3}}, Whole("Ids", {2, 5}, 7)}, {{"padding_idx", 2}}},
  });
}

TEST(GridHalfKernels, Products) {
  std::vector<Call> calls;
  for (const bool tx : {false, true})
    for (const bool ty : {false, true}) {
      const Attributes attrs{{"trans_x", tx}, {"trans_y", ty}};
      const Shape x = tx ? Shape{40, 9, 4} : Shape{40, 4, 9}, y = ty ? Shape{5, 9} : Shape{9, 5};
      calls.push_back({"matmul_v2", {X(x, 0, 1), {"Y", y, DType::kUnknown, 0, 1}}, attrs});
      // The gradient of Y is a sum over the batch.
      calls.push_back({"matmul_v2_grad",
                       {X(x, 0, 1),
                        {"Y", y, DType::kUnknown, 0, 1},
                        {"Out@GRAD", {40, 4, 5}, DType::kUnknown, 0, 1}},
                       attrs,
                       {"X@GRAD", "Y@GRAD"}});
    }
  calls.push_back({"bmm", {X({3, 4, 9}, 0, 1), {"Y", {3, 9, 5}, DType::kUnknown, 0, 1}}});
  calls.push_back({"mul", {X({4, 9}, 0, 1), {"Y", {9, 5}, DType::kUnknown, 0, 1}}});
  CompareAll(calls);
}

TEST(GridHalfKernels, Norms) {
  std::vector<Call> calls;
  for (const char* op : {"softmax", "log_softmax"})
    for (const int64_t axis : {-1, 0, 1}) {
      const Shape s{3, 4, 40};
      const float low = op[0] == 'l' ? -4 : 0;
      calls.push_back({op, {X(s, -3, 3)}, {{"axis", axis}}});
      calls.push_back(
          {std::string(op) + "_grad",
           {{"Out", s, DType::kUnknown, low, 0.5f}, {"Out@GRAD", s, DType::kUnknown, 0.2f, 1}},
           {{"axis", axis}},
           {},
           8});
    }
  const Shape rows{6, 40};
  for (const DType of : {DType::kF32, DType::kUnknown}) {
    const Operand scale{"Scale", {40}, of, 0.5f, 1.5f}, bias{"Bias", {40}, of, 3, 4};
    calls.push_back({"layer_norm", {X(rows), scale, bias}, {{"begin_norm_axis", 1}}});
    calls.push_back({"layer_norm_grad",
                     {X(rows),
                      scale,
                      bias,
                      Float("Mean", {6}, 0, 0.1f),
                      Float("Variance", {6}, 0.5f, 1),
                      {"Y@GRAD", rows, DType::kUnknown, 0.5f, 1}},
                     {{"begin_norm_axis", 1}},
                     {"X@GRAD", "Scale@GRAD", "Bias@GRAD"},
                     8});
    const Operand s{"Scale", {5}, of, 0.5f, 1.5f}, b{"Bias", {5}, of, 3, 4};
    calls.push_back(
        {"batch_norm",
         {X({3, 5, 4, 2}), s, b, {"Mean", {5}, of, 0, 0.1f}, {"Variance", {5}, of, 0.5f, 1}},
         {{"is_test", true}}});
    calls.push_back(
        {"batch_norm",
         {X({3, 5, 4, 2}), s, b, Float("Mean", {5}, 0, 0.1f), Float("Variance", {5}, 0.5f, 1)},
         {},
         {"Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}});
  }
  calls.push_back({"layer_norm", {X(rows)}, {{"begin_norm_axis", 1}}, {"Y", "Mean"}, 2});
  CompareAll(calls);
}

TEST(GridHalfKernels, ThroughFloat) {
  const Attributes conv{{"paddings", List{1, 1}}};
  const Operand image{"Input", {2, 3, 6, 5}, DType::kUnknown, 0, 1};
  const Operand filter{"Filter", {4, 3, 3, 3}, DType::kUnknown, 0, 1};
  CompareAll({
      {"conv2d", {image, filter}, conv},
      {"conv2d_grad",
       {image, filter, {"Output@GRAD", {2, 4, 6, 5}, DType::kUnknown, 0, 1}},
       conv,
       {"Input@GRAD", "Filter@GRAD"}},
      {"conv2d_transpose", {{"Input", {2, 4, 6, 5}, DType::kUnknown, 0, 1}, filter}, conv},
      {"pool2d", {X({2, 3, 6, 6})}, {{"ksize", List{2, 2}}, {"strides", List{2, 2}}}},
      {"pool2d",
       {X({2, 3, 6, 6}, 0, 1)},
       {{"ksize", List{3, 3}}, {"strides", List{1, 1}}, {"pooling_type", "avg"}}},
      {"softmax_with_cross_entropy",
       {{"Logits", {6, 9}, DType::kUnknown, -3, 3}, Whole("Label", {6, 1}, 9)}},
      {"batch_norm_grad",
       {X({3, 5, 4, 2}),
        {"Y@GRAD", {3, 5, 4, 2}, DType::kUnknown, 0.5f, 1},
        Float("Scale", {5}, 0.5f, 1.5f),
        Float("SavedMean", {5}, 0, 0.1f),
        Float("SavedVariance", {5}, 0.5f, 1)},
       {},
       {"X@GRAD", "Scale@GRAD", "Bias@GRAD"},
       8},
      {"top_k_v2", {X({4, 30})}, {{"k", 3}}},
      {"nearest_interp_v2", {X({1, 2, 4, 4})}, {{"out_h", 8}, {"out_w", 6}}},
  });
  Compare({"arg_max", {X({4, 30})}, {{"axis", 1}}}, DType::kF16);
}

// One call does not mix types where its kernel reads one.
TEST(GridHalfKernels, OneTypeInACall) {
  const Call add{"elementwise_add", {X({3, 4}), Float("Y", {3, 4})}};
  heddle::ProgramBuilder b;
  const auto x = b.Feed("x", DType::kF16, {3, 4});
  const auto y = b.Feed("y", DType::kF32, {3, 4});
  const auto z = b.Apply("elementwise_add", {{"X", {*x}}, {"Y", {*y}}});
  ASSERT_TRUE(z.ok() && b.Fetch(*z).ok());
  const auto model = std::move(b).Finish();
  auto device = std::make_shared<GridDevice>();
  Executor grid({.threads = 1, .device = device});
  const auto compiled = MustCompile(grid, model->program, model->scope, {.opt_level = 0});
  (void)grid.Run(compiled, {{"x", ValueOf(add.in[0], DType::kF16, 1)},
                            {"y", ValueOf(add.in[1], DType::kF16, 2)}});
  EXPECT_EQ(device->covered().count("elementwise_add"), 0u);
}

}  // namespace
}  // namespace heddle::testing
