// bpr_loss: Bayesian personalised ranking, the logistic loss of a label against all others.
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status CheckBpr(const ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &label = ctx.InShape("Label");
  if (x.known_rank() && (x.rank() < 1 || (x.dim(-1) >= 0 && x.dim(-1) < 2)))
    return InvalidArgument("X must have at least two classes in its last axis, not ", x.ToString());
  if (x.is_static() && label.is_static() && label.numel() * x.dim(-1) != x.numel())
    return InvalidArgument("Label ", label.ToString(), " does not fit X ", x.ToString());
  return Status::Ok();
}

Status InferBpr(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckBpr(ctx));
  Shape y = ctx.InShape("X");
  if (y.known_rank()) y[y.rank() - 1] = 1;
  ctx.SetOut("Y", y, ctx.InDType("X"));
  ctx.ShareLoD("X", "Y");
  return Status::Ok();
}

// Mean over the other classes of log(1 + exp(x_j - x_label)).
template <typename T>
struct Bpr {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const int64_t c = in.dim(-1), rows = in.numel() / c;
    const Labels label(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(label.Check(rows, c, -1));
    const T* x = in.data<T>();
    T* y = ctx.Out("Y").mutable_data<T>();
    for (const int64_t i : Watched(rows)) {
      if (label[i] < 0) return OutOfRange("label ", label[i], " is not in [0, ", c, ")");
      T sum = 0;
      for (int64_t j = 0; j < c; ++j)
        if (j != label[i])
          sum += Tolerable(std::log1p(std::exp(x[i * c + j] - x[i * c + label[i]])));
      y[i] = sum / static_cast<T>(c - 1);
    }
    return Status::Ok();
  }
};

Status InferBprGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckBpr(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Label", "Y@GRAD"));
  return GradLikeInputs(ctx);
}

template <typename T>
struct BprGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const int64_t c = in.dim(-1), rows = in.numel() / c;
    const Labels label(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(label.Check(rows, c, -1));
    const T* x = in.data<T>();
    const T* dy = ctx.In("Y@GRAD").data<T>();
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    for (const int64_t i : Watched(rows)) {
      if (label[i] < 0) return OutOfRange("label ", label[i], " is not in [0, ", c, ")");
      T own = 0;
      for (int64_t j = 0; j < c; ++j) {
        if (j == label[i]) continue;
        const T d = dy[i] / static_cast<T>(c - 1) * SigmoidOf(x[i * c + j] - x[i * c + label[i]]);
        dx[i * c + j] = d;
        own -= d;
      }
      dx[i * c + label[i]] = own;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(bpr_loss) {
  op.Doc("Bayesian personalised ranking loss")
      .Input("X")
      .Input("Label")
      .Output("Y")
      .InferShape(InferBpr)
      .Kernels<Bpr, float, double>();
}

HEDDLE_OP(bpr_loss_grad) {
  op.Input("X")
      .Input("Label")
      .Input("Y@GRAD")
      .Output("X@GRAD")
      .InferShape(InferBprGrad)
      .Kernels<BprGrad, float, double>();
}
