// smooth_l1_loss: the Huber loss with weights, summed per row.
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// smooth_l1_loss: Diff = (X - Y) * InsideWeight; one loss per row.
Status InferSmooth(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Y"));
  for (Key weight : {Key("InsideWeight"), Key("OutsideWeight")})
    if (ctx.HasIn(weight)) HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", weight));
  const Shape& x = ctx.InShape("X");
  if (x.known_rank() && x.rank() < 2) return InvalidArgument("X must have at least two axes");
  SetOutsLike(ctx, {{"X", "Diff"}});
  ctx.SetOut("Out", x.known_rank() ? Shape{x[0], 1} : x, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct SmoothL1 {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const T* x = in.data<T>();
    const T* y = ctx.In("Y").data<T>();
    const Tensor *inside = ctx.InOpt("InsideWeight"), *outside = ctx.InOpt("OutsideWeight");
    T* diff = ctx.Out("Diff").mutable_data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    const T s2 = static_cast<T>(ctx.Float("sigma") * ctx.Float("sigma"));
    const int64_t rows = in.dim(0), width = rows == 0 ? 0 : in.numel() / rows;
    for (const int64_t r : Watched(rows)) {
      T sum = 0;
      for (int64_t i = r * width; i < (r + 1) * width; ++i) {
        const T d = (x[i] - y[i]) * (inside ? inside->data<T>()[i] : T(1)), a = std::abs(d);
        diff[i] = d;
        const T loss = a < T(1) / s2 ? T(0.5) * s2 * d * d : a - T(0.5) / s2;
        sum += loss * (outside ? outside->data<T>()[i] : T(1));
      }
      out[r] = sum;
    }
    return Status::Ok();
  }
};

Status InferSmoothGrad(ShapeContext& ctx) {
  const Shape &diff = ctx.InShape("Diff"), &dout = ctx.InShape("Out@GRAD");
  if (diff.is_static() && dout.is_static() && (diff.rank() < 1 || dout.numel() != diff[0]))
    return InvalidArgument("Out@GRAD ", dout.ToString(), " does not fit Diff ", diff.ToString());
  for (Key weight : {Key("InsideWeight"), Key("OutsideWeight")})
    if (ctx.HasIn(weight)) HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Diff", weight));
  SetOutsLike(ctx, {{"Diff", "X@GRAD"}, {"Diff", "Y@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct SmoothL1Grad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("Diff");
    const T* diff = in.data<T>();
    const T* dout = ctx.In("Out@GRAD").data<T>();
    const Tensor *inside = ctx.InOpt("InsideWeight"), *outside = ctx.InOpt("OutsideWeight");
    Tensor *gx = ctx.OutOpt("X@GRAD"), *gy = ctx.OutOpt("Y@GRAD");
    const T s2 = static_cast<T>(ctx.Float("sigma") * ctx.Float("sigma"));
    const int64_t rows = in.dim(0), width = rows == 0 ? 1 : in.numel() / rows;
    for (const auto part : Stretches(in.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const T a = std::abs(diff[i]);
        T d = a < T(1) / s2 ? s2 * diff[i] : diff[i] > T(0) ? T(1) : T(-1);
        d *= dout[i / width];
        if (inside) d *= inside->data<T>()[i];
        if (outside) d *= outside->data<T>()[i];
        if (gx) gx->mutable_data<T>()[i] = d;
        if (gy) gy->mutable_data<T>()[i] = -d;
      }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(smooth_l1_loss) {
  op.Doc("smoothed L1 distance of each row")
      .Input("X")
      .Input("Y")
      .Input("InsideWeight", kOptional)
      .Input("OutsideWeight", kOptional)
      .Output("Diff")
      .Output("Out")
      .Attr("sigma", 1.0)
      .InferShape(InferSmooth)
      .Kernels<SmoothL1, float, double>();
}

HEDDLE_OP(smooth_l1_loss_grad) {
  op.Input("Diff")
      .Input("InsideWeight", kOptional)
      .Input("OutsideWeight", kOptional)
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Y@GRAD", kOptional)
      .Attr("sigma", 1.0)
      .InferShape(InferSmoothGrad)
      .Kernels<SmoothL1Grad, float, double>();
}

HEDDLE_EXAMPLES(smooth_l1_loss, R"(
example sigma 1, float32
attr sigma FLOAT 1.0
in X float32 [2, 3] -0.73 1.77 -0.81 1.22 -0.38 -0.33
in Y float32 [2, 3] -1.72 -0.94 1.65 1.95 -1.39 -0.28
from elementwise_sub X=X Y=Y -> Out=d0
from assign X=d0 -> Out=Diff
from fill_any_like X=X -> Out=zero
attr value FLOAT 0
from huber_loss X=zero Y=Diff -> Residual=r Out=h
attr delta FLOAT 1
from scale X=h -> Out=e
attr scale FLOAT 1
from reduce_sum X=e -> Out=Out
attr dim INTS [1]
attr keep_dim BOOLEAN true
out Diff float32 [2, 3] 0.99 2.71 -2.46 -0.73 1.01 -0.050000012
out Out float32 [2, 1] 4.6600504 0.77770007

example sigma 2, float32
attr sigma FLOAT 2.0
in X float32 [2, 3] 0.91 -1.76 1.01 1.82 0.97 -0.63
in Y float32 [2, 3] -0.15 -0.21 0.7 1.1 1.41 -0.49
in InsideWeight float32 [2, 3] 0.81 0.21 0.69 0.75 0.11 0.41
in OutsideWeight float32 [2, 3] 0.71 0.77 0.65 0.21 0.12 0.1
from elementwise_sub X=X Y=Y -> Out=d0
from elementwise_mul X=d0 Y=InsideWeight -> Out=Diff
from fill_any_like X=X -> Out=zero
attr value FLOAT 0
from huber_loss X=zero Y=Diff -> Residual=r Out=h
attr delta FLOAT 0.25
from scale X=h -> Out=e
attr scale FLOAT 4
from elementwise_mul X=e Y=OutsideWeight -> Out=ew
from reduce_sum X=ew -> Out=Out
attr dim INTS [1]
attr keep_dim BOOLEAN true
out Diff float32 [2, 3] 0.8586001 -0.32549998 0.2139 0.54 -0.048399992 -0.057399992
out Out float32 [2, 1] 0.7347202 0.088371165

example sigma 1, float64
attr sigma FLOAT 1.0
in X float64 [2, 3] 0.78 0.49 1.5 1.51 -0.55 -1.46
in Y float64 [2, 3] 1.25 0.06 -0.34 -1.38 0.16 -0.96
from elementwise_sub X=X Y=Y -> Out=d0
from assign X=d0 -> Out=Diff
from fill_any_like X=X -> Out=zero
attr value FLOAT 0
from huber_loss X=zero Y=Diff -> Residual=r Out=h
attr delta FLOAT 1
from scale X=h -> Out=e
attr scale FLOAT 1
from reduce_sum X=e -> Out=Out
attr dim INTS [1]
attr keep_dim BOOLEAN true
out Diff float64 [2, 3] -0.47 0.43 1.84 2.8899999999999997 -0.7100000000000001 -0.5
out Out float64 [2, 1] 1.5429 2.76705

example sigma 2, float64
attr sigma FLOAT 2.0
in X float64 [2, 3] 1.55 1.04 1.41 -1.8 0.73 0.83
in Y float64 [2, 3] -1.26 0.71 0.14 1.55 0.96 1.29
in InsideWeight float64 [2, 3] 0.5 0.82 0.11 0.46 0.66 0.58
in OutsideWeight float64 [2, 3] 0.96 0.29 0.11 0.88 0.91 0.45
from elementwise_sub X=X Y=Y -> Out=d0
from elementwise_mul X=d0 Y=InsideWeight -> Out=Diff
from fill_any_like X=X -> Out=zero
attr value FLOAT 0
from huber_loss X=zero Y=Diff -> Residual=r Out=h
attr delta FLOAT 0.25
from scale X=h -> Out=e
attr scale FLOAT 4
from elementwise_mul X=e Y=OutsideWeight -> Out=ew
from reduce_sum X=ew -> Out=Out
attr dim INTS [1]
attr keep_dim BOOLEAN true
out Diff float64 [2, 3] 1.405 0.27060000000000006 0.1397 -1.5410000000000001 -0.1518
  -0.26680000000000004
out Out float64 [2, 1] 1.2753175397999998 1.3518286968
)")

HEDDLE_EXAMPLES(smooth_l1_loss_grad, R"(
example sigma 1, float32
attr sigma FLOAT 1.0
in Diff float32 [2, 3] -0.34 -0.69 -1.88 -1.97 1 1.95
in Out@GRAD float32 [2, 1] -0.33 0.62
from scale X=Diff -> Out=ones0
attr scale FLOAT 0
attr bias FLOAT 1
from elementwise_mul X=ones0 Y=Out@GRAD -> Out=g0
from scale X=g0 -> Out=g2
attr scale FLOAT 1
from huber_loss_grad Residual=Diff Out@GRAD=g2 -> Y@GRAD=y0
attr delta FLOAT 1
from assign X=y0 -> Out=X@GRAD
from scale X=X@GRAD -> Out=Y@GRAD
attr scale FLOAT -1
out X@GRAD float32 [2, 3] 0.11220001 0.22770001 0.33 -0.62 0.62 0.62
out Y@GRAD float32 [2, 3] -0.11220001 -0.22770001 -0.33 0.62 -0.62 -0.62

example sigma 2, float32
attr sigma FLOAT 2.0
in Diff float32 [2, 3] 1.56 -1.46 -0.49 0.59 0.42 0.82
in Out@GRAD float32 [2, 1] 0.56 0.16
in InsideWeight float32 [2, 3] 0.75 0.5 0.28 0.54 0.47 0.23
in OutsideWeight float32 [2, 3] 0.14 0.95 0.25 0.73 0.47 0.7
from scale X=Diff -> Out=ones0
attr scale FLOAT 0
attr bias FLOAT 1
from elementwise_mul X=ones0 Y=Out@GRAD -> Out=g0
from elementwise_mul X=g0 Y=OutsideWeight -> Out=g1
from scale X=g1 -> Out=g2
attr scale FLOAT 4
from huber_loss_grad Residual=Diff Out@GRAD=g2 -> Y@GRAD=y0
attr delta FLOAT 0.25
from elementwise_mul X=y0 Y=InsideWeight -> Out=X@GRAD
from scale X=X@GRAD -> Out=Y@GRAD
attr scale FLOAT -1
out X@GRAD float32 [2, 3] 0.0588 -0.266 -0.0392 0.063072 0.035344 0.025759999
out Y@GRAD float32 [2, 3] -0.0588 0.266 0.0392 -0.063072 -0.035344 -0.025759999

example sigma 1, float64
attr sigma FLOAT 1.0
in Diff float64 [2, 3] -0.13 -1.4 0.84 1.22 0.86 -1.22
in Out@GRAD float64 [2, 1] -0.89 0.06
from scale X=Diff -> Out=ones0
attr scale FLOAT 0
attr bias FLOAT 1
from elementwise_mul X=ones0 Y=Out@GRAD -> Out=g0
from scale X=g0 -> Out=g2
attr scale FLOAT 1
from huber_loss_grad Residual=Diff Out@GRAD=g2 -> Y@GRAD=y0
attr delta FLOAT 1
from assign X=y0 -> Out=X@GRAD
from scale X=X@GRAD -> Out=Y@GRAD
attr scale FLOAT -1
out X@GRAD float64 [2, 3] 0.11570000000000001 0.89 -0.7475999999999999 0.06 0.0516 -0.06
out Y@GRAD float64 [2, 3] -0.11570000000000001 -0.89 0.7475999999999999 -0.06 -0.0516 0.06

example sigma 2, float64
attr sigma FLOAT 2.0
in Diff float64 [2, 3] -0.82 0.16 1.06 -1.45 1.72 -0.9
in Out@GRAD float64 [2, 1] 0.65 0.15
in InsideWeight float64 [2, 3] 0.31 0.11 0.56 0.31 0.35 0.38
in OutsideWeight float64 [2, 3] 0.39 0.95 0.18 0.79 0.31 0.34
from scale X=Diff -> Out=ones0
attr scale FLOAT 0
attr bias FLOAT 1
from elementwise_mul X=ones0 Y=Out@GRAD -> Out=g0
from elementwise_mul X=g0 Y=OutsideWeight -> Out=g1
from scale X=g1 -> Out=g2
attr scale FLOAT 4
from huber_loss_grad Residual=Diff Out@GRAD=g2 -> Y@GRAD=y0
attr delta FLOAT 0.25
from elementwise_mul X=y0 Y=InsideWeight -> Out=X@GRAD
from scale X=X@GRAD -> Out=Y@GRAD
attr scale FLOAT -1
out X@GRAD float64 [2, 3] -0.078585 0.043472 0.06552000000000001 -0.036735 0.016274999999999998
  -0.01938
out Y@GRAD float64 [2, 3] 0.078585 -0.043472 -0.06552000000000001 0.036735 -0.016274999999999998
  0.01938
)")
