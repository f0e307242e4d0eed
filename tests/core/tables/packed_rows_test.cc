#include "core/tables/packed_rows.h"

#include <gtest/gtest.h>

#include <iterator>

namespace heddle {
namespace {

constexpr std::string_view kText[][3] = {
    {"abs", "X", ""}, {"add", "", "Out"}, {"add", "X Y", "Out"}, {"mul", "", ""}};
constexpr PackedRows<std::size(kText), 3, BytesOfRows(kText)> kTable(kText);
static_assert(kTable[0][1] == "X");

TEST(PackedRows, CellsAreTheTextsOfTheTable) {
  ASSERT_EQ(kTable.size(), std::size(kText));
  for (size_t row = 0; row < kTable.size(); ++row)
    for (size_t column = 0; column < 3; ++column) {
      EXPECT_EQ(kTable.Cell(row, column), kText[row][column]);
      EXPECT_EQ(kTable[row][column], kText[row][column]);
    }
}

TEST(PackedRows, FindsTheFirstRowOfAKey) {
  EXPECT_EQ(kTable.LowerBound("abs"), 0u);
  EXPECT_EQ(kTable.LowerBound("add"), 1u);
  EXPECT_EQ(kTable.LowerBound("mul"), 3u);
  EXPECT_TRUE(kTable.Is(2, "add"));
  EXPECT_FALSE(kTable.Is(3, "add"));
}

TEST(PackedRows, KeysThatAreNotThereAreBetweenRowsOrBehindThem) {
  EXPECT_EQ(kTable.LowerBound(""), 0u);
  EXPECT_EQ(kTable.LowerBound("addend"), 3u);
  EXPECT_EQ(kTable.LowerBound("z"), kTable.size());
  for (const std::string_view key : {"", "ab", "absolute", "addend", "z"})
    EXPECT_FALSE(kTable.Is(kTable.LowerBound(key), key)) << key;
}

}  // namespace
}  // namespace heddle
