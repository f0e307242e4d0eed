#include "passes/functions/outline_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/ir_text.h"
#include "passes/verifier.h"
#include "tests/support/layered_program.h"

namespace heddle::testing {
namespace {

using Kind = LayeredProgram::Kind;

std::vector<std::string> Types(const ir::Program& program, size_t block = 0) {
  std::vector<std::string> types;
  for (const ir::Op& op : program.blocks[block].ops) types.push_back(op.type());
  return types;
}

// The block's operators and how they are connected, without names.
std::string Flow(const ir::Program& program) {
  std::map<ir::VarId, int> numbers;
  std::string text;
  for (const ir::Op& op : program.blocks[0].ops) {
    text += op.type();
    for (const auto* slots : {&op.inputs, &op.outputs})
      for (const auto& slot : *slots) {
        text += " (";
        for (ir::VarId v : slot) {
          const bool named = v != ir::kNoVar && program.vars[v].persistable;
          text += v == ir::kNoVar ? " -"
                  : named
                      ? " " + program.vars[v].name
                      : " " + std::to_string(numbers.try_emplace(v, numbers.size()).first->second);
        }
        text += " )";
      }
    text += "\n";
  }
  return text;
}

TEST(OutlineFunctions, MakesLayersCalls) {
  const LayeredProgram net({.kind = Kind::kMlp, .layers = 6});
  ir::Program program = net.program().ir();
  ASSERT_TRUE(passes::OutlineFunctions(program, {}));
  EXPECT_THAT(Types(program), ::testing::ElementsAre("scale", "call", "call", "call", "call",
                                                     "call", "call", "tanh"));
  ASSERT_EQ(program.blocks.size(), 2u);
  EXPECT_EQ(Types(program, 1).size(), 7u);
  for (const ir::Op& op : program.blocks[0].ops)
    if (op.type() == "call") {
      EXPECT_TRUE(passes::OutlinedCalls(program).Is(op));
      EXPECT_EQ(op.In("X").size(), 5u);  // the value of the layer before, and four parameters
      EXPECT_EQ(op.Out("Out").size(), 1u);
    }
}

TEST(OutlineFunctions, LayersThatDifferStay) {
  const LayeredProgram net({.kind = Kind::kMlp, .layers = 13, .odd = 6});
  ir::Program program = net.program().ir();
  ASSERT_TRUE(passes::OutlineFunctions(program, {}));
  // Six layers, one of its own, six layers. (They may share their operators with a neighbour.)
  const auto types = Types(program);
  EXPECT_GE(std::count(types.begin(), types.end(), "call"), 10);
  EXPECT_EQ(std::count(types.begin(), types.end(), "sigmoid"), 1);
}

TEST(OutlineFunctions, KeptValuesStay) {
  const LayeredProgram net({.kind = Kind::kMlp, .layers = 14});
  ir::Program program = net.program().ir();
  const ir::VarId inner = program.Find(0, "v50");
  ASSERT_NE(inner, ir::kNoVar);
  ASSERT_TRUE(passes::OutlineFunctions(program, {inner}));
  bool written = false;
  for (const ir::Op& op : program.blocks[0].ops)
    for (const auto& slot : op.outputs)
      for (ir::VarId v : slot) written = written || (v == inner && op.type() != "call");
  EXPECT_TRUE(written);
}

TEST(OutlineFunctions, NothingIsFoundInFewLayers) {
  const LayeredProgram net({.kind = Kind::kMlp, .layers = 2});
  ir::Program program = net.program().ir();
  const std::string before = ir::ToText(program);
  EXPECT_FALSE(passes::OutlineFunctions(program, {}));
  EXPECT_EQ(ir::ToText(program), before);
}

TEST(OutlineFunctions, ExpandingGivesTheSameOperators) {
  int found = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed)
    for (const Kind kind : {Kind::kTransformer, Kind::kMlp, Kind::kRandom, Kind::kTraining}) {
      const int layers = 3 + static_cast<int>(seed % 8);
      const LayeredProgram net(
          {.kind = kind, .layers = layers, .odd = seed % 3 == 0 ? layers - 2 : -1, .seed = seed});
      const auto before = net.program().impl();
      auto program = std::make_shared<ir::Program>(*before);
      if (!passes::OutlineFunctions(*program, {})) continue;
      ++found;
      ASSERT_LT(program->blocks[0].ops.size(), before->blocks[0].ops.size());
      ASSERT_TRUE(passes::ExpandFunctions(*program));
      const Status valid = passes::Verifier(before, {}).Check(*program);
      ASSERT_TRUE(valid.ok()) << valid.ToString() << ir::ToText(*program);
      ASSERT_EQ(Flow(*program), Flow(*before)) << "seed " << seed;
    }
  EXPECT_GE(found, 100);
}

}  // namespace
}  // namespace heddle::testing
