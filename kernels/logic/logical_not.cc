// logical_not: true where X is zero.
#include "kernels/base/convert.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

template <typename T>
struct LogicalNot {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const T* a = x.data<T>();
    bool* y = ctx.Out("Out").mutable_data<bool>();
    ctx.ParallelFor(x.numel(), 1 << 17, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) y[i] = !ConvertTo<bool>(a[i]);
    });
    return Status::Ok();
  }
};

Status LogicalNotShape(ShapeContext& ctx) {
  ctx.SetOut("Out", ctx.InShape("X"), DType::kBool);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(logical_not) {
  op.Doc("True where X is zero or false.").Input("X").Output("Out").Inplace("X", "Out");
  op.InferShape(LogicalNotShape);
  op.Kernels<LogicalNot, bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double, float16,
             bfloat16, complex64, complex128>();
}
