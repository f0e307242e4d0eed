// batch_norm in inference does not change the running statistics: drops the outputs for them. The
// parameters are then constants, which later passes can fold.
#include "core/interrupts.h"
#include "core/programs/kept_outputs.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

Result<bool> RunBatchNormInference(ir::Program& program, PassContext& context) {
  bool changed = false;
  for (auto& block : program.blocks) {
    for (ir::Op& op : block.ops) {
      LookForInterrupt();
      if (op.type() != "batch_norm") continue;
      for (size_t slot = 0; slot < op.outputs.size(); ++slot) {
        auto& out = op.outputs[slot];
        if (out.empty() || !ir::KeepsOutput(op, slot) || context.fetched.count(out[0]) > 0)
          continue;
        // A parameter that is not declared as a vector gets its dtype and shape from these outputs.
        const ir::Var& statistic = program.vars[out[0]];
        if (statistic.dtype == DType::kUnknown || statistic.shape.rank() != 1) continue;
        out.clear();
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(batch_norm_inference) {
  pass.doc = "drops the unchanged running statistics from the outputs of inference batch_norm";
  pass.level = 2;  // Paddle's shape function requires these outputs
  pass.own_forms = {"batch_norm"};
  pass.before = "y, mean, variance = batch_norm(x, scale, bias, mean, variance), is_test";
  pass.after = "y = batch_norm(x, scale, bias, mean, variance), is_test";
  pass.refuses =
      "batch_norm that trains; statistics that are fetched, go to other variables or "
      "are no vectors of X's dtype";
  pass.seeks = OfTypes({"batch_norm"});
  pass.run = RunBatchNormInference;
}
