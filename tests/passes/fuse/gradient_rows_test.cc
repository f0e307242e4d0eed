// Sparse gradients as two tensors: which are split, and what the optimizer reads then.
#include <gtest/gtest.h>

#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Case {
  int lookups = 1;
  bool dense = false;        // the sum's last term
  bool fetched = false;      // the gradient
  bool read = false;         // by another operator
  bool rewritten = false;    // what arrives at the lookup, before the optimizer
  bool other_table = false;  // another height
  bool narrow = false;       // the last lookup's ids are int32
  std::string optimizer = "sgd";
};

std::string TextOf(const Case& c, bool host_caches) {
  ProgramBuilder b;
  b.Param("table", DType::kF32, {9, 4}).Param("other", DType::kF32, {8, 4});
  b.Param("rate", DType::kF32, {1});
  std::vector<std::string> grads;
  for (int i = 0; i < c.lookups; ++i) {
    const std::string n = std::to_string(i);
    const bool last = i + 1 == c.lookups;
    b.Feed("ids" + n, last && c.narrow ? DType::kI32 : DType::kI64, {3});
    b.Feed("x" + n, DType::kF32, {3, 4}).Var("d" + n, DType::kF32, {3, 4});
    b.Unary("tanh", "x" + n, "d" + n);
    const bool dense = c.dense && last;
    b.Var("g" + n, DType::kF32, dense ? Shape{9, 4} : Shape{-1, 4});
    grads.push_back("g" + n);
    b.Op(
        "lookup_table_v2_grad",
        {{"W", {c.other_table ? "other" : "table"}}, {"Ids", {"ids" + n}}, {"Out@GRAD", {"d" + n}}},
        {{"W@GRAD", {"g" + n}}}, {{"is_sparse", !dense}});
  }
  std::string grad = grads[0];
  if (c.lookups > 1) b.Op("sum", {{"X", grads}}, {{"Out", {grad = "g"}}});
  if (c.rewritten) b.Unary("tanh", "x0", "d0");
  if (c.fetched) b.Fetch(grad);
  if (c.read) b.Unary("get_tensor_from_selected_rows", grad, "seen").Fetch("seen");
  Slots in{{"Param", {"table"}}, {"Grad", {grad}}, {"LearningRate", {"rate"}}};
  Slots out{{"ParamOut", {"table"}}};
  if (c.optimizer == "adamax") {
    b.Param("Beta1Pow", DType::kF32, {1});
    in.push_back({"Beta1Pow", {"Beta1Pow"}});
    for (const char* name : {"Moment", "InfNorm"}) {
      b.Param(name, DType::kF32, {9, 4});
      in.push_back({name, {name}});
      out.push_back({std::string(name) + "Out", {name}});
    }
  }
  b.Op(c.optimizer, in, out);
  OptimizeOptions options;
  options.level = 2;
  options.passes.only = {"gradient_rows"};
  const Program program = b.Build();
  auto done = passes::Optimize(program.impl(), std::make_shared<Scope>(), options,
                               {.host_caches = host_caches});
  EXPECT_TRUE(done.ok()) << done.status().ToString();
  return done.ok() ? ir::ToText(*done->program) : "";
}

bool Splits(const Case& c) {
  const std::string text = TextOf(c, false);
  const bool split = text.find("GradRows") != std::string::npos;
  EXPECT_EQ(split, text.find("lookup_table_v2_grad") == std::string::npos) << text;
  return split;
}

TEST(GradientRows, OneLookupNeedsNoOtherOperator) {
  const std::string text = TextOf({}, false);
  EXPECT_NE(text.find("GradRows"), std::string::npos) << text;
  EXPECT_EQ(text.find("lookup_table_v2_grad"), std::string::npos) << text;
  EXPECT_EQ(text.find("concat"), std::string::npos) << text;
}

TEST(GradientRows, ASumIsJoined) {
  const std::string text = TextOf({.lookups = 3}, false);
  EXPECT_NE(text.find("GradRows"), std::string::npos) << text;
  EXPECT_EQ(text.find(" sum"), std::string::npos) << text;
  EXPECT_NE(text.find("concat"), std::string::npos) << text;
}

TEST(GradientRows, HostsKeepSelectedRows) {
  EXPECT_EQ(TextOf({}, true).find("GradRows"), std::string::npos);
}

TEST(GradientRows, WhatIsRefused) {
  EXPECT_TRUE(Splits({.lookups = 2}));
  EXPECT_FALSE(Splits({.lookups = 2, .dense = true}));
  EXPECT_FALSE(Splits({.fetched = true}));
  EXPECT_FALSE(Splits({.lookups = 2, .fetched = true}));
  EXPECT_FALSE(Splits({.read = true}));
  EXPECT_FALSE(Splits({.rewritten = true}));
  EXPECT_FALSE(Splits({.other_table = true}));
  EXPECT_FALSE(Splits({.lookups = 2, .narrow = true}));
  EXPECT_FALSE(Splits({.optimizer = "adamax"}));
}

}  // namespace
}  // namespace heddle::testing
