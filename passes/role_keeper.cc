#include "passes/role_keeper.h"

namespace heddle::passes {
namespace {

template <typename Fn>
void ForEach(const std::vector<std::vector<ir::VarId>>& slots, Fn&& fn) {
  for (const auto& slot : slots)
    for (const ir::VarId v : slot)
      if (v != ir::kNoVar) fn(v);
}

using RolePtr = std::shared_ptr<const ir::OpRole>;

// What an operator is for that computes the results of two.
RolePtr Both(const RolePtr& a, const RolePtr& b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  ir::OpRole both = *a;
  both.bits |= b->bits;
  for (size_t k = 0; k + 1 < b->pairs.size(); k += 2) {
    bool has = false;
    for (size_t j = 0; j + 1 < both.pairs.size(); j += 2)
      has = has || (both.pairs[j] == b->pairs[k] && both.pairs[j + 1] == b->pairs[k + 1]);
    if (!has) both.pairs.insert(both.pairs.end(), {b->pairs[k], b->pairs[k + 1]});
  }
  return std::make_shared<const ir::OpRole>(std::move(both));
}

}  // namespace

void RoleKeeper::Before(const ir::Program& program) {
  writers_.clear();
  bool any = false;
  for (const ir::Block& block : program.blocks)
    for (const ir::Op& op : block.ops) any = any || op.role != nullptr;
  if (!any) return;
  writers_.resize(program.vars.size());
  for (const ir::Block& block : program.blocks)
    for (const ir::Op& op : block.ops)
      ForEach(op.outputs, [&](ir::VarId v) {
        Of& of = writers_[v];
        of.several = of.several || (of.known && of.role != op.role);
        of.known = true;
        of.role = op.role;
      });
}

void RoleKeeper::After(ir::Program* program) const {
  if (writers_.empty()) return;
  std::vector<Of> readers(program->vars.size());
  for (size_t b = program->blocks.size(); b-- > 0;) {
    auto& ops = program->blocks[b].ops;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      if (op->role == nullptr) {
        Of found;
        ForEach(op->outputs, [&](ir::VarId v) {
          if (v >= writers_.size() || !writers_[v].known || writers_[v].several) return;
          found.role = found.known ? Both(found.role, writers_[v].role) : writers_[v].role;
          found.known = true;
        });
        ForEach(op->outputs, [&](ir::VarId v) {
          if (!found.known) found = readers[v];
        });
        op->role = found.role;
      }
      ForEach(op->inputs, [&](ir::VarId v) { readers[v] = {true, false, op->role}; });
    }
  }
}

}  // namespace heddle::passes
