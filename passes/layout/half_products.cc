// If the user allows it, products with constant weights get bfloat16 operands on a device with
// kernels of its own: the weights are converted once, when the program is optimised, the other
// operands by a cast.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/half.h"
#include "core/interrupts.h"
#include "core/op_registry.h"
#include "core/shapes.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::VarId;

class ProductHalver {
 public:
  ProductHalver(ir::Program& program, PassContext& context)
      : p_(program), context_(context), view_(program, context) {}

  bool Run() {
    std::vector<ir::Op>& ops = p_.blocks[static_cast<size_t>(view_.block())].ops;
    std::vector<ir::Op> all;
    bool changed = false;
    for (size_t i = 0; i < ops.size(); ++i) {
      LookForInterrupt();
      changed |= Halve(ops[i], static_cast<int>(i), &all);
      all.push_back(std::move(ops[i]));
    }
    ops = std::move(all);
    return changed;
  }

 private:
  struct Cast {
    VarId out;
    int at;  // the position of the operator that it precedes
    std::string device;
  };

  bool Halve(ir::Op& op, int at, std::vector<ir::Op>* before) {
    if ((op.type() != "fused_matmul" && op.type() != "matmul_v2") || !op.var_attrs.empty())
      return false;
    if (op.device.starts_with("cpu")) return false;  // left to lower_precision
    for (const VarId v : op.In("X"))
      if (p_.vars[v].dtype != DType::kF32) return false;
    const VarId out = op.Out("Out")[0];
    if (p_.vars[out].dtype != DType::kF32) return false;
    const auto weights = HalfOf(op.In("Y")[0]);
    if (!weights) return false;
    if (op.type() == "matmul_v2") BecomeFused(&op);
    std::vector<VarId>& xs = op.inputs[static_cast<size_t>(op.def->FindInput("X"))];
    for (VarId& x : xs) x = CastOf(op, x, at, before);
    op.inputs[static_cast<size_t>(op.def->FindInput("Y"))] = {*weights};
    op.attrs[static_cast<size_t>(op.def->FindAttr("fuse_float_out"))] = true;
    return true;
  }

  static void BecomeFused(ir::Op* op) {
    ir::Op to = ir::MakeOp(*FindOp("fused_matmul"));
    to.index = op->index;
    to.call_stack = op->call_stack;
    TakePlace(*op, &to);
    for (const char* name : {"trans_x", "trans_y"})
      to.attrs[static_cast<size_t>(to.def->FindAttr(name))] =
          op->attrs[static_cast<size_t>(op->def->FindAttr(name))];
    for (const char* slot : {"X", "Y"})
      to.inputs[static_cast<size_t>(to.def->FindInput(slot))] = op->In(slot);
    to.outputs[0] = op->outputs[0];
    *op = std::move(to);
  }

  std::optional<VarId> HalfOf(VarId v) {
    if (const auto found = halves_.find(v); found != halves_.end()) return found->second;
    if (p_.vars[v].dtype != DType::kF32) return std::nullopt;
    const Tensor* const wide = context_.Constant(p_, view_, v);
    if (wide == nullptr || wide->dtype() != DType::kF32 || wide->rank() < 2) return std::nullopt;
    Tensor half = Tensor::Empty(DType::kBF16, wide->shape());
    if (!half.initialized()) return std::nullopt;
    for (int64_t i = 0; i < wide->numel(); ++i)
      half.mutable_data<bfloat16>()[i] = static_cast<bfloat16>(wide->data<float>()[i]);
    return halves_[v] = context_.AddConstant(p_, p_.vars[v].name + "_bf16", std::move(half));
  }

  VarId CastOf(const ir::Op& reader, VarId x, int at, std::vector<ir::Op>* before) {
    const auto found = casts_.find(x);
    if (found != casts_.end() && found->second.device == reader.device &&
        view_.Unchanged(x, found->second.at, at))
      return found->second.out;
    ir::Var var;
    var.name = p_.FreshName(p_.vars[x].name + "_bf16");
    var.block = context_.block;
    var.dtype = DType::kBF16;
    var.shape = p_.vars[x].shape;
    const VarId out = p_.AddVar(std::move(var));
    ir::Op cast = ir::MakeOp(*FindOp("cast"));
    cast.index = reader.index;
    cast.call_stack = reader.call_stack;
    cast.device = reader.device;
    const auto set = [&](const char* name, DType dtype) {
      cast.attrs[static_cast<size_t>(cast.def->FindAttr(name))] = DTypeToProto(dtype);
    };
    set("in_dtype", DType::kF32);
    set("out_dtype", DType::kBF16);
    cast.inputs[0] = {x};
    cast.outputs[0] = {out};
    before->push_back(std::move(cast));
    casts_.insert_or_assign(x, Cast{out, at, reader.device});
    return out;
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  std::map<VarId, VarId> halves_;
  std::map<VarId, Cast> casts_;  // the newest one of each variable
};

Result<bool> RunHalfProducts(ir::Program& program, PassContext& context) {
  if (context.options().precision != Precision::kBFloat16) return false;
  return ProductHalver(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(half_products) {
  pass.doc =
      "with --precision bf16, on a device with kernels of its own: products with constant weights "
      "read them and what they multiply as bfloat16";
  pass.level = 2;
  pass.needs = PassNeeds::kDeviceKernels;
  pass.each_block = true;
  pass.own_ops = {"fused_matmul"};
  pass.before = "b = matmul_v2(a, w)";
  pass.after = "h = cast(a); b = fused_matmul(h, w'), fuse_float_out";
  pass.tolerance = 2e-2;
  pass.refuses =
      "everything, unless Precision asks for it; weights that are not constant float32 parameters; "
      "convolutions, which stay in float32; products of the host";
  pass.seeks = OfTypes({"fused_matmul", "matmul_v2"});
  pass.run = RunHalfProducts;
}
