// Second and third derivatives of elementwise_add and elementwise_sub.
#include "core/memory/watched_bytes.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"

namespace heddle {
namespace {

// An absent tangent counts as zeros of the shape of DOut (x) or of Y (y).
struct Tangents {
  const Tensor* x;
  const Tensor* y;
  BroadcastPlan plan;
};

Result<Tangents> ReadTangents(const KernelContext& ctx) {
  Tangents t{ctx.InOpt("DDX"), ctx.InOpt("DDY"), {}};
  HEDDLE_ASSIGN_OR_RETURN(
      t.plan,
      MakeBroadcastPlan(t.x != nullptr ? t.x->shape() : ctx.In("DOut").shape(),
                        t.y != nullptr ? t.y->shape() : ctx.In("Y").shape(), ctx.Int("axis")));
  return t;
}

template <typename F>
struct Swapped {
  static constexpr int64_t kGrain = F::kGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return F::Apply(b, a);
  }
};

template <typename F>
struct SecondOf {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      HEDDLE_ASSIGN_OR_RETURN(const Tangents t, ReadTangents(ctx));
      if (!ctx.HasOut("DDOut")) return Status::Ok();
      Tensor& out = ctx.Out("DDOut");
      if (out.numel() != t.plan.numel)
        return InvalidArgument("DDX and DDY do not fit DOut ", out.shape().ToString());
      Tensor zeros;
      for (const Tensor* in : {t.x, t.y})
        if (in != nullptr && in->dtype() != kDTypeOf<T>)
          return InvalidArgument("DDX, DDY and DOut must have one dtype");
      if (t.x == nullptr || t.y == nullptr) {
        zeros = ctx.Scratch(kDTypeOf<T>, Shape{t.plan.numel});
        WatchedFill(zeros.mutable_data<T>(), t.plan.numel, T(0));
      }
      // Paddle hands the operands on larger rank first: the difference is that of DDY - DDX when
      // DDX has fewer dimensions.
      const bool swapped = t.x != nullptr && t.y != nullptr && t.x->rank() < t.y->rank();
      const auto& loops =
          swapped ? BinaryLoop<Swapped<F>, T, T>::kLoops : BinaryLoop<F, T, T>::kLoops;
      RunBinary(ctx, t.plan, loops, t.x != nullptr ? t.x->raw() : zeros.raw(),
                t.y != nullptr ? t.y->raw() : zeros.raw(), out.mutable_raw());
      return Status::Ok();
    }
  };
};

Status InferAddSecond(ShapeContext& ctx) {
  ctx.SetOut("DDOut", ctx.InShape("DOut"), ctx.InDType("DOut"));
  ctx.ShareLoD("DOut", "DDOut");
  return Status::Ok();
}

template <typename F>
void DefineSecond(OpDef& op) {
  op.Input("Y", kNoBuffer).Input("DOut", kNoBuffer).Input("DDX", kOptional).Input("DDY", kOptional);
  op.Output("DDOut", kOptional).Attr("axis", -1).KernelKey("DOut").InferShape(&InferAddSecond);
  op.Kernels<SecondOf<F>::template Kernel, float, double, int32_t, int64_t, float16, bfloat16,
             int16_t, std::complex<float>, std::complex<double>>();
}

// D_DDX and D_DDY are D_DDOut, summed to the shapes of DDX and DDY; the second one with a sign.
template <typename T>
struct AddThird {
  static Status Run(KernelContext& ctx) {
    const Tensor& d = ctx.In("D_DDOut");
    HEDDLE_ASSIGN_OR_RETURN(
        const BroadcastPlan plan,
        MakeBroadcastPlan(ctx.In("DDX").shape(), ctx.In("DDY").shape(), ctx.Int("axis")));
    if (d.numel() != plan.numel)
      return InvalidArgument("input D_DDOut does not fit DDX and DDY: ", d.shape().ToString());
    constexpr GradLoops kPass = LoopsOf<PassGrad, T>();
    const GradInputs in{nullptr, nullptr, nullptr, d.raw()};
    if (Tensor* y = ctx.OutOpt("D_DDY")) RunBinaryGrad(ctx, plan, kPass, in, d.dtype(), y, false);
    if (Tensor* x = ctx.OutOpt("D_DDX")) RunBinaryGrad(ctx, plan, kPass, in, d.dtype(), x, true);
    return Status::Ok();
  }
};

Status InferAddThird(ShapeContext& ctx) {
  ctx.SetOut("D_DDX", ctx.InShape("DDX"), ctx.InDType("D_DDOut"));
  ctx.SetOut("D_DDY", ctx.InShape("DDY"), ctx.InDType("D_DDOut"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_add_grad_grad) {
  op.Doc("second derivative of x + y");
  DefineSecond<AddFn>(op);
}

HEDDLE_OP(elementwise_sub_grad_grad) {
  op.Doc("second derivative of x - y");
  DefineSecond<SubFn>(op);
}

HEDDLE_OP(elementwise_add_triple_grad) {
  op.Doc("third derivative of x + y");
  op.Input("DDX", kNoBuffer).Input("DDY", kNoBuffer).Input("D_DDOut").KernelKey("D_DDOut");
  op.Output("D_DDX", kOptional)
      .Output("D_DDY", kOptional)
      .Attr("axis", -1)
      .InferShape(&InferAddThird);
  op.Kernels<AddThird, float, double, int32_t, int64_t, float16, bfloat16, int16_t,
             std::complex<float>, std::complex<double>>();
}

HEDDLE_EXAMPLES(elementwise_add_grad_grad, R"(
example float64 scalar
in DDX float64 [] 1.7
in DDY float64 [] 1.7
in DOut float64 [] 1.7
in Y float64 [] 0.716
out DDOut float64 [] 3.4

example float64 2x4x3x1, axis 1
attr axis INT 1
in DDX float64 [2, 4, 3, 1] 0.84 0.77 1.28 1.58 0.55 0.1 1.14 0.91 0.99 1.21 0.25 0.32 0.4 1.5 0.69
  1.8 1.43 1.06 0.47 0.62 1.65 1.73 0.18 1.36
in DDY float64 [4, 3] 2.32 1.26 0.73 0.46 3.12 3.39 2.86 0.99 2.06 2.59 1.52 1.79
in DOut float64 [2, 4, 3, 1] 0.47 0.69 1.06 1.58 1.8 0.32 0.1 0.99 0.4 1.36 0.25 1.43 1.5 0.84 1.14
  1.65 1.73 0.77 0.62 0.55 0.18 1.28 1.21 0.91
in Y float64 [4, 3] 0.455 0.305 0.832 0.756 0.531 0.38 0.907 0.154 0.606 0.079 0.681 0.229
out DDOut float64 [2, 4, 3, 1] 3.1599999999999997 2.0300000000000002 2.01 2.04 3.67 3.49 4 1.9 3.05
  3.8 1.77 2.11 2.7199999999999998 2.76 1.42 2.2600000000000002 4.55 4.45 3.33 1.6099999999999999
  3.71 4.32 1.7 3.1500000000000004

example float64 4x3
in DDX float64 [4, 3] 0.878 0.603 0.809 1.291 0.74 0.672 1.153 1.222 1.016 1.36 1.084 0.947
in DDY float64 [] 222
in DOut float64 [4, 3] 1.084 1.222 0.672 1.016 0.878 0.947 0.74 1.36 1.291 0.603 0.809 1.153
in Y float64 [] 0.432
out DDOut float64 [4, 3] 222.878 222.603 222.809 223.291 222.74 222.672 223.153 223.222 223.016
  223.36 223.084 222.947

example float32 scalar
in DDX float32 [] 1.7
in DDY float32 [] 1.7
in DOut float32 [] 1.7
in Y float32 [] 0.716
out DDOut float32 [] 3.4

example int16 scalar
in DDX int16 [] 11
in DDY int16 [] 11
in DOut int16 [] 11
in Y int16 [] 5
out DDOut int16 [] 22
)")

HEDDLE_EXAMPLES(elementwise_sub_grad_grad, R"(
example float64 scalar
in DDX float64 [] 0.266
in DDY float64 [] -0.266
in DOut float64 [] 0.266
in Y float64 [] 0.716
out DDOut float64 [] 0.532

example float64 2x3x4
in DDX float64 [2, 3, 4] 0.69 0.77 -0.05 0.17 0.54 0.32 -0.87 -0.2 -0.13 0.62 -0.5 -0.42 -0.72 -0.8
  -0.65 0.84 0.47 0.1 -0.27 0.39 -0.57 -0.35 0.25 0.02
in DDY float64 [4] -0.54 2.23 0.84 -1.92
in DOut float64 [2, 3, 4] -0.57 -0.42 0.47 -0.65 0.25 -0.35 0.1 0.69 0.62 0.17 -0.5 -0.27 0.39 -0.72
  -0.87 -0.2 0.84 -0.13 -0.05 0.77 -0.8 0.32 0.54 0.02
in Y float64 [4] 0.784 0.393 0.588 0.197
out DDOut float64 [2, 3, 4] 1.23 -1.46 -0.89 2.09 1.08 -1.91 -1.71 1.72 0.41000000000000003
  -1.6099999999999999 -1.3399999999999999 1.5 -0.17999999999999994 -3.0300000000000002 -1.49 2.76
  1.01 -2.13 -1.1099999999999999 2.31 -0.029999999999999916 -2.58 -0.59 1.94

example float32 scalar
in DDX float32 [] 0.266
in DDY float32 [] -0.266
in DOut float32 [] 0.266
in Y float32 [] 0.716
out DDOut float32 [] 0.532

example int16 scalar
in DDX int16 [] 1
in DDY int16 [] -1
in DOut int16 [] 1
in Y int16 [] 5
out DDOut int16 [] 2
)")

HEDDLE_EXAMPLES(elementwise_add_triple_grad, R"(
example float64 4, axis -1
attr axis INT -1
in DDX float64 [4] 1.19 0.86 0.52 1.53
in DDY float64 [4] 1.53 0.86 0.52 1.19
in D_DDOut float64 [4] 2.39 3.06 1.05 1.72
out D_DDX float64 [4] 2.39 3.06 1.05 1.72
out D_DDY float64 [4] 2.39 3.06 1.05 1.72

example float64 4x3, axis -1
attr axis INT -1
in DDX float64 [] 279
in DDY float64 [4, 3] 1.275 1.413 1.069 1.138 1.619 0.863 0.931 1.207 1.482 1.344 1 1.551
in D_DDOut float64 [4, 3] 280.581 280.513 280.444 280.238 280.375 280.719 280.788 280.031 280.306
  280.1 280.65 280.169
out D_DDX float64 [] 3364.914
out D_DDY float64 [4, 3] 280.581 280.513 280.444 280.238 280.375 280.719 280.788 280.031 280.306
  280.1 280.65 280.169

example float64 4x3x1, axis -1
attr axis INT -1
in DDX float64 [4, 3, 1] 1.5 1.8 0.17 0.76 1.06 1.21 0.61 1.65 0.32 0.46 1.35 0.91
in DDY float64 [3, 1] 12.7 4.3 10.7
in D_DDOut float64 [4, 3, 1] 5 7.1 12.1 11.1 9.1 6 13.1 8.1 14.2 10.1 15.2 16.2
out D_DDX float64 [4, 3, 1] 5 7.1 12.1 11.1 9.1 6 13.1 8.1 14.2 10.1 15.2 16.2
out D_DDY float64 [3, 1] 39.300000000000004 39.5 48.5

example float32 4, axis -1
attr axis INT -1
in DDX float32 [4] 1.19 0.86 0.52 1.53
in DDY float32 [4] 1.53 0.86 0.52 1.19
in D_DDOut float32 [4] 2.39 3.06 1.05 1.72
out D_DDX float32 [4] 2.39 3.06 1.05 1.72
out D_DDY float32 [4] 2.39 3.06 1.05 1.72

example int16 4, axis -1
attr axis INT -1
in DDX int16 [4] 8 6 3 10
in DDY int16 [4] 10 6 3 8
in D_DDOut int16 [4] 16 21 7 12
out D_DDX int16 [4] 16 21 7 12
out D_DDY int16 [4] 16 21 7 12
)")
