#include "kernels/operands/element_types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace heddle {
namespace {

constexpr ElementType kTiny[] = {ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
                                 ElementType::kFloat8E5M2,   ElementType::kFloat8E5M2FNUZ,
                                 ElementType::kFloat4E2M1,   ElementType::kFloat8E8M0};

int PatternsOf(ElementType type) { return 1 << BitsOf(type); }

TEST(ElementTypes, EveryPatternSurvivesTheWayThroughANumber) {
  for (const ElementType type : kTiny)
    for (int bits = 0; bits < PatternsOf(type); ++bits) {
      const double x = FromTinyFloat(static_cast<uint8_t>(bits), type);
      if (std::isnan(x)) continue;
      EXPECT_EQ(ToTinyFloat(x, type, false, Rounding::kNearest), bits)
          << "type " << static_cast<int>(type) << ", " << x;
    }
}

// Against the definition: no other pattern is nearer.
TEST(ElementTypes, NumbersGoToTheNearestPattern) {
  for (const ElementType type : kTiny) {
    if (type == ElementType::kFloat8E8M0) continue;
    std::vector<double> numbers;
    double most = 0;
    for (int bits = 0; bits < PatternsOf(type); ++bits) {
      const double x = FromTinyFloat(static_cast<uint8_t>(bits), type);
      if (std::isfinite(x)) numbers.push_back(x);
      if (std::isfinite(x)) most = std::max(most, x);
    }
    for (int i = 0; i < 4000; ++i) {
      const double x = std::ldexp(std::sin(i * 1.7), i % 24 - 12);
      if (std::fabs(x) > most) continue;
      const double got = FromTinyFloat(ToTinyFloat(x, type, true, Rounding::kNearest), type);
      for (const double y : numbers)
        EXPECT_LE(std::fabs(got - x), std::fabs(y - x)) << x << " -> " << got << ", nearer: " << y;
    }
  }
}

TEST(ElementTypes, WhatIsTooLargeSaturatesOrIsInfinite) {
  const auto to = [](double x, ElementType type, bool saturate) {
    return FromTinyFloat(ToTinyFloat(x, type, saturate, Rounding::kNearest), type);
  };
  EXPECT_EQ(to(1e9, ElementType::kFloat8E4M3FN, true), 448);
  EXPECT_TRUE(std::isnan(to(1e9, ElementType::kFloat8E4M3FN, false)));
  EXPECT_EQ(to(449, ElementType::kFloat8E4M3FN, false), 448);
  EXPECT_EQ(to(60000, ElementType::kFloat8E5M2, false), 57344);
  EXPECT_EQ(to(-INFINITY, ElementType::kFloat8E5M2, false), -INFINITY);
  EXPECT_TRUE(std::isnan(to(INFINITY, ElementType::kFloat8E5M2FNUZ, false)));
  EXPECT_EQ(to(100, ElementType::kFloat4E2M1, true), 6);
}

TEST(ElementTypes, IntegersKeepTheirLowBits) {
  EXPECT_EQ(WrapInteger(9, ElementType::kInt4), -7);
  EXPECT_EQ(WrapInteger(-1, ElementType::kUint16), 65535);
  EXPECT_EQ(WrapInteger(int64_t{1} << 32, ElementType::kUint32), 0);
  EXPECT_EQ(WrapInteger(-3, ElementType::kInt64), -3);
  EXPECT_EQ(WrapInteger(7, ElementType::kBool), 1);
  EXPECT_EQ(LeastOf(ElementType::kInt4), -8);
  EXPECT_EQ(GreatestOf(ElementType::kUint16), 65535);
}

TEST(ElementTypes, AnotherStorageIsRefused) {
  EXPECT_EQ(StoredAs(17, DType::kU8).value(), ElementType::kFloat8E4M3FN);
  EXPECT_EQ(StoredAs(0, DType::kI64).value(), ElementType::kInt64);
  EXPECT_FALSE(StoredAs(17, DType::kF32).ok());
  EXPECT_FALSE(StoredAs(99, DType::kF32).ok());
}

}  // namespace
}  // namespace heddle
