// Products of matrices of any numbers, by NumPy's rules, and those with an addend.
#include "kernels/base/check.h"
#include "kernels/operands/broadcast_rows.h"
#include "kernels/products/matmul_shape.h"

namespace heddle {
namespace {

Status OnnxMatMulShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"A", "B"})) return ctx.Defer();
  if (ctx.InDType("A") != ctx.InDType("B"))
    return InvalidArgument("A is ", Name(ctx.InDType("A")), ", B ", Name(ctx.InDType("B")),
                           ", expected one dtype");
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, MatMulShapeOf(ctx.InShape("A"), ctx.InShape("B")));
  ctx.SetOut("Y", s.out, ctx.InDType("A"));
  return Status::Ok();
}

template <typename T>
struct OnnxMatMul {
  static Status Run(KernelContext& ctx) {
    const Tensor &a = ctx.In("A"), &b = ctx.In("B");
    HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, MatMulShapeOf(a.shape(), b.shape()));
    s.Run<T>(ctx, a.data<T>(), b.data<T>(), ctx.Out("Y").template mutable_data<T>());
    return Status::Ok();
  }
};

template <typename Context>
Result<MatMulShape> GemmShapeOf(const Context& ctx) {
  const Shape &a = ShapeIn(ctx, "A"), &b = ShapeIn(ctx, "B");
  if (a.rank() != 2 || b.rank() != 2)
    return InvalidArgument("A ", a.ToString(), " and B ", b.ToString(), " must be matrices");
  HEDDLE_ASSIGN_OR_RETURN(MatMulShape s,
                          MatMulShapeOf(a, b, ctx.Int("transA") != 0, ctx.Int("transB") != 0));
  if (Has(ctx, "C")) {
    const Shape& c = ShapeIn(ctx, "C");
    bool fits = c.rank() <= 2;
    for (int i = 1; fits && i <= c.rank(); ++i) fits = c.dim(-i) == 1 || c.dim(-i) == s.out.dim(-i);
    if (!fits)
      return InvalidArgument("C has shape ", c.ToString(), ", which does not broadcast to ",
                             s.out.ToString());
  }
  return s;
}

Status OnnxGemmShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"A", "B", "C"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, GemmShapeOf(ctx));
  ctx.SetOut("Y", s.out, ctx.InDType("A"));
  return Status::Ok();
}

template <typename T>
struct OnnxGemm {
  static Status Run(KernelContext& ctx) {
    const Tensor &a = ctx.In("A"), &b = ctx.In("B");
    const Tensor* c = ctx.InOpt("C");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&b, c}));
    HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, GemmShapeOf(ctx));
    T* to = ctx.Out("Y").template mutable_data<T>();
    if constexpr (std::is_integral_v<T>) return Integers(ctx, s, to);
    const T alpha = static_cast<T>(ctx.Float("alpha")), beta = static_cast<T>(ctx.Float("beta"));
    s.Run<T>(ctx, a.data<T>(), b.data<T>(), to, alpha);
    return Add(c, s, [&](const BroadcastPlan& plan) {
      ForEachPair(ctx, plan, to, c->data<T>(), to,
                  [beta](T x, T y) { return static_cast<T>(x + beta * y); });
    });
  }

  template <typename Fn>
  static Status Add(const Tensor* c, const MatMulShape& s, const Fn& fn) {
    if (c == nullptr || s.out.numel() == 0) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(s.out, c->shape(), -1));
    fn(plan);
    return Status::Ok();
  }

  // Factors need not be integers: the sum is cut in the end.
  static Status Integers(KernelContext& ctx, const MatMulShape& s, T* to) {
    const Tensor* c = ctx.InOpt("C");
    const double alpha = ctx.Float("alpha"), beta = ctx.Float("beta");
    s.Run<T>(ctx, ctx.In("A").template data<T>(), ctx.In("B").template data<T>(), to);
    if (c == nullptr) {
      for (int64_t i = 0; alpha != 1 && i < s.out.numel(); ++i)
        to[i] = ConvertTo<T>(alpha * static_cast<double>(to[i]));
      return Status::Ok();
    }
    return Add(c, s, [&](const BroadcastPlan& plan) {
      ForEachPair(ctx, plan, to, c->data<T>(), to, [=](T x, T y) {
        return ConvertTo<T>(alpha * static_cast<double>(x) + beta * static_cast<double>(y));
      });
    });
  }
};

// The axis of X at which slope begins; -1: their last ones are the same.
int64_t PReluAxis(const OpContext& ctx, const Shape& slope) {
  return ctx.Int("channels") != 0 && slope.rank() == 1 && slope[0] != 1 ? 1 : -1;
}

Status OnnxPReluShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X", "slope"})) return ctx.Defer();
  const Shape &x = ctx.InShape("X"), &slope = ctx.InShape("slope");
  HEDDLE_ASSIGN_OR_RETURN(const Shape both, BroadcastShape(x, slope, PReluAxis(ctx, slope)));
  if (ctx.InDType("slope") != ctx.InDType("X"))
    return InvalidArgument("slope is ", Name(ctx.InDType("slope")), ", X ", Name(ctx.InDType("X")),
                           ", expected one dtype");
  ctx.SetOut("Y", both, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct OnnxPRelu {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &slope = ctx.In("slope");
    HEDDLE_ASSIGN_OR_RETURN(
        const BroadcastPlan plan,
        MakeBroadcastPlan(x.shape(), slope.shape(), PReluAxis(ctx, slope.shape())));
    ForEachPair(ctx, plan, x.data<T>(), slope.data<T>(), ctx.Out("Y").template mutable_data<T>(),
                [](T v, T s) { return v < 0 ? static_cast<T>(v * s) : v; });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_mat_mul) {
  op.Doc("products of matrices, vectors and batches by NumPy's rules").Input("A").Input("B");
  op.Output("Y").InferShape(OnnxMatMulShape);
  op.Kernels<OnnxMatMul, float, double, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_gemm) {
  op.Doc("alpha A B + beta C, either matrix transposed").Input("A").Input("B");
  op.Input("C", kOptional).Output("Y").Attr("alpha", 1.0).Attr("beta", 1.0);
  op.Attr("transA", 0).Attr("transB", 0).InferShape(OnnxGemmShape);
  op.Kernels<OnnxGemm, float, double, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_p_relu) {
  op.Doc(
      "X, negative elements multiplied by slope; both broadcast. With channels, a vector of "
      "several elements has one for each index of axis 1");
  op.Input("X").Input("slope").Output("Y").Attr("channels", 0).InferShape(OnnxPReluShape);
  op.Kernels<OnnxPRelu, float, double, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
