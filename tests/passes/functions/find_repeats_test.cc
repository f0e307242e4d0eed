#include "passes/functions/find_repeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace heddle::passes {
namespace {

std::vector<Repeat> Find(const std::string& text, const RepeatLimits& limits = {3, 1, 1}) {
  std::vector<uint64_t> signs;
  for (char c : text) signs.push_back(c == '.' ? 0 : static_cast<uint64_t>(c));
  return FindRepeats(signs, limits);
}

std::string Text(const std::vector<Repeat>& repeats) {
  std::string text;
  for (const Repeat& r : repeats)
    text += std::to_string(r.begin) + "+" + std::to_string(r.length) + "/" +
            std::to_string(r.period) + " ";
  return text;
}

TEST(FindRepeats, TakesTheShortestPeriod) {
  EXPECT_EQ(Text(Find("xabcabcabcabcabcabcy")), "1+18/3 ");
  EXPECT_EQ(Text(Find("aaaaaa")), "0+6/1 ");
}

TEST(FindRepeats, CountsElementsBeyondTheLastPeriod) {
  EXPECT_EQ(Text(Find("xabcabcabcaby")), "1+11/3 ");
}

TEST(FindRepeats, PeriodsMayHaveEqualElements) {
  EXPECT_EQ(Text(Find("aabaabaabaab")), "0+12/3 ");
  EXPECT_EQ(Text(Find("pqqqqrspqqqqrspqqqqrspqqqqrs", {3, 3, 1})), "0+28/7 ");
}

TEST(FindRepeats, FindsSeveral) { EXPECT_EQ(Text(Find("abababab-xyzxyzxyzxyz")), "0+8/2 9+12/3 "); }

TEST(FindRepeats, MindsItsLimits) {
  EXPECT_EQ(Text(Find("abcabc")), "");
  EXPECT_EQ(Text(Find("abcabc", {2, 1, 1})), "0+6/3 ");
  EXPECT_EQ(Text(Find("aaaaaaaa", {3, 3, 1})), "");
  EXPECT_EQ(Text(Find("abcabcabc", {3, 1, 7})), "");
  EXPECT_EQ(Text(Find("abcabcabc", {3, 1, 6})), "0+9/3 ");
}

TEST(FindRepeats, ZerosEqualNothing) {
  EXPECT_EQ(Text(Find("..........")), "");
  EXPECT_EQ(Text(Find("a.a.a.a.a.")), "");
}

TEST(FindRepeats, RandomListsWithARepeatInside) {
  std::mt19937 random(7);
  for (int k = 0; k < 300; ++k) {
    const size_t period = 4 + random() % 20, count = 4 + random() % 10;
    std::vector<uint64_t> once, signs;
    for (size_t i = 0; i < period; ++i) once.push_back(1 + random() % 12);
    uint64_t other = 100;  // elements that equal no other
    const size_t front = random() % 30;
    for (size_t i = 0; i < front; ++i) signs.push_back(++other);
    for (size_t c = 0; c < count; ++c) signs.insert(signs.end(), once.begin(), once.end());
    for (size_t i = random() % 30; i > 0; --i) signs.push_back(++other);
    const std::vector<Repeat> found = FindRepeats(signs, {3, 1, 8});
    ASSERT_EQ(found.size(), 1u) << k;
    EXPECT_EQ(found[0].begin, front);
    EXPECT_EQ(found[0].length, period * count);
    EXPECT_EQ(period % found[0].period, 0u) << "period " << found[0].period << " of " << period;
    for (size_t i = found[0].begin; i + found[0].period < found[0].begin + found[0].length; ++i)
      EXPECT_EQ(signs[i], signs[i + found[0].period]);
  }
}

TEST(FindRepeats, TakesLinearTime) {
  std::vector<uint64_t> signs;
  for (size_t i = 0; i < 1'000'000; ++i) signs.push_back(1 + i % 40);
  const std::vector<Repeat> found = FindRepeats(signs, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].period, 40u);
}

}  // namespace
}  // namespace heddle::passes
