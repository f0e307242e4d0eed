// equal_all: whether two tensors have the same shape and the same elements.
#include <cmath>

#include "core/threads/look_meter.h"
#include "kernels/elementwise/binary_op.h"

namespace heddle {
namespace {

template <typename T>
struct EqualAll {
  static Status Run(KernelContext& ctx) {
    const Tensor& a = ctx.In("X");
    const Tensor& b = ctx.In("Y");
    HEDDLE_RETURN_IF_ERROR(CheckSameDType(ctx, a, b));
    bool equal = a.shape() == b.shape();
    LookMeter meter;
    for (int64_t i = 0; i < a.numel() && equal; ++i) {
      meter.Did(1);
      const T x = a.data<T>()[i], y = b.data<T>()[i];
      if constexpr (std::is_floating_point_v<T>)
        equal = std::fabs(x - y) < T(1e-8) || x == y;
      else
        equal = x == y;
    }
    *ctx.Out("Out").template mutable_data<bool>() = equal;
    return Status::Ok();
  }
};

Status InferEqualAll(ShapeContext& ctx) {
  ctx.SetOut("Out", Shape(), DType::kBool);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(equal_all) {
  op.Doc("whether two tensors have one shape and equal elements")
      .Input("X")
      .Input("Y")
      .Output("Out");
  op.InferShape(&InferEqualAll).Kernels<EqualAll, float, double, int32_t, int64_t, bool>();
}
