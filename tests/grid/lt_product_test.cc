// Products with an epilogue as one call of cuBLASLt: which are taken, what comes out, and when the
// algorithm is chosen.
#include "device/cuda/grid/lt_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/dtype_of.h"
#include "tests/grid/grid_device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using grid_on_host::Activation;
using grid_on_host::BatchedProduct;
using grid_on_host::BatchSteps;
using grid_on_host::Element;
using grid_on_host::KeyOf;
using grid_on_host::LtActivation;
using grid_on_host::LtOnHost;
using grid_on_host::LtProduct;
using grid_on_host::LtProductOf;
using grid_on_host::MatrixBatch;
using grid_on_host::Queue;

const Activation kNone{};
const Activation kRelu{Element::kRelu, {}, false};
const Activation kGeluTanh{Element::kGeluTanh, {}, false};

Tensor RandomOf(DType dtype, const Shape& shape, uint32_t seed) {
  const Tensor wide = RandomF32(shape, seed);
  Tensor t = Tensor::Empty(dtype, shape);
  VisitDType<float, float16, bfloat16>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < t.numel(); ++i)
      t.mutable_data<T>()[i] = static_cast<T>(wide.data<float>()[i]);
  });
  return t;
}
double At(const Tensor& t, int64_t i) {
  double value = 0;
  VisitDType<float, float16, bfloat16>(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    value = static_cast<double>(static_cast<float>(t.data<T>()[i]));
  });
  return value;
}
double Last(const Activation& a, double x) {
  if (a.none) return x;
  if (a.op == Element::kRelu) return std::max(x, 0.0);
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// Row-major operands of a batch of products, of which `shared` have one for all.
struct Operands {
  int64_t batch = 1, m = 3, n = 5, k = 4;
  bool trans_a = false, trans_b = false, share_a = false, share_b = false;
  bool bias = true, residual = false;
  DType dtype = DType::kF32;
  Activation activation;
};

void ExpectOneCall(const Operands& o) {
  const Shape all{o.batch}, one{1};
  const Tensor a = RandomOf(o.dtype, {o.share_a ? 1 : o.batch, o.m, o.k}, 1),
               b = RandomOf(o.dtype, {o.share_b ? 1 : o.batch, o.k, o.n}, 2),
               bias = RandomOf(o.dtype, {o.n}, 3),
               residual = RandomOf(o.dtype, {o.batch, o.m, o.n}, 4);
  Tensor out = RandomOf(o.dtype, {o.batch, o.m, o.n}, 5);
  const MatrixBatch am{a.raw(),
                       o.trans_a ? o.k : o.m,
                       o.trans_a ? o.m : o.k,
                       o.trans_a ? o.m : o.k,
                       o.trans_a,
                       BatchSteps(o.share_a ? one : all, all, o.m * o.k)};
  const MatrixBatch bm{b.raw(),
                       o.trans_b ? o.n : o.k,
                       o.trans_b ? o.k : o.n,
                       o.trans_b ? o.k : o.n,
                       o.trans_b,
                       BatchSteps(o.share_b ? one : all, all, o.k * o.n)};
  const BatchedProduct product{
      all, am,      bm,     out.mutable_raw(), o.n, BatchSteps(all, all, o.m * o.n), 0.5f,
      0,   o.dtype, o.dtype};
  const auto lt = LtProductOf(product, o.residual ? residual.raw() : nullptr,
                              o.bias ? bias.raw() : nullptr, o.activation);
  ASSERT_TRUE(lt.has_value());
  LtOnHost choices;
  Queue queue(1, &choices);
  const auto done = queue.Multiply(*lt);
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  ASSERT_TRUE(*done);
  const double unit = o.dtype == DType::kF32 ? 1e-6 : o.dtype == DType::kF16 ? 0x1p-11 : 0x1p-8;
  for (int64_t p = 0; p < o.batch; ++p)
    for (int64_t i = 0; i < o.m; ++i)
      for (int64_t j = 0; j < o.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < o.k; ++k)
          sum += At(a, (o.share_a ? 0 : p * o.m * o.k) + (o.trans_a ? k * o.m + i : i * o.k + k)) *
                 At(b, (o.share_b ? 0 : p * o.k * o.n) + (o.trans_b ? j * o.k + k : k * o.n + j));
        const int64_t at = (p * o.m + i) * o.n + j;
        double want = 0.5 * sum;
        if (o.bias) want += At(bias, j);
        if (o.residual) want += At(residual, at);
        want = Last(o.activation, want);
        ASSERT_NEAR(At(out, at), want, 1.01 * unit * (1 + std::fabs(want))) << p << i << j;
      }
}

TEST(GridLtProduct, IsTheProductWithItsEpilogue) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (const Activation& last : {kNone, kRelu, kGeluTanh})
      for (const int which : {0, 1, 2, 3})
        for (const int64_t batch : {1, 3}) {
          Operands o;
          o.batch = batch, o.dtype = dtype, o.activation = last;
          o.trans_a = (which & 1) != 0, o.trans_b = (which & 2) != 0;
          o.residual = which != 0;
          o.bias = last.none || which != 2;
          ExpectOneCall(o);
          o.share_b = true;
          ExpectOneCall(o);
          o.share_a = true, o.share_b = false;
          ExpectOneCall(o);
        }
}

BatchedProduct ProductOf(const Shape& batch, const Shape& xb, const Shape& yb, const Shape& cb,
                         int64_t k = 4) {
  alignas(16) static float place[4];
  return {batch,
          {place, 3, k, k, false, BatchSteps(xb, batch, 3 * k)},
          {place, k, 5, 5, false, BatchSteps(yb, batch, k * 5)},
          place,
          5,
          BatchSteps(cb, batch, 15)};
}

TEST(GridLtProduct, LeavesTheOthersAlone) {
  const float bias[5] = {};
  const auto taken = [&](const BatchedProduct& p, const void* b, const Activation& a) {
    return LtProductOf(p, nullptr, b, a).has_value();
  };
  const BatchedProduct one = ProductOf({}, {}, {}, {});
  EXPECT_TRUE(taken(one, bias, kNone));
  EXPECT_TRUE(taken(one, nullptr, kRelu));
  EXPECT_FALSE(taken(one, nullptr, kNone)) << "cuBLAS needs no epilogue for it";
  EXPECT_FALSE(taken(one, bias, {Element::kGelu, {}, false})) << "its gelu is that with tanh";
  EXPECT_FALSE(taken(one, bias, {Element::kClip, {0, 6, 0}, false}));
  EXPECT_FALSE(taken(one, bias, {Element::kClip, {0, INFINITY, 0}, false}));  // keeps NaN
  EXPECT_FALSE(taken(one, bias, {Element::kSigmoid, {}, false}));
  EXPECT_FALSE(taken(ProductOf({}, {}, {}, {}, 0), bias, kNone)) << "an empty sum";
  EXPECT_TRUE(taken(ProductOf({2, 3}, {2, 3}, {}, {2, 3}), bias, kNone)) << "one tall product";
  EXPECT_FALSE(taken(ProductOf({2, 3}, {2, 1}, {3}, {2, 3}), bias, kNone)) << "several calls";
  EXPECT_FALSE(taken(ProductOf({2}, {2}, {2}, {}), bias, kNone)) << "a sum over the batch";
}

TEST(GridLtProduct, KindsDiffer) {
  alignas(16) const float memory[64] = {};
  const auto key = [&](const BatchedProduct& p, int residual, int bias, const Activation& a) {
    return KeyOf(*LtProductOf(p, residual < 0 ? nullptr : memory + residual,
                              bias < 0 ? nullptr : memory + bias, a));
  };
  const BatchedProduct p = ProductOf({}, {}, {}, {});
  const auto base = key(p, -1, 0, kNone);
  EXPECT_EQ(base, key(p, -1, 4, kNone)) << "as well aligned";
  EXPECT_FALSE(base == key(p, -1, 1, kNone)) << "less aligned";
  EXPECT_FALSE(base == key(p, 0, 0, kNone));
  EXPECT_FALSE(base == key(p, -1, 0, kRelu));
  EXPECT_FALSE(key(p, -1, -1, kRelu) == key(p, -1, 0, kRelu));
  EXPECT_FALSE(base == key(ProductOf({}, {}, {}, {}, 8), -1, 0, kNone));
  BatchedProduct half = p;
  half.type = half.c_type = DType::kF16;
  EXPECT_FALSE(base == key(half, -1, 0, kNone));
}

// A program with a product of every kind; `pieces`: its operand is joined from several.
struct Net {
  Program program;
  std::vector<Feed> feeds;
  std::shared_ptr<Scope> scope;
};
Net NetOf(DType dtype, const char* activation, double alpha, bool residual, bool pieces) {
  ProgramBuilder b;
  Net net;
  net.scope = std::make_shared<Scope>();
  Slots in{{"X", {}}, {"Y", {"w"}}, {"Bias", {"bias"}}};
  const auto feed = [&](const std::string& name, const Shape& shape, uint32_t seed) {
    b.Feed(name, dtype, shape);
    net.feeds.push_back({name, RandomOf(dtype, shape, seed)});
  };
  for (int i = 0; i < (pieces ? 2 : 1); ++i) {
    const std::string name = "x" + std::to_string(i);
    feed(name, {2, 6, pieces ? 4 : 8}, 10 + static_cast<uint32_t>(i));
    in[0].second.push_back(name);
  }
  b.Param("w", dtype, {8, 16}).Param("bias", dtype, {16});
  net.scope->Set("w", Value(RandomOf(dtype, {8, 16}, 20)));
  net.scope->Set("bias", Value(RandomOf(dtype, {16}, 21)));
  if (residual) {
    feed("r", {2, 6, 16}, 22);
    in.push_back({"ResidualData", {"r"}});
  }
  b.Op("fused_matmul", in, {{"Out", {"y"}}},
       {{"fuse_activation", std::string(activation)}, {"fuse_alpha", alpha}});
  b.Fetch("y");
  net.program = b.Build();
  return net;
}

// The algorithm is chosen with the plan; runs look it up. Without one, a kernel is the epilogue.
TEST(GridLtProduct, IsChosenWithThePlan) {
  for (const DType dtype : {DType::kF32, DType::kF16})
    for (const char* activation : {"", "relu", "gelu", "sigmoid"})
      for (const double alpha : {0.0, 1.0})
        for (const bool residual : {false, true})
          for (const bool pieces : {false, true}) {
            const Net net = NetOf(dtype, activation, alpha, residual, pieces);
            const std::string name(activation);
            const bool known = name != "sigmoid" && (name != "gelu" || alpha == 1);
            const int products = known && (dtype == DType::kF32 || !pieces) ? 1 : 0;
            Executor host({.threads = 1});
            const auto there = MustCompile(host, net.program, net.scope);
            const Tensor want = MustRun(host, there, net.feeds)[0];
            for (const bool has_lt : {true, false}) {
              auto device = std::make_shared<GridDevice>(1, has_lt);
              Executor grid({.threads = 1, .device = device});
              const auto here = MustCompile(grid, net.program, net.scope);
              MustRun(grid, here, net.feeds);
              const Tensor got = MustRun(grid, here, net.feeds)[0];
              EXPECT_EQ(device->lt().choices(), products) << name << alpha << residual << pieces;
              EXPECT_EQ(device->lt().late(), 0) << name << alpha << residual << pieces;
              EXPECT_EQ(device->lt().products(), has_lt ? 2 * products : 0);
              EXPECT_EQ(device->refused().size(), 0u);
              const double unit = dtype == DType::kF32 ? 1e-6 : 0x1p-10;
              for (int64_t i = 0; i < want.numel(); ++i)
                ASSERT_NEAR(At(got, i), At(want, i), unit * (1 + std::fabs(At(want, i))));
            }
          }
}

}  // namespace
}  // namespace heddle::testing
