// The microkernels of all instruction sets that this machine runs, beside the portable ones, which
// are compiled here; and their elementary functions beside those of the standard library.
#include "kernels/simd/microkernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "kernels/simd/microkernel_table.h"
#include "kernels/simd/portable.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using simd::Isa;
using simd::Microkernels;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

const Microkernels& PortableTable() {
  static constexpr Microkernels table = simd::TableOf<simd::Portable>(Isa::kPortable);
  return table;
}

// Those that run here, the portable ones first.
std::vector<const Microkernels*> Tables() {
  std::vector<const Microkernels*> all{&PortableTable()};
  for (const Microkernels* t : {simd::Avx2Microkernels(), simd::Avx512Microkernels()})
    if (t != nullptr && t->isa <= simd::BestIsa()) all.push_back(t);
  return all;
}

std::vector<float> Random(size_t n, uint32_t seed) {
  const Tensor t = RandomF32({static_cast<int64_t>(n)}, seed);
  return {t.data<float>(), t.data<float>() + n};
}

// `make` of each table, within `tolerance` of the portable one's, relative to 1 or to the value.
void Compare(double tolerance, const std::function<std::vector<float>(const Microkernels&)>& make) {
  const std::vector<float> expected = make(PortableTable());
  for (const Microkernels* t : Tables()) {
    SCOPED_TRACE(simd::IsaName(t->isa));
    const std::vector<float> got = make(*t);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << "element " << i;
      if (std::isnan(expected[i])) continue;
      if (std::isinf(expected[i])) {
        ASSERT_EQ(got[i], expected[i]) << "element " << i;
      } else {
        ASSERT_NEAR(got[i], expected[i], tolerance * std::max(1.f, std::fabs(expected[i])))
            << "element " << i;
      }
    }
  }
}

// Compilers make one of sums that begin alike, whose latency then is what gets measured.
TEST(Microkernels, SumsOfThePeakLoopDiffer) {
  for (const Microkernels* t : Tables()) {
    const int sums = t->multiply_adds_per_round / t->lanes;
    EXPECT_EQ(t->multiply_adds(0), static_cast<float>(sums * (sums + 1) / 2));
  }
}

TEST(Microkernels, TheBestTableIsThatOfTheProcessor) {
  const Microkernels* best = simd::BestMicrokernels();
  ASSERT_NE(best, nullptr);
  EXPECT_LE(best->isa, simd::BestIsa());
  for (const Microkernels* t : Tables()) {
    if (t != &PortableTable()) {
      EXPECT_LE(t->isa, best->isa);
    }
    EXPECT_GT(t->lanes, 0);
    EXPECT_EQ(t->panel, 2 * t->lanes);
  }
}

TEST(Microkernels, ProductsOfPanels) {
  for (const int64_t rows : {1, 5, 6, 7, 14, 29})
    for (const int vectors : {1, 2}) {
      SCOPED_TRACE(::testing::Message() << rows << " rows, " << vectors << " vectors");
      constexpr int64_t kDepth = 37, kColumns = 8;
      const auto a = Random(static_cast<size_t>(rows * kDepth), 1),
                 b = Random(kDepth * kColumns, 2);
      Compare(1e-5, [&](const Microkernels& t) {
        const int64_t width = vectors * t.lanes;
        std::vector<float> panel(static_cast<size_t>(2 * kDepth * width));
        for (int64_t i = 0; i < kDepth * kColumns; ++i)
          panel[static_cast<size_t>(i / kColumns * width + i % kColumns)] =
              b[static_cast<size_t>(i)];
        std::vector<float> c(static_cast<size_t>(rows * width)), used;
        t.gemm_tile[vectors - 1](rows, kDepth, a.data(), kDepth, panel.data(), c.data(), width);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t i = 0; i < kColumns; ++i)
            used.push_back(c[static_cast<size_t>(r * width + i)]);
        return used;
      });
    }
}

TEST(Microkernels, IntegersWiden) {
  std::vector<int8_t> from(3 * 32);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int8_t>(7 * i);
  const auto factors = Random(32, 3);
  for (const Microkernels* t : Tables())
    for (const int vectors : {1, 2}) {
      const auto width = static_cast<size_t>(vectors * t->lanes);
      std::vector<float> to(3 * width);
      t->widen_int8(3, vectors, from.data(), factors.data(), to.data());
      for (size_t i = 0; i < to.size(); ++i)
        EXPECT_EQ(to[i], factors[i % width] * static_cast<float>(from[i]));
    }
}

std::vector<float> ActivationInputs() {
  std::vector<float> x = Random(1000, 4);
  for (float& v : x) v *= 12;
  for (const float v : {0.f, -0.f, 1e-30f, 88.f, -88.f, 120.f, -120.f, kInf, -kInf, kNan})
    x.push_back(v);
  return x;
}

TEST(Microkernels, Activations) {
  const auto x = ActivationInputs();
  for (const Activation a :
       {Activation::kNone, Activation::kRelu, Activation::kLeakyRelu, Activation::kClip,
        Activation::kHardSwish, Activation::kHardSigmoid, Activation::kSwish, Activation::kSigmoid,
        Activation::kGeluErf, Activation::kGeluTanh, Activation::kTanh, Activation::kMish,
        Activation::kReluKeepsNan}) {
    SCOPED_TRACE(static_cast<int>(a));
    Epilogue e;
    e.activation = a;
    e.alpha = 0.25f, e.beta = 0.5f;
    e.scale = 1.5f, e.shift = -0.25f;
    Compare(1e-6, [&](const Microkernels& t) {
      std::vector<float> y = x, apart(x.size());
      const auto n = static_cast<int64_t>(x.size());
      t.activate(e, 1, n, 0, y.data(), y.data());
      t.activate(e, 1, n, 0, x.data(), apart.data());
      EXPECT_EQ(std::memcmp(y.data(), apart.data(), sizeof(float) * y.size()), 0);
      return y;
    });
  }
}

TEST(Microkernels, FindWhatIsNotFinite) {
  std::mt19937 rng(3);
  const float far[] = {kInf, -kInf, kNan, std::numeric_limits<float>::max(),
                       std::numeric_limits<float>::denorm_min()};
  for (int round = 0; round < 3000; ++round) {
    const int64_t rows = rng() % 5, width = rng() % 70, step = width + rng() % 3;
    std::vector<float> x(static_cast<size_t>(rows * step + 1), kNan);  // between the rows
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < width; ++i)
        x[static_cast<size_t>(r * step + i)] = static_cast<float>(rng()) - 2e9f;
    bool finite = true;
    if (rows * width > 0 && round % 3 != 0) {
      const float v = far[rng() % 5];
      x[static_cast<size_t>(rng() % rows * step + rng() % width)] = v;
      finite = std::isfinite(v);
    }
    for (const Microkernels* t : Tables())
      ASSERT_EQ(t->is_finite(x.data(), rows, width, step), finite)
          << simd::IsaName(t->isa) << " " << rows << " " << width << " " << step;
  }
}

// The worst errors that vector_math.h promises.
TEST(Microkernels, ErrorsOfElementaryFunctions) {
  for (const Microkernels* t : Tables()) {
    SCOPED_TRACE(simd::IsaName(t->isa));
    std::vector<float> x;
    for (double v = -86; v < 80; v += 0.00037) x.push_back(static_cast<float>(v));
    std::vector<float> y(x.size());
    t->exp_sum(x.data(), static_cast<int64_t>(x.size()), 0, y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      // Without FMA, which the portable table does not count on, the polynomial rounds twice a
      // step.
      const double near = t->isa == Isa::kPortable ? 4e-7 : 3e-7;
      const double bound = std::fabs(x[i]) < 10 ? near : 1.5e-6;
      ASSERT_LE(std::fabs(y[i] - exact) / exact, bound) << x[i];
    }
    Epilogue tanh;
    tanh.activation = Activation::kTanh;
    t->activate(tanh, 1, static_cast<int64_t>(x.size()), 0, x.data(), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::tanh(static_cast<double>(x[i]));
      ASSERT_LE(std::fabs(y[i] - exact), 3.1e-7 * std::fabs(exact)) << x[i];
    }
  }
}

TEST(Microkernels, SumsOfExponentials) {
  for (const size_t n : {1, 7, 8, 17, 100}) {
    const auto x = Random(n, 5);
    Compare(1e-6, [&](const Microkernels& t) {
      std::vector<float> y(n);
      const float sum = t.exp_sum(x.data(), static_cast<int64_t>(n), 0.75f, y.data());
      y.push_back(sum);
      return y;
    });
  }
}

TEST(Microkernels, Attention) {
  for (const int64_t keys : {1, 13, 50})
    for (const int64_t depth : {8, 33})
      for (const int64_t queries : {2, 61}) {
        SCOPED_TRACE(::testing::Message() << queries << " queries, " << keys << " keys, " << depth);
        const auto q = Random(static_cast<size_t>(queries * depth), 6);
        const auto k = Random(static_cast<size_t>(keys * depth), 7);
        const auto v = Random(static_cast<size_t>(keys * depth), 8);
        auto mask = Random(static_cast<size_t>(keys), 9);
        if (keys > 1) mask[0] = -kInf;
        Compare(1e-5, [&](const Microkernels& t) {
          AttentionHead h;
          h.queries = queries, h.keys = keys, h.depth = h.value_depth = depth;
          h.few = queries < 4;
          h.q = q.data(), h.k = k.data(), h.v = v.data(), h.mask = mask.data();
          h.q_step = h.k_step = h.v_step = h.out_step = depth;
          h.mask_column = 1;
          h.scale = 0.5f;
          std::vector<float> out(static_cast<size_t>(queries * depth));
          std::vector<float> work(static_cast<size_t>(AttentionWork(h.few, keys, depth, depth)),
                                  kNan);
          h.out = out.data();
          t.attention(h, work.data());
          return out;
        });
      }
}

// One step of a strip, with random weights for the units that the table has in it.
std::vector<float> Step(const Microkernels& t, RnnMode mode, int64_t batch, bool back) {
  constexpr int64_t kHidden = 24, kPadded = 64, kUnits = 8;
  const int64_t gates = mode == RnnMode::kLstm ? 4 : mode == RnnMode::kGru ? 3 : 1;
  const StripKernel& kernel = t.RecurrentFor(mode);
  const int64_t width = gates * kernel.units;
  const auto random = Random(static_cast<size_t>((kHidden + batch + 1) * gates * kUnits), 10);
  const auto states = Random(static_cast<size_t>(batch * kPadded), 11);
  // Rows of `gates` times kUnits numbers, at the places where this table has those units.
  const auto spread = [&](int64_t from, int64_t rows) {
    std::vector<float> to(static_cast<size_t>(rows * width));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t g = 0; g < gates; ++g)
        for (int64_t u = 0; u < kUnits; ++u)
          to[static_cast<size_t>(r * width + g * kernel.units + u)] =
              random[static_cast<size_t>(((from + r) * gates + g) * kUnits + u)];
    return to;
  };
  const auto weights = spread(0, kHidden), sums = spread(kHidden, batch);
  const auto bias = spread(kHidden + batch, 1);
  std::vector<float> c(states.begin(), states.end()), next(states.size());
  std::vector<float> out(static_cast<size_t>(batch * kHidden));
  std::vector<float> projected(static_cast<size_t>(batch * width)), result;
  StripStep s;
  s.batch = batch, s.hidden = kHidden, s.padded = kPadded;
  s.weights = weights.data(), s.back = back, s.recurrent_bias = bias.data();
  s.gates = sums.data(), s.gates_step = width;
  s.h = s.h_prev = states.data(), s.h_next = next.data(), s.c = c.data();
  s.out = out.data(), s.out_step = kHidden;
  kernel.step(s);
  kernel.project(batch, kHidden, states.data(), kPadded, weights.data(), bias.data(),
                 projected.data(), width);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t u = 0; u < kUnits; ++u) {
      result.push_back(out[static_cast<size_t>(b * kHidden + u)]);
      result.push_back(next[static_cast<size_t>(b * kPadded + u)]);
      if (mode == RnnMode::kLstm) result.push_back(c[static_cast<size_t>(b * kPadded + u)]);
      for (int64_t g = 0; g < gates; ++g)
        result.push_back(projected[static_cast<size_t>(b * width + g * kernel.units + u)]);
    }
  return result;
}

TEST(Microkernels, RecurrentSteps) {
  for (const RnnMode mode : {RnnMode::kTanh, RnnMode::kRelu, RnnMode::kLstm, RnnMode::kGru})
    for (const int64_t batch : {1, 2, 3, 8})
      for (const bool back : {false, true}) {
        SCOPED_TRACE(::testing::Message() << static_cast<int>(mode) << ", batch " << batch);
        Compare(1e-5, [&](const Microkernels& t) { return Step(t, mode, batch, back); });
      }
}

}  // namespace
}  // namespace heddle::testing
