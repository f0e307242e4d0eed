// Merges chains of transposes, and chains of reshapes, into one.
#include <algorithm>

#include "core/interrupts.h"
#include "passes/pass.h"
#include "passes/places.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

bool IsTranspose(const ir::Op& op) {
  return (op.type() == "transpose2" || op.type() == "transpose") && op.var_attrs.empty() &&
         !op.Attr<Ints>("axis").empty();
}
bool IsReshape(const ir::Op& op) {
  return (op.type() == "reshape2" || op.type() == "reshape") && HasOnlyInput(op, "X");
}
// Whether the operator only changes the shape.
bool KeepsOrder(const ir::Op& op) {
  constexpr const char* kTypes[] = {"reshape2",
                                    "reshape",
                                    "squeeze2",
                                    "squeeze",
                                    "unsqueeze2",
                                    "unsqueeze",
                                    "flatten_contiguous_range",
                                    "flatten2",
                                    "flatten"};
  return std::find(std::begin(kTypes), std::end(kTypes), op.type()) != std::end(kTypes);
}

class Merger {
 public:
  Merger(ir::Program& program, PassContext& context) : p_(program), view_(program, context) {}

  bool Run(bool transposes) {
    bool changed = false;
    for (ir::Block& block : p_.blocks) {
      view_.Enter(block.id);
      block_ = &block;
      for (size_t i = 0; i < block.ops.size(); ++i) {
        LookForInterrupt();
        ir::Op& op = block.ops[i];
        const int at = static_cast<int>(i);
        if (transposes ? IsTranspose(op) && MergeTranspose(&op, at)
                       : IsReshape(op) && MergeReshape(&op, at))
          changed = true;
      }
    }
    return changed;
  }

 private:
  // The operator whose output is the X of the one at `at`, and whose own X still has the same value
  // there; nullptr: there is none. `alone`: the output must not have other readers.
  const ir::Op* Before(const ir::Op& op, int at, bool alone) const {
    const VarId m = OnlyIn(op, "X");
    if (m == kNoVar || !ShapeUnread(op, at)) return nullptr;
    const int w = view_.WriterBefore(m, at);
    if (w < 0) return nullptr;
    const ir::Op& before = block_->ops[static_cast<size_t>(w)];
    const VarId x = OnlyIn(before, "X");
    if (x == kNoVar || x == m || !SamePlace(op, before) || !IsPure(before) ||
        OnlyOut(before, "Out") != m || !view_.Same(x, w, at + 1))
      return nullptr;
    return alone && !view_.HasOneReader(m, w) ? nullptr : &before;
  }

  // Whether XShape has no reader. Gradients read the shape of X there, and X would be another one.
  bool ShapeUnread(const ir::Op& op, int at) const {
    const VarId shape = OnlyOut(op, "XShape");
    if (shape == kNoVar) return true;
    const auto readers = view_.Readers(shape, at);
    return readers && readers->empty();
  }

  bool MergeTranspose(ir::Op* op, int at) {
    const ir::Op* before = Before(*op, at, false);
    if (before == nullptr || !IsTranspose(*before)) return false;
    const auto& first = before->Attr<Ints>("axis");
    const auto& second = op->Attr<Ints>("axis");
    if (first.size() != second.size()) return false;
    const auto rank = static_cast<int64_t>(first.size());
    Ints both;
    bool identity = true;
    for (int64_t a : second) {
      if (a < -rank || a >= rank) return false;
      int64_t from = first[static_cast<size_t>(a < 0 ? a + rank : a)];
      if (from < -rank || from >= rank) return false;
      if (from < 0) from += rank;
      identity = identity && from == static_cast<int64_t>(both.size());
      both.push_back(from);
    }
    if (!identity && Before(*op, at, true) == nullptr) return false;
    op->attrs[op->def->FindAttr("axis")] = std::move(both);
    return Rewire(op, *before);
  }

  bool MergeReshape(ir::Op* op, int at) {
    const ir::Op* before = Before(*op, at, true);
    if (before == nullptr || !KeepsOrder(*before)) return false;
    // A 0 copies a dimension of X, and X would be another one. (The shape of X in the file is the
    // one that its writer expected; feeds may have others.)
    const Ints& shape = op->Attr<Ints>("shape");
    if (shape.empty() || std::count(shape.begin(), shape.end(), 0) > 0) return false;
    return Rewire(op, *before);
  }

  static bool Rewire(ir::Op* op, const ir::Op& before) {
    op->inputs[static_cast<size_t>(op->def->FindInput("X"))] = {OnlyIn(before, "X")};
    return true;
  }

  ir::Program& p_;
  VersionView view_;
  ir::Block* block_ = nullptr;
};

Result<bool> MergeTransposes(ir::Program& program, PassContext& context) {
  return !UsesLoD(program, context) && Merger(program, context).Run(true);
}
Result<bool> MergeReshapes(ir::Program& program, PassContext& context) {
  return !UsesLoD(program, context) && Merger(program, context).Run(false);
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(merge_transposes) {
  pass.doc = "composes transposes of transposes; an inverse pair becomes the identity, which goes";
  pass.before = "b = transpose2(a, [0, 2, 1]); c = transpose2(b, [2, 0, 1])";
  pass.after = "c = transpose2(a, [1, 0, 2])";
  pass.refuses =
      "a result in the middle that has other readers (unless the pair is inverse) or is fetched; "
      "sources written in between; gradients that read XShape; programs with sequence offsets";
  pass.level = 1;
  pass.repeat = true;
  pass.seeks = OfTypes({"transpose2", "transpose"});
  pass.run = MergeTransposes;
}

HEDDLE_PASS(merge_reshapes) {
  pass.doc =
      "reshapes of reshapes (squeezes, unsqueezes, flattenings) read what the first one read";
  pass.before = "b = flatten(a); c = reshape2(b, [2, 6])";
  pass.after = "c = reshape2(a, [2, 6])";
  pass.refuses =
      "a result in the middle that has other readers or is fetched; sources written in between; a "
      "shape that variables hold or that takes over dimensions (0); gradients that read XShape; "
      "programs with sequence offsets";
  pass.level = 1;
  pass.repeat = true;
  pass.seeks = OfTypes({"reshape2", "reshape"});
  pass.run = MergeReshapes;
}
