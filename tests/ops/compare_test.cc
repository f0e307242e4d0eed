#include "tests/ops/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

ExampleOutput Expecting(Value value, Check check = Check::kValues) {
  ExampleOutput out;
  out.value = std::move(value);
  out.check = check;
  return out;
}

TEST(Compare, NamesTheFirstElementThatDiffers) {
  const Value want(F32({3}, {1, 2, 3}));
  EXPECT_EQ(Matches(Value(F32({3}, {1, 2, 3})), Expecting(want), {}), "");
  EXPECT_EQ(Matches(Value(F32({3}, {1, 2.1f, 9})), Expecting(want), {}),
            "element 1 of float32 [3] is 2.0999999, expected 2");
  EXPECT_EQ(Matches(Value(F32({1, 3}, {1, 2, 3})), Expecting(want), {}),
            "float32 [1, 3], expected float32 [3]");
}

TEST(Compare, AppliesTheTolerance) {
  const ExampleOutput want = Expecting(Value(F32({1}, {100})));
  EXPECT_EQ(Matches(Value(F32({1}, {100.0005f})), want, {}), "");
  EXPECT_NE(Matches(Value(F32({1}, {100.01f})), want, {}), "");
  EXPECT_EQ(Matches(Value(F32({1}, {100.01f})), want, Tolerance{1e-3, 0}), "");
}

TEST(Compare, IntegersAreEqualExactly) {
  const ExampleOutput want = Expecting(Value(I64({1}, {9007199254740993})));
  EXPECT_EQ(Matches(Value(I64({1}, {9007199254740993})), want, Tolerance{1, 1}), "");
  EXPECT_NE(Matches(Value(I64({1}, {9007199254740992})), want, Tolerance{1, 1}), "");
}

TEST(Compare, InfinitiesAndNansMatchThemselves) {
  const ExampleOutput want = Expecting(Value(F32({2}, {INFINITY, NAN})));
  EXPECT_EQ(Matches(Value(F32({2}, {INFINITY, -NAN})), want, {}), "");
  EXPECT_NE(Matches(Value(F32({2}, {-INFINITY, NAN})), want, {}), "");
  EXPECT_NE(Matches(Value(F32({2}, {INFINITY, 0})), want, {}), "");
  EXPECT_NE(Matches(Value(F32({2}, {3e38f, NAN})), want, Tolerance{1, 1}), "");
}

TEST(Compare, LooksAtSequencesRowsAndKinds) {
  Tensor with_lod = F32({2}, {1, 2});
  with_lod.set_lod({{0, 1, 2}});
  EXPECT_THAT(Matches(Value(F32({2}, {1, 2})), Expecting(Value(with_lod)), {}),
              HasSubstr("sequence offsets [], expected [[0, 1, 2]]"));
  const Value rows(SelectedRows{{0, 1}, 5, F32({2}, {1, 2})});
  const Value others(SelectedRows{{0, 2}, 5, F32({2}, {1, 2})});
  EXPECT_EQ(Matches(others, Expecting(rows), {}), "other row numbers");
  EXPECT_EQ(Matches(Value(F32({2}, {1, 2})), Expecting(rows), {}), "another kind of value");
}

TEST(Compare, ShapesAloneWhereValuesAreNotWritten) {
  EXPECT_EQ(Matches(Value(F32({2}, {7, 8})), Expecting(Value(F32({2}, {0, 0})), Check::kMeta), {}),
            "");
  EXPECT_NE(Matches(Value(F32({1}, {7})), Expecting(Value(F32({2}, {0, 0})), Check::kMeta), {}),
            "");
}

TEST(Compare, Statistics) {
  ExampleOutput want = Expecting(Value(F32({4}, {0, 0, 0, 0})), Check::kStatistics);
  want.statistics.mean = {2, 0.1};
  want.statistics.variance = {1, 0.1};
  want.statistics.range = {1, 3};
  want.statistics.distinct = 2;
  EXPECT_EQ(Matches(Value(F32({4}, {1, 3, 3, 1})), want, {}), "");
  EXPECT_EQ(Matches(Value(F32({4}, {1, 3, 3, 3})), want, {}),
            "the mean is 2.5, expected 2 within 0.1");
  EXPECT_THAT(Matches(Value(F32({4}, {2, 2, 2, 2})), want, {}), HasSubstr("variance"));
  EXPECT_THAT(Matches(Value(F32({4}, {1, 3, 4, 0})), want, {}), HasSubstr("range"));
  want.statistics.variance.reset();
  EXPECT_EQ(Matches(Value(F32({4}, {1, 2, 3, 2})), want, {}), "3 different values, expected 2");
}

TEST(Compare, SameElementsTellsZerosApart) {
  EXPECT_EQ(SameElements(Value(F32({2}, {0, NAN})), Value(F32({2}, {0, -NAN}))), "");
  EXPECT_NE(SameElements(Value(F32({1}, {-0.0f})), Value(F32({1}, {0}))), "");
  EXPECT_NE(SameElements(Value(F32({1}, {1})), Value(F32({1}, {1.0000001f}))), "");
}

TEST(Compare, NearCountsRelativeToTheLargest) {
  const Tensor want = F32({3}, {1000, 1e-3f, INFINITY});
  EXPECT_EQ(Near(F32({3}, {1000, 2e-3f, INFINITY}), want, {0, 1e-5}), "");
  EXPECT_NE(Near(F32({3}, {1000, 2e-2f, INFINITY}), want, {0, 1e-5}), "");
}

}  // namespace
}  // namespace heddle::testing
