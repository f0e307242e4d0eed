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
