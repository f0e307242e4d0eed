// Programs between dequantised and quantised tensors, drawn with a seed: the optimised program
// computes with 8-bit integers, and its results are those of the program as it is but for a step of
// rounding. HEDDLE_QUANTIZED_PROGRAMS=<n> draws n instead of 80.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

class QuantizedProgram {
 public:
  explicit QuantizedProgram(uint32_t seed) : random_(seed) {
    b_.Feed("x", DType::kF32, {batch_, channels_, 8, 8});
    feeds_.push_back({"x", RandomF32({batch_, channels_, 8, 8}, seed, 2)});
    std::string v = Requantized("x", 4.0f / 255);
    const int steps = Int(1, 5);
    for (int i = 0; i < steps; ++i) v = Step(v);
    if (Int(0, 2) == 0) v = Product(v);
    b_.Fetch(v);
    for (const std::string& name : also_) b_.Fetch(name);
  }

  // `steps`: how far results may be apart, in steps of the last quantisation.
  void Check(std::set<std::string>* seen) {
    Executor executor({.threads = 2});
    const Program program = b_.Build();
    const auto plain = executor.Compile(program, scope_, {.opt_level = 0});
    const auto fused = executor.Compile(program, scope_, {.opt_level = 2});
    ASSERT_TRUE(plain.ok() && fused.ok()) << plain.status().message() << fused.status().message();
    const auto want = executor.Run(*plain, feeds_), got = executor.Run(*fused, feeds_);
    ASSERT_TRUE(want.ok()) << want.status().message();
    ASSERT_TRUE(got.ok()) << got.status().message();
    const auto plan = executor.DescribePlan(*fused, feeds_);
    ASSERT_TRUE(plan.ok());
    for (const auto& i : plan->instructions) seen->insert(i.op);
    for (size_t k = 0; k < want->size(); ++k) {
      const Tensor &a = (*want)[k], &b = (*got)[k];
      ASSERT_EQ(a.shape(), b.shape());
      ASSERT_EQ(a.dtype(), b.dtype());
      int64_t apart = 0;
      for (int64_t i = 0; i < a.numel(); ++i) {
        const double distance = std::abs(double{a.data<float>()[i]} - double{b.data<float>()[i]});
        // A step that is rounded the other way moves what follows by a few, and a row and a column
        // of what is multiplied with itself.
        ASSERT_LE(distance, (squared_ ? 20 : 6) * step_ + 1e-5) << "element " << i;
        apart += distance > 1e-5;
      }
      EXPECT_LE(apart, a.numel() / (squared_ ? 4 : 10) + 2) << "of " << a.numel();
    }
  }

 private:
  int Int(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<uint32_t>(most - least + 1));
  }
  bool Coin() { return Int(0, 1) == 1; }
  std::string Name() { return "v" + std::to_string(names_++); }
  float Scale(float about) { return about * (0.5f + static_cast<float>(random_() % 1000) / 1000); }
  std::string Constant(Tensor t) {
    const std::string name = "c" + std::to_string(names_++);
    b_.Param(name, t.dtype(), t.shape());
    scope_->Set(name, Value(std::move(t)));
    return name;
  }
  std::string Bytes(DType dtype, const Shape& shape, int least, int most) {
    Tensor t = Tensor::Empty(dtype, shape);
    for (int64_t i = 0; i < t.numel(); ++i)
      static_cast<uint8_t*>(t.mutable_raw())[i] = static_cast<uint8_t>(Int(least, most));
    return Constant(std::move(t));
  }
  std::string Scales(int64_t n, float about) {
    Tensor t = Tensor::Empty(DType::kF32, n == 1 ? Shape{} : Shape{n});
    for (int64_t i = 0; i < n; ++i) t.mutable_data<float>()[i] = Scale(about);
    return Constant(std::move(t));
  }

  // `v`, quantised and dequantised.
  std::string Requantized(const std::string& v, float scale) {
    const DType dtype = Coin() ? DType::kU8 : DType::kI8;
    const int least = dtype == DType::kU8 ? 0 : -128;
    const int zero = least + (Int(0, 3) == 0 ? 255 * Int(0, 1) : Int(90, 160));
    step_ = std::max(step_, scale);
    last_ = scale;
    const std::string q = Name(), r = Name(), s = Constant(F32({}, {scale}));
    const std::string z = Bytes(dtype, {}, zero, zero);
    b_.Op("affine_quantize", {{"x", {v}}, {"y_scale", {s}}, {"y_zero_point", {z}}}, {{"y", {q}}});
    b_.Op("affine_dequantize", {{"x", {q}}, {"x_scale", {s}}, {"x_zero_point", {z}}}, {{"y", {r}}});
    return r;
  }
  // A dequantised constant with a scale for each index of `axis`, or one.
  std::string Weights(const Shape& shape, int axis, float about) {
    const bool each = Coin();
    const DType dtype = Coin() ? DType::kU8 : DType::kI8;
    const int64_t n = each ? shape[axis] : 1;
    const std::string w =
        dtype == DType::kU8 ? Bytes(dtype, shape, 0, 255) : Bytes(dtype, shape, -128, 127);
    const std::string out = Name(), scale = Scales(n, about);
    Slots in{{"x", {w}}, {"x_scale", {scale}}};
    const int zero = dtype == DType::kU8 ? Int(100, 150) : Int(0, 2) - 1;
    in.push_back({"x_zero_point", {Bytes(dtype, n == 1 ? Shape{} : Shape{n}, zero, zero)}});
    b_.Op("affine_dequantize", in, {{"y", {out}}}, {{"axis", int64_t{axis}}});
    return out;
  }

  std::string Unary(const std::string& type, const std::string& v, const Attrs& attrs = {}) {
    const std::string out = Name();
    b_.Op(type, {{"X", {v}}}, {{"Out", {out}}}, attrs);
    return out;
  }
  std::string Binary(const std::string& type, const std::string& a, const std::string& b,
                     int64_t axis = -1) {
    const std::string out = Name();
    b_.Op(type, {{"X", {a}}, {"Y", {b}}}, {{"Out", {out}}}, {{"axis", axis}});
    return out;
  }
  std::string Activated(const std::string& v) {
    switch (Int(0, 3)) {
      case 0:
        return Unary("relu", v);
      case 1:
        return Unary("clip", v, {{"min", -1.0}, {"max", 2.5}});
      default:
        return v;
    }
  }

  std::string Convolution(const std::string& v) {
    const bool depthwise = Coin();
    const int64_t groups = depthwise ? channels_ : 1, k = Int(0, 1) * 2 + 1;
    const int64_t to = depthwise ? channels_ : Int(1, 9);
    const float about = 0.02f / std::sqrt(static_cast<float>(channels_ / groups * k * k));
    const std::string w = Weights({to, channels_ / groups, k, k}, 0, about);
    std::string out = Name();
    b_.Op("conv2d", {{"Input", {v}}, {"Filter", {w}}}, {{"Output", {out}}},
          {{"paddings", Ints{k / 2, k / 2}}, {"groups", groups}});
    channels_ = to;
    if (Coin()) {
      if (Coin()) {
        Tensor bias = Tensor::Empty(DType::kI32, {to});
        for (int64_t i = 0; i < to; ++i) bias.mutable_data<int32_t>()[i] = Int(-900, 900);
        const std::string c = Constant(std::move(bias)), s = Scales(1, 0.001f), real = Name();
        b_.Op("affine_dequantize", {{"x", {c}}, {"x_scale", {s}}}, {{"y", {real}}});
        out = Binary("elementwise_add", out, real, 1);
      } else {
        out = Binary("elementwise_add", out, Constant(RandomF32({to}, random_())), 1);
      }
    }
    out = Activated(out);
    if (Int(0, 4) == 0) also_.push_back(out);
    return Requantized(out, Scale(4.0f / 255));
  }

  std::string Step(const std::string& v) {
    switch (Int(0, 6)) {
      case 0:
        return Requantized(Activated(Binary("elementwise_add", v, Requantized(v, 0.02f))), 0.03f);
      case 1:
        return Requantized(Unary(Coin() ? "sigmoid" : "tanh", v), 1.0f / 200);
      case 2: {
        const std::string out = Name();
        b_.Op("concat", {{"X", {v, Requantized(v, 0.025f)}}}, {{"Out", {out}}},
              {{"axis", int64_t{1}}});
        channels_ *= 2;
        return Requantized(out, last_);
      }
      case 3:
        return Requantized(Unary("pool2d", v,
                                 {{"pooling_type", std::string("max")},
                                  {"ksize", Ints{3, 3}},
                                  {"paddings", Ints{1, 1}},
                                  {"strides", Ints{1, 1}}}),
                           last_);
      default:
        return Convolution(v);
    }
  }

  // The planes as matrices: products with a constant, and with another value.
  std::string Product(const std::string& v) {
    const std::string m = Unary("reshape2", v, {{"shape", Ints{batch_, channels_, 64}}});
    const int64_t n = Int(1, 20);
    std::string out = Name();
    b_.Op("matmul_v2", {{"X", {m}}, {"Y", {Weights({64, n}, 1, 0.002f)}}}, {{"Out", {out}}});
    if (Coin()) out = Binary("elementwise_add", out, Constant(RandomF32({n}, random_())));
    out = Requantized(Activated(out), 0.03f);
    const std::string square = Name();
    squared_ = true;
    b_.Op("matmul_v2", {{"X", {out}}, {"Y", {out}}}, {{"Out", {square}}}, {{"trans_y", true}});
    return Requantized(square, 0.1f);
  }

  std::mt19937 random_;
  ProgramBuilder b_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::vector<heddle::Feed> feeds_;
  std::vector<std::string> also_;
  const int64_t batch_ = 2;
  int64_t channels_ = 3;
  int names_ = 0;
  float step_ = 0, last_ = 0;  // the largest scale, and the latest
  bool squared_ = false;
};

TEST(FuseQuantized, ProgramsKeepTheirResults) {
  const char* const said = std::getenv("HEDDLE_QUANTIZED_PROGRAMS");
  const int count = said != nullptr ? std::atoi(said) : 80;
  std::set<std::string> seen;
  for (int seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE(seed);
    QuantizedProgram(static_cast<uint32_t>(seed)).Check(&seen);
    if (HasFatalFailure()) return;
  }
  for (const char* op :
       {"quantized_conv2d", "quantized_matmul", "quantized_sum", "byte_table", "byte_max_pool"})
    EXPECT_EQ(seen.count(op), 1u) << op;
  EXPECT_EQ(seen.count("conv2d") + seen.count("fused_conv2d"), 0u);
}

}  // namespace
}  // namespace heddle::testing
