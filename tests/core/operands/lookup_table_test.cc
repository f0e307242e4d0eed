// Tables of texts and integers, which share their rows with copies until these change.
#include "core/operands/lookup_table.h"

#include <gtest/gtest.h>

#include <utility>

namespace heddle {
namespace {

Value Texts(std::vector<std::string> texts) {
  const auto count = static_cast<int64_t>(texts.size());
  return ValueOf(StringTensor{Shape{count}, std::move(texts)});
}
Value Ints(std::vector<int64_t> values, const Shape& shape = Shape::Unknown()) {
  const Shape one{static_cast<int64_t>(values.size())};
  return Value(Tensor::Of(DType::kI64, shape.known_rank() ? shape : one, values));
}
int64_t ValueAt(const LookupTable& table, const std::string& key) {
  const int64_t row = table.Find(key);
  return row < 0 ? -1 : table.values().data<int64_t>()[row];
}

TEST(LookupTable, KeysHaveRows) {
  LookupTable table;
  ASSERT_TRUE(table.Insert(Texts({"a", "", "b"}), Ints({5, 6, 7}), false).ok());
  EXPECT_EQ(table.size(), 3);
  EXPECT_EQ(ValueAt(table, "b"), 7);
  EXPECT_EQ(ValueAt(table, ""), 6);
  EXPECT_EQ(table.Find("c"), -1);
  EXPECT_EQ(table.Find(5), -1);
}

TEST(LookupTable, CopiesChangeApart) {
  LookupTable table;
  ASSERT_TRUE(table.Insert(Texts({"a"}), Ints({5}), true).ok());
  LookupTable copy = table;
  ASSERT_TRUE(copy.Insert(Texts({"a", "b"}), Ints({8, 9}), true).ok());
  ASSERT_TRUE(copy.Insert(Texts({"c", "d", "e"}), Ints({1, 2, 3}), true).ok());
  EXPECT_EQ(ValueAt(table, "a"), 5);
  EXPECT_EQ(table.size(), 1);
  EXPECT_EQ(ValueAt(copy, "a"), 8);
  EXPECT_EQ(ValueAt(copy, "e"), 3);
  EXPECT_EQ(copy.size(), 5);
}

TEST(LookupTable, AKeyHasOneValueUnlessItIsReplaced) {
  LookupTable table;
  ASSERT_TRUE(table.Insert(Texts({"a", "a"}), Ints({5, 5}), false).ok());
  EXPECT_EQ(table.size(), 1);
  EXPECT_FALSE(table.Insert(Texts({"a"}), Ints({6}), false).ok());
  ASSERT_TRUE(table.Insert(Texts({"a"}), Ints({6}), true).ok());
  EXPECT_EQ(ValueAt(table, "a"), 6);
}

TEST(LookupTable, ValuesMayBeRowsOrTexts) {
  LookupTable rows, texts;
  ASSERT_TRUE(rows.Insert(Ints({3, 4}), Ints({1, 2, 5, 6}, Shape{2, 2}), false).ok());
  EXPECT_EQ(rows.values().data<int64_t>()[2 * rows.Find(4) + 1], 6);
  ASSERT_TRUE(texts.Insert(Ints({3, 4}), Texts({"three", "four"}), false).ok());
  EXPECT_EQ(texts.value_texts()[static_cast<size_t>(texts.Find(4))], "four");
}

TEST(LookupTable, WhatDoesNotFitIsAnError) {
  LookupTable table;
  EXPECT_FALSE(table.Insert(Texts({"a", "b"}), Ints({5}), true).ok());
  EXPECT_FALSE(
      table.Insert(Value(Tensor::Of(DType::kF32, Shape{1}, std::vector<float>{1})), Ints({5}), true)
          .ok());
  ASSERT_TRUE(table.Insert(Texts({"a"}), Ints({5}), true).ok());
  EXPECT_FALSE(table.Insert(Ints({7}), Ints({5}), true).ok());
  EXPECT_FALSE(table.Insert(Texts({"b"}), Texts({"x"}), true).ok());
  EXPECT_FALSE(table.Insert(Texts({"b"}), Ints({5, 6}, Shape{1, 2}), true).ok());
  EXPECT_EQ(table.size(), 1);
}

// A table has one dimension more than its rows.
TEST(LookupTable, RowsHaveFewerDimensionsThanATensorMay) {
  Shape row;
  for (int i = 0; i < Shape::kMaxRank; ++i) row.push_back(i == 0 ? 1 : 2);
  const Value wide(Tensor::Zeros(DType::kF32, row));
  LookupTable table, fits;
  EXPECT_FALSE(table.Insert(Ints({3}, Shape()), wide, true).ok());
  EXPECT_EQ(table.size(), 0);
  EXPECT_TRUE(fits.Insert(Ints({3}), wide, true).ok());
}

}  // namespace
}  // namespace heddle
