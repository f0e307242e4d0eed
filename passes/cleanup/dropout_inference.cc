// dropout in inference becomes a multiplication by a constant, or its readers read its input.
#include "core/interrupts.h"
#include "core/op_registry.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

// Lets readers of `from` read `to`.
void Redirect(ir::Program& program, const GraphView& view, ir::VarId from, ir::VarId to) {
  for (int r : view.readers(from))
    for (auto& slot : program.blocks[static_cast<size_t>(view.block())].ops[r].inputs)
      for (ir::VarId& v : slot)
        if (v == from) v = to;
}

// Replaces a dropout that multiplies by a scale, which is element-wise: it works in every layout
// and in fused loops.
bool ToScale(ir::Program& program, ir::Op* op) {
  const ir::VarId x = op->In("X")[0], out = op->Out("Out")[0];
  // For doubles the results would differ, since scale keeps its factor in single precision.
  if (x == ir::kNoVar || out == ir::kNoVar || program.vars[x].dtype != DType::kF32) return false;
  ir::Op scale = ir::MakeOp(*FindOp("scale"));
  scale.inputs[scale.def->FindInput("X")] = {x};
  scale.outputs[scale.def->FindOutput("Out")] = {out};
  scale.attrs[scale.def->FindAttr("scale")] = 1.0 - op->Attr<double>("dropout_prob");
  scale.index = op->index;
  scale.call_stack = op->call_stack;
  TakePlace(*op, &scale);
  *op = std::move(scale);
  return true;
}

Result<bool> RunDropoutInference(ir::Program& program, PassContext& context) {
  const GraphView view(program, context);
  auto& ops = program.blocks[static_cast<size_t>(view.block())].ops;
  std::vector<bool> gone(ops.size(), false);
  bool changed = false;
  for (size_t i = 0; i < ops.size(); ++i) {
    LookForInterrupt();
    ir::Op& op = ops[i];
    if (op.type() != "dropout" || !op.var_attrs.empty() || !op.Attr<bool>("is_test")) continue;
    const bool upscale = op.Attr<std::string>("dropout_implementation") == "upscale_in_train";
    const ir::VarId x = op.In("X")[0], out = op.Out("Out")[0];
    const auto& mask = op.Out("Mask");
    if (!mask.empty() && mask[0] != ir::kNoVar &&
        (!view.readers(mask[0]).empty() || context.fetched.count(mask[0]) > 0))
      continue;
    if (!upscale) {
      changed |= ToScale(program, &op);
      continue;
    }
    if (!view.SingleWriter(out) || !view.Stable(x) || context.fetched.count(out) > 0) continue;
    Redirect(program, view, out, x);
    gone[i] = changed = true;
  }
  EraseOps(&program.blocks[static_cast<size_t>(view.block())], gone);
  return changed;
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(dropout_inference) {
  pass.doc = "dropout in inference is a scale, or nothing";
  pass.level = 1;
  pass.each_block = true;
  pass.before = "b = dropout(a), is_test, upscale_in_train; c = relu(b)";
  pass.after = "c = relu(a)";
  pass.refuses =
      "dropout that trains; masks that somebody reads or fetches; dropout without effect whose "
      "result is fetched or written again, or whose source is written again; scaling dropout of "
      "other dtypes than float32";
  pass.seeks = OfTypes({"dropout"});
  pass.run = RunDropoutInference;
}
