// Matrices and tables that a file holds as integers stay integers: a product with a dequantised
// constant becomes nbit_matmul, and rows picked from a dequantised table are picked as integers and
// dequantised alone.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "core/programs/ir.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::VarId;

// Smaller constants are folded: as floats they stay in the nearest cache.
constexpr int64_t kLeastElements = 1 << 12;

// A constant of integers as floats: (integers - zero) * scale.
struct Stored {
  VarId integers = ir::kNoVar, scale = ir::kNoVar, zero = ir::kNoVar;  // there may be no zero
  int axis = -1;                                                       // of several scales
  int64_t block = 0;  // along the axis; 0: each index has a scale
  int64_t elem_type = 0;
  bool transposed = false;
};

class IntegerKeeper {
 public:
  IntegerKeeper(ir::Program& program, PassContext& context)
      : p_(program),
        context_(context),
        view_(program, context),
        ops_(program.blocks[static_cast<size_t>(context.block)].ops) {}

  bool Run() {
    gone_.assign(ops_.size(), false);
    made_.resize(ops_.size());
    bool changed = false;
    for (size_t i = 0; i < ops_.size(); ++i) {
      LookForInterrupt();
      const ir::Op& op = ops_[i];
      if (gone_[i] || !op.var_attrs.empty() || op.has_control_edges()) continue;
      at_ = static_cast<int>(i);
      if (op.type() == "matmul_v2")
        changed = Product(op) || changed;
      else if (op.type() == "gather")
        changed = Rows(op) || changed;
    }
    if (!changed) return false;
    const std::set<VarId> spare = MadeOfConstants();
    std::vector<ir::Op> out;
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (ir::Op& op : made_[i]) out.push_back(std::move(op));
      if (!gone_[i]) out.push_back(std::move(ops_[i]));
    }
    ops_ = std::move(out);
    EraseUnread(spare);
    return true;
  }

 private:
  static VarId In(const ir::Op& op, const char* slot) {
    const auto& vars = op.In(slot);
    return vars.empty() ? ir::kNoVar : vars[0];
  }
  static void Set(ir::Op* op, const char* slot, VarId v) {
    if (v != ir::kNoVar) op->inputs[static_cast<size_t>(op->def->FindInput(slot))] = {v};
  }
  static void SetOut(ir::Op* op, const char* slot, VarId v) {
    op->outputs[static_cast<size_t>(op->def->FindOutput(slot))] = {v};
  }
  static void SetAttr(ir::Op* op, const char* name, AttrValue value) {
    op->attrs[static_cast<size_t>(op->def->FindAttr(name))] = std::move(value);
  }
  // A parameter that no operator writes; null: it is none.
  const Tensor* Constant(VarId v) {
    if (v == ir::kNoVar || !p_.vars[v].persistable || !view_.NeverWritten(v) ||
        context_.fed.count(v) > 0)
      return nullptr;
    const Tensor* const t = context_.Parameter(p_, v, false, false);
    return t != nullptr && t->initialized() ? t : nullptr;
  }
  // The operator that wrote `v`, where the one at at_ runs, too.
  const ir::Op* Writer(VarId v) const {
    if (v == ir::kNoVar || !view_.SingleWriter(v)) return nullptr;
    const ir::Op& op = ops_[static_cast<size_t>(view_.writers(v)[0])];
    return op.var_attrs.empty() && SamePlace(op, ops_[static_cast<size_t>(at_)]) ? &op : nullptr;
  }

  // --- what a variable stands for ---------------------------------------------------------------

  std::optional<Stored> StoredAs(VarId v) {
    const ir::Op* op = Writer(v);
    if (op == nullptr || p_.vars[v].dtype != DType::kF32) return std::nullopt;
    std::optional<Stored> s;
    const bool transposed = op->type() == "transpose2";
    if (transposed) {
      if (op->Attr<Ints>("axis") != Ints{1, 0} || !op->In("Perm").empty() ||
          (op = Writer(In(*op, "X"))) == nullptr)
        return std::nullopt;
    }
    if (op->type() == "affine_dequantize") s = Dequantised(*op);
    if (op->type() == "elementwise_mul") s = Multiplied(*op);
    if (!s) return s;
    s->transposed = transposed;
    const Tensor* const w = Constant(s->integers);
    if (w == nullptr || w->rank() != 2 || w->numel() < kLeastElements ||
        (w->dtype() != DType::kU8 && w->dtype() != DType::kI8))
      return std::nullopt;
    const Tensor* const scale = Constant(s->scale);
    if (scale == nullptr || scale->dtype() != DType::kF32) return std::nullopt;
    if (s->zero != ir::kNoVar) {
      const Tensor* const zero = Constant(s->zero);
      if (zero == nullptr || zero->dtype() != w->dtype() || zero->numel() != scale->numel())
        return std::nullopt;
    }
    return s;
  }

  std::optional<Stored> Dequantised(const ir::Op& op) {
    constexpr int64_t kInts[] = {0, 2, 3, 21, 22};  // ONNX's uint8, int8, uint4, int4
    Stored s{In(op, "x"), In(op, "x_scale"), In(op, "x_zero_point")};
    s.elem_type = op.Attr<int64_t>("elem_type");
    if (std::find(std::begin(kInts), std::end(kInts), s.elem_type) == std::end(kInts))
      return std::nullopt;
    const Tensor *const w = Constant(s.integers), *const scale = Constant(s.scale);
    if (w == nullptr || scale == nullptr || w->rank() != 2) return std::nullopt;
    s.block = op.Attr<int64_t>("block_size");
    if (s.block == 0 && scale->numel() == 1) return s;
    const auto axis = op.Attr<int64_t>("axis");
    if (axis < -2 || axis > 1) return std::nullopt;
    s.axis = static_cast<int>(axis < 0 ? axis + 2 : axis);
    return s;
  }

  // (integers as floats - zero) * scale, in the operators of other exporters; without a zero point.
  std::optional<Stored> Multiplied(const ir::Op& op) {
    for (const auto& [x, scale] : {std::pair("X", "Y"), std::pair("Y", "X")}) {
      const ir::Op* const cast = Writer(In(op, x));
      const Tensor* const factors = Constant(In(op, scale));
      if (cast == nullptr || cast->type() != "cast" || factors == nullptr) continue;
      Stored s{In(*cast, "X"), In(op, scale)};
      const Tensor* const w = Constant(s.integers);
      if (w == nullptr || w->rank() != 2 || op.Attr<int64_t>("axis") != -1 || factors->rank() > 2)
        continue;
      if (factors->numel() == 1) return s;
      const Shape& f = factors->shape();
      const int64_t first = f.rank() == 2 ? f[0] : 1, last = f[f.rank() - 1];
      if (first == 1 && last == w->dim(1)) s.axis = 1;
      if (last == 1 && first == w->dim(0)) s.axis = 0;
      if (s.axis >= 0) return s;
    }
    return std::nullopt;
  }

  // --- products ---------------------------------------------------------------------------------

  bool Product(const ir::Op& op) {
    const VarId x = In(op, "X");
    VarId out = op.Out("Out")[0];
    if (op.Attr<bool>("trans_x") || p_.vars[x].dtype != DType::kF32 ||
        p_.vars[x].shape.rank() < 2 || !view_.SingleWriter(out))
      return false;
    const auto s = StoredAs(In(op, "Y"));
    if (!s) return false;
    const Tensor& w = *Constant(s->integers);
    const bool columns = op.Attr<bool>("trans_y") != s->transposed;  // [columns, terms]
    const int64_t terms = w.dim(columns ? 1 : 0), count = w.dim(columns ? 0 : 1);
    const int of_terms = columns ? 1 : 0;
    // Blocks run along the terms, and whole columns have a scale.
    const bool blocks = s->axis >= 0 && s->block > 0;
    if (s->axis >= 0 && blocks != (s->axis == of_terms)) return false;
    constexpr int64_t kLeastBlock = 8;  // else there are about as many scales as integers
    if (blocks && s->block < kLeastBlock) return false;
    const int64_t groups = blocks ? (terms + s->block - 1) / s->block : 1;
    const int64_t scales = Constant(s->scale)->numel();
    if (scales != 1 && scales != groups * count) return false;
    if (scales == 1 && s->zero != ir::kNoVar && Constant(s->zero)->numel() != 1) return false;
    ir::Op made = ir::MakeOp(*FindOp("nbit_matmul"));
    made.index = op.index;
    made.call_stack = op.call_stack;
    TakePlace(op, &made);
    Set(&made, "X", x);
    Set(&made, "W", s->integers);
    Set(&made, "Scale", s->scale);
    Set(&made, "Zero", s->zero);
    int at = view_.OnlyReader(out, context_);
    if (at >= 0 && !gone_[static_cast<size_t>(at)] &&
        IsBias(ops_[static_cast<size_t>(at)], out, count)) {
      const ir::Op& add = ops_[static_cast<size_t>(at)];
      Set(&made, "Bias", In(add, "X") == out ? In(add, "Y") : In(add, "X"));
      out = add.outputs[0][0];
      gone_[static_cast<size_t>(at)] = true;
    }
    SetOut(&made, "Out", out);
    SetAttr(&made, "terms", terms);
    SetAttr(&made, "columns", count);
    constexpr int64_t kUint4 = 21;
    SetAttr(&made, "bits", int64_t{s->elem_type >= kUint4 ? 4 : 8});
    SetAttr(&made, "block_size", blocks ? s->block : int64_t{0});
    SetAttr(&made, "form", std::string(columns ? "columns" : "rows"));
    for (const VarId v : {s->integers, s->scale, s->zero})
      if (v != ir::kNoVar) context_.Parameter(p_, v, true, false);
    made_[static_cast<size_t>(at_)].push_back(std::move(made));
    gone_[static_cast<size_t>(at_)] = true;
    return true;
  }
  bool IsBias(const ir::Op& add, VarId out, int64_t columns) {
    if (add.type() != "elementwise_add" || !add.var_attrs.empty() ||
        add.Attr<int64_t>("axis") != -1 || In(add, "X") == In(add, "Y") ||
        !SamePlace(add, ops_[static_cast<size_t>(at_)]) || !view_.SingleWriter(add.outputs[0][0]))
      return false;
    const Tensor* const bias = Constant(In(add, "X") == out ? In(add, "Y") : In(add, "X"));
    return bias != nullptr && bias->dtype() == DType::kF32 && bias->rank() == 1 &&
           bias->numel() == columns && columns > 1;
  }

  // --- rows of a table --------------------------------------------------------------------------

  VarId NewVar(const std::string& stem, DType dtype, const Shape& shape) {
    ir::Var var;
    var.name = p_.FreshName(stem);
    var.block = view_.block();
    var.dtype = dtype;
    var.shape = shape;
    return p_.AddVar(std::move(var));
  }

  bool Rows(const ir::Op& op) {
    const VarId out = op.Out("Out")[0];
    if (op.Attr<int64_t>("axis") != 0 || !view_.SingleWriter(out)) return false;
    if (const int a = op.def->FindInput("Axis");
        a >= 0 && !op.inputs[static_cast<size_t>(a)].empty())
      return false;
    const auto s = StoredAs(In(op, "X"));
    const int rank = p_.vars[out].shape.rank();
    if (!s || s->transposed || rank < 1) return false;
    const Tensor &w = *Constant(s->integers), &scale = *Constant(s->scale);
    // Each row has scales of its own, or all have the same.
    const bool own = s->axis >= 0 && (s->axis == 0) != (s->block > 0);
    if (s->axis == 0 && s->block > 0) return false;
    if (own && s->block == 0 && scale.numel() != w.dim(0)) return false;
    if (own && s->block > 0 && scale.numel() % w.dim(0) != 0) return false;
    const int64_t width = w.dim(1);
    const int64_t block = !own ? 0 : s->block > 0 ? s->block : width;
    std::vector<ir::Op>& to = made_[static_cast<size_t>(at_)];
    const auto pick = [&](VarId table, int64_t columns) {
      const VarId picked =
          NewVar(p_.vars[out].name + ".picked", p_.vars[table].dtype, p_.vars[out].shape);
      Shape& shape = p_.vars[picked].shape;
      shape[shape.rank() - 1] = columns;
      ir::Op gather = op;
      gather.inputs[static_cast<size_t>(op.def->FindInput("X"))] = {table};
      SetOut(&gather, "Out", picked);
      to.push_back(std::move(gather));
      return picked;
    };
    // One number for each row, as a column.
    const auto scales_of = [&](VarId v) {
      const Tensor& t = *Constant(v);
      const int64_t columns = t.numel() / w.dim(0);
      if (t.rank() == 2) return pick(v, columns);
      Tensor column = context_.Parameter(p_, v, true, true)->Clone();
      column.SetMeta(column.dtype(), {w.dim(0), columns});
      return pick(context_.AddConstant(p_, p_.vars[v].name + ".column", std::move(column)),
                  columns);
    };
    const VarId integers = pick(s->integers, width);
    VarId factors = s->scale, zero = s->zero;
    if (own) {
      factors = scales_of(s->scale);
      if (zero != ir::kNoVar) zero = scales_of(zero);
    } else if (scale.rank() > 1 && scale.numel() > 1) {
      to.clear();
      return false;
    }
    ir::Op back = ir::MakeOp(*FindOp("affine_dequantize"));
    back.index = op.index;
    back.call_stack = op.call_stack;
    TakePlace(op, &back);
    Set(&back, "x", integers);
    Set(&back, "x_scale", factors);
    Set(&back, "x_zero_point", zero);
    SetOut(&back, "y", out);
    SetAttr(&back, "axis", int64_t{rank - 1});
    SetAttr(&back, "block_size", block);
    SetAttr(&back, "elem_type", s->elem_type);
    to.push_back(std::move(back));
    for (const VarId v : {s->integers, s->scale, s->zero})
      if (v != ir::kNoVar) context_.Parameter(p_, v, true, false);
    gone_[static_cast<size_t>(at_)] = true;
    return true;
  }

  // --- what is left -----------------------------------------------------------------------------

  // Results that are not needed where nobody reads them.
  std::set<VarId> MadeOfConstants() const {
    static const std::set<std::string> types{"affine_dequantize", "elementwise_mul", "cast",
                                             "transpose2"};
    std::set<VarId> made;
    for (const ir::Op& op : ops_) {
      if (types.count(op.type()) == 0 || !op.var_attrs.empty() || op.outputs[0].size() != 1 ||
          std::any_of(op.outputs.begin() + 1, op.outputs.end(),
                      [](const auto& slot) { return !slot.empty(); }))
        continue;
      const VarId out = op.outputs[0][0];
      if (view_.SingleWriter(out) && context_.fetched.count(out) == 0) made.insert(out);
    }
    return made;
  }
  // Takes out the operators whose results nobody reads any more, before they are folded.
  void EraseUnread(const std::set<VarId>& spare) {
    std::map<VarId, int> readers;
    for (const ir::Op& op : ops_)
      for (const auto& slot : op.inputs)
        for (const VarId v : slot) ++readers[v];
    std::vector<bool> gone(ops_.size(), false);
    for (size_t i = ops_.size(); i-- > 0;) {
      const ir::Op& op = ops_[i];
      if (op.outputs.empty() || op.outputs[0].size() != 1 || spare.count(op.outputs[0][0]) == 0 ||
          readers[op.outputs[0][0]] > 0)
        continue;
      gone[i] = true;
      for (const auto& slot : op.inputs)
        for (const VarId v : slot) --readers[v];
    }
    EraseOps(&p_.blocks[static_cast<size_t>(context_.block)], gone);
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  std::vector<ir::Op>& ops_;
  std::vector<bool> gone_;
  std::vector<std::vector<ir::Op>> made_;  // by the position before which they stand
  int at_ = 0;
};

Result<bool> RunKeepIntegers(ir::Program& program, PassContext& context) {
  return IntegerKeeper(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(keep_integers) {
  pass.doc =
      "products with large constants of 4 or 8 bits that are dequantised, with a bias -> "
      "nbit_matmul; rows of such constants are picked before they are dequantised";
  pass.before = "w = affine_dequantize(v, s, z), v a parameter; y = matmul_v2(x, w)";
  pass.after = "y = nbit_matmul(x, v, s, z)";
  pass.refuses =
      "constants of less than 4,096 elements; scales along the dimension that a product sums over, "
      "but for blocks; blocks along the other one";
  pass.level = 2;
  pass.needs = PassNeeds::kHostCaches;
  pass.each_block = true;
  pass.tolerance = 1e-6;
  pass.own_ops = {"nbit_matmul", "affine_dequantize"};
  pass.seeks = OfTypes({"affine_dequantize", "cast"});
  pass.run = RunKeepIntegers;
}
