// Attention's blocked loops beside sums in double, over odd sizes, steps and masks.
#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

namespace heddle {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// One head whose rows lie `gap` elements further apart than they are long.
struct Head {
  int64_t queries, keys, depth, value_depth, gap;
  std::vector<float> q, k, v, mask;
  bool mask_by_query = false, mask_by_key = false;

  Head(int64_t queries, int64_t keys, int64_t depth, int64_t value_depth, int64_t gap, int seed)
      : queries(queries), keys(keys), depth(depth), value_depth(value_depth), gap(gap) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    std::uniform_real_distribution<float> between(-2, 2);
    const auto fill = [&](std::vector<float>& x, int64_t rows, int64_t width) {
      x.resize(static_cast<size_t>(rows * (width + gap)));
      for (float& f : x) f = between(random);
    };
    fill(q, queries, depth), fill(k, keys, depth), fill(v, keys, value_depth);
  }

  void Mask(bool by_query, bool by_key) {
    mask_by_query = by_query, mask_by_key = by_key;
    mask.resize(static_cast<size_t>((by_query ? queries : 1) * (by_key ? keys : 1)));
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<float>(i % 7) * 0.3f - 1;
  }
  int64_t MaskRow() const { return mask_by_query ? (mask_by_key ? keys : 1) : 0; }
  int64_t MaskColumn() const { return mask_by_key ? 1 : 0; }

  std::vector<float> Run(float scale) const {
    std::vector<float> out(static_cast<size_t>(queries * (value_depth + gap)), 77.f);
    AttentionHead h;
    h.queries = queries, h.keys = keys, h.depth = depth, h.value_depth = value_depth;
    h.few = FewQueries(queries);
    h.q = q.data(), h.k = k.data(), h.v = v.data(), h.out = out.data();
    h.q_step = h.k_step = depth + gap, h.v_step = h.out_step = value_depth + gap;
    h.mask = mask.empty() ? nullptr : mask.data();
    h.mask_row = MaskRow(), h.mask_column = MaskColumn();
    h.scale = scale;
    std::vector<float> work(static_cast<size_t>(AttentionWork(h.few, keys, depth, value_depth)));
    RunAttention(h, work.data());
    for (int64_t r = 0; r < queries; ++r)  // what lies between the rows stays
      for (int64_t i = value_depth; i < value_depth + gap; ++i)
        EXPECT_EQ(out[static_cast<size_t>(r * h.out_step + i)], 77.f);
    return out;
  }

  void Check(float scale) const {
    const std::vector<float> out = Run(scale);
    const auto at = [&](const std::vector<float>& x, int64_t width, int64_t r, int64_t i) {
      return static_cast<double>(x[static_cast<size_t>(r * (width + gap) + i)]);
    };
    std::vector<double> score(static_cast<size_t>(keys));
    for (int64_t r = 0; r < queries; ++r) {
      double top = -kInf, sum = 0;
      for (int64_t c = 0; c < keys; ++c) {
        double s = 0;
        for (int64_t i = 0; i < depth; ++i) s += at(q, depth, r, i) * at(k, depth, c, i);
        s *= static_cast<double>(scale);
        if (!mask.empty())
          s += static_cast<double>(mask[static_cast<size_t>(r * MaskRow() + c * MaskColumn())]);
        score[static_cast<size_t>(c)] = s;
        top = std::max(top, s);
      }
      for (double& s : score) sum += s = std::exp(s - top);
      for (int64_t i = 0; i < value_depth; ++i) {
        double want = 0;
        for (int64_t c = 0; c < keys; ++c)
          want += score[static_cast<size_t>(c)] / sum * at(v, value_depth, c, i);
        ASSERT_NEAR(at(out, value_depth, r, i), want, 3e-6)
            << queries << " x " << keys << " x " << depth << ", row " << r << ", column " << i;
      }
    }
  }
};

class Attention : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Attention, IsAsSumsInDoubleSay) {
  const auto [queries, keys] = GetParam();
  int seed = 0;
  for (int64_t depth : {1, 16, 31, 64})
    for (int64_t value_depth : {int64_t{3}, int64_t{32}, depth})
      for (int64_t gap : {0, 5})
        for (int masked = 0; masked < 5; ++masked) {
          Head head(queries, keys, depth, value_depth, gap, ++seed);
          if (masked > 0) head.Mask((masked - 1) & 1, (masked - 1) & 2);
          ASSERT_NO_FATAL_FAILURE(head.Check(1 / std::sqrt(static_cast<float>(depth))));
        }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Attention,
                         ::testing::Combine(::testing::Values(1, 4, 7, 49, 97),
                                            ::testing::Values(1, 8, 15, 16, 49, 130)));

TEST(AttentionMask, KeysThatAreMaskedCountNothing) {
  for (float never : {-kInf, -1e9f, -1e30f}) {
    Head head(9, 21, 16, 16, 0, 3);
    head.Mask(true, true);
    for (int64_t r = 0; r < 9; ++r)
      for (int64_t c = r + 1; c < 21; ++c) head.mask[static_cast<size_t>(r * 21 + c)] = never;
    const std::vector<float> before = head.Run(0.25f);
    for (int64_t i = 9 * 16; i < 21 * 16; ++i) head.v[static_cast<size_t>(i)] = 1e6f;
    EXPECT_EQ(head.Run(0.25f), before) << never;
    ASSERT_NO_FATAL_FAILURE(head.Check(0.25f));
  }
}

TEST(AttentionMask, ScoresFarApartStayNumbers) {
  Head head(6, 40, 16, 16, 0, 5);
  for (float& f : head.q) f *= 1000;
  for (float x : head.Run(1)) EXPECT_TRUE(std::isfinite(x));
}

TEST(AttentionMask, WhatIsNoNumberIsNotHidden) {
  Head head(6, 40, 16, 16, 0, 6);
  head.Mask(false, true);
  head.mask[17] = std::numeric_limits<float>::quiet_NaN();
  for (float x : head.Run(1)) EXPECT_TRUE(std::isnan(x));
  head.Mask(true, false);
  head.mask[2] = -kInf;  // a row with no key at all, as softmax of it has it
  const std::vector<float> out = head.Run(1);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_TRUE(std::isfinite(out[i]));
    EXPECT_TRUE(std::isnan(out[2 * 16 + i]));
  }
}

}  // namespace
}  // namespace heddle
