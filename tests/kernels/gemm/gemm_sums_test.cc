// Products whose sums are so long that they are cut between looks for interrupts.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_backend.h"
#include "kernels/gemm/gemm_calls.h"

namespace heddle {
namespace {

template <typename T>
struct Product {
  GemmDims d;
  std::vector<T> a, b;

  Product(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b, uint64_t seed)
      : d(GemmDims::Dense(m, n, k, trans_a, trans_b)) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<T> any(-1, 1);
    for (auto* all : {&a, &b}) {
      all->resize(static_cast<size_t>((all == &a ? m : n) * k));
      for (T& v : *all) v = any(random);
    }
  }
  std::vector<T> Whole() const {
    std::vector<T> c(static_cast<size_t>(d.m * d.n));
    LargeGemm(d, T(1), a.data(), b.data(), T(0), c.data());
    return c;
  }
  std::vector<T> InParts(int64_t step) const {
    std::vector<T> c(static_cast<size_t>(d.m * d.n));
    for (int64_t k = 0; k < d.k;) {
      GemmDims part = d;
      part.k = d.k - k < 2 * step ? d.k - k : step;
      LargeGemm(part, T(1), a.data() + k * (d.trans_a ? d.lda : 1),
                b.data() + k * (d.trans_b ? 1 : d.ldb), k == 0 ? T(0) : T(1), c.data());
      k += part.k;
    }
    return c;
  }
};

TEST(GemmSums, PartsHaveTheBitsOfWholeOnes) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 12; ++i) {
    const auto side = [&] { return static_cast<int64_t>(2 + random() % 70); };
    const int64_t step = SumStep<double>(),
                  k = 2 * step + static_cast<int64_t>(random() % static_cast<uint64_t>(2 * step));
    const Product<double> p(side(), side(), k, i % 2 != 0, i / 2 % 2 != 0, random());
    const auto whole = p.Whole(), parts = p.InParts(step);
    ASSERT_EQ(std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(double)), 0)
        << p.d.m << " x " << p.d.n << " x " << p.d.k;
  }
}

// Costs of calls, over all sizes: none takes much longer than it should, whatever is large.
TEST(GemmSums, NoCallIsLong) {
  std::mt19937_64 random(6);
  const auto size = [&] {
    return static_cast<int64_t>(std::exp2(24. * (random() % 1000) / 1000.));
  };
  for (int i = 0; i < 20000; ++i) {
    const GemmDims d = GemmDims::Dense(size(), size(), size());
    if (CallCost(d) <= kCallCost || d.m > (int64_t{1} << 48) / d.n / d.k) continue;
    const GemmBlock block = BlockOf(d, true);
    GemmDims part = d;
    part.m = std::min(block.rows, d.m);
    part.n = std::min(block.columns, d.n);
    part.k = std::min(d.k, DepthOf(part, SumStep<float>()));
    ASSERT_LE(CallCost(part), 2 * kCallCost) << d.m << " x " << d.n << " x " << d.k;
    // Blocks are no smaller than need be, either: packing them would take longer than they do.
    if (d.m > 1 && d.n > 1) {
      ASSERT_GE(CallCost(part), kCallCost / 16) << d.m << " x " << d.n << " x " << d.k;
    }
  }
}

// Row i of A holds 1 at the multiples of i + 2, column j of B at those of j + 3.
TEST(GemmSums, LongOnesAreRight) {
  constexpr int64_t kSide = 20, kLength = 1'700'000;
  for (const auto& [trans_a, trans_b] :
       {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    const GemmDims d = GemmDims::Dense(kSide, kSide, kLength, trans_a, trans_b);
    ASSERT_GT(CallCost(d), 2 * kCallCost);
    std::vector<float> a(static_cast<size_t>(kSide * kLength)), b(a.size()), c(kSide * kSide);
    for (int64_t i = 0; i < kSide; ++i) {
      for (int64_t k = 0; k < kLength; k += i + 2)
        a[static_cast<size_t>(trans_a ? k * kSide + i : i * kLength + k)] = 1;
      for (int64_t k = 0; k < kLength; k += i + 3)
        b[static_cast<size_t>(trans_b ? i * kLength + k : k * kSide + i)] = 1;
    }
    Gemm(d, 1.f, a.data(), b.data(), 0.f, c.data());
    for (int64_t i = 0; i < kSide; ++i)
      for (int64_t j = 0; j < kSide; ++j)
        ASSERT_EQ(c[static_cast<size_t>(i * kSide + j)],
                  static_cast<float>((kLength - 1) / std::lcm(i + 2, j + 3) + 1));
  }
}

}  // namespace
}  // namespace heddle
