// The kernel of an instruction that calls a function.
#include <utility>

#include "core/kernel_context.h"
#include "executor/run/interpreter.h"
#include "executor/run/run_state.h"

namespace heddle {

// Calls of one block never overlap, since all write its temporaries.
Status RunPlannedCall(KernelContext& ctx) {
  auto& run = static_cast<RunState&>(*ctx.services().blocks);
  const auto& call = ctx.State<PlannedCall>();
  run.BindCall(run.plan().functions[call.function], ctx.op());
  // An instruction that may use the threads of other lanes brings them.
  IntraOp* const intra = std::exchange(run.services().intra, ctx.services().intra);
  const Status status = Interpreter::RunCall(call, run);
  run.services().intra = intra;
  return status;
}

}  // namespace heddle
