#include "passes/version_view.h"

#include <algorithm>

#include "core/interrupts.h"
#include "passes/pass.h"

namespace heddle::passes {

using ir::kNoVar;
using ir::VarId;

const BlockUses VersionView::kNothingListed;

VersionView::VersionView(const ir::Program& program, const PassContext& context)
    : program_(program),
      fetched_(context.fetched),
      uses_(context.uses),
      walks_(context.uses.shared_blocks),
      writes_(program.vars.size()),
      reads_(program.vars.size()),
      kept_in_(program.vars.size(), 0) {
  // The shared uses require that blocks which run inside a block have higher numbers, so that they
  // are changed after it.
  for (size_t b = 0; b < uses_.runner.size(); ++b)
    walks_ = walks_ || uses_.runner[b].block >= static_cast<int>(b);
}

VersionView::VersionView(const ir::Program& program, const std::set<VarId>& fetched)
    : program_(program),
      fetched_(fetched),
      own_(FindBlockUses(program, false)),
      uses_(own_),
      walks_(true),
      writes_(program.vars.size()),
      reads_(program.vars.size()),
      kept_in_(program.vars.size(), 0) {}

void VersionView::Enter(int block) {
  const size_t vars = program_.vars.size();
  writes_.Clear(vars);
  reads_.Clear(vars);
  kept_in_.resize(vars, 0);
  ++entered_;
  block_ = block;
  const auto& ops = program_.blocks[block].ops;
  nested_.clear();  // assign() would write as many as the largest block has had
  nested_.resize(ops.size(), false);
  for (size_t i = 0; i < ops.size(); ++i) {
    LookForInterrupt();
    nested_[i] = ops[i].def->has(kControlFlow);
    const int at = static_cast<int>(i);
    for (const auto& slot : ops[i].inputs)
      for (VarId v : slot)
        if (v != kNoVar) Read(v, at);
    for (const auto& slot : ops[i].outputs)
      for (VarId v : slot)
        if (v != kNoVar) Write(v, at);
    ForEachNested(ops[i], [&](VarId v, bool written) { written ? Write(v, at) : Read(v, at); });
  }
  writes_.Close();
  reads_.Close();
}

void VersionView::Write(VarId v, int at) {
  writes_.Add(v, at);
  // An operator that runs blocks may leave the old value.
  if (nested_[static_cast<size_t>(at)]) kept_in_[v] = entered_;
}

int VersionView::VersionAt(VarId v, int at) const {
  const auto w = writes_[v];
  return static_cast<int>(std::lower_bound(w.begin(), w.end(), at) - w.begin());
}

int VersionView::WriterBefore(VarId v, int at) const {
  const int n = VersionAt(v, at);
  return n == 0 ? -1 : writes_[v][static_cast<size_t>(n - 1)];
}

bool VersionView::Private(VarId v) const {
  const ir::Var& var = program_.vars[v];
  if (v >= uses_.owner.size() || uses_.owner[v] != block_ || var.kind != ir::VarKind::kTensor ||
      var.persistable || fetched_.count(v) > 0 || writes_[v].empty())
    return false;
  if (kept_in_[v] == entered_) return false;
  return reads_[v].empty() || reads_[v][0] > writes_[v][0];
}

std::optional<std::vector<int>> VersionView::Readers(VarId v, int at) const {
  if (!Private(v)) return std::nullopt;
  const auto w = writes_[v];
  const auto next = std::upper_bound(w.begin(), w.end(), at);
  // The next writer may also read it.
  const int end = next == w.end() ? std::numeric_limits<int>::max() : *next;
  std::vector<int> found;
  const auto r = reads_[v];
  for (auto it = std::upper_bound(r.begin(), r.end(), at); it != r.end() && *it <= end; ++it) {
    if (nested_[static_cast<size_t>(*it)] || *it == end) return std::nullopt;
    found.push_back(*it);
  }
  return found;
}

bool VersionView::HasOneReader(VarId v, int at) const {
  const auto r = reads_[v];
  const auto first = std::upper_bound(r.begin(), r.end(), at);
  if (first == r.end()) return false;
  const auto w = writes_[v];
  const auto next = std::upper_bound(w.begin(), w.end(), at);
  const int end = next == w.end() ? std::numeric_limits<int>::max() : *next;
  const bool another = first + 1 != r.end() && first[1] <= end;
  return *first < end && !another && !nested_[static_cast<size_t>(*first)] && Private(v);
}

void ReplaceReads(ir::Block* block, const std::vector<int>& positions, VarId from, VarId to) {
  for (int at : positions)
    for (auto& slot : block->ops[static_cast<size_t>(at)].inputs)
      std::replace(slot.begin(), slot.end(), from, to);
}

void EraseOps(ir::Block* block, const std::vector<bool>& gone) {
  size_t kept = 0;
  for (size_t i = 0; i < block->ops.size(); ++i) {
    LookForInterrupt();
    if (gone[i]) continue;
    if (kept != i) block->ops[kept] = std::move(block->ops[i]);
    ++kept;
  }
  block->ops.erase(block->ops.begin() + static_cast<std::ptrdiff_t>(kept), block->ops.end());
}

bool IsPure(const ir::Op& op) {
  constexpr unsigned kImpure = kRandom | kSideEffect | kCommunication | kReader | kControlFlow;
  return (op.def->traits() & kImpure) == 0 && !op.has_control_edges();
}

bool UsesLoD(const ir::Program& program) {
  for (const ir::Var& v : program.vars)
    if (v.lod_level > 0) return true;
  for (const ir::Block& b : program.blocks)
    for (const ir::Op& op : b.ops)
      if (op.type().starts_with("sequence_") || op.type().starts_with("lod_")) return true;
  return false;
}

bool UsesLoD(const ir::Program& program, PassContext& context) {
  if (!context.lod) context.lod = UsesLoD(program);
  return *context.lod;
}

namespace {
VarId OnlyVar(const std::vector<std::vector<VarId>>& slots, int s) {
  return s >= 0 && slots[static_cast<size_t>(s)].size() == 1 ? slots[static_cast<size_t>(s)][0]
                                                             : kNoVar;
}
}  // namespace

VarId OnlyIn(const ir::Op& op, std::string_view slot) {
  return OnlyVar(op.inputs, op.def->FindInput(slot));
}
VarId OnlyOut(const ir::Op& op, std::string_view slot) {
  return OnlyVar(op.outputs, op.def->FindOutput(slot));
}

bool HasOnlyInput(const ir::Op& op, std::string_view slot) {
  if (!op.var_attrs.empty()) return false;
  for (size_t s = 0; s < op.inputs.size(); ++s)
    for (VarId v : op.inputs[s])
      if (v != kNoVar && op.def->inputs()[s].name != slot) return false;
  return true;
}

}  // namespace heddle::passes
