// Products and convolutions of 8-bit integers, drawn with a seed, in every implementation and
// layout, against plain loops. HEDDLE_INTEGER_CASES=<n> draws n instead of 150.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "kernels/integers/select.h"
#include "kernels/simd/int16.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

int Cases() {
  const char* const said = std::getenv("HEDDLE_INTEGER_CASES");
  return said != nullptr ? std::atoi(said) : 150;
}

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}
  int64_t Int(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  bool Coin() { return Int(0, 1) == 1; }
  double Real(double least, double most) {
    return least + (most - least) * static_cast<double>(Int(0, 1 << 20)) / (1 << 20);
  }
  DType Bytes() { return Coin() ? DType::kU8 : DType::kI8; }
  // A byte of the type, often at an end of its range.
  int64_t Byte(DType dtype) {
    const int64_t least = dtype == DType::kU8 ? 0 : -128;
    const int64_t kind = Int(0, 9);
    return kind == 0 ? least : kind == 1 ? least + 255 : Int(least, least + 255);
  }
  Tensor Tensor8(DType dtype, const Shape& shape) {
    Tensor t = Tensor::Empty(dtype, shape);
    for (int64_t i = 0; i < t.numel(); ++i)
      static_cast<uint8_t*>(t.mutable_raw())[i] = static_cast<uint8_t>(Byte(dtype));
    return t;
  }

 private:
  std::mt19937 random_;
};

int64_t At(const Tensor& t, int64_t i) {
  const auto b = static_cast<const uint8_t*>(t.raw())[i];
  return t.dtype() == DType::kI8 ? int64_t{static_cast<int8_t>(b)} : int64_t{b};
}

// How sums become results, drawn.
struct Result8 {
  DType dtype;
  Tensor factor, offset, zero;  // the last two may be absent
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  int64_t x_zero;

  Result8(Draw* draw, int64_t columns, DType x, DType y, int64_t terms) {
    const DType types[] = {DType::kU8, DType::kI8, DType::kF32};
    dtype = types[draw->Int(0, 2)];
    const double size = 1.0 / (60 * std::sqrt(static_cast<double>(terms) + 1));
    factor = Tensor::Empty(DType::kF32, {draw->Coin() ? columns : 1});
    for (int64_t i = 0; i < factor.numel(); ++i)
      factor.mutable_data<float>()[i] = static_cast<float>(draw->Real(0.2, 1) * size);
    if (draw->Coin()) {
      offset = Tensor::Empty(DType::kF32, {draw->Coin() ? columns : 1});
      for (int64_t i = 0; i < offset.numel(); ++i)
        offset.mutable_data<float>()[i] = static_cast<float>(draw->Real(-50, 150));
    }
    if (draw->Coin()) zero = draw->Tensor8(y, {draw->Int(0, 2) == 0 ? columns : 1});
    if (draw->Int(0, 2) == 0) least = draw->Real(-40, 40);
    if (draw->Int(0, 2) == 0) most = draw->Real(60, 200);
    x_zero = draw->Coin() ? 0 : draw->Byte(x);
  }
  static double Of(const Tensor& t, int64_t c) { return t.data<float>()[t.numel() == 1 ? 0 : c]; }
  int64_t Zero(int64_t c) const {
    return zero.initialized() ? At(zero, zero.numel() == 1 ? 0 : c) : 0;
  }
  // Compares element `i` of column `c`, whose sum this is.
  void Check(const Tensor& got, int64_t i, int64_t c, int64_t sum) const {
    const double factor_c = Of(factor, c), offset_c = offset.initialized() ? Of(offset, c) : 0;
    const double scaled = static_cast<double>(sum) * factor_c;
    const double y = std::clamp(scaled + offset_c, least, most);
    // Of floats with 24 bits: the sum, its product, the zero point's share and the offset.
    const double near =
        4e-7 * (std::abs(scaled) + std::abs(offset_c) + 300 * 300 * factor_c * terms) + 1e-6;
    if (dtype == DType::kF32) {
      ASSERT_NEAR(got.data<float>()[i], y, near) << "element " << i;
      return;
    }
    const double low = dtype == DType::kU8 ? 0 : -128;
    const double whole = std::clamp(std::nearbyint(y), low, low + 255);
    const bool tie = std::abs(std::abs(y - std::trunc(y)) - 0.5) < near;
    if (tie)
      ASSERT_LE(std::abs(static_cast<double>(At(got, i)) - whole), 1) << "element " << i;
    else
      ASSERT_EQ(static_cast<double>(At(got, i)), whole) << "element " << i << " of " << y;
  }
  void Add(const char* zero_slot, const char* x_zero_name, bool constant, ProgramBuilder* b,
           std::shared_ptr<Scope> scope, Slots* in, Attrs* attrs,
           std::vector<heddle::Feed>* feeds) const {
    const auto add = [&](const char* slot, const std::string& name, const Tensor& t) {
      if (!t.initialized()) return;
      in->push_back({slot, {name}});
      if (constant) {
        b->Param(name, t.dtype(), t.shape());
        scope->Set(name, Value(t));
      } else {
        b->Feed(name, t.dtype(), t.shape());
        feeds->push_back({name, t});
      }
    };
    add("Factor", "factor", factor);
    add("Offset", "offset", offset);
    add(zero_slot, "zero", zero);
    attrs->push_back({"out_dtype", std::string(Name(dtype))});
    attrs->push_back({"least", least});
    attrs->push_back({"most", most});
    attrs->push_back({x_zero_name, x_zero});
  }
  double terms = 1;
};

// The results of the program with every implementation of a family. `fn` checks one.
template <typename List, typename Fn>
void WithEach(const List& list, const char* family, const ProgramBuilder& b,
              const std::shared_ptr<Scope>& scope, const std::vector<heddle::Feed>& feeds,
              bool constant, const Fn& fn) {
  Executor executor({.threads = 2});
  for (const auto& i : list) {
    SCOPED_TRACE(i.name);
    CompileOptions options{.opt_level = 0};
    if (constant) options.force = std::string(family) + "=" + i.name + ":words";
    const auto compiled = executor.Compile(b.Build(), scope, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    const auto got = executor.Run(*compiled, feeds);
    ASSERT_TRUE(got.ok()) << got.status().message();
    fn((*got)[0]);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void CheckConvolution(uint32_t seed) {
  Draw draw(seed);
  const DType x_type = draw.Bytes(), w_type = draw.Bytes();
  const int64_t kind = draw.Int(0, 3);  // plain, grouped, depthwise, pointwise
  const int64_t groups = kind == 1 ? draw.Int(2, 3) : kind == 2 ? draw.Int(3, 37) : 1;
  const int64_t in_each = kind == 2 ? 1 : draw.Int(1, 35),
                out_each = kind == 2 ? 1 : draw.Int(1, 40);
  const int64_t in_c = in_each * groups, out_c = out_each * groups, batch = draw.Int(1, 3);
  std::array<int64_t, 2> in, kernel, stride, dilation, lo, hi, out;
  Ints pads;
  for (size_t i = 0; i < 2; ++i) {
    in[i] = draw.Int(1, 13);
    kernel[i] = kind == 3 ? 1 : draw.Int(1, 4);
    stride[i] = draw.Int(1, 3);
    dilation[i] = draw.Int(1, 2);
    const int64_t reach = dilation[i] * (kernel[i] - 1) + 1;
    lo[i] = draw.Coin() ? 0 : draw.Int(0, reach - 1);
    hi[i] = draw.Coin() ? 0 : draw.Int(0, reach - 1);
    if (in[i] + lo[i] + hi[i] < reach) in[i] = reach;
    out[i] = (in[i] + lo[i] + hi[i] - reach) / stride[i] + 1;
    pads.push_back(lo[i]);
    pads.push_back(hi[i]);
  }
  const bool last = draw.Coin(), constant = draw.Int(0, 4) > 0;
  const auto image = [&](int64_t c, const std::array<int64_t, 2>& s) {
    return last ? Shape{batch, s[0], s[1], c} : Shape{batch, c, s[0], s[1]};
  };
  const auto place = [&](int64_t n, int64_t c, int64_t h, int64_t w, int64_t all,
                         const std::array<int64_t, 2>& s) {
    return last ? ((n * s[0] + h) * s[1] + w) * all + c : ((n * all + c) * s[0] + h) * s[1] + w;
  };
  const Tensor x = draw.Tensor8(x_type, image(in_c, in));
  const Tensor w = draw.Tensor8(w_type, {out_c, in_each, kernel[0], kernel[1]});
  Result8 result(&draw, out_c, x_type, w_type, in_each * kernel[0] * kernel[1]);
  result.terms = static_cast<double>(in_each * kernel[0] * kernel[1]);
  ProgramBuilder b;
  const auto scope = std::make_shared<Scope>();
  std::vector<heddle::Feed> feeds{{"x", x}};
  b.Feed("x", x_type, x.shape());
  Slots slots{{"Input", {"x"}}, {"Filter", {"w"}}};
  if (constant) {
    b.Param("w", w_type, w.shape());
    scope->Set("w", Value(w));
  } else {
    b.Feed("w", w_type, w.shape());
    feeds.push_back({"w", w});
  }
  Attrs attrs{{"strides", Ints(stride.begin(), stride.end())},
              {"dilations", Ints(dilation.begin(), dilation.end())},
              {"paddings", pads},
              {"groups", groups},
              {"data_format", std::string(last ? "NHWC" : "NCHW")}};
  result.Add("FilterZero", "input_zero", constant, &b, scope, &slots, &attrs, &feeds);
  b.Op("quantized_conv2d", slots, {{"Output", {"y"}}}, attrs).Fetch("y");
  WithEach(IntegerConvImplementations(), "integer_conv", b, scope, feeds, constant,
           [&](const Tensor& got) {
             ASSERT_EQ(got.shape(), image(out_c, out));
             ASSERT_EQ(got.dtype(), result.dtype);
             for (int64_t n = 0; n < batch; ++n)
               for (int64_t o = 0; o < out_c; ++o)
                 for (int64_t h = 0; h < out[0]; ++h)
                   for (int64_t v = 0; v < out[1]; ++v) {
                     int64_t sum = 0;
                     for (int64_t i = 0; i < in_each; ++i)
                       for (int64_t kh = 0; kh < kernel[0]; ++kh)
                         for (int64_t kw = 0; kw < kernel[1]; ++kw) {
                           const int64_t y = h * stride[0] - lo[0] + kh * dilation[0];
                           const int64_t z = v * stride[1] - lo[1] + kw * dilation[1];
                           if (y < 0 || y >= in[0] || z < 0 || z >= in[1]) continue;
                           const int64_t c = o / out_each * in_each + i;
                           sum += (At(x, place(n, c, y, z, in_c, in)) - result.x_zero) *
                                  (At(w, ((o * in_each + i) * kernel[0] + kh) * kernel[1] + kw) -
                                   result.Zero(o));
                         }
                     result.Check(got, place(n, o, h, v, out_c, out), o, sum);
                     if (::testing::Test::HasFatalFailure()) return;
                   }
           });
}

void CheckProduct(uint32_t seed) {
  Draw draw(seed);
  const DType x_type = draw.Bytes(), y_type = draw.Bytes();
  const int64_t m = draw.Int(1, 40), n = draw.Int(1, 70), k = draw.Int(1, 90);
  const bool tx = draw.Coin(), ty = draw.Coin(), constant = draw.Coin(), wide = draw.Coin();
  const int64_t batch = draw.Coin() ? 1 : draw.Int(2, 3);
  const bool y_batched = wide && draw.Coin();
  Shape xs = tx ? Shape{k, m} : Shape{m, k}, ys = ty ? Shape{n, k} : Shape{k, n};
  Shape outs{m, n};
  if (wide) {
    xs.insert(0, batch);
    outs.insert(0, batch);
    if (y_batched) ys.insert(0, batch);
  }
  const Tensor x = draw.Tensor8(x_type, xs), y = draw.Tensor8(y_type, ys);
  Result8 result(&draw, n, x_type, y_type, k);
  result.terms = static_cast<double>(k);
  ProgramBuilder b;
  const auto scope = std::make_shared<Scope>();
  std::vector<heddle::Feed> feeds{{"x", x}};
  b.Feed("x", x_type, xs);
  if (constant) {
    b.Param("y", y_type, ys);
    scope->Set("y", Value(y));
  } else {
    b.Feed("y", y_type, ys);
    feeds.push_back({"y", y});
  }
  Slots slots{{"X", {"x"}}, {"Y", {"y"}}};
  Attrs attrs{{"trans_x", tx}, {"trans_y", ty}};
  const bool scales = constant || draw.Coin();
  result.Add("YZero", "x_zero", scales, &b, scope, &slots, &attrs, &feeds);
  b.Op("quantized_matmul", slots, {{"Out", {"out"}}}, attrs).Fetch("out");
  WithEach(IntegerGemmImplementations(), "integer_gemm", b, scope, feeds, scales,
           [&](const Tensor& got) {
             ASSERT_EQ(got.shape(), outs);
             ASSERT_EQ(got.dtype(), result.dtype);
             for (int64_t i = 0; i < (wide ? batch : 1); ++i)
               for (int64_t r = 0; r < m; ++r)
                 for (int64_t c = 0; c < n; ++c) {
                   int64_t sum = 0;
                   for (int64_t p = 0; p < k; ++p)
                     sum += (At(x, i * m * k + (tx ? p * m + r : r * k + p)) - result.x_zero) *
                            (At(y, (y_batched ? i * n * k : 0) + (ty ? c * k + p : p * n + c)) -
                             result.Zero(c));
                   result.Check(got, (i * m + r) * n + c, c, sum);
                   if (::testing::Test::HasFatalFailure()) return;
                 }
           });
}

TEST(QuantizedOps, ConvolutionsAreAsPlainLoops) {
  for (int seed = 1; seed <= Cases(); ++seed) {
    SCOPED_TRACE(seed);
    CheckConvolution(static_cast<uint32_t>(seed));
    if (HasFatalFailure()) return;
  }
}

TEST(QuantizedOps, ProductsAreAsPlainLoops) {
  for (int seed = 1; seed <= Cases(); ++seed) {
    SCOPED_TRACE(seed);
    CheckProduct(static_cast<uint32_t>(seed));
    if (HasFatalFailure()) return;
  }
}

TEST(QuantizedOps, TilesOfWordsAgree) {
  std::mt19937 random(7);
  for (int64_t pairs = 0; pairs < 40; ++pairs) {
    std::vector<int16_t> a(static_cast<size_t>(simd::kWordRows * 2 * pairs));
    std::vector<int16_t> panel(static_cast<size_t>(2 * simd::kWordPanel * pairs));
    for (auto* list : {&a, &panel})
      for (int16_t& v : *list) v = static_cast<int16_t>(static_cast<int>(random() % 511) - 255);
    for (int rows = 1; rows <= simd::kWordRows; ++rows) {
      std::vector<int32_t> got(simd::kWordRows * simd::kWordPanel), want = got;
      simd::BestWordSums()(a.data(), 2 * pairs, pairs, panel.data(), rows, got.data(),
                           simd::kWordPanel);
      simd::PortableWordSums(a.data(), 2 * pairs, pairs, panel.data(), rows, want.data(),
                             simd::kWordPanel);
      EXPECT_EQ(got, want) << pairs << " pairs, " << rows << " rows";
    }
  }
}

TEST(QuantizedOps, RefusalsNameOperands) {
  Draw draw(3);
  ProgramBuilder b;
  b.Feed("x", DType::kU8, {1, 2, 4, 4}).Feed("w", DType::kI8, {3, 2, 1, 1});
  b.Feed("f", DType::kF32, {2});
  b.Op("quantized_conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}, {"Factor", {"f"}}},
       {{"Output", {"y"}}});
  b.Fetch("y");
  Executor executor;
  const auto compiled = executor.Compile(b.Build(), std::make_shared<Scope>());
  const auto got = compiled.ok()
                       ? executor.Run(*compiled, {{"x", draw.Tensor8(DType::kU8, {1, 2, 4, 4})},
                                                  {"w", draw.Tensor8(DType::kI8, {3, 2, 1, 1})},
                                                  {"f", F32({2}, {1, 1})}})
                       : Result<std::vector<Tensor>>(compiled.status());
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(got.status().message(), HasSubstr("Factor has shape [2], expected 1 or 3 elements"));
}

}  // namespace
}  // namespace heddle::testing
