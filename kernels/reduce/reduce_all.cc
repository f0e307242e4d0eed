// reduce_all and reduce_any.
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

template <typename R, typename... Ts>
void DefineBool(OpDef& op, const char* doc) {
  op.Doc(doc);
  DefineReduceSlots(op, true);
  DefineAxesOperand(op);
  op.InferShape([](ShapeContext& ctx) { return InferReduce(ctx, DType::kBool); });
  op.Prepare(&PrepareReduce);
  (op.Kernel(kDTypeOf<Ts>,
             [](KernelContext& ctx) { return RunReduceOp(ctx, ReduceLoop<R, Ts, bool>::kLoops); }),
   ...);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(reduce_all) {
  DefineBool<AllReduction, bool, float, double, int32_t, int64_t, uint8_t, int8_t>(
      op, "true where no element over the axes is 0");
}
HEDDLE_OP(reduce_any) {
  DefineBool<AnyReduction, bool, float, double, int32_t, int64_t, uint8_t, int8_t>(
      op, "true where an element over the axes is not 0");
}
