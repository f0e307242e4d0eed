// Small ONNX models are run and their numbers compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "formats/program_source.h"
#include "heddle/onnx.h"
#include "tests/formats/onnx/onnx_runs.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> RunOn(const std::string& bytes, const std::vector<Feed>& feeds, size_t k = 0) {
  const Model model = ModelOf(bytes);
  return model.program ? Floats(RunValuesOf(model, feeds)[k].tensor()) : std::vector<float>();
}
std::vector<float> RunOn(const OnnxGraph& g, const Tensor& x, int64_t opset = 17) {
  return RunOn(g.Model(opset), {{"x", x}});
}

TEST(Onnx, InitializersAndConstantsAreParameters) {
  OnnxGraph g;
  g.In("x").Weight(Tensor32("w:0/a", {2}, {1, 2}));
  g.Add(Node("Constant", {}, {"c"}, {TensorAttr("value", Tensor32("", {2}, {10, 20}))}));
  g.Add(Node("Add", {"x", "w:0/a"}, {"s"})).Add(Node("Mul", {"s", "c"}, {"y:0"})).Out("y:0");
  const Model model = ModelOf(g.Model());
  EXPECT_EQ(model.program.inputs()[0].name, "x");
  EXPECT_EQ(model.program.outputs()[0].name, "y:0");
  EXPECT_EQ(model.program.persistables().size(), 2u);
  EXPECT_THAT(RunOn(g, F32({2}, {1, 1})), ElementsAre(20, 60));
}

// A node becomes as many operators as it has operands, and their texts are one, of bounded length.
TEST(Onnx, OperatorsOfOneNodeShareItsText) {
  for (const size_t operands : {size_t{2}, size_t{40}, size_t{3000}}) {
    OnnxGraph g;
    g.In("x").Add(Node("Sum", std::vector<std::string>(operands, "x"), {"y"})).Out("y");
    const Model model = ModelOf(g.Model());
    const auto& ops = model.program.ir().blocks[0].ops;
    ASSERT_EQ(ops.size(), operands - 1);
    size_t bytes = 0;
    for (const ir::Op& op : ops) {
      const std::vector<std::string_view> lines = op.call_stack.Lines();
      ASSERT_EQ(lines.size(), 1u);
      EXPECT_EQ(lines[0].data(), ops[0].call_stack.Lines()[0].data());
      bytes = lines[0].size();
    }
    EXPECT_LT(bytes, 400u);
  }
}

TEST(Onnx, OutputsMayBeInputsInitializersAndEachOther) {
  OnnxGraph g;
  g.In("x").Weight(Tensor32("w", {2}, {5, 6}));
  g.Add(Node("Identity", {"x"}, {"a"})).Add(Node("Identity", {"a"}, {"b"}));
  g.Out("x").Out("w").Out("a").Out("b");
  const Model model = ModelOf(g.Model());
  const auto made = RunValuesOf(model, {{"x", F32({2}, {1, 2})}});
  ASSERT_EQ(made.size(), 4u);
  EXPECT_THAT(Floats(made[0].tensor()), ElementsAre(1, 2));
  EXPECT_THAT(Floats(made[1].tensor()), ElementsAre(5, 6));
  EXPECT_THAT(Floats(made[2].tensor()), ElementsAre(1, 2));
  EXPECT_THAT(Floats(made[3].tensor()), ElementsAre(1, 2));
}

TEST(Onnx, NodesMayStandInAnyOrder) {
  OnnxGraph branch, g;
  branch.Add(Node("Neg", {"a"}, {"b"})).Out("b");
  g.In("c", 9, {1}).In("x");
  g.Add(Node(
      "If", {"c"}, {"y"},
      {GraphAttr("then_branch", branch.message()), GraphAttr("else_branch", branch.message())}));
  g.Add(Node("Add", {"x", "x"}, {"a"})).Out("y");
  EXPECT_THAT(RunOn(g.Model(), {{"c", Bool(true)}, {"x", F32({1}, {2})}}), ElementsAre(-4));
}

TEST(Onnx, InputsThatInitializersFillAreNotFed) {
  OnnxGraph g;
  g.In("w").In("x").Weight(Tensor32("w", {2}, {5, 6}));
  g.Add(Node("Sub", {"x", "w"}, {"y"})).Out("y");
  const Model model = ModelOf(g.Model());
  ASSERT_EQ(model.program.inputs().size(), 1u);
  EXPECT_THAT(RunOn(g, F32({2}, {1, 2})), ElementsAre(-4, -4));
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile(model);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const auto made =
      executor.RunValues(*compiled, {{"x", F32({2}, {1, 2})}, {"w", F32({2}, {0, 0})}});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.status().ToString(), HasSubstr("there is no input 'w'"));
}

// A meaning that changed between versions.
TEST(Onnx, NodesMeanWhatTheirOpsetSays) {
  OnnxGraph g;
  g.In("x", 1, {1, 2, 2}).Add(Node("Softmax", {"x"}, {"y"})).Out("y");
  const Tensor x = F32({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_THAT(RunOn(g, x, 12), ElementsAre(.25, .25, .25, .25));
  EXPECT_THAT(RunOn(g, x, 13), ElementsAre(.5, .5, .5, .5));
  OnnxGraph old;
  old.In("x", 1, {2, 2}).Weight(Tensor32("b", {2}, {10, 20}));
  old.Add(Node("Add", {"x", "b"}, {"y"}, {IntAttr("broadcast", 1), IntAttr("axis", 0)})).Out("y");
  EXPECT_THAT(RunOn(old, F32({2, 2}, {1, 2, 3, 4}), 6), ElementsAre(11, 12, 23, 24));
}

TEST(Onnx, ShapesOfConstantsAndOfRuns) {
  OnnxGraph fixed, computed;
  fixed.In("x", 1, {-1, -1}).Weight(Tensor64("s", {1}, {-1}));
  fixed.Add(Node("Reshape", {"x", "s"}, {"y"})).Out("y");
  EXPECT_THAT(RunOn(fixed, F32({2, 2}, {1, 2, 3, 4})), ElementsAre(1, 2, 3, 4));
  computed.In("x", 1, {-1, -1}).Weight(Tensor64("i", {}, {0})).Weight(Tensor64("m", {1}, {-1}));
  computed.Weight(Tensor64("z", {1}, {0}));
  computed.Add(Node("Shape", {"x"}, {"s"})).Add(Node("Gather", {"s", "i"}, {"n"}));
  computed.Add(Node("Unsqueeze", {"n", "z"}, {"n1"}));
  computed.Add(Node("Concat", {"n1", "m"}, {"t"}, {IntAttr("axis", 0)}));
  computed.Add(Node("Reshape", {"x", "t"}, {"r"}));
  computed.Add(Node("ReduceSum", {"r", "z"}, {"y"}, {IntAttr("keepdims", 0)})).Out("y");
  EXPECT_THAT(RunOn(computed, F32({2, 2}, {1, 2, 3, 4})), ElementsAre(4, 6));
}

std::string ChoiceModel() {
  OnnxGraph yes, no, g;
  yes.Add(Node("Neg", {"x"}, {"b"})).Out("b");
  no.Weight(Tensor32("w", {1}, {7})).Add(Node("Identity", {"w"}, {"b"})).Out("b");
  g.In("c", 9, {1})
      .In("x")
      .Add(Node("If", {"c"}, {"y"},
                {GraphAttr("then_branch", yes.message()), GraphAttr("else_branch", no.message())}));
  return g.Out("y").Model();
}

// A permutation tells the rank of what it permutes, which operators behind it may need.
TEST(Onnx, ATransposedTensorHasARank) {
  OnnxGraph g;
  g.In("x").In("shape", 7).Add(Node("Reshape", {"x", "shape"}, {"r"}));
  g.Add(Node("Transpose", {"r"}, {"t"}, {IntsAttr("perm", {0, 3, 1, 2})}));
  g.Add(Node("GlobalAveragePool", {"t"}, {"y"})).Out("y");
  EXPECT_THAT(RunOn(g.Model(),
                    {{"x", F32({8}, {1, 2, 3, 4, 5, 6, 7, 8})}, {"shape", I64({4}, {1, 2, 2, 2})}}),
              ElementsAre(4, 5));
}

TEST(Onnx, BranchesMayDifferInShape) {
  const Tensor x = F32({2}, {1, 2});
  EXPECT_THAT(RunOn(ChoiceModel(), {{"c", Bool(true)}, {"x", x}}), ElementsAre(-1, -2));
  EXPECT_THAT(RunOn(ChoiceModel(), {{"c", Bool(false)}, {"x", x}}), ElementsAre(7));
}

// v doubles in each turn; its values are stacked.
std::string LoopModel() {
  OnnxGraph body, g;
  body.In("i", 7, {}).In("c", 9, {}).In("v");
  body.Add(Node("Add", {"v", "v"}, {"w"})).Add(Node("Identity", {"c"}, {"d"}));
  body.Out("d", 9, {}).Out("w").Out("w");
  g.In("m", 7, {})
      .In("x")
      .Add(Node("Loop", {"m", "", "x"}, {"last", "all"}, {GraphAttr("body", body.message())}));
  return g.Out("last").Out("all", 1, {-1, -1}).Model();
}

TEST(Onnx, LoopsCarryAndStack) {
  const std::vector<Feed> three = {{"m", I64({}, {3})}, {"x", F32({1}, {1})}};
  EXPECT_THAT(RunOn(LoopModel(), three, 0), ElementsAre(8));
  EXPECT_THAT(RunOn(LoopModel(), three, 1), ElementsAre(2, 4, 8));
  const Model model = ModelOf(LoopModel());
  const auto none = RunValuesOf(model, {{"m", I64({}, {0})}, {"x", F32({1}, {1})}});
  EXPECT_THAT(Floats(none[0].tensor()), ElementsAre(1));
  EXPECT_EQ(none[1].tensor().dim(0), 0);
}

// As in ONNX Runtime and the reference implementation, the body's condition counts although the
// node has none.
TEST(Onnx, ALoopOfLimitedTurnsEndsByItsConditionToo) {
  OnnxGraph body, g;
  body.In("i", 7, {}).In("c", 9, {}).In("v");
  body.Add(Node("Add", {"v", "v"}, {"w"}))
      .Add(Node("ReduceMax", {"w"}, {"most"}, {IntAttr("keepdims", 0)}));
  body.Add(Node("Less", {"most", "four"}, {"d"}));
  body.Out("d", 9, {}).Out("w");
  g.In("m", 7, {}).In("x").Weight(Tensor32("four", {}, {4}));
  g.Add(Node("Loop", {"m", "", "x"}, {"last"}, {GraphAttr("body", body.message())})).Out("last");
  const auto run = [&](int64_t turns) {
    return RunOn(g.Model(), {{"m", I64({}, {turns})}, {"x", F32({1}, {1})}});
  };
  EXPECT_THAT(run(0), ElementsAre(1));
  EXPECT_THAT(run(1), ElementsAre(2));
  EXPECT_THAT(run(10), ElementsAre(4));
}

// The body hands k on by way of an Identity, and changes v.
TEST(Onnx, WhatABodyHandsOnIsNotCopied) {
  OnnxGraph body, g;
  body.In("i", 7, {}).In("c", 9, {}).In("k").In("v");
  body.Add(Node("Identity", {"c"}, {"d"})).Add(Node("Identity", {"k"}, {"k1"}));
  body.Add(Node("Identity", {"k1"}, {"k2"})).Add(Node("Mul", {"v", "k1"}, {"w"}));
  body.Out("d", 9, {}).Out("k2").Out("w");
  g.In("m", 7, {}).In("x").In("f");
  g.Add(Node("Loop", {"m", "", "f", "x"}, {"factor", "last"}, {GraphAttr("body", body.message())}));
  g.Out("factor").Out("last");
  const Model model = ModelOf(g.Model());
  const ir::Program& program = model.program.ir();
  int copies = 0;
  for (const ir::Op& op : program.blocks[1].ops) copies += op.type() == "assign";
  EXPECT_EQ(copies, 1);
  for (const int64_t turns : {0, 3}) {
    const auto out =
        RunValuesOf(model, {{"m", I64({}, {turns})}, {"x", F32({1}, {5})}, {"f", F32({1}, {2})}});
    EXPECT_THAT(Floats(out[0].tensor()), ElementsAre(2));
    EXPECT_THAT(Floats(out[1].tensor()), ElementsAre(turns == 0 ? 5 : 40));
  }
}

// ONNX Runtime has the dimensions that the body declares, and no elements.
TEST(Onnx, OfNoTurnsTheStackHasTheDeclaredShape) {
  OnnxGraph body, g;
  body.In("i", 7, {}).In("c", 9, {}).In("a", 1, {-1});
  body.Add(Node("Identity", {"c"}, {"d"})).Add(Node("Relu", {"a"}, {"b"}));
  body.Add(Node("Tanh", {"a"}, {"w"}));
  body.Out("d", 9, {}).Out("b", 1, {-1}).Out("w", 1, {4});
  g.In("m", 7, {}).In("x", 1, {-1});
  g.Add(Node("Loop", {"m", "", "x"}, {"last", "all"}, {GraphAttr("body", body.message())}));
  g.Out("all", 1, {-1, -1});
  const auto none =
      RunValuesOf(ModelOf(g.Model()), {{"m", I64({}, {0})}, {"x", F32({4}, {1, 2, 3, 4})}});
  EXPECT_EQ(none[0].tensor().shape(), (Shape{0, 4}));
}

TEST(Onnx, ScansGoBothWays) {
  OnnxGraph body, g;
  body.In("s", 1, {}).In("e", 1, {});
  body.Add(Node("Add", {"s", "e"}, {"t"})).Add(Node("Identity", {"t"}, {"u"}));
  body.Out("t", 1, {}).Out("u", 1, {});
  g.In("x").Weight(Tensor32("zero", {}, {0}));
  g.Add(Node("Scan", {"zero", "x"}, {"sum", "y"},
             {GraphAttr("body", body.message()), IntAttr("num_scan_inputs", 1),
              IntsAttr("scan_input_directions", {1}), IntsAttr("scan_output_directions", {1})}));
  g.Out("y");
  EXPECT_THAT(RunOn(g, F32({3}, {1, 2, 3})), ElementsAre(6, 5, 3));
}

// y = x * alpha, called with another alpha each time; the second one is the default.
TEST(Onnx, FunctionsArePutInWithTheirAttributes) {
  const Message import = Message().Bytes(1, "own").Int(2, 1);
  Message function = Message().Bytes(1, "scaled").Bytes(4, "a").Bytes(5, "b").Bytes(10, "own");
  function.Add(11, FloatAttr("alpha", 3));
  function.Add(7, Node("Constant", {}, {"k"}, {ReferenceAttr("value_float", "alpha", 1)}));
  function.Add(7, Node("Mul", {"a", "k"}, {"b"}));
  function.Add(9, Message().Int(2, 17));
  const Message more = Message().Add(8, import).Add(25, function);
  OnnxGraph g;
  g.In("x").Add(Node("scaled", {"x"}, {"b"}, {FloatAttr("alpha", 2)}, "own"));
  g.Add(Node("scaled", {"b"}, {"y"}, {}, "own")).Out("y");
  EXPECT_THAT(RunOn(g.Model(17, more), {{"x", F32({1}, {1})}}), ElementsAre(6));
}

TEST(Onnx, TensorsAreReadInEveryStorage) {
  const auto typed = [](int type, uint32_t field, const std::vector<int64_t>& values, int64_t n) {
    Message t = TensorHead("w", type, {n});
    for (int64_t v : values) t.Int(field, v);
    return t;
  };
  const Message cases[] = {TensorHead("w", 1, {3}).Float(4, 1).Float(4, -2).Float(4, 7),
                           typed(7, 7, {1, -2, 7}, 3),
                           typed(6, 5, {1, -2, 7}, 3),
                           typed(3, 5, {1, -2, 7}, 3),
                           typed(10, 5, {15360, 49152, 18176}, 3),
                           typed(16, 5, {16256, 49152, 16608}, 3),
                           typed(22, 5, {0xe1, 0x07}, 3),
                           TensorHead("w", 22, {3}).Bytes(9, "\xe1\x07"),
                           TensorHead("w", 11, {3}).Bytes(9, RawOf(std::vector<double>{1, -2, 7}))};
  for (const Message& w : cases) {
    OnnxGraph g;
    g.In("x").Weight(w).Add(Node("Cast", {"w"}, {"f"}, {IntAttr("to", 1)}));
    g.Add(Node("Add", {"x", "f"}, {"y"})).Out("y");
    EXPECT_THAT(RunOn(g.Model(21), {{"x", F32({1}, {0})}}), ElementsAre(1, -2, 7)) << w.bytes();
  }
}

TEST(Onnx, SparseTensorsBecomeDense) {
  const Message sparse = Message()
                             .Add(1, Tensor32("w", {2}, {3, 4}))
                             .Add(2, Tensor64("", {2}, {0, 3}))
                             .Int(3, 2)
                             .Int(3, 2);
  OnnxGraph g;
  g.In("x").Raw(15, sparse).Add(Node("Add", {"x", "w"}, {"y"})).Out("y");
  EXPECT_THAT(RunOn(g, F32({1}, {0})), ElementsAre(3, 0, 0, 4));
}

TEST(Onnx, LargeWeightsStayInTheirFile) {
  const TempDir dir;
  constexpr int64_t kCount = 8192;
  OnnxGraph g;
  g.In("x", 1, {1}).Weight(Tensor32("w", {kCount}, std::vector<float>(kCount, 2)));
  g.Weight(Tensor64("axes", {1}, {0}));
  g.Add(Node("Mul", {"x", "w"}, {"p"})).Add(Node("ReduceSum", {"p", "axes"}, {"y"})).Out("y");
  WriteAll(dir / "m.onnx", g.Model());
  const auto model = LoadModel(dir / "m.onnx");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_LT(model->program.ir().source->bytes(), 1000u);
  const auto made = RunValuesOf(*model, {{"x", F32({1}, {1})}});
  EXPECT_THAT(Floats(made[0].tensor()), ElementsAre(2 * kCount));
  // A program that was let go is made again of what is remembered.
  const auto again = model->program.ir().source->Pack(model->program.ir())->Unpack();
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ((*again)->blocks[0].ops.size(), model->program.ir().blocks[0].ops.size());
}

TEST(Onnx, ValuesAreReadAndWrittenAsMessages) {
  OnnxGraph g;
  g.In("x", 4, {-1}).Add(Node("Identity", {"x"}, {"y"})).Out("y", 4, {-1});
  const Model model = ModelOf(g.Model());
  const std::string message =
      TensorHead("", 4, {2}).Bytes(9, RawOf(std::vector<uint16_t>{1, 65535})).bytes();
  const auto value = ReadOnnxInput(model.program, 0, message);
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_EQ(value->tensor().dtype(), DType::kI32);
  const auto made = RunValuesOf(model, {{"x", *value}});
  EXPECT_EQ(*WriteOnnxOutput(model.program, 0, made[0]), message);
  EXPECT_EQ((*OnnxInputs(model.program))[0].type, "tensor(uint16)");
  const std::string other = Tensor32("", {1}, {1}).bytes();
  EXPECT_THAT(ReadOnnxInput(model.program, 0, other).status().ToString(),
              HasSubstr("uint16 is expected"));
}

TEST(Onnx, ModelsAreWrittenInOtherFormats) {
  OnnxGraph g;
  g.In("x").Weight(Tensor32("w", {2}, {1, 2})).Add(Node("Add", {"x", "w"}, {"y"})).Out("y");
  const Model model = ModelOf(g.Model());
  const TempDir dir;
  const auto saved = SaveModel(model, dir.path());
  ASSERT_TRUE(saved.ok()) << saved.status().ToString();
  EXPECT_THAT(saved->program, ::testing::EndsWith(".pdmodel"));
  EXPECT_TRUE(saved->foreign.empty());
  const auto again = LoadModel(dir.path());
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_THAT(Floats(RunValuesOf(*again, {{"x", F32({2}, {10, 20})}})[0].tensor()),
              ElementsAre(11, 22));
  // Operators of heddle's own are told.
  OnnxGraph own;
  own.In("x").Add(Node("Hardmax", {"x"}, {"a"})).Add(Node("Hardmax", {"a"}, {"y"})).Out("y");
  const auto told = SaveModel(ModelOf(own.Model()), dir.path() + "/own", "paddle");
  ASSERT_TRUE(told.ok()) << told.status().ToString();
  EXPECT_THAT(told->foreign, ElementsAre("hardmax"));
  const auto refused = SaveModel(model, dir.path() + "/onnx", "onnx");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(refused.status().message(), HasSubstr("does not write onnx; it writes paddle, pir"));
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/onnx"));
}

}  // namespace
}  // namespace heddle::testing
