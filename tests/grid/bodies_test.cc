// The parts that kernels of the CUDA device are made of, executed by loops over their grids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "device/cuda/grid/batched_gemm.h"
#include "device/cuda/grid/reduce.h"
#include "device/cuda/grid/strides.h"

namespace heddle::grid_on_host {
namespace {

using ::testing::ElementsAre;

std::vector<float> Random(int64_t n, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = static_cast<float>(rng() % 2001) / 1000.0f - 1.0f;
  return v;
}

TEST(GridFastDiv, IsDivision) {
  const std::vector<uint32_t> numbers = {0,        1,          2,         3,       6,
                                         7,        255,        256,       1000,    65535,
                                         65536,    65537,      99999,     1 << 20, (1 << 30) - 1,
                                         1u << 30, 0x7FFFFFFE, 0x7FFFFFFF};
  for (const uint32_t d : numbers) {
    if (d == 0) continue;
    const FastDiv fast(d);
    for (const uint32_t n : numbers) EXPECT_EQ(fast.Divide(n), n / d) << n << " / " << d;
  }
  std::mt19937 rng(5);
  for (int i = 0; i < 20000; ++i) {
    const uint32_t n = rng() >> 1, d = (rng() >> (1 + rng() % 30)) | 1;
    ASSERT_EQ(FastDiv(d).Divide(n), n / d) << n << " / " << d;
  }
}

// Where the elements of `shape` are by the definition of strides.
template <int K>
void ExpectPlaces(const Strides<K>& s, const Shape& shape, const Steps (&steps)[K]) {
  ASSERT_EQ(s.numel, shape.numel());
  for (int64_t i = 0; i < shape.numel(); ++i) {
    int64_t at[K] = {}, rest = i;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      for (int o = 0; o < K; ++o) at[o] += rest % shape[d] * steps[o].at[d];
      rest /= shape[d];
    }
    const auto p = s.At(static_cast<uint32_t>(i));
    for (int o = 0; o < K; ++o) ASSERT_EQ(p.at[o], at[o]) << shape.ToString() << " " << i;
  }
}

TEST(GridStrides, AreThoseOfTheShapes) {
  std::mt19937 rng(3);
  for (int round = 0; round < 300; ++round) {
    Shape shape;
    Steps steps[3];
    const int rank = static_cast<int>(rng() % 6);
    for (int d = 0; d < rank; ++d) shape.push_back(1 + static_cast<int64_t>(rng() % 4));
    steps[0] = RowMajor(shape);
    for (int d = 0; d < rank; ++d) {
      steps[1].at[d] = rng() % 2 == 0 ? 0 : steps[0].at[d];
      steps[2].at[d] = static_cast<int64_t>(rng() % 7) - 3;
    }
    ExpectPlaces<3>(MakeStrides<3>(shape, steps), shape, steps);
  }
}

TEST(GridStrides, JoinWhatLiesTogether) {
  const Shape shape{2, 3, 4, 5};
  EXPECT_EQ(MakeStrides<1>(shape, {RowMajor(shape)}).rank, 1);
  const auto bias = MakeStrides<2>(shape, {RowMajor(shape), Spread(Shape{3}, shape, 1)});
  EXPECT_EQ(bias.rank, 3);
  EXPECT_EQ(MakeStrides<1>(Shape{}, {Steps()}).rank, 0);
  EXPECT_EQ(MakeStrides<1>(Shape{}, {Steps()}).numel, 1);
  EXPECT_EQ(MakeStrides<1>(Shape{3, 0}, {Steps()}).numel, 0);
}

TEST(GridStrides, AlignAsPaddleDoes) {
  const auto align = [](const Shape& x, const Shape& y, int64_t axis) {
    const Alignment a = Align(x, y, axis);
    return std::pair(a.x, a.y);
  };
  EXPECT_EQ(align({2, 3, 4}, {3}, 1), std::pair(0, 1));
  EXPECT_EQ(align({2, 3, 4}, {4}, -1), std::pair(0, 2));
  EXPECT_EQ(align({2, 3, 4}, {3, 1}, 1), std::pair(0, 1));
  EXPECT_EQ(align({2, 3, 4}, {3, 1, 1}, 1), std::pair(0, 1));
  EXPECT_EQ(align({4}, {2, 3, 4}, -1), std::pair(2, 0));
  EXPECT_EQ(align({2, 3}, {2, 3}, 1), std::pair(0, 0));
}

// --- groups ---

struct Sums {
  int32_t* sums;
  int32_t* greatest;
  const int32_t* numbers;
  int64_t width;
  struct Add {
    int32_t operator()(int32_t a, int32_t b) const { return a + b; }
  };
  struct Most {
    int32_t operator()(int32_t a, int32_t b) const { return a > b ? a : b; }
  };
  void operator()(Group& group, int64_t row) const {
    int32_t sum = 0, most = -1000;
    for (int64_t i = group.rank(); i < width; i += group.size()) {
      sum += numbers[row * width + i];
      most = std::max(most, numbers[row * width + i]);
    }
    // Twice over the same memory: a barrier that is missing shows.
    sum = group.Reduce(sum, Add());
    most = group.Reduce(most, Most());
    if (sum != group.Reduce(sum, Most())) return;  // not the same for all
    if (group.rank() == group.size() - 1) sums[row] = sum, greatest[row] = most;
  }
};

TEST(GridGroup, ReducesOverAllThreads) {
  for (const int threads : {1, 2, 4}) {
    for (const int64_t width : {0, 3, 29}) {
      constexpr int64_t kRows = 4;
      std::vector<int32_t> numbers(static_cast<size_t>(kRows * width + 1));
      std::iota(numbers.begin(), numbers.end(), 1);
      std::vector<int32_t> sums(kRows, -1), greatest(kRows, -1);
      Queue queue(threads);
      ASSERT_TRUE(
          Groups(queue, kRows, width, Sums{sums.data(), greatest.data(), numbers.data(), width})
              .ok());
      for (int64_t r = 0; r < kRows; ++r) {
        const auto first = numbers.begin() + r * width, last = first + width;
        EXPECT_EQ(sums[static_cast<size_t>(r)], std::accumulate(first, last, 0));
        EXPECT_EQ(greatest[static_cast<size_t>(r)],
                  width == 0 ? -1000 : *std::max_element(first, last));
      }
    }
  }
}

// --- reductions ---

struct LoadFirst {
  const float* x;
  float operator()(const Strides<1>::Places& p) const { return x[p.at[0]]; }
};

// Sums of `shape` over the dimensions in `mask`, against sums in double.
void ExpectSums(const Shape& shape, unsigned mask, int threads) {
  const std::vector<float> x = Random(shape.numel(), 17);
  Strides<1> kept, reduced;
  Cut<1>(
      shape, {RowMajor(shape)}, [&](int d) { return (mask >> d & 1) == 0; }, &kept, &reduced);
  std::vector<double> want(static_cast<size_t>(kept.numel), 0);
  for (int64_t i = 0; i < shape.numel(); ++i) {
    int64_t rest = i, at = 0, step = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if ((mask >> d & 1) == 0) at += rest % shape[d] * step, step *= shape[d];
      rest /= shape[d];
    }
    want[static_cast<size_t>(at)] += static_cast<double>(x[static_cast<size_t>(i)]);
  }
  std::vector<float> got(want.size() + 1, 99);
  Queue queue(threads);
  ASSERT_TRUE(ReduceInto<SumOp>(queue, kept, reduced, LoadFirst{x.data()}, got.data(), 0.5f).ok());
  const double bound = 1e-6 * (1 + static_cast<double>(reduced.numel));
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i] / 2, bound) << shape.ToString() << " " << mask << " [" << i << "]";
  EXPECT_EQ(got.back(), 99) << "an element behind the last one was written";
}

TEST(GridReduce, SumsOverAnyAxes) {
  for (const int threads : {1, 4})
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{5, 3}, Shape{2, 3, 4},
                               Shape{1, 17, 1, 9}, Shape{3, 0}, Shape{0, 3}, Shape{2, 2, 2, 2, 3}})
      for (unsigned mask = 0; mask < (1u << shape.rank()); ++mask) ExpectSums(shape, mask, threads);
}

// Cut into pieces that are combined: with a rest, and of rows as well as of columns.
TEST(GridReduce, LongOnesAreCut) {
  for (const int threads : {1, 2}) {
    ExpectSums({100003}, 1, threads);
    ExpectSums({3, 40001}, 2, threads);
    ExpectSums({40001, 3}, 1, threads);
    ExpectSums({5, 777, 31}, 5, threads);
  }
}

TEST(GridReduce, OtherOperators) {
  const std::vector<float> x = {3, -1, 4, 0.5f, -9, 2};
  Strides<1> kept, reduced;
  kept.Add(2, {3});
  reduced.Add(3, {1});
  std::vector<float> out(2);
  Queue queue;
  ASSERT_TRUE(ReduceInto<MaxOp>(queue, kept, reduced, LoadFirst{x.data()}, out.data()).ok());
  EXPECT_THAT(out, ElementsAre(4, 2));
  ASSERT_TRUE(ReduceInto<MinOp>(queue, kept, reduced, LoadFirst{x.data()}, out.data()).ok());
  EXPECT_THAT(out, ElementsAre(-1, -9));
  ASSERT_TRUE(ReduceInto<ProdOp>(queue, kept, reduced, LoadFirst{x.data()}, out.data()).ok());
  EXPECT_THAT(out, ElementsAre(-12, -9));
}

// --- products ---

// One matrix of a batch, by the definition.
double At(const MatrixBatch& m, int64_t offset, int64_t row, int64_t col) {
  if (m.trans) std::swap(row, col);
  return static_cast<double>(static_cast<const float*>(m.data)[offset + row * m.ld + col]);
}

void ExpectProduct(const Shape& xb, const Shape& yb, const Shape& batch, const Shape& cb,
                   bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k) {
  const auto a = Random(xb.numel() * m * k, 1), b = Random(yb.numel() * k * n, 2);
  MatrixBatch am{a.data(),        trans_a ? k : m, trans_a ? m : k,
                 trans_a ? m : k, trans_a,         BatchSteps(xb, batch, m * k)};
  MatrixBatch bm{b.data(),        trans_b ? n : k, trans_b ? k : n,
                 trans_b ? k : n, trans_b,         BatchSteps(yb, batch, k * n)};
  const Steps cs = BatchSteps(cb, batch, m * n);
  std::vector<float> c(static_cast<size_t>(cb.numel() * m * n), 7);
  std::vector<double> want(c.size(), 0);
  const auto offsets = MakeStrides<3>(batch, {am.steps, bm.steps, cs});
  for (int64_t p = 0; p < batch.numel(); ++p) {
    const auto at = offsets.At(static_cast<uint32_t>(p));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t t = 0; t < k; ++t)
          want[static_cast<size_t>(at.at[2] + i * n + j)] +=
              2 * At(am, at.at[0], i, t) * At(bm, at.at[1], t, j);
  }
  Queue queue;
  ASSERT_TRUE((BatchedProduct{batch, am, bm, c.data(), n, cs, 2, 0}).Run(queue).ok());
  for (size_t i = 0; i < c.size(); ++i)
    ASSERT_NEAR(c[i], want[i], 1e-5 * static_cast<double>(1 + k * batch.numel()))
        << xb.ToString() << yb.ToString() << cb.ToString() << trans_a << trans_b << " [" << i
        << "]";
}

TEST(GridProduct, BatchesBroadcastAndAddUp) {
  struct Batches {
    Shape x, y, all, c;
  };
  const Batches cases[] = {{{}, {}, {}, {}},
                           {{4}, {4}, {4}, {4}},
                           {{4}, {}, {4}, {4}},
                           {{}, {4}, {4}, {4}},
                           {{2, 1}, {3}, {2, 3}, {2, 3}},
                           {{2, 3}, {2, 3}, {2, 3}, {}},
                           {{2, 3}, {2, 3}, {2, 3}, {2, 1}},
                           {{2, 3}, {2, 3}, {2, 3}, {3}},
                           {{2, 3}, {1, 3}, {2, 3}, {1, 3}}};
  for (const Batches& b : cases)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        ExpectProduct(b.x, b.y, b.all, b.c, ta, tb, 3, 5, 4);
        ExpectProduct(b.x, b.y, b.all, b.c, ta, tb, 1, 1, 1);
        ExpectProduct(b.x, b.y, b.all, b.c, ta, tb, 2, 3, 0);
      }
}

}  // namespace
}  // namespace heddle::grid_on_host
