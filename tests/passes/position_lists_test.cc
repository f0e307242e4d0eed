#include "passes/position_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PositionLists, HoldEachPositionOnce) {
  PositionLists lists(4);
  for (const auto& [v, at] : std::vector<std::pair<ir::VarId, int>>{
           {2, 0}, {0, 0}, {2, 0}, {2, 3}, {0, 3}, {2, 3}, {3, 5}, {2, 7}})
    lists.Add(v, at);
  lists.Close();
  EXPECT_THAT(lists[0], ElementsAre(0, 3));
  EXPECT_THAT(lists[1], IsEmpty());
  EXPECT_THAT(lists[2], ElementsAre(0, 3, 7));
  EXPECT_THAT(lists[3], ElementsAre(5));
}

TEST(PositionLists, AreUsedAgain) {
  PositionLists lists(3);
  lists.Add(0, 4);
  lists.Add(1, 4);
  lists.Close();
  lists.Clear(5);
  lists.Add(1, 4);
  lists.Add(2, 6);
  lists.Add(4, 6);
  lists.Close();
  EXPECT_THAT(lists[0], IsEmpty());
  EXPECT_THAT(lists[1], ElementsAre(4));
  EXPECT_THAT(lists[2], ElementsAre(6));
  EXPECT_THAT(lists[3], IsEmpty());
  EXPECT_THAT(lists[4], ElementsAre(6));
}

}  // namespace
}  // namespace heddle::passes
