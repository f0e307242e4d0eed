// ONNX's operators on 8-bit integers, drawn with a seed, with constant operands and with operands
// that vary, against plain loops. HEDDLE_INTEGER_CASES=<n> draws n instead of 100.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

int IntegerCases() {
  const char* const said = std::getenv("HEDDLE_INTEGER_CASES");
  return said != nullptr ? std::atoi(said) : 100;
}

// A program of one operator, whose operands are parameters or fed.
class OneOperator {
 public:
  explicit OneOperator(uint32_t seed) : random_(seed), constant_(Int(0, 3) > 0) {}

  int64_t Int(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  bool Coin() { return Int(0, 1) == 1; }
  DType Type() { return Coin() ? DType::kU8 : DType::kI8; }
  Tensor Bytes(DType dtype, const Shape& shape) {
    Tensor t = Tensor::Empty(dtype, shape);
    for (int64_t i = 0; i < t.numel(); ++i) {
      const int64_t kind = Int(0, 9);  // often an end of the range
      const int64_t byte = kind == 0 ? 0 : kind == 1 ? 255 : kind == 2 ? 128 : Int(0, 255);
      static_cast<uint8_t*>(t.mutable_raw())[i] = static_cast<uint8_t>(byte);
    }
    return t;
  }
  Tensor Scales(const Shape& shape, float about) {
    Tensor t = Tensor::Empty(DType::kF32, shape);
    for (int64_t i = 0; i < t.numel(); ++i)
      t.mutable_data<float>()[i] = about * static_cast<float>(Int(500, 1500)) / 1000;
    return t;
  }
  void Operand(const std::string& slot, const Tensor& t, bool varies) {
    slots_.push_back({slot, {slot}});
    if (varies || !constant_) {
      b_.Feed(slot, t.dtype(), t.shape());
      feeds_.push_back({slot, t});
    } else {
      b_.Param(slot, t.dtype(), t.shape());
      scope_->Set(slot, Value(t));
    }
  }
  // The only output, at both levels the same but for a step.
  Tensor Run(const std::string& type, const std::string& out, const Attrs& attrs) {
    b_.Op(type, slots_, {{out, {"result"}}}, attrs).Fetch("result");
    Executor executor({.threads = 2});
    const Tensor got =
        MustRun(executor, MustCompile(executor, b_.Build(), scope_, {.opt_level = 0}), feeds_)[0];
    const Tensor again =
        MustRun(executor, MustCompile(executor, b_.Build(), scope_, {.opt_level = 2}), feeds_)[0];
    if (!type.starts_with("onnx_q_linear")) {
      EXPECT_EQ(Bits(got), Bits(again));
      return got;
    }
    // A pass multiplies exact sums by one factor: what lies in the middle may become the next step.
    for (int64_t i = 0; i < got.numel(); ++i) EXPECT_LE(std::abs(Byte(got, i) - Byte(again, i)), 1);
    return got;
  }

 private:
  static int64_t Byte(const Tensor& t, int64_t i) {
    const auto b = static_cast<const uint8_t*>(t.raw())[i];
    return t.dtype() == DType::kI8 ? int64_t{static_cast<int8_t>(b)} : int64_t{b};
  }

  std::mt19937 random_;
  const bool constant_;
  ProgramBuilder b_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::vector<heddle::Feed> feeds_;
  Slots slots_;
};

int64_t At(const Tensor& t, int64_t i) {
  const auto b = static_cast<const uint8_t*>(t.raw())[i];
  return t.dtype() == DType::kI8 ? int64_t{static_cast<int8_t>(b)} : int64_t{b};
}
int64_t ZeroOf(const Tensor& t, int64_t i) {
  return t.initialized() ? At(t, t.numel() == 1 ? 0 : i) : 0;
}
int64_t RoundedTo(DType dtype, double y, int64_t zero) {
  const double low = dtype == DType::kU8 ? 0 : -128;
  return static_cast<int64_t>(
      std::clamp(std::nearbyint(y) + static_cast<double>(zero), low, low + 255));
}

// Sums [m, n] of a product [m, k] [k, n].
std::vector<int64_t> Sums(const Tensor& a, const Tensor& b, const Tensor& a_zero,
                          const Tensor& b_zero) {
  const int64_t m = a.dim(0), k = a.dim(1), n = b.dim(1);
  std::vector<int64_t> sums(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t p = 0; p < k; ++p)
        sums[static_cast<size_t>(i * n + j)] +=
            (At(a, i * k + p) - ZeroOf(a_zero, i)) * (At(b, p * n + j) - ZeroOf(b_zero, j));
  return sums;
}

TEST(IntegerOperators, MatMulIntegerIsExact) {
  for (int seed = 1; seed <= IntegerCases(); ++seed) {
    SCOPED_TRACE(seed);
    OneOperator op(static_cast<uint32_t>(seed));
    const int64_t m = op.Int(1, 20), k = op.Int(1, 70), n = op.Int(1, 40);
    const Tensor a = op.Bytes(op.Type(), {m, k}), b = op.Bytes(op.Type(), {k, n});
    Tensor a_zero, b_zero;
    op.Operand("A", a, true);
    op.Operand("B", b, false);
    if (op.Coin()) {
      a_zero = op.Bytes(a.dtype(), op.Int(0, 3) == 0 ? Shape{m} : Shape{});
      op.Operand("a_zero_point", a_zero, op.Coin());
    }
    if (op.Coin()) {
      b_zero = op.Bytes(b.dtype(), op.Coin() ? Shape{n} : Shape{});
      op.Operand("b_zero_point", b_zero, false);
    }
    const Tensor got = op.Run("onnx_mat_mul_integer", "Y", {});
    const auto want = Sums(a, b, a_zero, b_zero);
    for (int64_t i = 0; i < got.numel(); ++i)
      ASSERT_EQ(got.data<int32_t>()[i], want[static_cast<size_t>(i)]) << "element " << i;
  }
}

TEST(IntegerOperators, QLinearMatMulRoundsItsSums) {
  for (int seed = 1; seed <= IntegerCases(); ++seed) {
    SCOPED_TRACE(seed);
    OneOperator op(static_cast<uint32_t>(seed));
    const int64_t m = op.Int(1, 20), k = op.Int(1, 70), n = op.Int(1, 40);
    const DType out = op.Type();
    const Tensor a = op.Bytes(op.Type(), {m, k}), b = op.Bytes(op.Type(), {k, n});
    const Tensor a_zero = op.Bytes(a.dtype(), {}), y_zero = op.Bytes(out, {});
    const Tensor b_zero = op.Bytes(b.dtype(), op.Coin() ? Shape{n} : Shape{});
    const Tensor a_scale = op.Scales({}, 0.02f), y_scale = op.Scales({}, 0.05f);
    const Tensor b_scale = op.Scales(b_zero.shape(), 0.01f);
    op.Operand("a", a, true);
    op.Operand("a_scale", a_scale, false);
    op.Operand("a_zero_point", a_zero, false);
    op.Operand("b", b, false);
    op.Operand("b_scale", b_scale, false);
    op.Operand("b_zero_point", b_zero, false);
    op.Operand("y_scale", y_scale, false);
    op.Operand("y_zero_point", y_zero, false);
    const Tensor got = op.Run("onnx_q_linear_mat_mul", "y", {});
    const auto want = Sums(a, b, a_zero, b_zero);
    for (int64_t i = 0; i < got.numel(); ++i) {
      const float by = b_scale.data<float>()[b_scale.numel() == 1 ? 0 : i % n];
      const float scale = *a_scale.data<float>() * by / *y_scale.data<float>();
      const float scaled = static_cast<float>(want[static_cast<size_t>(i)]) * scale;
      ASSERT_EQ(At(got, i), RoundedTo(out, double{scaled}, At(y_zero, 0))) << "element " << i;
    }
  }
}

TEST(IntegerOperators, DynamicProductsAreNearThoseOfFloats) {
  for (int seed = 1; seed <= IntegerCases(); ++seed) {
    SCOPED_TRACE(seed);
    OneOperator op(static_cast<uint32_t>(seed));
    const int64_t m = op.Int(1, 20), k = op.Int(1, 70), n = op.Int(1, 40);
    const Tensor a = RandomF32({m, k}, static_cast<uint32_t>(seed), 3);
    const Tensor b = op.Bytes(op.Type(), {k, n});
    Tensor b_zero, bias;
    const Tensor b_scale = op.Scales(op.Coin() ? Shape{n} : Shape{1}, 0.01f);
    op.Operand("A", a, true);
    op.Operand("B", b, false);
    op.Operand("b_scale", b_scale, false);
    if (op.Coin()) {
      b_zero = op.Bytes(b.dtype(), b_scale.shape());
      op.Operand("b_zero_point", b_zero, false);
    }
    if (op.Coin()) {
      bias = RandomF32({n}, static_cast<uint32_t>(seed) + 1);
      op.Operand("bias", bias, false);
    }
    const Tensor got = op.Run("onnx_ms_dynamic_quantize_mat_mul", "Y", {});
    float least = 0, most = 0;
    for (int64_t i = 0; i < a.numel(); ++i) {
      least = std::min(least, a.data<float>()[i]);
      most = std::max(most, a.data<float>()[i]);
    }
    const float step = (most - least) / 255;
    const float zero = std::nearbyint(std::min(std::max(-least / step, 0.f), 255.f));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        int64_t sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          const float x = std::nearbyint(a.data<float>()[i * k + p] / step) + zero;
          sum += static_cast<int64_t>(std::min(std::max(x, 0.f), 255.f) - zero) *
                 (At(b, p * n + j) - ZeroOf(b_zero, j));
        }
        const double by = b_scale.data<float>()[b_scale.numel() == 1 ? 0 : j];
        const double y = static_cast<double>(sum) * step * by +
                         (bias.initialized() ? double{bias.data<float>()[j]} : 0);
        ASSERT_NEAR(got.data<float>()[i * n + j], y, 1e-5 * std::abs(y) + 1e-4) << i << " " << j;
      }
  }
}

// A convolution of one or two dimensions, in int32 or rounded again.
void CheckConvolution(uint32_t seed, bool linear) {
  OneOperator op(seed);
  const int64_t rank = op.Int(1, 2), groups = op.Int(0, 2) == 0 ? op.Int(2, 5) : 1;
  const int64_t in_each = op.Int(1, 9), out_each = op.Int(1, 9), batch = op.Int(1, 2);
  const int64_t channels = in_each * groups, filters = out_each * groups;
  Shape in{batch, channels}, kernel{filters, in_each};
  Ints strides, dilations, pads(static_cast<size_t>(2 * rank));
  std::array<int64_t, 2> size{1, 1}, taps{1, 1}, stride{1, 1}, dilation{1, 1}, lo{0, 0}, out{1, 1};
  for (int64_t i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(2 - rank + i), k = static_cast<size_t>(i);
    taps[at] = op.Int(1, 3);
    stride[at] = op.Int(1, 2);
    dilation[at] = op.Int(1, 2);
    const int64_t reach = dilation[at] * (taps[at] - 1) + 1;
    size[at] = op.Int(reach, reach + 8);
    lo[at] = pads[k] = op.Int(0, reach - 1);
    pads[k + static_cast<size_t>(rank)] = op.Int(0, reach - 1);
    out[at] = (size[at] + lo[at] + pads[k + static_cast<size_t>(rank)] - reach) / stride[at] + 1;
    in.push_back(size[at]);
    kernel.push_back(taps[at]);
    strides.push_back(stride[at]);
    dilations.push_back(dilation[at]);
  }
  const Tensor x = op.Bytes(op.Type(), in), w = op.Bytes(op.Type(), kernel);
  const Tensor x_zero = op.Bytes(x.dtype(), {});
  const Tensor w_zero = op.Bytes(w.dtype(), op.Coin() ? Shape{filters} : Shape{});
  const Tensor x_scale = op.Scales({}, 0.02f), y_scale = op.Scales({}, 0.05f);
  const Tensor w_scale = op.Scales(op.Coin() ? Shape{filters} : Shape{}, 0.01f);
  const DType type = op.Type();
  const Tensor y_zero = op.Bytes(type, {});
  op.Operand("x", x, true);
  if (linear) op.Operand("x_scale", x_scale, false);
  op.Operand("x_zero_point", x_zero, !linear && op.Coin());
  op.Operand("w", w, false);
  if (linear) op.Operand("w_scale", w_scale, false);
  op.Operand("w_zero_point", w_zero, false);
  if (linear) {
    op.Operand("y_scale", y_scale, false);
    op.Operand("y_zero_point", y_zero, false);
  }
  const Tensor got =
      op.Run(linear ? "onnx_q_linear_conv" : "onnx_conv_integer", "y",
             {{"group", groups}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}});
  ASSERT_EQ(got.numel(), batch * filters * out[0] * out[1]);
  int64_t at = 0;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t o = 0; o < filters; ++o)
      for (int64_t h = 0; h < out[0]; ++h)
        for (int64_t v = 0; v < out[1]; ++v, ++at) {
          int64_t sum = 0;
          for (int64_t i = 0; i < in_each; ++i)
            for (int64_t r = 0; r < taps[0]; ++r)
              for (int64_t c = 0; c < taps[1]; ++c) {
                const int64_t y = h * stride[0] - lo[0] + r * dilation[0];
                const int64_t z = v * stride[1] - lo[1] + c * dilation[1];
                if (y < 0 || y >= size[0] || z < 0 || z >= size[1]) continue;
                const int64_t channel = o / out_each * in_each + i;
                sum += (At(x, ((n * channels + channel) * size[0] + y) * size[1] + z) -
                        At(x_zero, 0)) *
                       (At(w, ((o * in_each + i) * taps[0] + r) * taps[1] + c) - ZeroOf(w_zero, o));
              }
          if (!linear) {
            ASSERT_EQ(got.data<int32_t>()[at], sum) << "element " << at;
            continue;
          }
          const float by = w_scale.data<float>()[w_scale.numel() == 1 ? 0 : o];
          const float scale = *x_scale.data<float>() * by / *y_scale.data<float>();
          const float scaled = static_cast<float>(sum) * scale;
          ASSERT_EQ(At(got, at), RoundedTo(type, double{scaled}, At(y_zero, 0)))
              << "element " << at;
        }
}

TEST(IntegerOperators, ConvolutionsAreExact) {
  for (int seed = 1; seed <= IntegerCases(); ++seed) {
    SCOPED_TRACE(seed);
    CheckConvolution(static_cast<uint32_t>(seed), false);
    if (HasFatalFailure()) return;
    CheckConvolution(static_cast<uint32_t>(seed), true);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace heddle::testing
