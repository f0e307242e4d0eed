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
  op.Kernels<Atan2, float, double, int32_t, int64_t, float16>();
}

HEDDLE_OP(atan2_grad) {
  op.Doc("gradient of atan2").Input("X1").Input("X2").Input("Out@GRAD").KernelKey("Out@GRAD");
  op.Output("X1@GRAD", kOptional).Output("X2@GRAD", kOptional).InferShape(&GradLikeInputs);
  op.Kernels<Atan2Grad, float, double, float16>();
}

HEDDLE_EXAMPLES(atan2, R"(
example float32 6
in X1 float32 [6] 0.59 -1.19 0.15 -0.75 -0.3 1.04
in X2 float32 [6] -1.47 0.08 -0.43 0.6 -0.95 1.12
out Out float32 [6] 2.759914 -1.5036705 2.805954 -0.8960554 -2.8357139 0.74837804

example float64 4x3
in X1 float64 [4, 3] -0.792 -0.31 -0.379 -0.585 -0.861 -0.654 -0.517 -0.173 -0.929 -0.241 -0.448
  -0.723
in X2 float64 [4, 3] 0.515 0.652 0.378 0.583 0.172 0.241 0.309 0.926 0.858 0.446 0.789 0.72
out Out float64 [4, 3] -0.9942436045414991 -0.44382368829450963 -0.7867191665920543
  -0.7871104904910187 -1.3736241308010286 -1.217735082311122 -1.0320852531081839
  -0.18469584705584868 -0.8251086701311546 -0.4954109737400165 -0.5164120130620281
  -0.7874771624811362

example int64 4x3
in X1 int64 [4, 3] 0*12
in X2 int64 [4, 3] 0*12
out Out float64 [4, 3] 0*12

example float32 2x1x4x2
in X1 float32 [2, 1, 4, 2] -1.07 1.04 -0.65 -0.86 -1.5 -0.23 0.83 0.62 0.41 -0.44 0.2 -0.01 1.25
  1.47 1.68 -1.28
in X2 float32 [2, 1, 4, 2] 0.61 1.72 -1.39 0.39 1.05 0.16 0.83 1.5 -0.5 -1.62 -0.28 1.28 -0.95 -0.73
  -0.06 -1.17
out Out float32 [2, 1, 4, 2] -1.0526572 0.5438324 -2.704178 -1.1450453 -0.9600704 -0.96299434
  0.7853982 0.3919475 2.454775 -2.8763855 2.5213432 -0.007812341 2.220667 2.0317192 1.6064954
  -2.3113267

example int32 6
in X1 int32 [6] -1 -1 0 -1 -1 0
in X2 int32 [6] 0 -1 -1 1 -1 1
out Out float64 [6] -1.5707963705062866 -2.356194496154785 3.1415927410125732 -0.7853981852531433
  -2.356194496154785 0

example float16 6
in X1 float16 [6] 0.59 -1.19 0.15 -0.75 -0.3 1.04
in X2 float16 [6] -1.47 0.08 -0.43 0.6 -0.95 1.12
out Out float16 [6] 2.76 -1.503 2.805 -0.8955 -2.834 0.748
)")

HEDDLE_EXAMPLES(atan2_grad, R"(
example float64 6
in Out@GRAD float64 [6] 0.2 -0.7 -0.1 0.5 -0.4 -0.7
in X1 float64 [6] -0.75 0.59 -0.3 1.04 -1.19 0.15
in X2 float64 [6] -0.43 0.6 0.08 1.12 -1.47 -0.95
out X1@GRAD float64 [6] -0.11506556061011508 -0.5931365626323966 -0.08298755186721991
  0.23972602739726026 0.1643835616438356 0.7189189189189189
out X2@GRAD float64 [6] 0.20069574525020073 0.5832509532551899 -0.3112033195020747
  -0.22260273972602737 -0.13307240704500978 0.11351351351351352

example float64 2x1x4x2
in Out@GRAD float64 [2, 1, 4, 2] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0 -0.3
in X1 float64 [2, 1, 4, 2] 0.2 -0.65 -0.86 -1.28 0.83 -0.23 1.47 -1.5 1.68 0.41 1.04 -0.44 1.25
  -0.01 -1.07 0.62
in X2 float64 [2, 1, 4, 2] 0.83 0.39 -1.62 -0.06 0.61 1.28 1.72 1.5 -0.28 -0.95 1.05 -0.5 -1.39
  -1.17 0.16 -0.73
out X1@GRAD float64 [2, 1, 4, 2] 0.9109617231444643 0 0.4334126040428062 0.007308160779537149
  0.22997172478793593 -0.5297699994087388 -0.30238509171175754 0.13333333333333336
  -0.07722007722007725 0.6211470203624135 -0.48074721853394997 -0.2254283137962128
  -0.2386539231957878 0.512783053323594 -0 0.23874414041207892
out X2@GRAD float64 [2, 1, 4, 2] -0.21950884895047337 0 -0.23008323424494648 -0.1559074299634592
  -0.31291234684260133 -0.09519304676875776 0.2584337702420253 0.13333333333333336
  -0.46332046332046345 0.26807397720904164 0.4761686735955314 0.1983769161406673 -0.214616837406284
  -0.004382761139517897 -0 0.2027689959664232

example float32 6
in Out@GRAD float32 [6] 0.2 -0.7 -0.1 0.5 -0.4 -0.7
in X1 float32 [6] -0.75 0.59 -0.3 1.04 -1.19 0.15
in X2 float32 [6] -0.43 0.6 0.08 1.12 -1.47 -0.95
out X1@GRAD float32 [6] -0.11506557 -0.5931366 -0.082987554 0.23972604 0.16438356 0.7189189
out X2@GRAD float32 [6] 0.20069575 0.58325094 -0.31120333 -0.22260274 -0.1330724 0.11351352

example float16 6
in Out@GRAD float16 [6] 0.2 -0.7 -0.1 0.5 -0.4 -0.7
in X1 float16 [6] -0.75 0.59 -0.3 1.04 -1.19 0.15
in X2 float16 [6] -0.43 0.6 0.08 1.12 -1.47 -0.95
out X1@GRAD float16 [6] -0.115 -0.5933 -0.08295 0.2396 0.1642 0.7188
out X2@GRAD float16 [6] 0.2006 0.583 -0.311 -0.2225 -0.133 0.11346
)")
