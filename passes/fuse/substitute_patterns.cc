#include "passes/fuse/substitute_patterns.h"

#include <algorithm>

#include "core/op_registry.h"
#include "passes/fuse/replace_chains.h"
#include "passes/graph_view.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;
using Patterns = std::vector<std::pair<std::string, FusePattern>>;

class PatternMatcher {
 public:
  PatternMatcher(const ir::Program& program, const PassContext& context, const GraphView& view,
                 int at, const Patterns& patterns)
      : p_(program),
        context_(context),
        view_(view),
        ops_(program.blocks[0].ops),
        at_(at),
        patterns_(patterns) {}

  bool Grow(const std::vector<bool>& gone) {
    const auto found = std::find_if(patterns_.begin(), patterns_.end(), [&](const auto& named) {
      return Matches(named.first, named.second, gone);
    });
    return found != patterns_.end();
  }
  ir::Op Make() const { return fused_; }

  std::vector<int> absorbed;

 private:
  const ir::Op& Op(int at) const { return ops_[static_cast<size_t>(at)]; }

  bool Matches(const std::string& type, const FusePattern& pattern, const std::vector<bool>& gone) {
    const OpDef* def = FindOp(type);
    if (def == nullptr || pattern.ops.size() < 2) return false;
    std::vector<int> chain;
    for (int at = at_; chain.size() < pattern.ops.size();) {
      const ir::Op& op = Op(at);
      if (gone[static_cast<size_t>(at)] || op.type() != pattern.ops[chain.size()] ||
          !op.var_attrs.empty() || !OnlyFirstOutput(op))
        return false;
      chain.push_back(at);
      if (chain.size() == pattern.ops.size()) break;
      at = view_.OnlyReader(op.outputs[0][0], context_);
      if (at < 0) return false;
    }
    fused_ = ir::MakeOp(*def);
    if (!TakeOperands(pattern, chain)) return false;
    FuseMatch match{p_, {}};
    for (int at : chain) match.ops.push_back(&Op(at));
    if (!pattern.fits(match, &fused_) || !HasKernel()) return false;
    const ir::Op& last = Op(chain.back());
    fused_.index = last.index;
    fused_.call_stack = last.call_stack;
    fused_.outputs[static_cast<size_t>(def->FindOutput(pattern.output))] = {last.outputs[0][0]};
    absorbed.assign(chain.begin() + 1, chain.end());
    return true;
  }

  // Nobody needs more of the operator than its first output, one variable.
  bool OnlyFirstOutput(const ir::Op& op) const {
    if (op.outputs.empty() || op.outputs[0].size() != 1 || op.outputs[0][0] == kNoVar) return false;
    for (size_t s = 1; s < op.outputs.size(); ++s)
      for (VarId v : op.outputs[s])
        if (v != kNoVar &&
            (!view_.SingleWriter(v) || !view_.readers(v).empty() || context_.fetched.count(v) > 0))
          return false;
    return true;
  }

  // Every input of the chain goes to its slot; false when there is one without, or one that changes
  // before the chain's last operator reads it.
  bool TakeOperands(const FusePattern& pattern, const std::vector<int>& chain) {
    for (size_t k = 0; k < chain.size(); ++k) {
      const ir::Op& op = Op(chain[k]);
      const VarId link = k == 0 ? kNoVar : Op(chain[k - 1]).outputs[0][0];
      int links = 0;
      for (size_t s = 0; s < op.inputs.size(); ++s) {
        if (op.inputs[s].empty()) continue;
        if (k > 0 && op.inputs[s] == std::vector<VarId>{link}) {
          ++links;
          continue;
        }
        const auto to = std::find_if(
            pattern.operands.begin(), pattern.operands.end(), [&](const FusePattern::Operand& o) {
              return o.op == static_cast<int>(k) && o.from == op.def->inputs()[s].name;
            });
        if (to == pattern.operands.end()) return false;
        for (VarId v : op.inputs[s])
          if (v == link || v == kNoVar || !view_.WrittenBefore(v, chain[k])) return false;
        const int slot = fused_.def->FindInput(to->slot);
        if (slot < 0) return false;
        fused_.inputs[static_cast<size_t>(slot)] = op.inputs[s];
      }
      if (k > 0 && links != 1) return false;
    }
    return true;
  }

  bool HasKernel() const {
    for (const auto& slot : fused_.inputs)
      for (VarId v : slot) return fused_.def->kernel(p_.vars[v].dtype) != nullptr;
    return fused_.def->has_any_kernel();
  }

  const ir::Program& p_;
  const PassContext& context_;
  const GraphView& view_;
  const std::vector<ir::Op>& ops_;
  const int at_;
  const Patterns& patterns_;
  ir::Op fused_;
};

}  // namespace

bool SubstitutePatterns(ir::Program& program, PassContext& context, const Patterns& patterns) {
  return ReplaceChains<PatternMatcher>(program, context, patterns);
}

namespace {

Result<bool> Run(ir::Program& program, PassContext& context) {
  return SubstitutePatterns(program, context, FusePatterns());
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(substitute_patterns) {
  pass.doc =
      "chains of operators that one operator stands for, as that operator's file declares "
      "(core/fuse_pattern.h)";
  pass.before = "s = elementwise_add(x, y); z = layer_norm(s, scale, bias)";
  pass.after = "z = fused_layer_norm(x, y, scale, bias)";
  pass.refuses =
      "results in the middle that are read elsewhere or fetched; operands that are written again; "
      "inputs "
      "that the pattern does not name; dtypes for which the fused operator has no kernel; what the "
      "pattern's own condition refuses";
  pass.level = 2;
  pass.phase = 13;
  pass.tolerance = 1e-5;
  for (const auto& [type, pattern] : FusePatterns())
    if (std::find(pass.own_ops.begin(), pass.own_ops.end(), type) == pass.own_ops.end())
      pass.own_ops.push_back(type);
  pass.run = Run;
}
