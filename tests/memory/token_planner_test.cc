#include "memory/token_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace heddle {
namespace {

bool Together(const TokenValue& a, const TokenValue& b) {
  return a.first <= std::max(b.first, b.last) && b.first <= std::max(a.first, a.last);
}

// Every value has a token that holds it, and shares it with nobody it must not share with.
void Check(const std::vector<TokenValue>& values, const TokenPlan& plan) {
  ASSERT_EQ(plan.token.size(), values.size());
  size_t total = 0;
  for (size_t bytes : plan.bytes) total += bytes;
  EXPECT_EQ(plan.total, total);
  std::vector<size_t> largest(plan.bytes.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const TokenValue& v = values[i];
    ASSERT_EQ(plan.token[i] == kNoToken, v.bytes == 0) << i;
    if (v.bytes == 0) continue;
    ASSERT_LT(plan.token[i], plan.bytes.size());
    largest[plan.token[i]] = std::max(largest[plan.token[i]], v.bytes);
    for (size_t j = 0; j < i; ++j) {
      const TokenValue& w = values[j];
      if (plan.token[i] != plan.token[j] || w.bytes == 0) continue;
      ASSERT_FALSE(Together(v, w)) << j << " and " << i;
      ASSERT_FALSE(v.kind != w.kind || v.scope != w.scope || v.pinned || w.pinned)
          << j << " and " << i;
    }
  }
  EXPECT_EQ(plan.bytes, largest);
}

std::vector<uint32_t> TokensOf(const std::vector<TokenValue>& values, size_t range = kTokenRange) {
  const auto plan = PlanTokens(values, range);
  EXPECT_TRUE(plan);
  Check(values, *plan);
  return plan->token;
}

// TVM's test_plan_memory: exp(y) + x, then exp five times, where x has ten floats and y has one.
std::vector<TokenValue> TheirChain() {
  return {{.bytes = 40, .first = 0, .last = 2, .pinned = true},
          {.bytes = 4, .first = 0, .last = 1, .pinned = true},
          {.bytes = 4, .first = 1, .last = 2},
          {.bytes = 40, .first = 2, .last = 3},
          {.bytes = 40, .first = 3, .last = 4},
          {.bytes = 40, .first = 4, .last = 5},
          {.bytes = 40, .first = 5, .last = 6},
          {.bytes = 40, .first = 6, .last = 7},
          {.bytes = 40, .first = 7, .last = 7}};
}

TEST(TokenPlanner, AChainTakesTurnsWithTwoTokens) {
  const auto plan = PlanTokens(TheirChain());
  ASSERT_TRUE(plan);
  Check(TheirChain(), *plan);
  EXPECT_EQ(plan->token, (std::vector<uint32_t>{0, 1, 2, 3, 2, 3, 2, 3, 2}));
  EXPECT_EQ(plan->bytes, (std::vector<size_t>{40, 4, 40, 40}));
  EXPECT_EQ(plan->total, 124u);
}

TEST(TokenPlanner, RangeNoughtIsNoReuse) {
  const std::vector<uint32_t> tokens = TokensOf(TheirChain(), 0);
  EXPECT_EQ(std::set<uint32_t>(tokens.begin(), tokens.end()).size(), tokens.size());
}

TEST(TokenPlanner, OtherKindsAndScopesNeverShare) {
  const TokenValue early{.bytes = 64, .first = 0, .last = 1};
  for (uint32_t kind : {0u, 1u})
    for (uint32_t scope : {0u, 1u}) {
      const TokenValue late{.bytes = 64, .first = 2, .last = 3, .kind = kind, .scope = scope};
      const auto tokens = TokensOf({early, late});
      EXPECT_EQ(tokens[0] == tokens[1], kind == 0 && scope == 0) << kind << " " << scope;
    }
}

TEST(TokenPlanner, PinnedValuesShareWithNobody) {
  EXPECT_EQ(TokensOf({{.bytes = 64, .first = 0, .last = 0, .pinned = true},
                      {.bytes = 64, .first = 1, .last = 1},
                      {.bytes = 64, .first = 2, .last = 2, .pinned = true},
                      {.bytes = 64, .first = 3, .last = 3}}),
            (std::vector<uint32_t>{0, 1, 2, 1}));
}

TEST(TokenPlanner, TheSmallestThatSufficesElseTheLargestIsTaken) {
  const std::vector<TokenValue> free = {{.bytes = 100, .first = 0, .last = 1},
                                        {.bytes = 200, .first = 0, .last = 1},
                                        {.bytes = 400, .first = 0, .last = 1}};
  const auto with = [&](size_t bytes) {
    std::vector<TokenValue> values = free;
    values.push_back({.bytes = bytes, .first = 2, .last = 3});
    return values;
  };
  EXPECT_EQ(TokensOf(with(90))[3], 0u);
  EXPECT_EQ(TokensOf(with(100))[3], 0u);
  EXPECT_EQ(TokensOf(with(101))[3], 1u);
  EXPECT_EQ(TokensOf(with(201))[3], 2u);
  const auto grown = PlanTokens(with(500));
  ASSERT_TRUE(grown);
  EXPECT_EQ(grown->token[3], 2u);
  EXPECT_EQ(grown->bytes, (std::vector<size_t>{100, 200, 500}));
}

TEST(TokenPlanner, SizesFarApartDoNotShare) {
  for (size_t range : {1, 2, 16}) {
    const auto share = [&](size_t a, size_t b) {
      const auto tokens = TokensOf(
          {{.bytes = a, .first = 0, .last = 0}, {.bytes = b, .first = 1, .last = 1}}, range);
      return tokens[0] == tokens[1];
    };
    EXPECT_TRUE(share(100, 100 * range));
    EXPECT_FALSE(share(100, 100 * range + 1));
    EXPECT_TRUE(share(100 * range, 100));
    EXPECT_FALSE(share(100 * range + 1, 100));
  }
}

TEST(TokenPlanner, WhatNobodyReadsIsFreeInTheNextStep) {
  // Not in its own: an operator writes all of its outputs.
  EXPECT_EQ(TokensOf({{.bytes = 8, .first = 0, .last = -1},
                      {.bytes = 8, .first = 0, .last = -1},
                      {.bytes = 8, .first = 1, .last = 2}}),
            (std::vector<uint32_t>{0, 1, 0}));
}

TEST(TokenPlanner, NothingNeedsNothing) {
  EXPECT_EQ(PlanTokens({})->total, 0u);
  EXPECT_EQ(TokensOf({{.bytes = 0, .first = 0, .last = 4},
                      {.bytes = 0, .first = 0, .last = 4, .pinned = true}}),
            (std::vector<uint32_t>{kNoToken, kNoToken}));
}

TEST(TokenPlanner, RandomValuesNeverShareWhileTheyLive) {
  std::mt19937 random(7);
  size_t alone = 0, shared = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<TokenValue> values(1 + random() % 120);
    for (TokenValue& v : values) {
      v.bytes = random() % 8 == 0 ? 0 : size_t{1} << (random() % 20);
      v.bytes += v.bytes > 0 ? random() % v.bytes : 0;
      v.first = static_cast<int32_t>(random() % 60);
      v.last = v.first + static_cast<int32_t>(random() % 12) - 2;
      v.kind = random() % 2;
      v.scope = random() % 3;
      v.pinned = random() % 10 == 0;
    }
    for (size_t range : {0, 1, 2, 16, 1000000}) {
      const auto plan = PlanTokens(values, range);
      ASSERT_TRUE(plan);
      Check(values, *plan);
      (range == 0 ? alone : shared) += plan->total;
    }
  }
  EXPECT_LT(shared, 4 * alone);
}

TEST(TokenPlanner, TooMuchIsRefused) {
  const size_t half = size_t{1} << 63;
  EXPECT_TRUE(PlanTokens(std::vector<TokenValue>{{.bytes = half, .first = 0, .last = 0},
                                                 {.bytes = half, .first = 1, .last = 1}}));
  EXPECT_FALSE(PlanTokens(std::vector<TokenValue>{{.bytes = half, .first = 0, .last = 1},
                                                  {.bytes = half, .first = 1, .last = 1}}));
  // Times the range is beyond size_t as well, and still they are of like size.
  EXPECT_EQ(TokensOf({{.bytes = half - 1, .first = 0, .last = 0},
                      {.bytes = half, .first = 1, .last = 1}}),
            (std::vector<uint32_t>{0, 0}));
}

TEST(TokenBytes, AreRoundedUpForEachElement) {
  EXPECT_EQ(TokenBytes(10, 32), 40u);
  EXPECT_EQ(TokenBytes(3, 1), 3u);
  EXPECT_EQ(TokenBytes(3, 4, 3), 6u);
  EXPECT_EQ(TokenBytes(3, 16, 4), 24u);
  EXPECT_EQ(TokenBytes(0, 32), 0u);
}

TEST(TokenBytes, TooMuchIsRefused) {
  EXPECT_EQ(TokenBytes(UINT64_MAX, 8), UINT64_MAX);
  EXPECT_FALSE(TokenBytes(UINT64_MAX, 9));
  EXPECT_FALSE(TokenBytes(uint64_t{1} << 62, 32));
  EXPECT_FALSE(TokenBytes(9, UINT32_MAX, UINT32_MAX));
}

}  // namespace
}  // namespace heddle
