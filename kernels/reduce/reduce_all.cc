// reduce_all and reduce_any.
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

template <typename R, typename... Ts>
void DefineBool(OpDef& op, const char* doc) {
  op.Doc(doc);
  DefineReduceSlots(op, true);
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

HEDDLE_EXAMPLES(reduce_all, R"(
example float64 4x4, dim , reduce_all
attr dim LONGS []
attr reduce_all BOOLEAN true
in X float64 [4, 4] 1 1 1 0 1 0 0 0 1 1 1 0 1 1 1 0
out Out bool [] 0

example bool 3x1x3x1, dim 0 1, keep_dim
attr dim LONGS [0, 1]
attr keep_dim BOOLEAN true
in X bool [3, 1, 3, 1] 0 0 0 1 0 1 0 1 1
out Out bool [1, 1, 3, 1] 0 0 0

example bool 2x4, dim 0 -1, keep_dim
attr dim LONGS [0, -1]
attr keep_dim BOOLEAN true
in X bool [2, 4] 1 0 1 1 0*4
out Out bool [1, 1] 0

example bool 4x3x2, dim 1
attr dim LONGS [1]
in X bool [4, 3, 2] 1 0 1*4 0 1*4 0 1 0 1*7 0 1 1
out Out bool [4, 2] 1 0 0 0 1 0 1 0

example float32 4x4, dim , reduce_all
attr dim LONGS []
attr reduce_all BOOLEAN true
in X float32 [4, 4] 1 1 1 0 1 0 0 0 1 1 1 0 1 1 1 0
out Out bool [] 0

example int32 4x4, dim , reduce_all
attr dim LONGS []
attr reduce_all BOOLEAN true
in X int32 [4, 4] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1
out Out bool [] 0

example int64 4x4, dim , reduce_all
attr dim LONGS []
attr reduce_all BOOLEAN true
in X int64 [4, 4] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1
out Out bool [] 0
)")

HEDDLE_EXAMPLES(reduce_any, R"(
example bool 4x4, dim , reduce_all
attr dim LONGS []
attr reduce_all BOOLEAN true
in X bool [4, 4] 0 0 0 1 0 1 0 1 1 0 0 1 0 1 1 0
out Out bool [] 1

example bool 4x3x2, dim 1, keep_dim
attr dim LONGS [1]
attr keep_dim BOOLEAN true
in X bool [4, 3, 2] 1 1 0 1 0 1 1 0 1 0 0 1*4 0 1 1 0 0 1 1 0 1
out Out bool [4, 1, 2] 1*8

example bool 4x1x2x4, dim -1, keep_dim
attr dim LONGS [-1]
attr keep_dim BOOLEAN true
in X bool [4, 1, 2, 4] 0 1 1 0 1*5 0 0 1 1 1 0 1 1 1 0 0 1 0 1 1 1 0 1 0 0 1 1 1
out Out bool [4, 1, 2, 1] 1*8

example int64 4x4, dim , reduce_all
attr dim LONGS []
attr reduce_all BOOLEAN true
in X int64 [4, 4] 0 1 0 0 1 0 0 1 0 0 0 1*4 0
out Out bool [] 1

example bool, AxisTensorList is not read
attr dim LONGS [0]
in X bool [2, 3] 1 1 0 0 0 0
in AxisTensorList int32 [1] 1
out Out bool [3] 1 1 0
)")
