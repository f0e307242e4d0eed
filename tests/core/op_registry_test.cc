// Operators are found by name, and each says where it is defined.
#include "core/op_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/program.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

TEST(Registry, OperatorsAreFoundAndSorted) {
  ASSERT_NE(FindOp("relu"), nullptr);
  EXPECT_EQ(FindOp("relu")->name(), "relu");
  EXPECT_EQ(FindOp("no_such_operator"), nullptr);
  const auto all = AllOps();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1]->name(), all[i]->name());
}

TEST(Registry, EveryOperatorCanBeDescribedAndRun) {
  for (const OpDef* def : AllOps()) {
    EXPECT_TRUE(def->has_any_kernel()) << def->name();
    EXPECT_TRUE(DescribeOp(def->name()).ok()) << def->name();
  }
}

TEST(Registry, EveryOperatorNamesTheFileThatDefinesIt) {
  for (const OpDef* def : AllOps()) {
    const auto source = SourceOfOp(def->name());
    ASSERT_TRUE(source.ok()) << def->name();
    const std::string text = ReadAll(HEDDLE_SOURCE_DIR "/" + *source);
    EXPECT_THAT(text, HasSubstr("\nHEDDLE_OP(" + def->name() + ")")) << *source;
    EXPECT_THAT(*DescribeOp(def->name()), HasSubstr("  source " + *source + "\n"));
  }
  EXPECT_EQ(SourceOfOp("no_such_operator").status().code(), StatusCode::kNotFound);
}

TEST(RegistryDeathTest, IsFrozenAfterItsFirstUse) {
  ASSERT_NE(FindOp("relu"), nullptr);
  EXPECT_DEATH(RegisterOp("late", [](OpDef&) {}), "late");
}

}  // namespace
}  // namespace heddle::testing
