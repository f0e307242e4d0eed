// A product of 8-bit integers whose sums are converted and scaled becomes one operator: what
// exporters and ONNX Runtime make of products whose first operand is quantised on the way.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/op_registry.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::VarId;

class IntegerProductFuser {
 public:
  IntegerProductFuser(ir::Program& program, PassContext& context)
      : p_(program),
        context_(context),
        view_(program, context),
        ops_(program.blocks[static_cast<size_t>(context.block)].ops) {}

  bool Run() {
    std::vector<bool> gone(ops_.size(), false);
    bool changed = false;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (gone[i] || ops_[i].type() != "elementwise_mul") continue;
      const auto chain = ChainBefore(static_cast<int>(i));
      if (!chain) continue;
      int last = static_cast<int>(i);
      ir::Op made = Make(*chain, last, gone);
      gone[static_cast<size_t>(chain->product)] = gone[static_cast<size_t>(chain->cast)] = true;
      // What takes the bias stands at the factor's place: the bias is a constant.
      if (last != static_cast<int>(i)) gone[static_cast<size_t>(last)] = true;
      ops_[i] = std::move(made);
      changed = true;
    }
    if (changed) EraseOps(&p_.blocks[static_cast<size_t>(context_.block)], gone);
    return changed;
  }

 private:
  struct Chain {
    int product, cast;
    VarId factor;
    int64_t columns;
  };

  int OnlyWriter(VarId v) const {
    return v != ir::kNoVar && view_.SingleWriter(v) ? view_.writers(v)[0] : -1;
  }

  // The product and the cast whose result the operator at `at` multiplies.
  std::optional<Chain> ChainBefore(int at) const {
    const ir::Op& mul = ops_[static_cast<size_t>(at)];
    if (!mul.var_attrs.empty() || mul.has_control_edges() || !view_.SingleWriter(FirstOut(mul)))
      return std::nullopt;
    for (const auto& [sums, factor] :
         {std::pair(mul.In("X")[0], mul.In("Y")[0]), std::pair(mul.In("Y")[0], mul.In("X")[0])}) {
      const int cast = OnlyWriter(sums);
      if (cast < 0 || sums == factor || ops_[static_cast<size_t>(cast)].type() != "cast" ||
          view_.OnlyReader(sums, context_) != at || p_.vars[sums].dtype != DType::kF32)
        continue;
      const VarId wide = ops_[static_cast<size_t>(cast)].In("X")[0];
      const int product = OnlyWriter(wide);
      if (product < 0 || view_.OnlyReader(wide, context_) != cast) continue;
      const ir::Op& op = ops_[static_cast<size_t>(product)];
      if (op.type() != "onnx_mat_mul_integer" || !op.var_attrs.empty()) continue;
      const Shape &b = p_.vars[op.In("B")[0]].shape, &f = p_.vars[factor].shape;
      const int rank = p_.vars[sums].shape.rank();
      if (b.rank() < 2 || rank < 2 || p_.vars[factor].dtype != DType::kF32 || !f.is_static())
        continue;
      const int64_t columns = b.dim(-1);
      const bool one = f.numel() == 1 && f.rank() <= rank;
      if (!one && !(b.rank() == 2 && f.rank() == 1 && f[0] == columns && columns > 1 &&
                    mul.Attr<int64_t>("axis") == -1))
        continue;
      if (!IsOneZero(op, "a_zero_point") || !IsOneZero(op, "b_zero_point")) continue;
      const int both[] = {product, cast};
      if (!SamePlace(ops_, at, {product, cast}) || !view_.ReadTheSame(both, at)) continue;
      return Chain{product, cast, factor, columns};
    }
    return std::nullopt;
  }
  // There is no zero point, or one for all: the fused operator takes no others.
  bool IsOneZero(const ir::Op& op, const char* slot) const {
    const auto& zero = op.In(slot);
    if (zero.empty() || zero[0] == ir::kNoVar) return true;
    const Shape& s = p_.vars[zero[0]].shape;
    return s.is_static() && s.numel() == 1;
  }
  static VarId FirstOut(const ir::Op& op) { return op.outputs[0][0]; }

  // `*last` becomes the position of the sum with a bias, if there is one.
  ir::Op Make(const Chain& c, int& last, const std::vector<bool>& gone) {
    const ir::Op& product = ops_[static_cast<size_t>(c.product)];
    const ir::Op& mul = ops_[static_cast<size_t>(last)];
    ir::Op made = ir::MakeOp(*FindOp("onnx_ms_mat_mul_integer_to_float"));
    const auto in = [&](const char* slot) -> auto& {
      return made.inputs[static_cast<size_t>(made.def->FindInput(slot))];
    };
    for (const char* slot : {"A", "B", "a_zero_point", "b_zero_point"}) in(slot) = product.In(slot);
    Tensor one = Tensor::Empty(DType::kF32, {1});
    one.mutable_data<float>()[0] = 1;
    in("a_scale") = {context_.AddConstant(p_, p_.vars[FirstOut(mul)].name + ".one", one)};
    in("b_scale") = {c.factor};
    VarId out = FirstOut(mul);
    const int next = view_.OnlyReader(out, context_);
    if (next >= 0 && !gone[static_cast<size_t>(next)] && IsBias(next, out, c.columns) &&
        SamePlace(ops_, last, {next})) {
      const ir::Op& add = ops_[static_cast<size_t>(next)];
      in("bias") = {add.In("X")[0] == out ? add.In("Y")[0] : add.In("X")[0]};
      out = FirstOut(add);
      last = next;
    }
    made.outputs[static_cast<size_t>(made.def->FindOutput("Y"))] = {out};
    made.index = product.index;
    made.call_stack = product.call_stack;
    TakePlace(mul, &made);
    return made;
  }
  bool IsBias(int at, VarId out, int64_t columns) {
    const ir::Op& add = ops_[static_cast<size_t>(at)];
    if (add.type() != "elementwise_add" || !add.var_attrs.empty() ||
        add.Attr<int64_t>("axis") != -1 || add.In("X")[0] == add.In("Y")[0] ||
        !view_.SingleWriter(FirstOut(add)))
      return false;
    const Tensor* const bias = context_.Constant(
        p_, view_, add.In("X")[0] == out ? add.In("Y")[0] : add.In("X")[0], false);
    return bias != nullptr && bias->rank() == 1 && bias->numel() == columns && columns > 0;
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  std::vector<ir::Op>& ops_;
};

Result<bool> RunFuseIntegers(ir::Program& program, PassContext& context) {
  return IntegerProductFuser(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_integers) {
  pass.doc =
      "onnx_mat_mul_integer + cast to float32 + factor + bias -> onnx_ms_mat_mul_integer_to_float";
  pass.before = "s = onnx_mat_mul_integer(a, b); t = cast(s); u = t * f; y = u + bias";
  pass.after = "y = onnx_ms_mat_mul_integer_to_float(a, b, 1, f, bias)";
  pass.refuses =
      "zero points of rows or columns; factors that are neither one number nor one for each "
      "column; "
      "intermediate results that are fetched or read elsewhere";
  pass.level = 2;
  pass.needs = PassNeeds::kHostCaches;
  pass.each_block = true;
  pass.tolerance = 1e-6;
  pass.own_ops = {"onnx_ms_mat_mul_integer_to_float"};
  pass.seeks = OfTypes({"onnx_mat_mul_integer"});
  pass.run = RunFuseIntegers;
}
