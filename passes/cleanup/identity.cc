// Erases operators whose output equals their input.
#include <algorithm>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "passes/cleanup/block_sweep.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

class IdentityRemover : public BlockSweep {
 public:
  IdentityRemover(ir::Program& program, PassContext& context)
      : BlockSweep(program, context), lod_(UsesLoD(program, context)) {}

 private:
  void Sweep() override {
    for (size_t i = 0; i < block_->ops.size(); ++i) {
      LookForInterrupt();
      Settle(i);
      const ir::Op& op = block_->ops[i];
      const VarId x = Source(op);
      if (x == kNoVar || !IsPure(op)) continue;
      const VarId out = op.outputs[static_cast<size_t>(OutSlot(op))][0];
      const int at = static_cast<int>(i);
      const auto readers = view_.Readers(out, at);
      // The source must keep its value beyond the last reader: one that writes it would otherwise
      // work in place.
      if (!readers || readers->empty() || !view_.Same(x, at, readers->back() + 1)) continue;
      if (!OthersUnread(op, at) || !AtReadersPlace(op, *readers)) continue;
      ReplaceLater(*readers, out, x);
      Erase(i);
    }
  }

  // Whether all readers run at the operator's place: then copies between places stay where they
  // are.
  bool AtReadersPlace(const ir::Op& op, const std::vector<int>& readers) const {
    return op.device.empty() || std::all_of(readers.begin(), readers.end(), [&](int r) {
             return block_->ops[static_cast<size_t>(r)].device == op.device;
           });
  }

  static int OutSlot(const ir::Op& op) {
    return std::max(op.def->FindOutput("Out"), op.def->FindOutput("Y"));
  }

  // Whether nobody reads the other outputs (masks, shapes for gradients).
  bool OthersUnread(const ir::Op& op, int at) const {
    for (size_t s = 0; s < op.outputs.size(); ++s) {
      if (static_cast<int>(s) == OutSlot(op)) continue;
      for (VarId v : op.outputs[s]) {
        if (v == kNoVar) continue;
        const auto readers = view_.Readers(v, at);
        if (!readers || !readers->empty()) return false;
      }
    }
    return true;
  }

  // The input that the output equals; kNoVar: there is none.
  VarId Source(const ir::Op& op) const {
    const std::string& t = op.type();
    if (t != "concat" && t != "sum" && !HasOnlyInput(op, "X")) return kNoVar;
    const VarId x = OnlyIn(op, "X"), out = OnlyOut(op, "Out");
    if (x == kNoVar || out == kNoVar || x == out) return kNoVar;
    const ir::Var &from = p_.vars[x], &to = p_.vars[out];
    if (from.kind != ir::VarKind::kTensor || to.kind != ir::VarKind::kTensor) return kNoVar;
    // A variable that is neither written nor fed has no dtype here; its reader reports that it is
    // missing.
    if (from.dtype != to.dtype && from.dtype != DType::kUnknown && to.dtype != DType::kUnknown)
      return kNoVar;
    return Hands(op, from) ? x : kNoVar;
  }

  bool Hands(const ir::Op& op, const ir::Var& from) const {
    const std::string& t = op.type();
    if (t == "assign" || t == "share_data") return true;
    // A scale by 1 is not an identity: it adds 0, which turns -0 into 0.
    if (t == "cast")
      return op.Attr<int64_t>("in_dtype") == op.Attr<int64_t>("out_dtype") &&
             from.dtype != DType::kUnknown &&
             DTypeToProto(from.dtype) == op.Attr<int64_t>("out_dtype");
    // Operators that would reject their input stay, so that they do.
    const int rank = from.shape.rank();
    if (t == "transpose2" || t == "transpose") {
      const Ints& axis = op.Attr<Ints>("axis");
      return IsOrder(axis) && static_cast<int>(axis.size()) == rank && !lod_;
    }
    if (t == "concat") {
      const int64_t axis = op.Attr<int64_t>("axis");
      return HasOnlyInput(op, "X") && axis >= -rank && axis < rank && !lod_;
    }
    if (t == "sum") return HasOnlyInput(op, "X") && !lod_;
    // Reshapes and expansions stay: shapes in a file are those that its writer expected, and feeds
    // may have others. The plan knows the shapes and turns reshapes into views.
    return false;
  }

  static bool IsOrder(const Ints& axis) {
    for (size_t i = 0; i < axis.size(); ++i)
      if (axis[i] != static_cast<int64_t>(i)) return false;
    return !axis.empty();
  }

  const bool lod_;
};

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(identity) {
  pass.doc =
      "removes operators whose output is their input: assign, cast to the same dtype, transpose "
      "in the same order, sum and concat of one tensor";
  pass.before = "b = assign(a); c = relu(b)";
  pass.after = "c = relu(a)";
  pass.refuses =
      "results that are fetched, live in a parameter or are named by several blocks; sources that "
      "are written again while the copy is read; results that nobody reads (dead_ops); with "
      "sequence offsets, all but assign and cast; scale by 1, which turns -0 into 0";
  pass.level = 1;
  pass.repeat = true;
  pass.run = RunSweep<IdentityRemover>;
}
