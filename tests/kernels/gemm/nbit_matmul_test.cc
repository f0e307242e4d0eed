// Products with matrices of integers, drawn with a seed, in every form and for every vector width,
// against plain loops in double. HEDDLE_NBIT_CASES=<n> draws n instead of 150.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "kernels/simd/integers/nbits.h"
#include "kernels/simd/isa.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

class NbitCase {
 public:
  explicit NbitCase(uint32_t seed) : random_(seed) {
    const int forms = Int(0, 2);
    form_ = forms == 0 ? "fields" : forms == 1 ? "rows" : "columns";
    bits_ = forms == 0 ? 2 << Int(0, 2) : 4 << Int(0, 1);
    constexpr int kRows[] = {1, 2, 3, 4, 5, 16, 17, 40};
    m_ = kRows[Int(0, 7)];
    n_ = Int(1, 5) == 1 ? Int(1, 8) : Int(9, 90);
    const bool whole = forms > 0 && Coin();
    k_ = Int(1, 300);
    block_ = whole ? k_ : forms == 0 ? 16 << Int(0, 3) : Int(1, 70);
    blocks_ = (k_ + block_ - 1) / block_;
    signed_ = forms > 0 && Coin();
    one_ = forms > 0 && blocks_ == 1 && Coin();
    const int zeros = Int(0, 2);
    if (zeros > 0) zero_type_ = zeros == 1 ? Bytes() : DType::kF32;
    constant_ = Int(0, 4) > 0;
    Draw();
  }

  void Check() {
    SCOPED_TRACE(::testing::Message()
                 << form_ << ", " << bits_ << " bits, " << m_ << "x" << k_ << "x" << n_
                 << ", blocks of " << block_ << (signed_ ? ", signed" : ""));
    const Tensor x = RandomF32({m_, k_}, random_());
    const Tensor bias = RandomF32({n_}, random_());
    ProgramBuilder b;
    const auto scope = std::make_shared<Scope>();
    std::vector<heddle::Feed> feeds{{"x", x}};
    b.Feed("x", DType::kF32, {m_, k_});
    Slots in{{"X", {"x"}}};
    const auto add = [&](const char* slot, const Tensor& t) {
      if (!t.initialized()) return;
      in.push_back({slot, {slot}});
      if (constant_) {
        b.Param(slot, t.dtype(), t.shape());
        scope->Set(slot, Value(t));
      } else {
        b.Feed(slot, t.dtype(), t.shape());
        feeds.push_back({slot, t});
      }
    };
    add("W", w_);
    add("Scale", scale_);
    add("Zero", zero_);
    const bool biased = Coin();
    if (biased) add("Bias", bias);
    b.Op("nbit_matmul", in, {{"Out", {"y"}}},
         {{"terms", k_},
          {"columns", n_},
          {"bits", int64_t{bits_}},
          {"block_size", block_ == k_ && form_ != "fields" ? 0 : block_},
          {"form", form_}});
    b.Fetch("y");
    for (const int threads : {1, 2}) {
      Executor executor({.threads = threads});
      const auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0});
      const Tensor got = MustRun(executor, compiled, feeds)[0];
      ASSERT_EQ(got.shape(), (Shape{m_, n_}));
      for (int64_t i = 0; i < m_; ++i)
        for (int64_t c = 0; c < n_; ++c) {
          double sum = biased ? double{bias.data<float>()[c]} : 0, size = std::abs(sum);
          for (int64_t k = 0; k < k_; ++k) {
            const double term =
                double{x.data<float>()[i * k_ + k]} * values_[static_cast<size_t>(k * n_ + c)];
            sum += term;
            size += std::abs(term);
          }
          ASSERT_NEAR(got.data<float>()[i * n_ + c], sum, 4e-6 * size + 1e-6)
              << threads << " threads, row " << i << ", column " << c;
        }
    }
  }

 private:
  int Int(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<uint32_t>(most - least + 1));
  }
  bool Coin() { return Int(0, 1) == 1; }
  DType Bytes() const { return signed_ ? DType::kI8 : DType::kU8; }

  void Draw() {
    const bool fields = form_ == "fields";
    const int range = 1 << bits_, least = signed_ ? -range / 2 : 0;
    const int64_t per_column = (block_ * bits_ + 7) / 8;
    w_ = Tensor::Empty(Bytes(), fields            ? Shape{n_, blocks_, per_column}
                                : form_ == "rows" ? Shape{k_, n_}
                                                  : Shape{n_, k_});
    scale_ = Tensor::Empty(DType::kF32, one_              ? Shape{1}
                                        : form_ == "rows" ? Shape{blocks_, n_}
                                                          : Shape{n_, blocks_});
    for (int64_t i = 0; i < scale_.numel(); ++i)
      scale_.mutable_data<float>()[i] =
          static_cast<float>(Int(500, 1500)) / 1000 / static_cast<float>(range);
    auto* const bytes = static_cast<uint8_t*>(w_.mutable_raw());
    std::fill_n(bytes, w_.numel(), uint8_t{0});
    const int64_t zero_bytes = (blocks_ * bits_ + 7) / 8;
    if (zero_type_ == DType::kF32) {
      zero_ = Tensor::Empty(DType::kF32, scale_.shape());
      for (int64_t i = 0; i < zero_.numel(); ++i)
        zero_.mutable_data<float>()[i] =
            static_cast<float>(Int(0, 10 * range)) / 10 + static_cast<float>(least);
    } else if (zero_type_ != DType::kUnknown) {
      zero_ = Tensor::Empty(zero_type_, fields ? Shape{n_, zero_bytes} : scale_.shape());
      for (int64_t i = 0; i < zero_.numel(); ++i)
        static_cast<uint8_t*>(zero_.mutable_raw())[i] =
            static_cast<uint8_t>(fields ? Int(0, 255) : Int(least, least + range - 1));
    }
    values_.resize(static_cast<size_t>(k_ * n_));
    for (int64_t c = 0; c < n_; ++c)
      for (int64_t k = 0; k < k_; ++k) {
        const int q = Int(least, least + range - 1);
        const int64_t b = k / block_, r = k % block_;
        if (fields)
          bytes[(c * blocks_ + b) * per_column + r * bits_ / 8] |=
              static_cast<uint8_t>(q << r * bits_ % 8);
        else
          bytes[form_ == "rows" ? k * n_ + c : c * k_ + k] = static_cast<uint8_t>(q);
        const int64_t at = one_ ? 0 : form_ == "rows" ? b * n_ + c : c * blocks_ + b;
        double zero = fields ? range / 2 : 0;
        if (zero_type_ == DType::kF32) {
          zero = zero_.data<float>()[at];
        } else if (zero_.initialized()) {
          const auto* const z = static_cast<const uint8_t*>(zero_.raw());
          if (fields)
            zero = z[c * zero_bytes + b * bits_ / 8] >> b * bits_ % 8 & (range - 1);
          else
            zero = signed_ ? int{static_cast<int8_t>(z[at])} : int{z[at]};
        }
        values_[static_cast<size_t>(k * n_ + c)] = (q - zero) * double{scale_.data<float>()[at]};
      }
  }

  std::mt19937 random_;
  std::string form_;
  int bits_ = 8;
  int64_t m_, n_, k_, block_, blocks_;
  bool signed_ = false, one_ = false, constant_ = true;
  DType zero_type_ = DType::kUnknown;
  Tensor w_, scale_, zero_;
  std::vector<double> values_;  // [k, n]
};

TEST(NbitMatmul, IsTheProductWithWhatTheIntegersStandFor) {
  const char* const said = std::getenv("HEDDLE_NBIT_CASES");
  const int count = said != nullptr ? std::atoi(said) : 150;
  for (int seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE(seed);
    NbitCase(static_cast<uint32_t>(seed)).Check();
    if (HasFatalFailure()) return;
  }
}

// Every table that the machine runs, against the portable one.
TEST(NbitMatmul, TablesAgree) {
  std::mt19937 random(1);
  const auto number = [&] { return static_cast<float>(random() % 2001) / 1000 - 1; };
  for (const simd::Isa isa : {simd::Isa::kAvx2, simd::Isa::kAvx512}) {
    if (isa > simd::BestIsa()) continue;
    const simd::NbitKernels& kernels = *simd::NbitKernelsOf(isa);
    const int64_t lanes = kernels.lanes, width = 2 * lanes;
    for (const int bits : {2, 4, 8})
      for (const int64_t rows : {1, 2, 7, 32}) {
        const int64_t first = 2, all = first + rows;
        std::vector<uint8_t> values(static_cast<size_t>(simd::NbitBytes(bits, all, kernels.lanes)));
        for (uint8_t& v : values) v = static_cast<uint8_t>(random());
        std::vector<float> scale(width), zero(width), x(static_cast<size_t>(4 * rows)), totals(4);
        for (auto* const list : {&scale, &zero, &x})
          for (float& v : *list) v = number();
        for (int i = 0; i < 4; ++i)
          for (int64_t r = 0; r < rows; ++r) totals[i] += x[i * rows + r];
        const simd::NbitRows block{values.data(), scale.data(), zero.data(), first, rows};
        std::vector<float> wide(static_cast<size_t>(rows * width));
        kernels.widen(bits, block, 2, wide.data());
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < width; ++c) {
            const int64_t at = first + r, lane = c % lanes, high = c / lanes;
            int q;
            if (bits == 8)
              q = static_cast<int8_t>(values[at * width + c]);
            else if (bits == 4)
              q = (values[at * lanes + lane] >> 4 * high & 15) - 8;
            else
              q = (values[at / 2 * lanes + lane] >> (2 * high + at % 2 * 4) & 3) - 2;
            ASSERT_EQ(wide[r * width + c], (static_cast<float>(q) - zero[c]) * scale[c]);
          }
        for (int count = 1; count <= 4; ++count) {
          std::vector<float> sums(static_cast<size_t>(count * width), 0.5f);
          kernels.multiply(bits, block, {x.data(), rows, totals.data(), 1, count}, sums.data());
          for (int i = 0; i < count; ++i)
            for (int64_t c = 0; c < width; ++c) {
              double sum = 0.5, size = 1;
              for (int64_t r = 0; r < rows; ++r) {
                sum += double{x[i * rows + r]} * wide[r * width + c];
                size += std::abs(x[i * rows + r] * scale[c]) * 130;
              }
              ASSERT_NEAR(sums[i * width + c], sum, 1e-6 * size);
            }
        }
      }
  }
}

}  // namespace
}  // namespace heddle::testing
