#include "core/interrupts.h"
#include "core/operands/promoted.h"
#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/gemm/gemm_ops.h"

namespace heddle {
namespace {

Result<MatmulShapes> View(const OpContext& ctx, const Shape& x, const Shape& y) {
  return MatmulShapesOf(x, y, ctx.Bool("trans_x"), ctx.Bool("trans_y"));
}
struct NoFactor {
  double operator()(const OpContext&) const { return 1; }
};
using Family = MatmulFamily<View, NoFactor>;

Status MatmulShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& y = ctx.InShape("Y");
  if (!x.known_rank() || !y.known_rank()) return ctx.Defer();
  if (ctx.InDType("X") != ctx.InDType("Y"))
    return InvalidArgument("X is ", Name(ctx.InDType("X")), ", but Y is ", Name(ctx.InDType("Y")));
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, View(ctx, x, y));
  ctx.SetOut("Out", s.result, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

// Outputs "V@GRAD" with the shape of V, where they are wanted.
void GradOut(ShapeContext& ctx, Key out, Key in) {
  if (ctx.HasOut(out)) ctx.SetOut(out, ctx.InShape(in), ctx.InDType(in));
}

Status DoubleGradShape(ShapeContext& ctx) {
  GradOut(ctx, "X@GRAD", "X");
  GradOut(ctx, "Y@GRAD", "Y");
  GradOut(ctx, "grad_out@GRAD", "grad_out");
  return Status::Ok();
}

Status TripleGradShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(DoubleGradShape(ctx));
  GradOut(ctx, "grad_grad_x@GRAD", "X");
  GradOut(ctx, "grad_grad_y@GRAD", "Y");
  return Status::Ok();
}

// Gradients have as many elements as what they are the gradients of.
Status CheckSizes(const PrepareContext& ctx, Key slot, int64_t numel) {
  if (ctx.HasIn(slot) && ctx.InShape(slot).numel() != numel)
    return InvalidArgument(slot.name, " has shape ", ctx.InShape(slot).ToString(), ", expected ",
                           numel, " elements");
  return Status::Ok();
}

template <bool kTriple>
Result<std::unique_ptr<KernelState>> PrepareHigher(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, View(ctx, ctx.InShape("X"), ctx.InShape("Y")));
  if (ctx.InShape("grad_out").numel() != s.out.numel())
    return InvalidArgument("grad_out has shape ", ctx.InShape("grad_out").ToString(), ", expected ",
                           s.result.ToString());
  const int64_t x = ctx.InShape("X").numel(), y = ctx.InShape("Y").numel();
  HEDDLE_RETURN_IF_ERROR(CheckSizes(ctx, "grad_x@GRAD", x));
  HEDDLE_RETURN_IF_ERROR(CheckSizes(ctx, "grad_y@GRAD", y));
  if constexpr (kTriple) {
    HEDDLE_RETURN_IF_ERROR(CheckSizes(ctx, "grad_grad_x", x));
    HEDDLE_RETURN_IF_ERROR(CheckSizes(ctx, "grad_grad_y", y));
    HEDDLE_RETURN_IF_ERROR(CheckSizes(ctx, "grad_grad_out@GRAD", s.out.numel()));
  }
  return std::unique_ptr<KernelState>(std::make_unique<MatmulGradState>(s, 1.0));
}

// A sum of products, where a product with an absent operand is nothing.
template <typename T>
class Sum {
 public:
  Sum(const KernelContext& ctx, const MatmulPlans& plans, Tensor* to,
      const Tensor* addend = nullptr)
      : ctx_(ctx), plans_(plans), to_(to), any_(addend != nullptr) {
    if (addend != nullptr && addend->data<T>() != to->data<T>())
      std::memcpy(to->mutable_raw(), addend->raw(), to->bytes());
  }
  ~Sum() {
    if (to_ && !any_) std::memset(to_->mutable_raw(), 0, to_->bytes());
  }
  void Out(const Tensor* x, const Tensor* y) {
    if (Wanted(x, y))
      plans_.Out(ctx_, T(1), x->data<T>(), y->data<T>(), to_->mutable_data<T>(), Again());
  }
  void XGrad(const Tensor* grad, const Tensor* y) {
    if (Wanted(grad, y))
      plans_.XGrad(ctx_, T(1), grad->data<T>(), y->data<T>(), to_->mutable_data<T>(), Again());
  }
  void YGrad(const Tensor* x, const Tensor* grad) {
    if (Wanted(x, grad))
      plans_.YGrad(ctx_, T(1), x->data<T>(), grad->data<T>(), to_->mutable_data<T>(), Again());
  }

 private:
  bool Wanted(const Tensor* a, const Tensor* b) const { return to_ && a && b; }
  bool Again() { return std::exchange(any_, true); }
  const KernelContext& ctx_;
  const MatmulPlans& plans_;
  Tensor* to_;
  bool any_;  // `to` holds something
};

template <typename T>
struct DoubleGrad {
  static Status Run(KernelContext& ctx) {
    const MatmulPlans& plans = ctx.State<MatmulGradState>().plans;
    const Tensor *x = &ctx.In("X"), *y = &ctx.In("Y"), *grad = &ctx.In("grad_out");
    const Tensor *ddx = ctx.InOpt("grad_x@GRAD"), *ddy = ctx.InOpt("grad_y@GRAD");
    Sum<T>(ctx, plans, ctx.OutOpt("X@GRAD")).XGrad(grad, ddy);
    Sum<T>(ctx, plans, ctx.OutOpt("Y@GRAD")).YGrad(ddx, grad);
    Sum<T> out(ctx, plans, ctx.OutOpt("grad_out@GRAD"));
    out.Out(ddx, y);
    out.Out(x, ddy);
    return Status::Ok();
  }
};

// The gradients of the double gradient's three results, whose own gradients are named gx, gy, gout.
template <typename T>
struct TripleGrad {
  static Status Run(KernelContext& ctx) {
    const MatmulPlans& plans = ctx.State<MatmulGradState>().plans;
    const Tensor *x = &ctx.In("X"), *y = &ctx.In("Y"), *grad = &ctx.In("grad_out");
    const Tensor *ddx = ctx.InOpt("grad_grad_x"), *ddy = ctx.InOpt("grad_grad_y");
    const Tensor *gx = ctx.InOpt("grad_x@GRAD"), *gy = ctx.InOpt("grad_y@GRAD"),
                 *gout = ctx.InOpt("grad_grad_out@GRAD");
    Sum<T>(ctx, plans, ctx.OutOpt("X@GRAD")).XGrad(gout, ddy);
    Sum<T>(ctx, plans, ctx.OutOpt("Y@GRAD")).YGrad(ddx, gout);
    Sum<T> to_ddx(ctx, plans, ctx.OutOpt("grad_grad_x@GRAD"));
    to_ddx.XGrad(gout, y);
    to_ddx.XGrad(grad, gy);
    Sum<T> to_ddy(ctx, plans, ctx.OutOpt("grad_grad_y@GRAD"));
    to_ddy.YGrad(x, gout);
    to_ddy.YGrad(gx, grad);
    Sum<T> to_grad(ctx, plans, ctx.OutOpt("grad_out@GRAD"));
    to_grad.Out(gx, ddy);
    to_grad.Out(ddx, gy);
    return Status::Ok();
  }
};

// Complex operands count conjugated in each other's gradient.
template <typename T>
struct ConjugateGrad {
  static Status Run(KernelContext& ctx) {
    const MatmulPlans& plans = ctx.State<MatmulGradState>().plans;
    const Tensor& grad = ctx.In("Out@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&grad, &ctx.In("Y")}));
    if (Tensor* to = ctx.OutOpt("X@GRAD")) {
      const Tensor y = Conjugate(ctx, ctx.In("Y"));
      Sum<T>(ctx, plans, to, ctx.InOpt("AddendOfX")).XGrad(&grad, &y);
    }
    if (Tensor* to = ctx.OutOpt("Y@GRAD")) {
      const Tensor x = Conjugate(ctx, ctx.In("X"));
      Sum<T>(ctx, plans, to, ctx.InOpt("AddendOfY")).YGrad(&x, &grad);
    }
    return Status::Ok();
  }
  static Tensor Conjugate(const KernelContext& ctx, const Tensor& x) {
    Tensor out = ctx.Scratch(x.dtype(), x.shape());
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        out.mutable_data<T>()[i] = std::conj(x.data<T>()[i]);
    return out;
  }
};

void Attrs(OpDef& op) { op.Attr("trans_x", false).Attr("trans_y", false); }

}  // namespace
}  // namespace heddle

HEDDLE_OP(matmul_v2) {
  op.Doc("product of matrices with broadcast batch dimensions, as in NumPy");
  Family::Define(op);
  op.InputFlags("X", kPromoted).InputFlags("Y", kPromoted);
  Attrs(op);
  op.InferShape(MatmulShape);
}
HEDDLE_OP(matmul_v2_grad) {
  Family::DefineGrad(op);
  op.Kernels<ConjugateGrad, std::complex<float>, std::complex<double>>();
  Attrs(op);
}
HEDDLE_OP(matmul_v2_grad_grad) {
  op.Input("X").Input("Y").Input("grad_out");
  op.Input("grad_x@GRAD", kOptional).Input("grad_y@GRAD", kOptional);
  op.Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional).Output("grad_out@GRAD", kOptional);
  Attrs(op);
  op.InferShape(DoubleGradShape).Prepare(PrepareHigher<false>).Kernels<DoubleGrad, float, double>();
}
HEDDLE_OP(matmul_v2_triple_grad) {
  op.Input("X").Input("Y").Input("grad_out");
  op.Input("grad_grad_x", kOptional).Input("grad_grad_y", kOptional);
  op.Input("grad_x@GRAD", kOptional).Input("grad_y@GRAD", kOptional);
  op.Input("grad_grad_out@GRAD", kOptional);
  op.Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional).Output("grad_out@GRAD", kOptional);
  op.Output("grad_grad_x@GRAD", kOptional).Output("grad_grad_y@GRAD", kOptional);
  Attrs(op);
  op.InferShape(TripleGradShape).Prepare(PrepareHigher<true>).Kernels<TripleGrad, float, double>();
}

HEDDLE_EXAMPLES(matmul_v2, R"(
example float64 1x2x1x4
in X float64 [1, 2, 1, 4] -0.078 -0.011 0.055 -0.033 -0.056 0.078 0.011 0.033
in Y float64 [4] 0.06 -0.017 0.021 -0.056
out Out float64 [1, 2, 1] -0.0014900000000000007 -0.006303

example float32 1x4x4
in X float32 [1, 2, 4] -0.36 0.05 -0.76 -0.15 0.25 0.46 0.66 -0.56
in Y float32 [1, 4, 4] 0.74 -0.76 -0.88 0.51 -0.19 0.16 0.28 0.39 -0.65 -0.53 -0.42 -0.07 0.05 0.86
  0.63 -0.3
out Out float32 [1, 2, 4] 0.21059999 0.55539995 0.5555 -0.065900005 -0.35939997 -0.94780004 -0.7212
  0.4287

example int64 3x2x4
in X int64 [3, 2, 4] 0*24
in Y int64 [4, 2] 0*8
out Out int64 [3, 2, 2] 0*12

example float64 4
in X float64 [4] -0.02 0.06 0.02 -0.059
in Y float64 [4] 0.054 -0.061 -0.023 0.015
out Out float64 [] -0.006085

example int32 1x2x1x4
in X int32 [1, 2, 1, 4] 0*8
in Y int32 [4] 0*4
out Out int32 [1, 2, 1] 0 0

example complex64 1x2x1x4
in X complex64 [1, 2, 1, 4] -0.078+0.8j -0.011+0.3j 0.055+0.5j -0.033-0.7j -0.056-0.8j 0.078+0.6j
  0.011-0.3j 0.033+0.1j
in Y complex64 [4] 0.06-0.5j -0.017+0.1j 0.021-0.2j -0.056+0.4j
out Out complex64 [1, 2, 1] 0.74851+0.106300004j -0.566303-0.0233j
)")

HEDDLE_EXAMPLES(matmul_v2_grad, R"(
example added to what is there
gradient none: the addends are no part of the gradient
in Out@GRAD float32 [2, 2] -0.8 -0.3 0.7 -0.8
in X float32 [2, 2] 0.23 -0.25 -0.48 -0.01
in Y float32 [2, 2] 0.3 0.65 -0.05 -0.4
in AddendOfX float32 [2, 2] 1 -2 0.5 3
in AddendOfY float32 [2, 2] 0.25 4 -1 2
from matmul_v2_grad X=X Y=Y Out@GRAD=Out@GRAD -> X@GRAD=t Y@GRAD=u
attr trans_x BOOLEAN false
attr trans_y BOOLEAN false
from elementwise_add X=t Y=AddendOfX -> Out=X@GRAD
from elementwise_add X=u Y=AddendOfY -> Out=Y@GRAD
out X@GRAD float32 [2, 2] 0.565 -1.84 0.19000003 3.285
out Y@GRAD float32 [2, 2] -0.26999998 4.315 -0.807 2.083

example added to what is there, batches of X alone
gradient none: the addends are no part of the gradient
attr trans_x BOOLEAN true
in Out@GRAD float32 [2, 2, 2] 0.26 0.16 0.2 -0.47 -0.43 -0.49 -0.34 -0.71
in X float32 [2, 3, 2] -0.56 0.74 -0.59 0.84 -0.02 0.22 0.53 0.04 -0.41 -0.62 -0.84 0.48
in Y float32 [3, 2] -0.12 -0.68 0.76 -0.45 -0.17 -0.41
in AddendOfX float32 [2, 3, 2] -2.7 3.7 3.7 -2.5 -3.8 -2.4 1.6 2.2 -3.8 0.6 -4 0.1
in AddendOfY float32 [3, 2] 1.1 3.9 -1.9 2.4 3 3.4
out X@GRAD float32 [2, 3, 2] -2.8400002 3.9956 3.8256001 -2.1365 -3.9098 -2.2413 1.9848001 2.7236
  -3.9063 0.66110003 -3.726 0.44889998
out Y@GRAD float32 [3, 2] 0.86090004 3.1745 -1.4983 2.5519001 3.2368 3.3642

example float64 2x2, trans_x
attr trans_x BOOLEAN true
in Out@GRAD float64 [2, 2] -0.8 -0.3 0.7 -0.8
in X float64 [2, 2] 0.23 -0.25 -0.48 -0.01
in Y float64 [2, 2] 0.3 0.65 -0.05 -0.4
out X@GRAD float64 [2, 2] -0.435 -0.31000000000000005 0.16 0.2850000000000001
out Y@GRAD float64 [2, 2] -0.359 0.131 0.377 0.152

example float64 2
in Out@GRAD float64 [] 0.5
in X float64 [2] -0.83 0.2
in Y float64 [2] 0.166 0.144
out X@GRAD float64 [2] 0.083 0.072
out Y@GRAD float64 [2] -0.415 0.1

example float64 3x3, trans_x, trans_y
attr trans_x BOOLEAN true
attr trans_y BOOLEAN true
in Out@GRAD float64 [3, 3] -0.7 0.7 0.9 -0 0.5 -0.3 -0.7 0 0.4
in X float64 [2, 3] -0.12 0.39 0.13 -0.62 0.64 -0.37
in Y float64 [3, 2] -0.38 -0.54 0.1 0.26 -0.22 -0.06
out X@GRAD float64 [2, 3] 0.13799999999999996 0.116 0.17799999999999994 0.506 0.148 0.354
out Y@GRAD float64 [3, 2] -0.007000000000000006 0.6930000000000001 0.11100000000000002
  -0.11399999999999999 -0.173 -0.898

example float32 2x2, trans_x
attr trans_x BOOLEAN true
in Out@GRAD float32 [2, 2] -0.8 -0.3 0.7 -0.8
in X float32 [2, 2] 0.23 -0.25 -0.48 -0.01
in Y float32 [2, 2] 0.3 0.65 -0.05 -0.4
out X@GRAD float32 [2, 2] -0.435 -0.30999997 0.16000001 0.28500003
out Y@GRAD float32 [2, 2] -0.359 0.131 0.377 0.15200001
)")

HEDDLE_EXAMPLES(matmul_v2_grad_grad, R"(
example float64 2
in X float64 [2] 0.07 -0.69
in Y float64 [2] 0.419 0.152
in grad_out float64 [] 0.978
in grad_x@GRAD float64 [2] -0.3 -0.4
in grad_y@GRAD float64 [2] -0.4 0.7
out X@GRAD float64 [2] -0.3912 0.6846
out Y@GRAD float64 [2] -0.2934 -0.3912
out grad_out@GRAD float64 [] -0.6974999999999999

example float64 2x2, trans_x
attr trans_x BOOLEAN true
in X float64 [2, 2] -0.25 0.23 -0.01 -0.48
in Y float64 [2, 2] 0.65 -0.4 -0.05 0.3
in grad_out float64 [2, 2] 0.494 0.639 0.204 0.349
in grad_x@GRAD float64 [2, 2] 0.6 -0.5 0.1 0.3
in grad_y@GRAD float64 [2, 2] -1 0.9 -0 -0.4
out X@GRAD float64 [2, 2] 0.08110000000000006 0.1101 -0.2556 -0.1396
out Y@GRAD float64 [2, 2] 0.19440000000000002 0.20890000000000003 0.11059999999999999
  0.16859999999999997
out grad_out@GRAD float64 [2, 2] 0.635 -0.431 -0.5700000000000001 0.6890000000000001

example float64 3x2x2, trans_y
attr trans_y BOOLEAN true
in X float64 [1, 2, 2] 0.23 -0.25 -0.48 -0.01
in Y float64 [3, 2, 2] 0.71 0.85 -0.74 -0.59 0.56 -0.31 0.13 -0.45 -0.16 -0.02 0.27 0.42
in grad_out float64 [3, 2, 2] 0.313 0.609 0.668 0.432 0.254 0.55 0.372 0.905 0.786 0.491 0.727 0.846
in grad_x@GRAD float64 [1, 2, 2] 0.3 1 -0.2 0.7
in grad_y@GRAD float64 [3, 2, 2] -0.1 0.1 0.2 -0.3 1 -0.5 0.9 -0.9 -0.2 0.7 0.2 -0.8
out X@GRAD float64 [1, 2, 2] 0.7805000000000002 -0.6160000000000001 1.2299000000000002 -1.2312
out Y@GRAD float64 [3, 2, 2] -0.03970000000000003 0.7806 0.0963 0.9114 0.001799999999999996 0.5144
  -0.016000000000000014 1.1835 0.09040000000000001 1.2949 -0.02190000000000003 1.0832
out grad_out@GRAD float64 [3, 2, 2] 1.015 -0.691 0.49999999999999994 -0.358 0.213
  0.02100000000000002 -0.804 -0.764 -0.28900000000000003 0.747 0.107 0.152

example float32 2
in X float32 [2] 0.07 -0.69
in Y float32 [2] 0.419 0.152
in grad_out float32 [] 0.978
in grad_x@GRAD float32 [2] -0.3 -0.4
in grad_y@GRAD float32 [2] -0.4 0.7
out X@GRAD float32 [2] -0.3912 0.6846
out Y@GRAD float32 [2] -0.29340002 -0.3912
out grad_out@GRAD float32 [] -0.6975
)")

HEDDLE_EXAMPLES(matmul_v2_triple_grad, R"(
example float64 2, no trans_x, no trans_y
attr trans_x BOOLEAN false
attr trans_y BOOLEAN false
in X float64 [2] 0.246 0.362
in Y float64 [2] -0.552 -0.388
in grad_grad_out@GRAD float64 [] -0.2
in grad_grad_x float64 [2] 0.73 1.3
in grad_grad_y float64 [2] 0.82 0.74
in grad_out float64 [] 0.997
in grad_x@GRAD float64 [2] 0.4 0.1
in grad_y@GRAD float64 [2] 0.5 0.9
out X@GRAD float64 [2] -0.164 -0.148
out Y@GRAD float64 [2] -0.146 -0.26
out grad_grad_x@GRAD float64 [2] 0.6089 0.9749
out grad_grad_y@GRAD float64 [2] 0.3496 0.027300000000000005
out grad_out@GRAD float64 [] 1.9370000000000003

example float64 2x2, trans_x, trans_y
attr trans_x BOOLEAN true
attr trans_y BOOLEAN true
in X float64 [2, 2] -0.48 -0.25 0.23 -0.01
in Y float64 [2, 2] 0.65 -0.05 0.3 -0.4
in grad_grad_out@GRAD float64 [2, 2] -0.7 -0.5 -0 -0.4
in grad_grad_x float64 [2, 2] 0.78 1.1 1.1 1
in grad_grad_y float64 [2, 2] 1.3 1.5 0.67 0.52
in grad_out float64 [2, 2] 0.639 0.494 0.204 0.349
in grad_x@GRAD float64 [2, 2] -0.5 -0.1 -0 -0.8
in grad_y@GRAD float64 [2, 2] 0.7 0.6 0.6 0.3
out X@GRAD float64 [2, 2] -1.2449999999999999 -0.268 -1.3099999999999998 -0.20800000000000002
out Y@GRAD float64 [2, 2] -0.5459999999999999 -0.77 -0.8300000000000001 -0.9500000000000001
out grad_grad_x@GRAD float64 [2, 2] 0.13870000000000005 0.23219999999999996 0.7666000000000001
  0.3871
out grad_grad_y@GRAD float64 [2, 2] -0.0039000000000000146 -0.32420000000000004 0.058099999999999985
  -0.3902
out grad_out@GRAD float64 [2, 2] 0.5559999999999999 0.463 0.040000000000000036 0.4769999999999999

example float32 2, no trans_x, no trans_y
attr trans_x BOOLEAN false
attr trans_y BOOLEAN false
in X float32 [2] 0.246 0.362
in Y float32 [2] -0.552 -0.388
in grad_grad_out@GRAD float32 [] -0.2
in grad_grad_x float32 [2] 0.73 1.3
in grad_grad_y float32 [2] 0.82 0.74
in grad_out float32 [] 0.997
in grad_x@GRAD float32 [2] 0.4 0.1
in grad_y@GRAD float32 [2] 0.5 0.9
out X@GRAD float32 [2] -0.164 -0.148
out Y@GRAD float32 [2] -0.14600001 -0.26
out grad_grad_x@GRAD float32 [2] 0.6089 0.97489995
out grad_grad_y@GRAD float32 [2] 0.3496 0.0273
out grad_out@GRAD float32 [] 1.9369999
)")
