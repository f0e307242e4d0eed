#include "passes/functions/stretches.h"

#include <algorithm>
#include <functional>
#include <string>

#include "core/interrupts.h"
#include "passes/ir_text.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

// Signs are hashes: compares what they stand for.
bool SameForm(const ir::Op& a, const ir::Op& b) {
  const auto sizes = [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& s, const auto& t) {
      return std::equal(s.begin(), s.end(), t.begin(), t.end(),
                        [](VarId v, VarId w) { return (v == kNoVar) == (w == kNoVar); });
    });
  };
  return a.def == b.def && a.attrs == b.attrs && a.var_attrs == b.var_attrs && SamePlace(a, b) &&
         sizes(a.inputs, b.inputs) && sizes(a.outputs, b.outputs);
}

}  // namespace

Stretches::Stretches(const ir::Program& program, const std::set<VarId>& kept)
    : p_(program), uses_(program.vars.size()) {
  for (const auto* ports : {&p_.feeds, &p_.fetches})
    for (const ir::Port& f : *ports)
      if (f.var != kNoVar) uses_[f.var].held = true;
  for (VarId v : kept)
    if (v != kNoVar) uses_[v].held = true;
  for (const ir::Block& block : p_.blocks) {
    for (size_t i = 0; i < block.ops.size(); ++i) {
      LookForInterrupt();
      const ir::Op& op = block.ops[i];
      const bool outside = block.id != 0 || op.def->has(kControlFlow);
      ForOperands(op.inputs, [&](VarId v) {
        if (v == kNoVar) return;
        uses_[v].held = uses_[v].held || outside;
        if (block.id == 0) uses_[v].last_reader = std::max(uses_[v].last_reader, i + 1);
      });
      ForOperands(op.outputs, [&](VarId v) {
        if (v == kNoVar) return;
        uses_[v].held = uses_[v].held || outside;
        uses_[v].writer = block.id == 0 ? i : kNone;
        ++uses_[v].writers;
      });
    }
  }
}

bool Stretches::IsPlain(VarId v) const {
  return p_.vars[v].kind == ir::VarKind::kTensor && p_.vars[v].lod_level == 0;
}

bool Stretches::MayMove(const ir::Op& op) const {
  if ((op.def->traits() & (kControlFlow | kSideEffect | kCommunication | kReader)) != 0 ||
      op.has_control_edges())
    return false;
  bool may = true;
  ForOperands(op.inputs, [&](VarId v) { may = may && (v == kNoVar || IsPlain(v)); });
  ForOperands(op.outputs, [&](VarId v) {
    may = may && (v == kNoVar || (IsPlain(v) && !p_.vars[v].persistable && !uses_[v].held &&
                                  p_.vars[v].block == 0 && uses_[v].writers == 1));
  });
  return may;
}

// Equal for operators that differ in their variables alone.
uint64_t Stretches::SignOf(const ir::Op& op) const {
  uint64_t h = ir::AttrFingerprint(op);
  const auto mix = [&h](uint64_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15ull + (h >> 29); };
  mix(static_cast<uint64_t>(PriorityOf(op)));
  mix(std::hash<std::string>()(op.device));
  mix(op.role ? static_cast<uint64_t>(op.role->bits) : 0);
  for (const auto* slots : {&op.inputs, &op.outputs}) {
    for (const auto& slot : *slots) {
      mix(slot.size());
      for (VarId v : slot) {
        if (v == kNoVar) {
          mix(1);
          continue;
        }
        const ir::Var& var = p_.vars[v];
        mix(static_cast<uint64_t>(var.dtype) * 4 + (var.persistable ? 2 : 3));
        mix(static_cast<uint64_t>(var.shape.rank()));
        if (var.shape.known_rank())
          for (int64_t d : var.shape) mix(static_cast<uint64_t>(d));
      }
    }
  }
  return h == 0 ? 1 : h;
}

Stretches::Source Stretches::SourceOf(VarId v, size_t begin, size_t end) const {
  const Use& use = uses_[v];
  if (use.writers != 1 || use.writer == kNone || use.writer < begin || use.writer >= end) return {};
  const ir::Op& op = p_.blocks[0].ops[use.writer];
  for (size_t s = 0; s < op.outputs.size(); ++s)
    for (size_t k = 0; k < op.outputs[s].size(); ++k)
      if (op.outputs[s][k] == v) return {use.writer - begin, s, k};
  return {};
}

// Whether both stretches compute the same of their operands.
bool Stretches::SameFlow(size_t a, size_t b, size_t period) const {
  const auto& ops = p_.blocks[0].ops;
  for (size_t j = 0; j < period; ++j) {
    LookForInterrupt();
    const ir::Op &x = ops[a + j], &y = ops[b + j];
    if (!SameForm(x, y)) return false;
    for (size_t s = 0; s < x.inputs.size(); ++s)
      for (size_t k = 0; k < x.inputs[s].size(); ++k) {
        const VarId v = x.inputs[s][k], w = y.inputs[s][k];
        if (v != kNoVar && !(SourceOf(v, a, a + period) == SourceOf(w, b, b + period)))
          return false;
      }
  }
  return true;
}

// The number of values that are made before a position and read behind it, by position from
// `begin` on.
std::vector<size_t> Stretches::Crossing(size_t begin, size_t end) const {
  std::vector<size_t> crossing(end - begin + 1, 0);
  std::vector<std::ptrdiff_t> change(end - begin + 2, 0);
  for (size_t i = begin; i < end; ++i)
    ForOperands(p_.blocks[0].ops[i].outputs, [&](VarId v) {
      if (v == kNoVar || uses_[v].last_reader <= i + 1) return;
      ++change[i + 1 - begin];
      --change[std::min(uses_[v].last_reader, end + 1) - begin];
    });
  std::ptrdiff_t now = 0;
  for (size_t k = 0; k < crossing.size(); ++k) crossing[k] = static_cast<size_t>(now += change[k]);
  return crossing;
}

// The longest row of stretches in a repeat. The first one may begin with any of the operators that
// are too many for whole periods: where the fewest values cross.
Stretches::Row Stretches::RowIn(const Repeat& repeat) const {
  const size_t end = repeat.begin + repeat.length, period = repeat.period;
  const std::vector<size_t> crossing = Crossing(repeat.begin, end);
  size_t begin = repeat.begin;
  for (size_t k = 1; k <= repeat.length % period; ++k)
    if (crossing[k + period] < crossing[begin - repeat.begin + period]) begin = repeat.begin + k;
  Row best{begin, period, 0};
  for (size_t at = begin; at + period <= end;) {
    size_t count = 1;
    while (at + (count + 1) * period <= end && SameFlow(at, at + count * period, period)) ++count;
    if (count > best.count) best = {at, period, count};
    at += count * period;
  }
  return best;
}

std::vector<Stretches::Row> Stretches::Find(const RepeatLimits& limits) const {
  const auto& ops = p_.blocks[0].ops;
  std::vector<uint64_t> signs(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    LookForInterrupt();
    signs[i] = MayMove(ops[i]) ? SignOf(ops[i]) : 0;
  }
  std::vector<Row> rows;
  for (const Repeat& repeat : FindRepeats(signs, limits)) {
    const Row row = RowIn(repeat);
    if (row.count >= limits.least_count && (row.count - 1) * row.period >= limits.least_saved)
      rows.push_back(row);
  }
  return rows;
}

}  // namespace heddle::passes
