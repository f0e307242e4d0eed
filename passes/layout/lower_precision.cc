// If the user allows it, products and convolutions with constant weights multiply in bfloat16, or
// store the weights as 8-bit integers. fuse_conv_chain makes pairs of those that are marked for
// bfloat16.
#include "core/op_registry.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::VarId;

class Lowerer {
 public:
  Lowerer(ir::Program& program, PassContext& context)
      : p_(program),
        context_(context),
        view_(program, context),
        int8_(context.options().precision == Precision::kInt8Weights) {}

  bool Run() {
    bool changed = false;
    for (ir::Op& op : p_.blocks[static_cast<size_t>(view_.block())].ops) changed |= Lower(op);
    return changed;
  }

 private:
  bool Lower(ir::Op& op) {
    const std::string& t = op.type();
    if (t == "fused_matmul") return IsConstant(op, "Y") && Mark(op);
    if (int8_ && t != "matmul_v2") return false;
    if (t == "fused_conv2d" || t == "fused_conv2d_transpose")
      return IsConstant(op, "Filter") && Mark(op);
    if (!op.var_attrs.empty()) return false;
    if (t == "matmul_v2") return Convert(op, "Y", "fused_matmul");
    if (t == "conv2d") return Convert(op, "Filter", "fused_conv2d");
    return false;
  }

  bool IsConstant(const ir::Op& op, const char* slot) {
    const VarId v = op.In(slot)[0];
    if (p_.vars[v].dtype != DType::kF32) return false;
    const Tensor* weights = context_.Constant(p_, view_, v, false);
    return weights != nullptr && weights->rank() >= 2;
  }

  bool Mark(ir::Op& op) const {
    const char* name = int8_ ? "fuse_int8" : "fuse_bf16";
    AttrValue& mark = op.attrs[static_cast<size_t>(op.def->FindAttr(name))];
    if (mark == AttrValue(true)) return false;
    mark = true;
    return true;
  }

  // Replaces the operator by the fused one, which has the attribute for the precision. Slots and
  // other attributes have the same names.
  bool Convert(ir::Op& op, const char* weights, const char* type) {
    if (!IsConstant(op, weights)) return false;
    ir::Op to = ir::MakeOp(*FindOp(type));
    to.index = op.index;
    to.call_stack = op.call_stack;
    TakePlace(op, &to);
    for (size_t a = 0; a < to.def->attrs().size(); ++a)
      if (const int from = op.def->FindAttr(to.def->attrs()[a].name); from >= 0)
        to.attrs[a] = op.attrs[static_cast<size_t>(from)];
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      if (op.inputs[s].empty()) continue;
      const int slot = to.def->FindInput(op.def->inputs()[s].name);
      if (slot < 0) return false;
      to.inputs[static_cast<size_t>(slot)] = op.inputs[s];
    }
    to.outputs[0] = op.outputs[0];
    Mark(to);
    op = std::move(to);
    return true;
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  const bool int8_;
};

Result<bool> RunLowerPrecision(ir::Program& program, PassContext& context) {
  if (context.options().precision == Precision::kFloat32) return false;
  return Lowerer(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(lower_precision) {
  pass.doc =
      "with --precision bf16 or int8-products: products and convolutions with constant weights "
      "multiply in bfloat16; with int8: constant matrices of products are held as integers of 8 "
      "bits";
  pass.level = 2;
  pass.each_block = true;
  pass.own_ops = {"fused_matmul", "fused_conv2d"};
  pass.before = "b = matmul_v2(a, w)";
  pass.after = "b = fused_matmul(a, w), fuse_bf16";
  pass.refuses =
      "everything, unless Precision asks for it; weights that are not constant float32 parameters";
  pass.seeks =
      OfTypes({"fused_matmul", "fused_conv2d", "fused_conv2d_transpose", "matmul_v2", "conv2d"});
  pass.run = RunLowerPrecision;
}
