#include "core/interrupts.h"
#include "core/operands/promoted.h"
#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/products/gemm_ops.h"

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
