#include "kernels/reduce/in_double.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

struct MeanGrad {
  static constexpr bool kReadsValues = false;
  template <typename T>
  static T Apply(T, T, T dout, double count) {
    return static_cast<T>(dout / static_cast<T>(count));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(reduce_mean) {
  DefineReduceOrInDouble<MeanReduction, MeanInDouble, float, double, bool, int32_t, int64_t,
                         float16, bfloat16, std::complex<float>, std::complex<double>>(
      op, "mean over axes");
}

HEDDLE_OP(reduce_mean_grad) {
  DefineReduceGrad<MeanGrad, float, double, bool, float16, bfloat16, std::complex<float>,
                   std::complex<double>>(op, "gradient of reduce_mean");
}
