// Common subexpressions: operators that compute the same from the same values become one.
#include <algorithm>
#include <unordered_map>

#include "core/interrupts.h"
#include "passes/cleanup/block_sweep.h"
#include "passes/ir_text.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

bool Commutes(const ir::Op& op) {
  constexpr const char* kTypes[] = {
      "elementwise_add", "elementwise_mul", "equal",       "not_equal",  "logical_and",
      "logical_or",      "logical_xor",     "bitwise_and", "bitwise_or", "bitwise_xor"};
  return std::find(std::begin(kTypes), std::end(kTypes), op.type()) != std::end(kTypes);
}

class Eliminator : public BlockSweep {
 public:
  Eliminator(ir::Program& program, PassContext& context)
      : BlockSweep(program, context), lod_(UsesLoD(program, context)) {}

 private:
  // The most equal operators to compare a later one with. Several stay if they could not be merged,
  // as when a variable is written again and again.
  static constexpr size_t kMostLeaders = 64;

  void Sweep() override {
    std::unordered_map<uint64_t, std::vector<int>> leaders;
    for (size_t i = 0; i < block_->ops.size(); ++i) {
      LookForInterrupt();
      Settle(i);
      const ir::Op& op = block_->ops[i];
      if (!Eligible(op)) continue;
      auto& bucket = leaders[Hash(op, static_cast<int>(i))];
      // An operator whose readers are unknown cannot be merged with any leader.
      const bool merged =
          !bucket.empty() && ReadersKnown(op, static_cast<int>(i)) &&
          std::any_of(bucket.begin(), bucket.end(), [&](int leader) {
            return Equal(leader, static_cast<int>(i)) && Merge(leader, static_cast<int>(i));
          });
      if (merged)
        Erase(i);
      else if (bucket.size() < kMostLeaders)
        bucket.push_back(static_cast<int>(i));
    }
  }

  static bool Eligible(const ir::Op& op) {
    if (!IsPure(op)) return false;
    bool writes = false;
    for (const auto& out : op.outputs) {
      for (VarId v : out) {
        if (v == kNoVar) continue;
        writes = true;
        for (const auto& in : op.inputs)
          if (std::find(in.begin(), in.end(), v) != in.end()) return false;
      }
    }
    return writes;
  }

  using Operand = std::pair<VarId, int>;  // with its version
  Operand At(VarId v, int at) const { return {v, v == kNoVar ? 0 : view_.VersionAt(v, at)}; }

  // Gives the operands of X and Y in ascending order if their order does not matter; else false.
  bool Sorted(const ir::Op& op, int at, Operand* x, Operand* y) const {
    if (lod_ || !Commutes(op)) return false;  // sequence offsets are those of X
    const VarId a = OnlyIn(op, "X"), b = OnlyIn(op, "Y");
    if (a == kNoVar || b == kNoVar || p_.vars[a].dtype != p_.vars[b].dtype) return false;
    const Shape &s = p_.vars[a].shape, &t = p_.vars[b].shape;
    if (!s.is_static() || !(s == t)) return false;  // the order decides how a broadcast aligns
    *x = At(a, at);
    *y = At(b, at);
    if (*y < *x) std::swap(*x, *y);
    return true;
  }

  uint64_t Hash(const ir::Op& op, int at) const {
    uint64_t h = ir::AttrFingerprint(op);
    const auto mix = [&h](uint64_t v) { h = (h ^ v) * 0x9e3779b97f4a7c15ull + (h >> 29); };
    Operand x, y;
    if (Sorted(op, at, &x, &y)) {
      for (const Operand& o : {x, y}) mix(o.first), mix(static_cast<uint64_t>(o.second));
      return h;
    }
    for (const auto& slot : op.inputs) {
      mix(slot.size());
      for (VarId v : slot) mix(v), mix(static_cast<uint64_t>(At(v, at).second));
    }
    return h;
  }

  bool Equal(int i, int k) const {
    const ir::Op &a = block_->ops[static_cast<size_t>(i)], &b = block_->ops[static_cast<size_t>(k)];
    if (a.def != b.def || !SamePlace(a, b) || a.attrs != b.attrs || a.var_attrs != b.var_attrs)
      return false;
    Operand ax, ay, bx, by;
    if (Sorted(a, i, &ax, &ay) && Sorted(b, k, &bx, &by)) return ax == bx && ay == by;
    if (a.inputs != b.inputs) return false;
    for (const auto& slot : a.inputs)
      for (VarId v : slot)
        if (v != kNoVar && !view_.Same(v, i, k)) return false;
    return true;
  }

  bool ReadersKnown(const ir::Op& op, int at) const {
    for (const auto& slot : op.outputs)
      for (VarId v : slot)
        if (v != kNoVar && !view_.Readers(v, at)) return false;
    return true;
  }

  // Lets readers of the results of the operator at `k` read those of the one at `leader`.
  bool Merge(int leader, int k) {
    const ir::Op &a = block_->ops[static_cast<size_t>(leader)],
                 &b = block_->ops[static_cast<size_t>(k)];
    struct Move {
      VarId from, to;
      std::vector<int> readers;
    };
    std::vector<Move> moves;
    for (size_t s = 0; s < b.outputs.size(); ++s) {
      for (size_t i = 0; i < b.outputs[s].size(); ++i) {
        const VarId from = b.outputs[s][i];
        if (from == kNoVar) continue;
        auto readers = view_.Readers(from, k);
        if (!readers) return false;
        if (readers->empty()) continue;
        const VarId to = i < a.outputs[s].size() ? a.outputs[s][i] : kNoVar;
        if (to == kNoVar || !Alike(p_.vars[from], p_.vars[to]) ||
            !view_.Same(to, leader + 1, readers->back() + 1))
          return false;
        moves.push_back({from, to, *std::move(readers)});
      }
    }
    for (const Move& m : moves) ReplaceLater(m.readers, m.from, m.to);
    return true;
  }
  static bool Alike(const ir::Var& a, const ir::Var& b) {
    return a.kind == b.kind && a.dtype == b.dtype && a.lod_level == b.lod_level;
  }

  const bool lod_;
};

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(cse) {
  pass.doc =
      "merges equal computations: the same operator with the same attributes on the same versions "
      "of the same variables; sums and products of one shape in either order, unless sequence "
      "offsets are used";
  pass.before = "b = exp(a); c = exp(a); d = b + c";
  pass.after = "b = exp(a); d = b + b";
  pass.refuses =
      "operators with side effects or random numbers, in-place ones; results that are fetched, "
      "live in a parameter or are named by several blocks; where the first result is written "
      "again before the second is read; operators in different blocks or at different places; "
      "operators equal to 64 that could not be merged";
  pass.level = 1;
  pass.repeat = true;
  pass.run = RunSweep<Eliminator>;
}
