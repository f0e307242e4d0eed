#include "passes/storage_aliases.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// The operators of block 0, or the refusal.
std::string Types(const ProgramBuilder& b, bool* same = nullptr) {
  const auto given = b.Build().impl();
  std::set<ir::VarId> kept;
  for (const ir::Port& f : given->fetches) kept.insert(f.var);
  const auto made = passes::MakeAliasesExplicit(given, kept);
  if (!made.ok()) return made.status().ToString();
  if (same != nullptr) *same = *made == given;
  std::string types;
  for (const ir::Op& op : (*made)->blocks[0].ops) types += (types.empty() ? "" : " ") + op.type();
  return types;
}

ProgramBuilder Shared() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Scale("x", "t", 1);
  b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
  return b;
}

TEST(StorageAliases, ReadsAloneChangeNothing) {
  ProgramBuilder b = Shared();
  b.Unary("relu", "s", "y").Unary("relu", "t", "z").Fetch("y").Fetch("z").Fetch("s");
  bool same = false;
  Types(b, &same);
  EXPECT_TRUE(same);
  // Nor does a write when nobody looks at the others any more.
  ProgramBuilder last = Shared();
  last.Scale("s", "s", 2).Unary("relu", "s", "y").Fetch("y");
  Types(last, &same);
  EXPECT_TRUE(same);
}

TEST(StorageAliases, WritesReachTheOthers) {
  ProgramBuilder b = Shared();
  b.Scale("s", "s", 2).Unary("relu", "t", "y").Fetch("y");
  EXPECT_EQ(Types(b), "scale share_data assign scale write_storage read_storage relu");
  // One that is read when the program has ended.
  ProgramBuilder fetched = Shared();
  fetched.Scale("s", "s", 2).Fetch("t");
  EXPECT_EQ(Types(fetched), "scale share_data assign scale write_storage read_storage");
  // A value that is written over before anybody reads it is read from nowhere.
  ProgramBuilder over = Shared();
  over.Scale("s", "s", 2).Scale("x", "t", 3).Unary("relu", "s", "y").Fetch("y");
  EXPECT_EQ(Types(over),
            "scale share_data assign scale write_storage scale write_storage read_storage relu");
}

// f = [a, b] in one storage: a write to a changes f, and not b.
TEST(StorageAliases, AWriteToOnePartDoesNotChangeAnother) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("y", DType::kF32, {4});
  b.Op("coalesce_tensor", {{"Input", {"x", "y"}}}, {{"Output", {"a", "b"}}, {"FusedOutput", {"f"}}},
       {{"dtype", int64_t{5}}});
  ProgramBuilder one = b;
  one.Scale("a", "a", 2).Unary("relu", "b", "z").Fetch("z").Fetch("a");
  bool same = false;
  Types(one, &same);
  EXPECT_TRUE(same) << "b does not see what is written to a";
  b.Scale("a", "a", 2).Unary("relu", "f", "z").Fetch("z");
  EXPECT_EQ(Types(b),
            "storage_layout coalesce_tensor assign scale write_storage read_storage relu");
}

TEST(StorageAliases, ThePlaceIsThatOfTheCause) {
  ProgramBuilder b = Shared();
  b.Op("scale", {{"X", {"s"}}}, {{"Out", {"s"}}}, {{"op_device", std::string("cpu")}});
  b.Op("relu", {{"X", {"t"}}}, {{"Out", {"y"}}}, {{"op_device", std::string("gpu:1")}}).Fetch("y");
  const auto made = passes::MakeAliasesExplicit(b.Build().impl(), {});
  ASSERT_TRUE(made.ok());
  std::map<std::string, std::string> places;
  for (const ir::Op& op : (*made)->blocks[0].ops) places[op.type()] = op.device;
  EXPECT_EQ(places["write_storage"], "cpu");
  EXPECT_EQ(places["read_storage"], "gpu:1");
}

// A variable that a block writes by another name is an operand of the operator that runs the block.
TEST(StorageAliases, OuterVariablesAreWrittenByTheOperator) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("flag", DType::kBool, {1}).Scale("x", "t", 1);
  const int body = b.Block(0);
  b.In(body).Var("s", DType::kF32, {4});
  b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}}).Scale("s", "s", 2).In(0);
  b.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {}}}, {{"Out", {}}, {"Scope", {}}},
       {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
  b.Fetch("t");
  const auto made = passes::MakeAliasesExplicit(b.Build().impl(), {});
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const ir::Op& runs = (*made)->blocks[0].ops.back();
  for (const auto& list : {runs.In("Input"), runs.Out("Out")}) {
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ((*made)->vars[list[0]].name, "t");
  }
  EXPECT_EQ((*made)->blocks[1].ops.back().type(), "read_storage");
}

}  // namespace
}  // namespace heddle::testing
