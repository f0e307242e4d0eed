#include "passes/cleanup/turn_values.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>

#include "core/interrupts.h"
#include "core/programs/sub_block_slots.h"
#include "passes/cleanup/copies.h"
#include "passes/nested_blocks.h"

namespace heddle::passes {

using ir::kNoVar;
using ir::VarId;

namespace {

// The condition of an operator that runs its only block once if a bool is true, and does nothing
// else.
std::optional<VarId> ConditionOf(const ir::Op& op) {
  if (ir::RunsAgain(*op.def) || op.SubBlocks().size() != 1 || op.has_control_edges())
    return std::nullopt;
  const int slot = ir::ConditionSlot(*op.def);
  if (slot < 0 || op.inputs[static_cast<size_t>(slot)].size() != 1) return std::nullopt;
  const int scalar = op.def->FindAttr("is_scalar_condition");
  if (scalar >= 0 && !std::get<bool>(op.attrs[static_cast<size_t>(scalar)])) return std::nullopt;
  const VarId condition = op.inputs[static_cast<size_t>(slot)][0];
  return condition == kNoVar ? std::nullopt : std::optional(condition);
}

}  // namespace

TurnValues::TurnValues(ir::Program& program)
    : p_(program), now_(program.vars.size()), writes_(program.vars.size()) {
  std::iota(now_.begin(), now_.end(), Number{0});
}

void TurnValues::Run(int body, OnRead on_read) {
  on_read_ = std::move(on_read);
  for (VarId v : written_) {
    now_[v] = v;
    writes_[v] = {};
  }
  written_.clear();
  negated_.clear();
  cast_.clear();
  chosen_.clear();
  next_ = static_cast<Number>(now_.size());
  Walk(body);
}

void TurnValues::Walk(int block) {
  auto& ops = p_.blocks[static_cast<size_t>(block)].ops;
  for (size_t at = 0; at < ops.size(); ++at) {
    LookForInterrupt();
    ir::Op& op = ops[at];
    if (on_read_) Read(op);
    if (op.def->has(kControlFlow)) {
      if (ConditionOf(op))
        WalkBranch(op, op.SubBlocks()[0]);
      else
        WriteNested(op);
      continue;
    }
    const Place place{block, static_cast<int>(at)};
    if (const VarId x = CopiedBy(p_, op); x != kNoVar) {
      Write(OnlyOut(op, "Out"), now_[x], &place);
    } else if (ir::SelectsOperand(*op.def) && IsPure(op) && OnlyOut(op, "Out") != kNoVar) {
      Number value = NumberOfSelection(op);
      if (value == next_) value = New();
      Write(OnlyOut(op, "Out"), value, &place);
    } else {
      // Must precede the write, since the operator may write its own operand.
      const VarId x = OnlyIn(op, "X");
      const Number from = x == kNoVar ? 0 : now_[x];
      WriteAll(op);
      const VarId out = OnlyOut(op, "Out");
      if (x == kNoVar || out == kNoVar) continue;
      if (op.type() == "logical_not") negated_.emplace(now_[out], from);
      if (op.type() == "cast" && op.Attr<int64_t>("in_dtype") == DTypeToProto(DType::kBool))
        cast_.emplace(now_[out], from);
    }
  }
}

// Gives a variable that the branch changes a new number: its value is the old one or the branch's.
// If the branch for the opposite condition gave it the same value, it has that value's number.
void TurnValues::WalkBranch(const ir::Op& op, int body) {
  const Number condition = now_[*ConditionOf(op)];
  std::vector<std::pair<VarId, Number>> before;
  for (int nested : NestedBlocks(p_, op))
    for (const ir::Op& inner : p_.blocks[static_cast<size_t>(nested)].ops)
      for (const auto& slot : inner.outputs)
        for (VarId v : slot)
          if (v != kNoVar) before.emplace_back(v, now_[v]);
  Walk(body);
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  for (const auto& [v, old] : before) {
    const Number value = now_[v];
    if (value == old) continue;
    const auto other = chosen_.find(old);
    if (other != chosen_.end() && other->second.value == value &&
        AreOpposite(other->second.condition, condition))
      continue;
    now_[v] = New();
    chosen_[now_[v]] = {condition, value};
  }
}

void TurnValues::Read(ir::Op& op) {
  if (op.def->has(kControlFlow)) return ReadNested(op);
  for (auto& slot : op.inputs)
    for (VarId& v : slot) {
      if (v == kNoVar) continue;
      const VarId read = v;
      const bool rewrites =
          std::any_of(op.outputs.begin(), op.outputs.end(), [read](const auto& outs) {
            return std::find(outs.begin(), outs.end(), read) != outs.end();
          });
      if (!rewrites) on_read_(v, now_[v]);
    }
}

// Reports the reads of inner blocks. Those of a branch are reported while it is walked through. In
// each turn of a loop, its blocks read the present values of the variables that they do not write.
void TurnValues::ReadNested(ir::Op& op) {
  if (ConditionOf(op)) return;
  const std::vector<int> blocks = NestedBlocks(p_, op);
  std::unordered_set<VarId> inside;
  for (int nested : blocks)
    for (const ir::Op& inner : p_.blocks[static_cast<size_t>(nested)].ops)
      for (const auto& slot : inner.outputs)
        for (VarId v : slot)
          if (v != kNoVar) inside.insert(v);
  for (int nested : blocks)
    for (ir::Op& inner : p_.blocks[static_cast<size_t>(nested)].ops) {
      LookForInterrupt();
      if (inner.def->has(kControlFlow)) continue;
      for (auto& slot : inner.inputs)
        for (VarId& v : slot)
          if (v != kNoVar && !inside.contains(v)) on_read_(v, now_[v]);
    }
}

void TurnValues::Write(VarId v, Number value, const Place* copy) {
  Writes& writes = writes_[v];
  if (writes.at.empty() && writes.passes_on) written_.push_back(v);
  if (copy != nullptr && value == v)
    writes.at.push_back(*copy);
  else
    writes.passes_on = false;
  now_[v] = value;
}

void TurnValues::WriteAll(const ir::Op& op) {
  for (const auto& slot : op.outputs)
    for (VarId v : slot)
      if (v != kNoVar) Write(v, New(), nullptr);
}

void TurnValues::WriteNested(const ir::Op& op) {
  WriteAll(op);
  for (int nested : NestedBlocks(p_, op))
    for (const ir::Op& inner : p_.blocks[static_cast<size_t>(nested)].ops)
      if (!inner.def->has(kControlFlow)) WriteAll(inner);
}

// The number of the selected operand's value if it is the same whichever is selected; else next_.
// An operand that a branch wrote has the branch's value if the selection depends on the same
// condition as the branch.
TurnValues::Number TurnValues::NumberOfSelection(const ir::Op& op) const {
  const auto& xs = op.In("X");
  const VarId mask = OnlyIn(op, "Mask");
  const auto condition = mask == kNoVar ? cast_.end() : cast_.find(now_[mask]);
  std::optional<Number> common;
  for (size_t k = 0; k < xs.size(); ++k) {
    if (xs[k] == kNoVar) return next_;
    Number value = now_[xs[k]];
    if (const auto of = chosen_.find(value); of != chosen_.end() && condition != cast_.end()) {
      const Number needed = of->second.condition, known = condition->second;
      if (k == 1 ? needed == known : k == 0 && AreOpposite(needed, known)) value = of->second.value;
    }
    if (common && *common != value) return next_;
    common = value;
  }
  return common.value_or(next_);
}

bool TurnValues::AreOpposite(Number a, Number b) const {
  const auto is_not = [this](Number x, Number y) {
    const auto found = negated_.find(x);
    return found != negated_.end() && found->second == y;
  };
  return is_not(a, b) || is_not(b, a);
}

}  // namespace heddle::passes
