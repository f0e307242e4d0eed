// A sparse gradient, as lookup_table_grad makes it, consists of two existing tensors: the ids, and
// the gradients of the rows with these ids. Optimizers take both (kernels/optimizer, GradRows)
// instead of selected rows, which cannot be on a device, since their row numbers are on the host.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

// A sparse gradient: `grads` has one row for each of `ids`.
struct RowPair {
  VarId ids = kNoVar, grads = kNoVar;
};

class RowSplitter {
 public:
  RowSplitter(ir::Program& program, PassContext& context)
      : p_(program),
        context_(context),
        view_(program, context),
        ops_(program.blocks[static_cast<size_t>(context.block)].ops),
        gone_(ops_.size(), false),
        made_(ops_.size()) {}

  bool Run() {
    bool changed = false;
    for (size_t i = 0; i < ops_.size(); ++i)
      if (TakesRows(ops_[i])) changed = Split(static_cast<int>(i)) || changed;
    if (!changed) return false;
    std::vector<ir::Op> kept;
    for (size_t i = 0; i < ops_.size(); ++i) {
      LookForInterrupt();
      for (ir::Op& op : made_[i]) kept.push_back(std::move(op));
      if (!gone_[i]) kept.push_back(std::move(ops_[i]));
    }
    ops_ = std::move(kept);
    return true;
  }

 private:
  ir::Op& Op(int at) { return ops_[static_cast<size_t>(at)]; }

  static bool TakesRows(const ir::Op& op) {
    return op.var_attrs.empty() && op.def->FindInput("GradRows") >= 0 &&
           op.In("GradRows").empty() && op.In("Grad").size() == 1;
  }
  static bool IsLookup(const ir::Op& op) {
    return op.type() == "lookup_table_v2_grad" || op.type() == "lookup_table_grad";
  }
  bool IsTensor(VarId v) const { return v != kNoVar && p_.vars[v].kind == ir::VarKind::kTensor; }

  // The position of the operator that writes `v`, if `v` has one value, which only `reader` reads.
  int WriterFor(VarId v, int reader) const {
    if (v == kNoVar || !view_.Stable(v) || view_.writers(v).size() != 1 ||
        view_.readers(v).size() != 1 || view_.readers(v)[0] != reader ||
        context_.fetched.count(v) > 0)
      return -1;
    const int writer = view_.writers(v)[0];
    const ir::Op& op = ops_[static_cast<size_t>(writer)];
    const bool fits = writer < reader && op.var_attrs.empty() && !op.has_control_edges() &&
                      SamePlace(ops_, reader, {writer});
    return fits ? writer : -1;
  }

  // The pair from which the operator at `at` makes selected rows, for a parameter like `param`.
  std::optional<RowPair> PairOf(int at, VarId param) const {
    const ir::Op& op = ops_[static_cast<size_t>(at)];
    if (!IsLookup(op) || !op.Attr<bool>("is_sparse") || op.In("W").size() != 1 ||
        op.In("Ids").size() != 1 || op.In("Out@GRAD").size() != 1)
      return std::nullopt;
    const RowPair pair{op.In("Ids")[0], op.In("Out@GRAD")[0]};
    const VarId table = op.In("W")[0];
    if (!IsTensor(table) || !IsTensor(pair.ids) || !IsTensor(pair.grads) ||
        p_.vars[table].shape != p_.vars[param].shape || !view_.WrittenBefore(pair.ids, at) ||
        !view_.WrittenBefore(pair.grads, at))
      return std::nullopt;
    return pair;
  }

  VarId Variable(const char* stem, DType dtype, Shape shape) {
    ir::Var var;
    var.name = p_.FreshName(stem);
    var.block = context_.block;
    var.dtype = dtype;
    var.shape = std::move(shape);
    return p_.AddVar(std::move(var));
  }
  static void Set(ir::Op* op, std::string_view attr, AttrValue value) {
    op->attrs[static_cast<size_t>(op->def->FindAttr(attr))] = std::move(value);
  }
  void Make(int before, const char* type, std::vector<VarId> x, VarId out, AttrValue value) {
    const OpDef& def = *FindOp(type);
    ir::Op op = ir::MakeOp(def);
    op.inputs[static_cast<size_t>(def.FindInput("X"))] = std::move(x);
    op.outputs[static_cast<size_t>(def.FindOutput("Out"))] = {out};
    Set(&op, type == std::string_view("concat") ? "axis" : "shape", std::move(value));
    op.index = Op(before).index;
    op.call_stack = Op(before).call_stack;
    op.device = Op(before).device;
    op.hints = Op(before).hints;
    made_[static_cast<size_t>(before)].push_back(std::move(op));
  }
  // Concatenates the parts, each as rows of `width` elements; 0: as numbers.
  VarId Join(int before, const std::vector<VarId>& parts, const char* stem, int64_t width) {
    Shape shape{-1};
    if (width > 0) shape.push_back(width);
    Ints dims(shape.begin(), shape.end());
    const DType dtype = p_.vars[parts[0]].dtype;
    std::vector<VarId> flat;
    for (const VarId part : parts) {
      flat.push_back(Variable(stem, dtype, shape));
      Make(before, "reshape2", {part}, flat.back(), dims);
    }
    const VarId all = Variable(stem, dtype, shape);
    Make(before, "concat", std::move(flat), all, int64_t{0});
    return all;
  }

  bool Split(int at) {
    const VarId param = Op(at).In("Param").size() == 1 ? Op(at).In("Param")[0] : kNoVar;
    if (!IsTensor(param) || p_.vars[param].shape.rank() != 2 || !p_.vars[param].shape.is_static())
      return false;
    const int writer = WriterFor(Op(at).In("Grad")[0], at);
    if (writer < 0) return false;
    std::vector<int> sources = {writer};
    if (Op(writer).type() == "sum") {
      sources.clear();
      for (const VarId v : Op(writer).In("X")) sources.push_back(WriterFor(v, writer));
    }
    std::vector<VarId> ids, grads;
    for (const int source : sources) {
      const std::optional<RowPair> pair = source < 0 ? std::nullopt : PairOf(source, param);
      if (!pair) return false;
      ids.push_back(pair->ids);
      if (p_.vars[ids[0]].dtype != p_.vars[pair->ids].dtype) return false;
      grads.push_back(pair->grads);
    }
    if (ids.empty()) return false;
    const bool one = ids.size() == 1;
    const VarId all_ids = one ? ids[0] : Join(at, ids, "gradient_rows", 0);
    const VarId all_grads =
        one ? grads[0] : Join(at, grads, "row_gradients", p_.vars[param].shape[1]);
    ir::Op& op = Op(at);
    op.inputs[static_cast<size_t>(op.def->FindInput("Grad"))] = {all_grads};
    op.inputs[static_cast<size_t>(op.def->FindInput("GradRows"))] = {all_ids};
    for (const int source : sources) gone_[static_cast<size_t>(source)] = true;
    gone_[static_cast<size_t>(writer)] = true;
    return true;
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  std::vector<ir::Op>& ops_;
  std::vector<bool> gone_;
  std::vector<std::vector<ir::Op>> made_;  // to be inserted before the operator at that position
};

Result<bool> RunGradientRows(ir::Program& program, PassContext& context) {
  return RowSplitter(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(gradient_rows) {
  pass.doc =
      "sparse gradients become two tensors, ids and the gradients of their rows, which devices "
      "hold; for devices with kernels of their own";
  pass.before = "g = lookup_table_v2_grad(w, ids, dy, is_sparse); w = sgd(w, g, rate)";
  pass.after = "w = sgd(w, dy, rate, grad_rows ids)";
  pass.refuses =
      "gradients that are fetched or read by anything but `sum` and one of `sgd`, `momentum`, "
      "`adam`, `adamw`, `adagrad`; sums with dense gradients; operators of different places";
  pass.level = 2;
  pass.needs = PassNeeds::kDeviceKernels;
  pass.each_block = true;
  pass.tolerance = 1e-5;
  pass.own_forms = {"sgd", "momentum", "adam", "adamw", "adagrad"};
  pass.seeks = [](const OpDef& def) { return def.FindInput("GradRows") >= 0; };
  pass.run = RunGradientRows;
}
