// reduce_max, reduce_min, reduce_amax and reduce_amin.
#include "kernels/common/reduce_op.h"

namespace heddle {
namespace {

struct ExtremeGrad {  // all elements equal to the result get all of the gradient
  static constexpr bool kReadsValues = true;
  template <typename T>
  static T Apply(T x, T out, T dout, double) {
    return x == out ? dout : T(0);
  }
};

template <typename R>
void DefineExtreme(OpDef& op, const char* doc) {
  DefineReduce<R, float, double, int32_t, int64_t, float16, bfloat16>(op, doc, true);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(reduce_max) { DefineExtreme<MaxReduction>(op, "maximum over axes"); }
HEDDLE_OP(reduce_min) { DefineExtreme<MinReduction>(op, "minimum over axes"); }
HEDDLE_OP(reduce_amax) {
  DefineExtreme<MaxReduction>(op, "maximum over axes, the gradient shared between equal elements");
}
HEDDLE_OP(reduce_amin) {
  DefineExtreme<MinReduction>(op, "minimum over axes, the gradient shared between equal elements");
}
HEDDLE_OP(reduce_max_grad) {
  DefineReduceGrad<ExtremeGrad, float, double, int32_t, int64_t>(op, "gradient of reduce_max", true);
}
HEDDLE_OP(reduce_min_grad) {
  DefineReduceGrad<ExtremeGrad, float, double, int32_t, int64_t>(op, "gradient of reduce_min", true);
}
