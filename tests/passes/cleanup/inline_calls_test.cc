// Calls of blocks: as operators, and with the blocks in their places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Shape kShape = {2, 3};

struct Calls : ProgramBuilder {
  Calls() { Feed("x", DType::kF32, kShape); }
  Calls& V(const std::string& name, DType dtype = DType::kF32) {
    Var(name, dtype, kShape);
    return *this;
  }
  // A block r = tanh(p) + t, t = p * 2, that rewrites its parameter on the way.
  int Function() {
    const int block = Block(0);
    In(block);
    V("p").V("t").V("r").Scale("p", "t", 2);
    Unary("tanh", "p", "p").Binary("elementwise_add", "p", "t", "r").In(0);
    return block;
  }
  Calls& Call(int block, const std::string& x, const std::string& out, bool noinline = false) {
    if (out != "") V(out);
    Op("call", {{"X", {x}}}, {{"Out", {out}}},
       {{"sub_block", BlockRef{block}},
        {"parameters", Strings{"p"}},
        {"results", Strings{"r"}},
        {"noinline", noinline}});
    return *this;
  }
};

Result<passes::Optimized> Inline(const Program& program) {
  OptimizeOptions options{1, {}, {}};
  options.passes.only = {"inline_calls"};
  options.passes.check_unchanged = true;
  return passes::Optimize(program.impl(), std::make_shared<Scope>(), options);
}
std::vector<std::string> Types(const ir::Program& p, int block = 0) {
  std::vector<std::string> types;
  for (const ir::Op& op : p.blocks[static_cast<size_t>(block)].ops) types.push_back(op.type());
  return types;
}
std::vector<float> RunAt(const Program& program, int level) {
  Executor executor({.threads = 2});
  const auto compiled = MustCompile(executor, program, nullptr, {.opt_level = level});
  std::vector<float> all;
  for (int k = 0; k < 2; ++k)
    for (const Tensor& t :
         MustRun(executor, compiled, {{"x", F32(kShape, {1, -2, 3, 0, 0.5, -1})}}))
      for (float v : Floats(t)) all.push_back(v);
  return all;
}

TEST(InlineCalls, TwoCallsOfOneBlockDoNotMeet) {
  Calls b;
  const int f = b.Function();
  b.Call(f, "x", "y").Call(f, "y", "z").Fetch("y").Fetch("z").Fetch("x");
  const Program program = b.Build();
  const auto inlined = Inline(program);
  ASSERT_TRUE(inlined.ok()) << inlined.status().ToString();
  EXPECT_THAT(Types(*inlined->program),
              ElementsAre("assign", "scale", "tanh", "elementwise_add", "assign",  //
                          "assign", "scale", "tanh", "elementwise_add", "assign"));
  EXPECT_THAT(Types(*inlined->program, f), ElementsAre());
  const auto plain = RunAt(program, 0);
  EXPECT_EQ(RunAt(Program(inlined->program), 0), plain);
  EXPECT_EQ(RunAt(program, 1), plain);
  EXPECT_EQ(RunAt(program, 2), plain);
}

TEST(InlineCalls, WithFoldingAndCommonSubexpressionsInThreeRounds) {
  // g(p) = (f(p) + f(p)) * (2 w); y = g(x): two levels of calls, both f's are the same.
  Calls b;
  b.Param("w", DType::kF32, kShape);
  const int f = b.Block(0), g = b.Block(0);
  b.In(f);
  b.V("p").V("t").V("r").Scale("p", "t", 2);
  b.Unary("tanh", "t", "r").In(g);
  b.V("p").V("r").Call(f, "p", "one").Call(f, "p", "two").V("s").V("w2");
  b.Binary("elementwise_add", "one", "two", "s").Scale("w", "w2", 2);
  b.Binary("elementwise_mul", "s", "w2", "r").In(0);
  b.Call(g, "x", "y").Fetch("y");
  OptimizeOptions options{1, {}, {}};
  options.passes.only = {"inline_calls", "identity", "cse", "fold_constants", "dead_ops"};
  options.passes.check_unchanged = true;
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32(kShape, {1, 2, 3, 4, 5, 6}));
  const auto inlined = passes::Optimize(b.Build().impl(), scope, options);
  ASSERT_TRUE(inlined.ok()) << inlined.status().ToString();
  EXPECT_TRUE(inlined->report.warnings.empty());
  int most = 0;
  for (const auto& run : inlined->report.runs)
    if (run.changed) most = std::max(most, run.round);
  EXPECT_LE(most, 3) << inlined->report.ToString();
  EXPECT_THAT(Types(*inlined->program),
              ElementsAre("scale", "tanh", "elementwise_add", "elementwise_mul", "assign"))
      << ir::ToText(*inlined->program);
}

TEST(InlineCalls, InsideALoopWithSideEffectsInOrder) {
  Calls b;
  const int f = b.Block(0);
  b.In(f);
  b.V("p").V("r").Op("print", {{"In", {"p"}}}, {{"Out", {"printed"}}});
  b.Scale("p", "r", 0.5).In(0);
  b.V("s").Op("assign", {{"X", {"x"}}}, {{"Out", {"s"}}});
  b.Fill("i", {1}, 0, DType::kI64)
      .Fill("n", {1}, 3, DType::kI64)
      .Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body);
  b.Call(f, "s", "once").Call(f, "once", "twice").Unary("assign", "twice", "s");
  b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"i", "n", "s"}}, {"Condition", {"go"}}},
       {{"Out", {"i", "go", "s"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Fetch("s");
  const Program program = b.Build();
  const auto inlined = Inline(program);
  ASSERT_TRUE(inlined.ok()) << inlined.status().ToString();
  EXPECT_THAT(Types(*inlined->program, body),
              ElementsAre("assign", "print", "scale", "assign", "assign", "print", "scale",
                          "assign", "assign", "increment", "less_than"));
  EXPECT_EQ(RunAt(program, 2), RunAt(program, 0));
}

TEST(InlineCalls, BlocksInsideTheBlockComeAlong) {
  Calls b;
  const int f = b.Block(0), then = b.Block(f);
  b.In(f);
  b.V("p").V("r").Var("yes", DType::kBool, {1});
  b.Scale("p", "r", 3).Fill("yes", {1}, 1, DType::kBool);
  b.In(then).Scale("r", "r", 2).In(f);
  b.Op("conditional_block", {{"Cond", {"yes"}}, {"Input", {"r"}}}, {{"Out", {"r"}}, {"Scope", {}}},
       {{"sub_block", BlockRef{then}}, {"is_scalar_condition", true}});
  b.In(0);
  b.Call(f, "x", "y").Call(f, "y", "z").Fetch("z");
  const Program program = b.Build();
  const auto inlined = Inline(program);
  ASSERT_TRUE(inlined.ok()) << inlined.status().ToString();
  EXPECT_EQ(inlined->program->blocks.size(), 5u);
  EXPECT_EQ(RunAt(program, 0), RunAt(Program(inlined->program), 0));
}

TEST(InlineCalls, NoinlineStays) {
  Calls b;
  const int f = b.Function();
  b.Call(f, "x", "y", true).Fetch("y");
  EXPECT_THAT(Types(*Inline(b.Build())->program), ElementsAre("call"));
  EXPECT_EQ(RunAt(b.Build(), 2), RunAt(b.Build(), 0));
}

std::string ErrorOf(const Calls& b) {
  const auto result = Inline(b.Build());
  return result.ok() ? "" : result.status().message();
}

TEST(InlineCalls, WrongCallsAreErrors) {
  Calls many;
  const int f = many.Function();
  many.V("y").Op(
      "call", {{"X", {"x", "x"}}}, {{"Out", {"y"}}},
      {{"sub_block", BlockRef{f}}, {"parameters", Strings{"p"}}, {"results", Strings{"r"}}});
  EXPECT_EQ(ErrorOf(many),
            "PRE_PLACEMENT/inline_calls: call of block 1: it has 1 parameters, the call names 2");

  Calls dtypes;
  const int g = dtypes.Function();
  dtypes.V("n", DType::kI64).Call(g, "n", "y");
  EXPECT_EQ(ErrorOf(dtypes), "");  // what is declared does not count

  Calls names;
  const int h = names.Block(0);
  names.In(h);
  names.V("p").In(0);
  names.Call(h, "x", "y");
  EXPECT_THAT(ErrorOf(names), HasSubstr("it declares no variable 'r'"));
}

TEST(InlineCalls, RecursionIsRefusedBeforeAnythingIsExpanded) {
  const auto call = [](Calls& b, int block) {
    b.V("p").V("r").Op(
        "call", {{"X", {"p"}}}, {{"Out", {"r"}}},
        {{"sub_block", BlockRef{block}}, {"parameters", Strings{"p"}}, {"results", Strings{"r"}}});
  };
  Calls self;
  const int f = self.Block(0);
  self.In(f);
  call(self, f);
  self.In(0);
  self.Call(f, "x", "y").Fetch("y");
  const auto direct = self.TryBuild();
  ASSERT_FALSE(direct.ok());
  EXPECT_THAT(direct.status().message(), HasSubstr("(call): runs block 1, inside which it stands"));

  Calls two;
  const int a = two.Block(0), b = two.Block(0);
  two.In(a);
  call(two, b);
  two.In(b);
  call(two, a);
  two.In(0);
  two.Call(a, "x", "y").Fetch("y");
  const auto mutual = two.TryBuild();
  ASSERT_FALSE(mutual.ok());
  EXPECT_THAT(mutual.status().message(), HasSubstr("(call): runs block 1, inside which it stands"));
}

// Each block calls the next one twice: 2^40 operators.
TEST(InlineCalls, StopBeforeTheProgramIsTooLarge) {
  Calls b;
  std::vector<int> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(b.Block(0));
  for (size_t i = 0; i < blocks.size(); ++i) {
    b.In(blocks[i]);
    b.V("p").V("t").V("r");
    if (i + 1 == blocks.size()) {
      b.Scale("p", "t", 2).Scale("t", "r", 2);
      continue;
    }
    for (const auto& [x, out] : {std::pair("p", "t"), std::pair("t", "r")})
      b.Op("call", {{"X", {x}}}, {{"Out", {out}}},
           {{"sub_block", BlockRef{blocks[i + 1]}},
            {"parameters", Strings{"p"}},
            {"results", Strings{"r"}}});
  }
  b.In(0);
  b.Call(blocks[0], "x", "y").Fetch("y");
  const auto inlined = Inline(b.Build());
  ASSERT_TRUE(inlined.ok()) << inlined.status().ToString();
  size_t ops = 0;
  for (const ir::Block& block : inlined->program->blocks) ops += block.ops.size();
  EXPECT_LT(ops, size_t{200000});
}

}  // namespace
}  // namespace heddle::testing
