// Clean-up passes, one by one: what goes, and what has to stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const Shape kShape = {2, 3};

struct Builder : ProgramBuilder {
  Builder() { Feed("x", DType::kF32, kShape); }
  Builder& V(const std::string& name, const Shape& shape = kShape) {
    Var(name, DType::kF32, shape);
    return *this;
  }
  // y = type(x), y new.
  Builder& Add(const std::string& type, const std::string& x, const std::string& y,
               const Attrs& attrs = {}, const Shape& shape = kShape) {
    V(y, shape);
    Op(type, {{"X", {x}}}, {{"Out", {y}}}, attrs);
    return *this;
  }
};

// The program after these passes alone, until they are done.
std::shared_ptr<const ir::Program> After(const Program& program, std::vector<std::string> only,
                                         const std::shared_ptr<Scope>& scope = nullptr,
                                         size_t limit = 10u << 20) {
  OptimizeOptions options{2, {}, {}};
  options.passes.only = std::move(only);
  options.passes.check_unchanged = true;
  options.passes.max_folded_bytes = limit;
  auto result =
      passes::Optimize(program.impl(), scope ? scope : std::make_shared<Scope>(), options);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? result->program : program.impl();
}
std::vector<std::string> Types(const ir::Program& p, int block = 0) {
  std::vector<std::string> types;
  for (const ir::Op& op : p.blocks[static_cast<size_t>(block)].ops) types.push_back(op.type());
  return types;
}

TEST(DeadOps, ALongDeadTailGoes) {
  Builder b;
  b.Add("relu", "x", "y");
  std::string last = "y";
  for (int i = 0; i < 1000; ++i) {
    const std::string next = "t" + std::to_string(i);
    b.Add("tanh", last, next);
    last = next;
  }
  b.Fetch("y");
  EXPECT_THAT(Types(*After(b.Build(), {"dead_ops"})), ElementsAre("relu"));
}

TEST(DeadOps, WhatIsSeenOtherwiseStays) {
  Builder b;
  b.Add("relu", "x", "y");
  b.Op("print", {{"In", {"y"}}}, {{"Out", {"printed"}}});
  b.V("noise").Op("gaussian_random", {}, {{"Out", {"noise"}}}, {{"shape", Ints{2, 3}}});
  b.Param("p", DType::kF32, kShape).Op("assign", {{"X", {"x"}}}, {{"Out", {"p"}}});
  b.Add("tanh", "x", "first").Op("sigmoid", {{"X", {"x"}}}, {{"Out", {"first"}}});
  b.Fetch("first");
  EXPECT_THAT(Types(*After(b.Build(), {"dead_ops"})),
              ElementsAre("relu", "print", "gaussian_random", "assign", "tanh", "sigmoid"));
}

TEST(DeadOps, AWriteThatIsOverwrittenUnreadGoes) {
  Builder b;
  b.Add("tanh", "x", "a").Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}});
  b.Add("sigmoid", "a", "y").Fetch("y");
  EXPECT_THAT(Types(*After(b.Build(), {"dead_ops"})), ElementsAre("relu", "sigmoid"));
}

TEST(DeadOps, InsideALoop) {
  Builder b;
  b.V("s").Op("assign", {{"X", {"x"}}}, {{"Out", {"s"}}});
  b.Fill("i", {1}, 0, DType::kI64)
      .Fill("n", {1}, 3, DType::kI64)
      .Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body);
  b.Add("tanh", "s", "unused").Add("relu", "s", "local").Unary("assign", "local", "s");
  b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"i", "n", "s"}}, {"Condition", {"go"}}},
       {{"Out", {"i", "go", "s"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Fetch("s");
  EXPECT_THAT(Types(*After(b.Build(), {"dead_ops"}), body),
              ElementsAre("relu", "assign", "increment", "less_than"));
}

TEST(Identity, AChainOfCopiesGoes) {
  Builder b;
  std::string last = "x";
  for (int i = 0; i < 50; ++i) {
    const std::string next = "c" + std::to_string(i);
    b.Add("assign", last, next);
    last = next;
  }
  b.Add("relu", last, "y").Fetch("y");
  EXPECT_THAT(Types(*After(b.Build(), {"identity"})), ElementsAre("relu"));
}

TEST(Identity, EveryForm) {
  const std::vector<std::pair<std::string, Attrs>> forms = {
      {"assign", {}},
      {"cast", {{"in_dtype", int64_t{5}}, {"out_dtype", int64_t{5}}}},
      {"transpose2", {{"axis", Ints{0, 1}}}},
      {"sum", {}},
      {"concat", {{"axis", int64_t{1}}}},
  };
  for (const auto& [type, attrs] : forms) {
    Builder b;
    b.Add(type, "x", "c", attrs).Add("relu", "c", "y").Fetch("y");
    EXPECT_THAT(Types(*After(b.Build(), {"identity"})), ElementsAre("relu")) << type;
  }
  Builder b;  // nearly
  b.Add("scale", "x", "a", {{"scale", 1.0}, {"bias", 0.5}});
  b.Add("transpose2", "a", "b", {{"axis", Ints{1, 0}}}, {3, 2}).Add("relu", "b", "y", {}, {3, 2});
  b.Fetch("y");
  EXPECT_EQ(Types(*After(b.Build(), {"identity"})).size(), 3u);
}

TEST(DropoutInference, AFetchedMaskStays) {
  Builder b;
  b.V("y").V("z").Var("mask", DType::kU8, kShape);
  b.Op("dropout", {{"X", {"x"}}}, {{"Out", {"y"}}, {"Mask", {"mask"}}},
       {{"is_test", true}, {"dropout_implementation", std::string("upscale_in_train")}});
  b.Unary("relu", "y", "z").Fetch("z").Fetch("mask");
  EXPECT_THAT(Types(*After(b.Build(), {"dropout_inference"})), ElementsAre("dropout", "relu"));
}

// The default implementation multiplies by 1 - p, also where the result is fetched; double has a
// factor of its own, and training draws.
TEST(DropoutInference, DropoutInInferenceBecomesAScale) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const bool test : {true, false}) {
      ProgramBuilder b;
      b.Feed("x", dtype, kShape).Var("y", dtype, kShape);
      b.Op("dropout", {{"X", {"x"}}}, {{"Out", {"y"}}},
           {{"is_test", test}, {"dropout_prob", 0.25f}});
      const auto program = After(b.Fetch("y").Build(), {"dropout_inference"});
      if (!test || dtype == DType::kF64) {
        EXPECT_THAT(Types(*program), ElementsAre("dropout"));
        continue;
      }
      ASSERT_THAT(Types(*program), ElementsAre("scale"));
      EXPECT_EQ(program->blocks[0].ops[0].Attr<double>("scale"), 0.75);
    }
  }
}

// Nothing says that x is fed, but that it is read before it is written.
TEST(DropoutInference, ASourceThatIsWrittenLaterStays) {
  ProgramBuilder b;
  for (const char* name : {"x", "y", "z"}) b.Var(name, DType::kF32, kShape);
  b.Op("dropout", {{"X", {"x"}}}, {{"Out", {"y"}}},
       {{"is_test", true}, {"dropout_implementation", std::string("upscale_in_train")}});
  b.Unary("exp", "x", "x").Unary("relu", "y", "z");
  EXPECT_THAT(Types(*After(b.Build(), {"dropout_inference"})),
              ElementsAre("dropout", "exp", "relu"));
}

// A chain of what passes look for, where one operand of one operator is missing or no variable:
// with passes the same error, or result, as without.
TEST(Passes, OperatorsThatLackOperands) {
  struct Link {
    std::string type, in, x, y, out, to;
    Attrs attrs;
  };
  const Attrs conv = {{"strides", Ints{1, 1}}, {"paddings", Ints{0, 0}}, {"dilations", Ints{1, 1}}};
  const std::vector<Link> chain = {
      {"transpose2", "X", "x", "", "Out", "a", {{"axis", Ints{0, 2, 1, 3}}}},
      {"matmul_v2", "X", "a", "a", "Out", "b", {{"trans_y", true}}},
      {"scale", "X", "b", "", "Out", "c", {{"scale", 2.0}}},
      {"elementwise_add", "X", "c", "x", "Out", "d", {}},
      {"softmax", "X", "d", "", "Out", "e", {}},
      {"matmul_v2", "X", "e", "a", "Out", "f", {}},
      {"transpose2", "X", "f", "", "Out", "g", {{"axis", Ints{0, 2, 1, 3}}}},
      {"dropout", "X", "g", "", "Out", "h", {{"is_test", true}}},
      {"conv2d", "Input", "h", "w", "Output", "i", conv},
      {"elementwise_add", "X", "i", "x", "Out", "j", {}},
      {"conv2d", "Input", "j", "w", "Output", "k", conv},
      {"relu", "X", "k", "", "Out", "l", {}},
  };
  const Shape shape = {2, 2, 2, 2};
  for (size_t at = 0; at < chain.size(); ++at) {
    for (const std::string part : {"first", "second", "result"}) {
      for (const std::string hole : {"", "@EMPTY@"}) {
        SCOPED_TRACE(std::to_string(at) + " " + chain[at].type + " " + part + " " + hole);
        ProgramBuilder b;
        b.Feed("x", DType::kF32, shape).Param("w", DType::kF32, {2, 2, 1, 1});
        for (size_t k = 0; k < chain.size(); ++k) {
          const Link& link = chain[k];
          const auto operand = [&](const std::string& name, const char* which) {
            if (k != at || part != which) return std::vector<std::string>{name};
            return hole.empty() ? std::vector<std::string>() : std::vector<std::string>{hole};
          };
          Slots in = {{link.in, operand(link.x, "first")}};
          if (!link.y.empty())
            in.push_back({link.in == "X" ? "Y" : "Filter", operand(link.y, "second")});
          b.Var(link.to, DType::kF32, shape);
          b.Op(link.type, in, {{link.out, operand(link.to, "result")}}, link.attrs);
        }
        b.Fetch("l");
        const auto program = b.TryBuild();
        if (!program.ok()) continue;
        std::vector<std::string> results;
        for (int level : {0, 1, 2}) {
          Executor executor({.threads = 1});
          auto scope = std::make_shared<Scope>();
          scope->Set("w", Tensor::Zeros(DType::kF32, {2, 2, 1, 1}));
          auto compiled = executor.Compile(*program, scope, {.opt_level = level});
          ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
          results.push_back(executor.Run(*compiled, {{"x", Tensor::Zeros(DType::kF32, shape)}})
                                .status()
                                .ToString());
        }
        EXPECT_EQ(results[1], results[0]);
        EXPECT_EQ(results[2], results[0]);
      }
    }
  }
}

// Each block runs the next one twice: passes look at 40 blocks, not at 2 to the power of 40.
TEST(Passes, BlocksThatAreNamedTwice) {
  constexpr int kDepth = 40;
  Builder b;
  b.Feed("c", DType::kBool, {1}).Var("y", DType::kF32, kShape);
  b.Fill("y", {2, 3}, 0);
  std::vector<int> blocks = {0};
  for (int i = 0; i < kDepth; ++i) blocks.push_back(b.Block(blocks.back()));
  for (int i = 0; i < kDepth; ++i)
    for (int twice = 0; twice < 2; ++twice)
      b.In(blocks[i]).Op("conditional_block", {{"Cond", {"c"}}, {"Input", {"x"}}},
                         {{"Out", {"y"}}, {"Scope", {"scope" + std::to_string(2 * i + twice)}}},
                         {{"sub_block", BlockRef{blocks[i + 1]}}, {"is_scalar_condition", true}});
  b.In(blocks.back()).Unary("relu", "x", "y");
  b.In(0).Fetch("y");
  const auto optimized = OptimizeModel({b.Build(), nullptr}, {.level = 2});
  ASSERT_TRUE(optimized.ok()) << optimized.status().ToString();
  EXPECT_EQ(optimized->model.program.num_blocks(), kDepth + 1);
}

TEST(OptimizeModel, SaysWhatPaddleCannotRead) {
  Builder b;
  const Shape image = {1, 2, 3, 3};
  b.Feed("i", DType::kF32, image).Var("y", DType::kF32, image);
  auto scope = std::make_shared<Scope>();
  Slots in = {{"X", {"i"}}};
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"}) {
    const std::string name = "p" + std::string(slot);
    b.Param(name, DType::kF32, {2});
    scope->Set(name, F32({2}, {1, 2}));
    in.push_back({slot, {name}});
  }
  b.Op("batch_norm", in, {{"Y", {"y"}}, {"MeanOut", {"pMean"}}, {"VarianceOut", {"pVariance"}}},
       {{"is_test", true}});
  b.Fetch("y");
  for (int level : {1, 2}) {
    const auto optimized = OptimizeModel({b.Build(), scope}, {.level = level});
    ASSERT_TRUE(optimized.ok()) << optimized.status().ToString();
    EXPECT_EQ(optimized->heddle_only.size(), level == 2 ? 1u : 0u) << level;
  }
}

TEST(Identity, SignsOfZeroStay) {
  for (const auto& [type, attrs] : std::vector<std::pair<std::string, Attrs>>{
           {"scale", {{"scale", 1.0}, {"bias", 0.0}}}, {"sum", {}}, {"assign", {}}}) {
    Builder b;
    b.Add(type, "x", "c", attrs).Add("reciprocal", "c", "y").Fetch("y");
    std::vector<std::string> bits;
    for (int level : {0, 1}) {
      Executor executor({.threads = 1});
      const auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = level});
      bits.push_back(
          Bits(MustRun(executor, compiled, {{"x", F32(kShape, {-0.f, 0, 1, 2, 3, 4})}})[0]));
    }
    EXPECT_EQ(bits[0], bits[1]) << type;
  }
}

TEST(Identity, WhatIsFetchedOrUnreadStays) {
  Builder b;
  b.Add("assign", "x", "fetched").Add("assign", "x", "unread").Fetch("fetched");
  EXPECT_EQ(Types(*After(b.Build(), {"identity"})).size(), 2u);
}

TEST(Identity, ASourceThatIsWrittenAgainStays) {
  Builder b;
  b.Add("relu", "x", "a").Add("assign", "a", "copy");
  b.Op("tanh", {{"X", {"x"}}}, {{"Out", {"a"}}});
  b.V("y").Binary("elementwise_add", "a", "copy", "y").Fetch("y");
  EXPECT_EQ(Types(*After(b.Build(), {"identity"})).size(), 4u);
  // Read before it is written again: the copy is not needed.
  Builder c;
  c.Add("relu", "x", "a").Add("assign", "a", "copy").Add("sigmoid", "copy", "z");
  c.Op("tanh", {{"X", {"x"}}}, {{"Out", {"a"}}});
  c.V("y").Binary("elementwise_add", "a", "z", "y").Fetch("y");
  EXPECT_EQ(Types(*After(c.Build(), {"identity"})).size(), 4u);
}

// With `again` the written tensor is overwritten before the read, so that it cannot be used.
TEST(ArrayReads, AReadAtAKnownIndexGetsTheWrittenTensor) {
  const auto types = [](bool again) {
    Builder b;
    b.Array("list").Fill("i", {1}, 0, DType::kI64).Fill("j", {1}, 1, DType::kI64);
    b.Add("relu", "x", "a");
    b.Op("write_to_array", {{"X", {"x"}}, {"I", {"i"}}}, {{"Out", {"list"}}}).Increment("i");
    b.Op("write_to_array", {{"X", {"a"}}, {"I", {"i"}}}, {{"Out", {"list"}}});
    if (again) b.Op("tanh", {{"X", {"x"}}}, {{"Out", {"a"}}});
    b.V("r").Op("read_from_array", {{"X", {"list"}}, {"I", {"j"}}}, {{"Out", {"r"}}});
    b.Add("sigmoid", "r", "y").Fetch("y");
    const auto after = After(b.Build(), {"array_reads"});
    EXPECT_EQ(ir::ToText(*after).find("sigmoid(X=[a])") != std::string::npos, !again);
    return Types(*after);
  };
  EXPECT_THAT(types(false), Not(Contains("read_from_array")));
  EXPECT_THAT(types(true), Contains("read_from_array"));
}

std::shared_ptr<Scope> ScopeWith(const std::string& name, Tensor value) {
  auto scope = std::make_shared<Scope>();
  scope->Set(name, std::move(value));
  return scope;
}

TEST(FoldConstants, WhatParametersGive) {
  Builder b;
  b.Param("w", DType::kF32, kShape);
  b.Add("transpose2", "w", "t", {{"axis", Ints{1, 0}}}, {3, 2});
  b.V("c", {3, 2}).Fill("c", {3, 2}, 2);
  b.V("m", {3, 2}).Binary("elementwise_mul", "t", "c", "m");
  b.V("y", {2, 2}).Binary("matmul_v2", "x", "m", "y").Fetch("y");
  const auto scope = ScopeWith("w", F32(kShape, {1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(Types(*After(b.Build(), {"fold_constants", "dead_ops"}, scope)),
              ElementsAre("matmul_v2"));
  // And the value follows the parameter.
  Executor executor;
  const auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 1});
  const std::vector<heddle::Feed> feeds = {{"x", F32(kShape, {1, 0, 0, 0, 1, 0})}};
  EXPECT_THAT(Floats(MustRun(executor, compiled, feeds)[0]), ElementsAre(2, 8, 4, 10));
  scope->Set("w", F32(kShape, {0, 0, 1, 0, 1, 0}));
  EXPECT_THAT(Floats(MustRun(executor, compiled, feeds)[0]), ElementsAre(0, 0, 0, 2));
}

// Without feed operators anything may be fed, also what was taken for a constant.
TEST(FoldConstants, AParameterThatIsFed) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, kShape).Var("t", DType::kF32, {3, 2}).Var("y", DType::kF32, {3, 2});
  b.Op("transpose2", {{"X", {"w"}}}, {{"Out", {"t"}}}, {{"axis", Ints{1, 0}}});
  b.Unary("relu", "t", "y");
  const auto scope = ScopeWith("w", F32(kShape, {1, 2, 3, 4, 5, 6}));
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build(), scope, {.fetches = {"y"}, .opt_level = 1});
  const Tensor fed = F32(kShape, {7, 0, 0, 8, 0, 0});
  EXPECT_THAT(Floats(MustRun(executor, compiled, {})[0]), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(Floats(MustRun(executor, compiled, {{"w", fed}})[0]), ElementsAre(7, 8, 0, 0, 0, 0));
  EXPECT_THAT(Floats(MustRun(executor, compiled, {})[0]), ElementsAre(1, 4, 2, 5, 3, 6));
  // A feed operator says it beforehand.
  ProgramBuilder declared;
  declared.Feed("w", DType::kF32, kShape).Var("t", DType::kF32, {3, 2});
  declared.desc()
      .mutable_blocks(0)
      ->mutable_vars(declared.desc().blocks(0).vars_size() - 2)
      ->set_persistable(true);
  declared.Op("transpose2", {{"X", {"w"}}}, {{"Out", {"t"}}}, {{"axis", Ints{1, 0}}});
  declared.Var("y", DType::kF32, {3, 2}).Unary("relu", "t", "y").Fetch("y");
  const Program program = declared.Build();
  ASSERT_EQ(program.persistables().size(), 1u);
  const auto said = MustCompile(executor, program, scope, {.opt_level = 1});
  EXPECT_THAT(Floats(MustRun(executor, said, {{"w", fed}})[0]), ElementsAre(7, 8, 0, 0, 0, 0));
}

TEST(FoldConstants, OnlyUpToTheLimit) {
  Builder b;
  b.Param("w", DType::kF32, {1001});
  b.Add("scale", "w", "s", {{"scale", 2.0}}, {1001}).V("y", {1001});
  b.Op("elementwise_add", {{"X", {"s"}}, {"Y", {"w"}}}, {{"Out", {"y"}}});
  b.Add("relu", "y", "z", {}, {1001}).Fetch("z");
  const auto scope = ScopeWith("w", Tensor::Zeros(DType::kF32, {1001}));
  EXPECT_EQ(Types(*After(b.Build(), {"fold_constants"}, scope, 4000)).size(), 3u);
  EXPECT_EQ(Types(*After(b.Build(), {"fold_constants"}, scope, 4004)).size(), 1u);
}

TEST(FoldConstants, ParametersThatTheProgramWritesStay) {
  Builder b;
  b.Param("w", DType::kF32, kShape);
  b.Add("scale", "w", "s", {{"scale", 2.0}}).V("y").Binary("elementwise_add", "s", "x", "y");
  b.Op("assign", {{"X", {"y"}}}, {{"Out", {"w"}}}).Fetch("y");
  const auto scope = ScopeWith("w", Tensor::Zeros(DType::kF32, kShape));
  EXPECT_EQ(Types(*After(b.Build(), {"fold_constants"}, scope)).size(), 3u);
  // One without a value cannot be computed with.
  Builder c;
  c.Param("w", DType::kF32, kShape).Scale("w", "s", 2).Fetch("s");
  EXPECT_EQ(Types(*After(c.Build(), {"fold_constants"})).size(), 1u);
}

TEST(FoldConstants, ProductsOfConstants) {
  Builder b;
  b.V("a", {2, 2}).V("c", {2, 2}).V("p", {2, 2}).V("q", {2, 2});
  const auto values = [&](const std::string& name, const heddle::Floats& values) {
    b.Op("assign_value", {}, {{"Out", {name}}},
         {{"shape", Ints{2, 2}}, {"dtype", int64_t{5}}, {"fp32_values", values}});
  };
  values("a", {1, 2, 3, 4});
  values("c", {2, 1, 4, 3});
  b.Binary("matmul_v2", "a", "c", "p").Binary("matmul_v2", "c", "a", "q");
  b.V("s", {2, 2}).Binary("elementwise_sub", "p", "q", "s");
  b.V("y", {2, 2}).Unary("relu", "s", "y").Fetch("y");
  const Program program = b.Build();
  EXPECT_THAT(Types(*After(program, {"fold_constants", "dead_ops"})), ElementsAre("relu"));
  Executor executor;
  const auto out = MustRun(executor, MustCompile(executor, program, nullptr, {.opt_level = 1}),
                           {{"x", F32(kShape, {0, 0, 0, 0, 0, 0})}});
  EXPECT_THAT(Floats(out[0]), ElementsAre(5, 0, 9, 0));  // [10, 7; 22, 15] - [5, 8; 13, 20]
}

TEST(FoldConstants, OneOfTwoOutputs) {
  Builder b;
  b.Param("w", DType::kF32, {4, 3});
  b.V("first").V("second").Op("split", {{"X", {"w"}}}, {{"Out", {"first", "second"}}},
                              {{"axis", int64_t{0}}, {"num", int64_t{2}}});
  b.V("y").Binary("elementwise_add", "x", "second", "y").Fetch("y");
  const auto scope = ScopeWith("w", Tensor::Zeros(DType::kF32, {4, 3}));
  EXPECT_THAT(Types(*After(b.Build(), {"fold_constants"}, scope)), ElementsAre("elementwise_add"));
}

TEST(FoldConstants, WhatFailsIsLeftToTheRun) {
  Builder b;
  b.Param("w", DType::kF32, kShape);
  b.V("p").V("y").Binary("matmul_v2", "w", "w", "p").Binary("elementwise_add", "x", "p", "y");
  b.Fetch("y");
  const auto scope = ScopeWith("w", Tensor::Zeros(DType::kF32, kShape));
  EXPECT_THAT(Types(*After(b.Build(), {"fold_constants"}, scope)),
              ElementsAre("matmul_v2", "elementwise_add"));
}

TEST(Cse, ThreeTimesTheSame) {
  Builder b;
  b.Add("exp", "x", "a").Add("exp", "x", "b").Add("exp", "x", "c").Add("relu", "x", "d");
  b.V("s").Op("sum", {{"X", {"a", "b", "c", "d"}}}, {{"Out", {"s"}}}).Fetch("s");
  const auto after = After(b.Build(), {"cse"});
  EXPECT_THAT(Types(*after), ElementsAre("exp", "relu", "sum"));
  EXPECT_THAT(ir::ToText(*after), HasSubstr("sum(X=[a, a, a, d])"));
}

TEST(Cse, OrderMattersWhereItDoes) {
  for (const auto& [type, merged] : std::vector<std::pair<std::string, bool>>{
           {"elementwise_add", true}, {"elementwise_sub", false}}) {
    Builder b;
    b.Add("relu", "x", "r").V("a").V("b");
    b.Op(type, {{"X", {"x"}}, {"Y", {"r"}}}, {{"Out", {"a"}}});
    b.Op(type, {{"X", {"r"}}, {"Y", {"x"}}}, {{"Out", {"b"}}});
    b.V("s").Op("sum", {{"X", {"a", "b"}}}, {{"Out", {"s"}}}).Fetch("s");
    EXPECT_EQ(Types(*After(b.Build(), {"cse"})).size(), merged ? 3u : 4u) << type;
  }
}

TEST(Cse, SequenceOffsetsAreThoseOfX) {
  Builder b;
  b.V("a").V("b").V("r").V("p", {-1, 3}).Feed("z", DType::kF32, kShape);
  b.Binary("elementwise_add", "z", "x", "a").Binary("elementwise_add", "x", "z", "b");
  b.Unary("relu", "a", "r");
  b.Op("sequence_pool", {{"X", {"b"}}}, {{"Out", {"p"}}}, {{"pooltype", std::string("SUM")}});
  b.Fetch("r").Fetch("p");
  Tensor x = F32(kShape, {1, 2, 3, 4, 5, 6});
  x.set_lod({{0, 2}});
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 1});
  const auto out = MustRun(executor, compiled, {{"x", x}, {"z", F32(kShape, {1, 1, 1, 1, 1, 1})}});
  EXPECT_EQ(Floats(out[1]), (std::vector<float>{7, 9, 11}));
}

TEST(Cse, AttributesInAnyOrderButEqual) {
  Builder b;
  b.Add("scale", "x", "a", {{"scale", 2.0}, {"bias", 1.0}});
  b.Add("scale", "x", "b", {{"bias", 1.0}, {"scale", 2.0}});
  b.Add("scale", "x", "c", {{"bias", 1.5}, {"scale", 2.0}});
  b.V("s").Op("sum", {{"X", {"a", "b", "c"}}}, {{"Out", {"s"}}}).Fetch("s");
  EXPECT_THAT(Types(*After(b.Build(), {"cse"})), ElementsAre("scale", "scale", "sum"));
}

// Eight fill_constant of four different values become four.
TEST(Cse, EqualConstantsAreMerged) {
  Builder b;
  std::vector<std::string> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back("c" + std::to_string(i));
    b.V(all.back()).Fill(all.back(), {2, 3}, i / 2);
  }
  b.V("s").Op("sum", {{"X", all}}, {{"Out", {"s"}}}).Fetch("s");
  EXPECT_EQ(Types(*After(b.Build(), {"cse"})).size(), 5u);
}

TEST(Cse, OtherVersionsAndRandomNumbersStay) {
  Builder b;
  b.Add("relu", "x", "a").Add("exp", "a", "e");
  b.Op("tanh", {{"X", {"x"}}}, {{"Out", {"a"}}});
  b.Add("exp", "a", "f");
  for (const char* noise : {"n", "m"})
    b.V(noise).Op("gaussian_random", {}, {{"Out", {noise}}}, {{"shape", Ints{2, 3}}});
  b.V("s").Op("sum", {{"X", {"e", "f", "n", "m"}}}, {{"Out", {"s"}}}).Fetch("s");
  EXPECT_EQ(Types(*After(b.Build(), {"cse"})).size(), 7u);
  // The first result is written again before the second is read.
  Builder c;
  c.Add("exp", "x", "a").Add("relu", "a", "r").Add("exp", "x", "b");
  c.Op("tanh", {{"X", {"r"}}}, {{"Out", {"a"}}});
  c.V("s").Op("sum", {{"X", {"a", "b"}}}, {{"Out", {"s"}}}).Fetch("s");
  EXPECT_EQ(Types(*After(c.Build(), {"cse"})).size(), 5u);
}

// Transposes x, [2, 3, 4], again and again.
std::vector<std::string> Transposed(const std::vector<Ints>& orders, const std::string& also = "") {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3, 4});
  Shape shape{2, 3, 4};
  std::string last = "x";
  for (const Ints& axis : orders) {
    Shape next;
    for (int64_t a : axis) next.push_back(shape[static_cast<int>(a)]);
    const std::string name = last + "t";
    b.Var(name, DType::kF32, next);
    b.Op("transpose2", {{"X", {last}}}, {{"Out", {name}}}, {{"axis", axis}});
    last = name;
    shape = next;
  }
  if (!also.empty()) b.Unary("relu", also, "also").Fetch("also");
  b.Unary("tanh", last, "y").Fetch("y");
  return Types(*After(b.Build(), {"merge_transposes", "identity", "dead_ops"}));
}

TEST(MergeTransposes, ChainsInversePairsAndBranches) {
  EXPECT_THAT(Transposed({{1, 0, 2}, {0, 2, 1}, {2, 1, 0}, {1, 2, 0}}),
              ElementsAre("transpose2", "tanh"));
  EXPECT_THAT(Transposed({{1, 2, 0}, {2, 0, 1}}), ElementsAre("tanh"));
  EXPECT_THAT(Transposed({{1, 0, 2}, {0, 2, 1}}, "xt"),
              ElementsAre("transpose2", "transpose2", "relu", "tanh"));
}

TEST(MergeReshapes, TheLastShapeWins) {
  Builder b;
  b.Add("reshape2", "x", "a", {{"shape", Ints{3, 2}}}, {3, 2});
  b.Add("unsqueeze2", "a", "b", {{"axes", Ints{0}}}, {1, 3, 2});
  b.Add("reshape2", "b", "c", {{"shape", Ints{1, -1}}}, {1, 6});
  b.Add("relu", "c", "y", {}, {1, 6}).Fetch("y");
  const auto after = After(b.Build(), {"merge_reshapes", "dead_ops"});
  EXPECT_THAT(Types(*after), ElementsAre("reshape2", "relu"));
  EXPECT_THAT(ir::ToText(*after), HasSubstr("reshape2(X=[x]) shape=[1, -1]"));
}

// The shapes in a file may be wrong; what the operators say is not.
TEST(MergeReshapes, DeclaredShapesAreNotBelieved) {
  Builder b;
  b.Add("reshape2", "x", "a", {{"shape", Ints{3, 2}}}, {2, 3});  // not so
  b.Add("reshape2", "a", "b", {{"shape", Ints{2, 3}}}, {2, 3});
  b.Add("flatten_contiguous_range", "b", "c",
        {{"start_axis", int64_t{0}}, {"stop_axis", int64_t{0}}}, {3, 2});
  b.Add("reshape2", "c", "d", {{"shape", Ints{0, -1}}}, {3, 2}).Add("relu", "d", "y", {}, {3, 2});
  b.Fetch("y");
  const auto after = After(b.Build(), {"merge_reshapes", "identity", "dead_ops"});
  EXPECT_THAT(ir::ToText(*after), HasSubstr("shape=[2, 3]"));
  EXPECT_THAT(ir::ToText(*after), HasSubstr("shape=[0, -1]"));
}

}  // namespace
}  // namespace heddle::testing
