// What operators are for: op_role and op_role_var of a training step, in the program, in a file,
// and after all passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/programs/ir.h"
#include "gradient/minimize.h"
#include "heddle/operators.h"
#include "heddle/pass.h"
#include "tests/gradient/support.h"

namespace heddle::gradient {
namespace {

// Layers drawn from a seed, with a loss.
Model DrawnLayers(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return random() % n; };
  TestProgram p;
  Variable x = p.Feed("x", {3, 4});
  const int layers = 1 + static_cast<int>(below(4));
  for (int k = 0; k < layers; ++k) {
    const std::string at = std::to_string(k);
    std::vector<double> values(16);
    for (double& v : values) v = static_cast<double>(below(200)) / 100 - 1;
    const Variable w = p.Parameter("w" + at, Doubles({4, 4}, values));
    const Variable b = p.Parameter("b" + at, Doubles({4}, {0.1, 0.2, -0.3, 0.4}));
    x = p.Apply("matmul_v2", {{"X", {x}}, {"Y", {w}}}, {}, "Out", "product" + at);
    x = p.Apply("elementwise_add", {{"X", {x}}, {"Y", {b}}}, {}, "Out", "sum" + at);
    const char* const kinds[] = {"tanh", "relu", "sigmoid"};
    x = p.Apply(kinds[below(3)], {{"X", {x}}}, {}, "Out", "act" + at);
  }
  p.Apply("reduce_mean", {{"X", {x}}}, {{"reduce_all", true}}, "Out", "loss");
  return p.Finish();
}

std::map<int64_t, int> Counts(const Program& program) {
  std::map<int64_t, int> counts;
  for (const OpRoleCount& count : OpRolesOf(program)) counts[count.role] = count.operators;
  return counts;
}

TEST(OpRoles, ATrainingStepSaysWhatEachOperatorIsFor) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = DrawnLayers(seed);
    OptimizerRule rule;
    rule.kind = OptimizerKinds()[seed % OptimizerKinds().size()];
    if (seed % 3 == 0) rule.clip_global_norm = 1;
    if (seed % 4 == 0) rule.weight_decay = 0.1;
    const auto step = Minimize(model.program, {{"loss"}, std::nullopt, {}}, rule);
    ASSERT_TRUE(step.ok()) << step.status().ToString();
    std::map<std::string, std::string> pairs, updated;
    for (const ir::Op& op : step->program.ir().blocks[0].ops) {
      const int64_t role = op.role ? op.role->bits : 0;
      const auto writes = [&](auto&& is) {
        for (const auto& slot : op.outputs)
          for (const ir::VarId v : slot)
            if (v != ir::kNoVar && is(step->program.ir().vars[v])) return true;
        return false;
      };
      if (writes([](const ir::Var& v) { return v.persistable; })) {
        EXPECT_EQ(role, 2) << op.type();
      }
      if (writes([](const ir::Var& v) { return v.name == "loss"; })) {
        EXPECT_EQ(role, 256);
      }
      if (writes([](const ir::Var& v) { return v.name == "loss@GRAD"; })) {
        EXPECT_EQ(role & 1, 1) << op.type();
      }
      for (size_t k = 0; op.role && k + 1 < op.role->pairs.size(); k += 2)
        (role == 2 ? updated : pairs)[op.role->pairs[k]] = op.role->pairs[k + 1];
    }
    std::map<std::string, std::string> wanted;
    for (const GradientName& name : step->gradients) wanted[name.variable] = name.gradient;
    EXPECT_EQ(pairs, wanted);
    EXPECT_EQ(updated, wanted);
    EXPECT_EQ(Counts(step->program).count(257), 1u);
    // Written and read again.
    const auto bytes = step->program.Serialize("paddle");
    ASSERT_TRUE(bytes.ok());
    const auto again = Program::Parse(*bytes);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(Counts(*again), Counts(step->program));
    const auto pir = step->program.Serialize("pir");
    ASSERT_TRUE(pir.ok()) << pir.status().ToString();
    const auto from_pir = Program::Parse(*pir);
    ASSERT_TRUE(from_pir.ok()) << from_pir.status().ToString();
    EXPECT_GT(Counts(*from_pir)[2], 0);
    EXPECT_GT(Counts(*from_pir)[1], 0);
  }
}

TEST(OpRoles, PassesKeepThem) {
  int made = 0;  // operators of types that only passes make
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = DrawnLayers(seed);
    OptimizerRule rule;
    rule.kind = OptimizerKinds()[seed % OptimizerKinds().size()];
    auto step = Minimize(model.program, {{"loss"}, std::nullopt, {}}, rule);
    ASSERT_TRUE(step.ok()) << step.status().ToString();
    for (const auto& [name, tensor] : step->state) model.scope->Set(name, tensor);
    // The roles of all writers before, by variable.
    std::map<std::string, std::set<int64_t>> before;
    std::set<std::string> types;
    for (const ir::Op& op : step->program.ir().blocks[0].ops) {
      types.insert(op.type());
      for (const auto& slot : op.outputs)
        for (const ir::VarId v : slot)
          if (v != ir::kNoVar)
            before[step->program.ir().vars[v].name].insert(op.role ? op.role->bits : 0);
    }
    OptimizeOptions options;
    options.level = 2;
    options.fetches = {"loss"};
    const auto optimized = OptimizeModel({step->program, model.scope}, options);
    ASSERT_TRUE(optimized.ok()) << optimized.status().ToString();
    const ir::Program& program = optimized->model.program.ir();
    for (const ir::Op& op : program.blocks[0].ops) {
      made += types.contains(op.type()) ? 0 : 1;
      const int64_t role = op.role ? op.role->bits : 0;
      int64_t all = 0;
      for (const auto& slot : op.outputs)
        for (const ir::VarId v : slot) {
          if (v == ir::kNoVar || !before.contains(program.vars[v].name)) continue;
          all |= *before[program.vars[v].name].rbegin();
          const std::set<int64_t>& known = before[program.vars[v].name];
          EXPECT_TRUE(std::any_of(known.begin(), known.end(),
                                  [&](int64_t bits) { return (role & bits) == bits; }))
              << op.type() << " writes " << program.vars[v].name;
        }
      // Nothing that none of its results is for.
      if (all != 0) {
        EXPECT_EQ(role & ~all, 0) << op.type();
      }
    }
  }
  EXPECT_GT(made, 40);
}

TEST(OpRoles, HaveNamesInWords) {
  EXPECT_EQ(OpRoleText(0), "forward");
  EXPECT_EQ(OpRoleText(256), "forward, loss");
  EXPECT_EQ(OpRoleText(257), "backward, loss");
  EXPECT_EQ(OpRoleText(2), "optimizer");
  EXPECT_EQ(OpRoleText(18), "optimizer, learning rate");
  EXPECT_EQ(OpRoleText(4), "role 4");
}

}  // namespace
}  // namespace heddle::gradient
