// Attributes whose values variables hold.
#include <gtest/gtest.h>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;

// Gives the last operator of the current block an attribute out of variables.
void AddVarAttr(ProgramBuilder& b, const std::string& name, const std::vector<std::string>& vars,
                bool list) {
  auto* ops = b.desc().mutable_blocks(b.current())->mutable_ops();
  auto* attr = ops->Mutable(ops->size() - 1)->add_attrs();
  attr->set_name(name);
  attr->set_type(list ? proto::VARS : proto::VAR);
  if (!list) attr->set_var_name(vars[0]);
  for (const std::string& v : vars)
    if (list) attr->add_vars_name(v);
}

ProgramBuilder SumOver(bool list) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  if (list)
    b.Fill("axis", {1}, -1, DType::kI32);
  else
    b.Feed("axis", DType::kI64, {-1});
  b.Op("reduce_sum", {{"X", {"x"}}}, {{"Out", {"y"}}});
  AddVarAttr(b, "dim", {"axis"}, list);
  b.Scale("y", "z", 2).Fetch("z");
  return b;
}

TEST(VarAttrs, AKnownOneIsSetWhenThePlanIsMade) {
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, SumOver(true).Build());
  auto stats = executor.Prepare(compiled, {{"x", F32({2, 3}, Rows(6, 1))}});
  ASSERT_TRUE(stats.ok()) << stats.status().ToString();
  EXPECT_TRUE(stats->static_shapes);
  const auto out = MustRun(executor, compiled, {{"x", F32({2, 3}, {1, 2, 3, 4, 5, 6})}});
  EXPECT_EQ(Floats(out[0]), (Rows{12, 30}));
}

TEST(VarAttrs, AFedOneIsReadInEachRun) {
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, SumOver(false).Build());
  const Tensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  auto run = [&](std::vector<int64_t> axes) {
    const auto n = static_cast<int64_t>(axes.size());
    return Floats(MustRun(executor, compiled, {{"x", x}, {"axis", I64({n}, axes)}})[0]);
  };
  EXPECT_EQ(run({1}), (Rows{12, 30}));
  EXPECT_EQ(run({0}), (Rows{10, 14, 18}));
  EXPECT_EQ(run({0, 1}), (Rows{42}));
  EXPECT_EQ(executor.plans_built(), 2);
}

TEST(VarAttrs, AStateIsNotKeptForOtherValues) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1, 1, 2, 2}).Feed("k", DType::kI32, {2});
  b.Op("pool2d", {{"X", {"x"}}}, {{"Out", {"y"}}},
       {{"pooling_type", "max"}, {"strides", Ints{1, 1}}, {"paddings", Ints{0, 0}}});
  AddVarAttr(b, "ksize", {"k"}, false);
  b.Fetch("y");
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, b.Build());
  auto run = [&](int32_t h, int32_t w) {
    return Floats(
        MustRun(executor, compiled,
                {{"x", F32({1, 1, 2, 2}, {1, 2, 3, 4})},
                 {"k", Tensor::Of(DType::kI32, Shape{2}, std::vector<int32_t>{h, w})}})[0]);
  };
  EXPECT_EQ(run(2, 2), (Rows{4}));
  EXPECT_EQ(run(1, 2), (Rows{2, 4}));
  EXPECT_EQ(run(2, 1), (Rows{3, 4}));
}

TEST(VarAttrs, MistakesAreErrors) {
  Executor executor({.threads = 1});
  ProgramBuilder text;
  text.Feed("x", DType::kF32, {2}).Fill("m", {1}, 0);
  text.Op("dropout", {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"is_test", true}});
  AddVarAttr(text, "dropout_implementation", {"m"}, false);
  text.Fetch("y");
  auto compiled = MustCompile(executor, text.Build(), nullptr, {.opt_level = 0});
  auto out = executor.Run(compiled, {{"x", F32({2}, {1, 2})}});
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.status().ToString().find("dropout_implementation"), std::string::npos);

  ProgramBuilder missing;
  missing.Feed("x", DType::kF32, {2});
  missing.Op("reduce_sum", {{"X", {"x"}}}, {{"Out", {"y"}}});
  AddVarAttr(missing, "dim", {"nowhere"}, false);
  missing.Fetch("y");
  compiled = MustCompile(executor, missing.Build());
  out = executor.Run(compiled, {{"x", F32({2}, {1, 2})}});
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.status().ToString().find("attribute 'dim' reads variable 'nowhere'"),
            std::string::npos)
      << out.status().ToString();
}

}  // namespace
}  // namespace heddle::testing
