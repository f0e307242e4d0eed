#include "passes/functions/shorten.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "passes/functions/outline_functions.h"
#include "passes/ir_text.h"
#include "passes/verifier.h"
#include "tests/support/layered_program.h"

namespace heddle::testing {
namespace {

using Kind = LayeredProgram::Kind;
using Options = LayeredProgram::Options;

// The operators of block 0 with their attributes and parameters, and how values flow between them.
std::vector<std::string> Ops(const ir::Program& program) {
  std::vector<std::string> ops;
  std::map<ir::VarId, size_t> numbers;
  for (const ir::Op& op : program.blocks[0].ops) {
    ops.push_back(op.type());
    for (const AttrValue& a : op.attrs) ops.back() += " " + ir::AttrText(a);
    for (const auto* slots : {&op.inputs, &op.outputs})
      for (const auto& slot : *slots) {
        ops.back() += ",";
        for (ir::VarId v : slot)
          ops.back() += " " + (v == ir::kNoVar ? "-"
                               : program.vars[v].persistable
                                   ? program.vars[v].name
                                   : StrCat(numbers.try_emplace(v, numbers.size()).first->second));
      }
  }
  return ops;
}

struct Both {
  bool shortened = false, lengthened = false;
  std::vector<std::string> all, few;  // operators that the passes made of all layers, and of few
};

Both Compare(const LayeredProgram& net, int level) {
  Both both;
  const auto scope = net.NewScope();
  const auto program = net.program().impl();
  const OptimizeOptions options{level, {}, {}};
  auto all = passes::Optimize(program, scope, options);
  EXPECT_TRUE(all.ok());
  both.all = Ops(*all->program);
  const auto shortened = passes::Shorten(*program, {});
  both.shortened = shortened.has_value();
  if (!shortened) return both;
  EXPECT_LT(shortened->program->blocks[0].ops.size(), program->blocks[0].ops.size());
  auto few = passes::Optimize(shortened->program, scope, options);
  EXPECT_TRUE(few.ok());
  both.lengthened = passes::Lengthen(*shortened, *program, *scope, {}, &*few);
  if (!both.lengthened) return both;
  auto expanded = std::make_shared<ir::Program>(*few->program);
  EXPECT_TRUE(passes::ExpandFunctions(*expanded));
  const Status valid = passes::Verifier(expanded, {}).Check(*expanded);
  EXPECT_TRUE(valid.ok()) << valid.ToString();
  both.few = Ops(*expanded);
  return both;
}

TEST(Shorten, PassesSeeFewLayers) {
  for (const Kind kind : {Kind::kTransformer, Kind::kMlp})
    for (const int level : {0, 1, 2})
      for (const int layers : {6, 12, 25}) {
        const LayeredProgram net({.kind = kind, .layers = layers, .width = 384});
        const Both both = Compare(net, level);
        EXPECT_TRUE(both.shortened);
        EXPECT_TRUE(both.lengthened) << static_cast<int>(kind) << " level " << level;
        EXPECT_EQ(both.few, both.all) << static_cast<int>(kind) << " level " << level;
      }
}

// Whatever passes do to the layers that are left: the program is that of all layers, or there is
// none.
TEST(Shorten, RandomLayers) {
  int lengthened = 0;
  for (uint32_t seed = 1; seed <= 120; ++seed) {
    const LayeredProgram net(
        {.kind = Kind::kRandom, .layers = 6 + static_cast<int>(seed % 5), .seed = seed});
    const Both both = Compare(net, static_cast<int>(seed % 3));
    if (!both.lengthened) continue;
    ++lengthened;
    EXPECT_EQ(both.few, both.all) << "seed " << seed;
  }
  EXPECT_GE(lengthened, 40);
}

TEST(Shorten, LayersThatDifferAreNotLeftOut) {
  for (const int odd : {0, 1, 5, 10, 11}) {
    const LayeredProgram net({.kind = Kind::kMlp, .layers = 12, .width = 384, .odd = odd});
    const Both both = Compare(net, 2);
    if (both.lengthened) {
      EXPECT_EQ(both.few, both.all) << odd;
    }
  }
}

// Folding makes values of parameters part of the program; those of the layers differ.
TEST(Shorten, FoldedParametersThatDiffer) {
  const LayeredProgram net({.kind = Kind::kConv, .layers = 8, .rows = 8});
  EXPECT_FALSE(Compare(net, 2).lengthened);
}

TEST(Shorten, TrainingIsLeftWhole) {
  for (uint32_t seed = 1; seed <= 5; ++seed)
    EXPECT_FALSE(
        Compare(LayeredProgram({.kind = Kind::kTraining, .layers = 8, .seed = seed}), 2).shortened);
}

}  // namespace
}  // namespace heddle::testing
