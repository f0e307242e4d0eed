// float16 and bfloat16 on the grid device against the host's kernels: what runs there, and what
// comes out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/dtype_of.h"
#include "heddle/program_builder.h"
#include "tests/grid/grid_device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::IsEmpty;

std::vector<float> RealsOf(const Tensor& t) {
  std::vector<float> v;
  VisitDType<float, float16, bfloat16>(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < t.numel(); ++i) v.push_back(static_cast<float>(t.data<T>()[i]));
  });
  return v;
}

// Random numbers that are float16s and bfloat16s, so that all types begin with the same.
Tensor RandomReal(DType dtype, const Shape& shape, uint32_t seed, float bound = 1) {
  const Tensor wide = RandomF32(shape, seed, bound);
  Tensor t = Tensor::Empty(dtype, shape);
  VisitDType<float, float16, bfloat16>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < shape.numel(); ++i)
      t.mutable_data<T>()[i] = static_cast<T>(
          static_cast<float>(static_cast<bfloat16>(static_cast<float>(wide.data<float>()[i]))));
  });
  return t;
}

// Half the distance of two numbers next to 1.
double UnitOf(DType dtype) { return dtype == DType::kF16 ? 0x1p-11 : 0x1p-8; }

// Sums are added up in another order than on the host, so that some are rounded to the neighbour:
// differences up to `units` roundings of the largest element.
void ExpectRoundings(const Tensor& got, const Tensor& want, double units, const std::string& what) {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_EQ(got.shape().ToString(), want.shape().ToString()) << what;
  const std::vector<float> a = RealsOf(got), b = RealsOf(want);
  double largest = 0;
  for (const float v : b) largest = std::max(largest, std::fabs(static_cast<double>(v)));
  const double unit = std::max(UnitOf(DType::kF16), UnitOf(want.dtype()));
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_NEAR(a[i], b[i], units * unit * largest) << what << " [" << i << "]";
  }
}

template <typename T>
T Must(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? *std::move(result) : T();
}

struct Net {
  Model model;
  std::vector<Feed> feeds;
};

// A program whose real numbers have one type; parameters of norms may be float32.
class Writer {
 public:
  Writer(DType real, DType norms) : real_(real), norms_(norms) {}

  Variable Param(const Shape& shape, float bound, bool norm = false, float around = 0) {
    const DType dtype = norm ? norms_ : real_;
    Tensor t = RandomReal(dtype, shape, ++params_, bound);
    if (around != 0)
      VisitDType<float, float16, bfloat16>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (int64_t i = 0; i < t.numel(); ++i)
          t.mutable_data<T>()[i] = static_cast<T>(around + static_cast<float>(t.data<T>()[i]));
      });
    return Must(b_.Parameter("p" + std::to_string(params_), t));
  }
  Variable Feed(const Shape& shape, uint32_t seed) {
    const std::string name = "x" + std::to_string(feeds_.size());
    feeds_.push_back({name, RandomReal(real_, shape, seed)});
    return Must(b_.Feed(name, real_, shape));
  }
  Variable Ids(const Shape& shape, int64_t below) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < shape.numel(); ++i) ids.push_back(i * 7 % below);
    feeds_.push_back({"ids", I64(shape, ids)});
    return Must(b_.Feed("ids", DType::kI64, shape));
  }
  Variable Op(const char* type, const Operands& in, const Attributes& attrs = {}) {
    return Must(b_.Apply(type, in, attrs));
  }
  Variable Two(const char* type, Variable x, Variable y) {
    return Op(type, {{"X", {x}}, {"Y", {y}}});
  }
  Variable One(const char* type, Variable x, const Attributes& attrs = {}) {
    return Op(type, {{"X", {x}}}, attrs);
  }
  Variable Dense(Variable x, int64_t from, int64_t to) {
    const Variable w = Param({from, to}, 0.4f), bias = Param({to}, 0.5f);
    return Two("elementwise_add", Two("matmul_v2", x, w), bias);
  }
  Variable LayerNorm(Variable x, int64_t width, int64_t axis) {
    const Variable scale = Param({width}, 0.3f, true, 1), bias = Param({width}, 0.3f, true);
    return Op("layer_norm", {{"X", {x}}, {"Scale", {scale}}, {"Bias", {bias}}},
              {{"begin_norm_axis", axis}});
  }
  Net Finish(const std::vector<Variable>& fetches) {
    for (const Variable f : fetches) EXPECT_TRUE(b_.Fetch(f).ok());
    return {Must(std::move(b_).Finish()), feeds_};
  }

 private:
  DType real_, norms_;
  heddle::ProgramBuilder b_;
  std::vector<heddle::Feed> feeds_;
  uint32_t params_ = 0;
};

using Ints64 = std::vector<int64_t>;

Net Transformer(DType real, DType norms) {
  constexpr int64_t kBatch = 2, kLength = 5, kHeads = 2, kDepth = 8, kWidth = kHeads * kDepth;
  Writer w(real, norms);
  const Variable table = w.Param({11, kWidth}, 1);
  Variable x = w.Op("lookup_table_v2", {{"W", {table}}, {"Ids", {w.Ids({kBatch, kLength}, 11)}}});
  x = w.Two("elementwise_add", x, w.Feed({kLength, kWidth}, 3));
  const auto heads = [&](Variable from) {
    const Variable parts =
        w.One("reshape2", from, {{"shape", Ints64{kBatch, kLength, kHeads, kDepth}}});
    return w.One("transpose2", parts, {{"axis", Ints64{0, 2, 1, 3}}});
  };
  for (int layer = 0; layer < 2; ++layer) {
    const Variable n = w.LayerNorm(x, kWidth, 2);
    const Variable q = heads(w.Dense(n, kWidth, kWidth)), k = heads(w.Dense(n, kWidth, kWidth)),
                   v = heads(w.Dense(n, kWidth, kWidth));
    Variable s = w.Op("matmul_v2", {{"X", {q}}, {"Y", {k}}}, {{"trans_y", true}});
    s = w.One("scale", s, {{"scale", 1 / std::sqrt(static_cast<double>(kDepth))}});
    s = w.One("softmax", w.Two("elementwise_add", s, w.Feed({kBatch, 1, 1, kLength}, 4)));
    Variable o = w.One("transpose2", w.Two("matmul_v2", s, v), {{"axis", Ints64{0, 2, 1, 3}}});
    o = w.One("reshape2", o, {{"shape", Ints64{kBatch, kLength, kWidth}}});
    x = w.Two("elementwise_add", x, w.Dense(o, kWidth, kWidth));
    const Variable m = w.LayerNorm(x, kWidth, 2);
    const Variable wide =
        w.One("gelu", w.Dense(m, kWidth, 2 * kWidth), {{"approximate", layer == 1}});
    x = w.Two("elementwise_add", x, w.Dense(wide, 2 * kWidth, kWidth));
  }
  const Variable pooled =
      w.One("reduce_mean", x, {{"dim", Ints64{1}}, {"keep_dim", false}, {"reduce_all", false}});
  return w.Finish({x, w.One("relu", w.Dense(pooled, kWidth, 6))});
}

Net ConvNet(DType real, DType norms) {
  Writer w(real, norms);
  Variable x = w.Feed({2, 3, 9, 8}, 5);
  const auto conv = [&](Variable from, int64_t in, int64_t out, int64_t stride) {
    const Variable filter = w.Param({out, in, 3, 3}, 0.3f);
    const Variable y = w.Op("conv2d", {{"Input", {from}}, {"Filter", {filter}}},
                            {{"strides", Ints64{stride, stride}}, {"paddings", Ints64{1, 1}}});
    const Variable scale = w.Param({out}, 0.3f, true, 1), bias = w.Param({out}, 0.3f, true),
                   mean = w.Param({out}, 0.3f, true), variance = w.Param({out}, 0.3f, true, 1);
    return w.Op("batch_norm",
                {{"X", {y}},
                 {"Scale", {scale}},
                 {"Bias", {bias}},
                 {"Mean", {mean}},
                 {"Variance", {variance}}},
                {{"is_test", true}});
  };
  x = w.One("relu", conv(x, 3, 8, 1));
  x = w.Two("elementwise_add", x, w.One("swish", conv(x, 8, 8, 1), {{"beta", 1.0}}));
  x = w.One("pool2d", x,
            {{"ksize", Ints64{2, 2}}, {"strides", Ints64{2, 2}}, {"pooling_type", "max"}});
  x = w.One("relu6", conv(x, 8, 12, 2));
  x = w.One("pool2d", x,
            {{"global_pooling", true}, {"ksize", Ints64{1, 1}}, {"pooling_type", "avg"}});
  x = w.One("flatten_contiguous_range", x, {{"start_axis", 1}, {"stop_axis", 3}});
  return w.Finish({w.One("softmax", w.Dense(x, 12, 5))});
}

struct Case {
  const char* name;
  Net (*net)(DType real, DType norms);
  DType real, norms;
};
class GridHalves : public ::testing::TestWithParam<Case> {};

std::vector<Tensor> ResultsOf(const Net& net, Executor& executor, const CompileOptions& options) {
  return MustRun(executor, MustCompile(executor, net.model.program, net.model.scope, options),
                 net.feeds);
}

// All of it runs on the device; the results are the host's but for roundings, and near those of
// float32.
TEST_P(GridHalves, AreAsOnTheHost) {
  const Case& c = GetParam();
  const Net net = c.net(c.real, c.norms), wide = c.net(DType::kF32, DType::kF32);
  Executor host({.threads = 1});
  const auto exact = ResultsOf(wide, host, {.opt_level = 0});
  for (const int level : {0, 2})
    for (const int group : {1, 2}) {
      auto device = std::make_shared<GridDevice>(group);
      Executor grid({.threads = 1, .device = device});
      const auto want = ResultsOf(net, host, {.opt_level = level});
      const auto got = ResultsOf(net, grid, {.opt_level = level});
      EXPECT_THAT(device->refused(), IsEmpty());
      EXPECT_GT(device->covered().size(), 6u);
      EXPECT_EQ(device->covered().count("fused_matmul"), level == 2 ? 1u : 0u);
      for (size_t i = 0; i < got.size(); ++i) {
        const std::string what = std::string(c.name) + ", level " + std::to_string(level) +
                                 ", result " + std::to_string(i);
        EXPECT_EQ(got[i].dtype(), c.real);
        ExpectRoundings(got[i], want[i], 4, what);
        const std::vector<float> a = RealsOf(got[i]), b = RealsOf(exact[i]);
        for (size_t k = 0; k < a.size(); ++k)
          ASSERT_NEAR(a[k], b[k], 12 * UnitOf(c.real) * (1 + std::fabs(b[k]))) << what;
      }
    }
}
INSTANTIATE_TEST_SUITE_P(
    Models, GridHalves,
    ::testing::Values(Case{"transformer_f16", Transformer, DType::kF16, DType::kF32},
                      Case{"transformer_bf16", Transformer, DType::kBF16, DType::kF32},
                      Case{"transformer_all_f16", Transformer, DType::kF16, DType::kF16},
                      Case{"conv_f16", ConvNet, DType::kF16, DType::kF32},
                      Case{"conv_bf16", ConvNet, DType::kBF16, DType::kF32},
                      Case{"conv_all_bf16", ConvNet, DType::kBF16, DType::kBF16}),
    [](const auto& info) { return std::string(info.param.name); });

// `--precision bf16`: products with constant weights take bfloat16 and give float32.
TEST(GridPrecision, RoundsTheFactorsOfProducts) {
  const Net net = Transformer(DType::kF32, DType::kF32);
  Executor host({.threads = 1});
  const auto want = ResultsOf(net, host, {.opt_level = 0});
  auto device = std::make_shared<GridDevice>();
  Executor grid({.threads = 1, .device = device});
  CompileOptions options{.opt_level = 2};
  options.passes.precision = Precision::kBFloat16;
  const auto got = ResultsOf(net, grid, options);
  EXPECT_THAT(device->refused(), IsEmpty());
  EXPECT_EQ(device->covered().count("cast"), 1u);
  EXPECT_GT(device->lt().products(), 0);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].dtype(), DType::kF32);
    double most = 0;
    const std::vector<float> a = RealsOf(got[i]), b = RealsOf(want[i]);
    for (size_t k = 0; k < a.size(); ++k) {
      const auto difference = static_cast<double>(std::fabs(a[k] - b[k]));
      ASSERT_LT(difference, 12 * UnitOf(DType::kBF16) * (1 + std::fabs(b[k])));
      most = std::max(most, difference);
    }
    EXPECT_GT(most, 1e-4) << "nothing was rounded";
  }
}

}  // namespace
}  // namespace heddle::testing
