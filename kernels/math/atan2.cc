// atan2: the angle of a point.
#include <cmath>

#include "core/error.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/binary_op.h"

namespace heddle {
namespace {

struct Atan2Slots {
  static constexpr Key x() { return "X1"; }
  static constexpr Key y() { return "X2"; }
  static constexpr Key out() { return "Out"; }
};

struct Atan2Fn {  // integers give double, rounded to float32 as Paddle has it
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static auto Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<double>(std::atan2(static_cast<float>(a), static_cast<float>(b)));
    else
      return std::atan2(a, b);
  }
};

template <typename T>
struct Atan2 {
  static Status Run(KernelContext& ctx) {
    using Out = std::conditional_t<std::is_integral_v<T>, double, T>;
    return RunBinaryOp<Atan2Slots>(ctx, BinaryLoop<Atan2Fn, T, Out>::kLoops);
  }
};

Status InferAtan2(ShapeContext& ctx) {
  const DType x = ctx.InDType("X1");
  return BroadcastOut(ctx, "X1", "X2", "Out", IsInteger(x) ? DType::kF64 : x);
}

template <typename T>
struct Atan2Grad {
  using C = ComputeType<T>;

  static Status Run(KernelContext& ctx) {
    const Tensor& a = ctx.In("X1");
    const Tensor& b = ctx.In("X2");
    const Tensor& dout = ctx.In("Out@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&a, &b}));
    if (a.numel() != b.numel() || a.numel() != dout.numel())
      return InvalidArgument("X1, X2 and Out@GRAD must have one shape");
    Tensor* d1 = ctx.OutOpt("X1@GRAD");
    Tensor* d2 = ctx.OutOpt("X2@GRAD");
    ctx.ParallelFor(a.numel(), kHeavyGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const C x = static_cast<C>(a.data<T>()[i]), y = static_cast<C>(b.data<T>()[i]);
        const C g = static_cast<C>(dout.data<T>()[i]) / (x * x + y * y);
        if (d1 != nullptr) d1->mutable_data<T>()[i] = static_cast<T>(g * y);
        if (d2 != nullptr) d2->mutable_data<T>()[i] = static_cast<T>(-g * x);
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(atan2) {
  op.Doc("angle of the point (x2, x1)").Input("X1").Input("X2").Output("Out");
  op.InferShape(&InferAtan2).Prepare(&PrepareBroadcast<Atan2Slots>);
  op.Kernels<Atan2, float, double, int32_t, int64_t, float16, bfloat16>();
}

HEDDLE_OP(atan2_grad) {
  op.Doc("gradient of atan2").Input("X1").Input("X2").Input("Out@GRAD").KernelKey("Out@GRAD");
  op.Output("X1@GRAD", kOptional).Output("X2@GRAD", kOptional).InferShape(&GradLikeInputs);
  op.Kernels<Atan2Grad, float, double, float16>();
}
