#include "core/tables/static_name_table.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace heddle {
namespace {

constexpr char kThree[] = "abs\0relu\0relu_grad\0";
constexpr StaticNameTable<3, sizeof(kThree)> kTable(kThree);
static_assert(kTable.unique() && kTable.Find("relu") == 1);

TEST(StaticNameTable, FindsEachNameByItsNumber) {
  for (size_t at = 0; at < kTable.size(); ++at) EXPECT_EQ(kTable.Find(kTable[at]), at);
  EXPECT_EQ(kTable[0], "abs");
  EXPECT_EQ(kTable[2], "relu_grad");
}

TEST(StaticNameTable, FindsNoPartOfANameAndNoLongerOne) {
  for (const char* name : {"", "ab", "abss", "rel", "relu_", "relu_grad_grad"})
    EXPECT_EQ(kTable.Find(name), kTable.kNone) << name;
  EXPECT_EQ(kTable.Find(std::string_view("abs\0", 4)), kTable.kNone);
}

// Thirty-two places for sixteen names: some of the searches pass a taken place.
TEST(StaticNameTable, NamesThatShareAPlaceStayApart) {
  static constexpr char names[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0";
  static constexpr StaticNameTable<16, sizeof(names)> table(names);
  for (size_t at = 0; at < table.size(); ++at)
    EXPECT_EQ(table.Find(std::string(1, static_cast<char>('a' + at))), at);
  EXPECT_EQ(table.Find("q"), table.kNone);
}

TEST(StaticNameTable, TellsWhetherNamesAreUnique) {
  static constexpr char twice[] = "a\0b\0a\0";
  EXPECT_FALSE((StaticNameTable<3, sizeof(twice)>(twice).unique()));
}

}  // namespace
}  // namespace heddle
