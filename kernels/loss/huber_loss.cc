// huber_loss, modified_huber_loss and smooth_l1_loss.
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferHuber(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Y"));
  SetOutsLike(ctx, {{"X", "Out"}, {"X", "Residual"}});
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

template <typename T>
struct Huber {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const T* x = in.data<T>();
    const T* y = ctx.In("Y").data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    Tensor* residual = ctx.OutOpt("Residual");
    T* res = residual ? residual->mutable_data<T>() : nullptr;
    const T delta = static_cast<T>(ctx.Float("delta"));
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      const T r = y[i] - x[i], a = std::abs(r);
      out[i] = a <= delta ? T(0.5) * r * r : delta * (a - T(0.5) * delta);
      if (res) res[i] = r;
    });
    return Status::Ok();
  }
};

Status InferHuberGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Residual", "Out@GRAD"));
  SetOutsLike(ctx, {{"Residual", "X@GRAD"}, {"Residual", "Y@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct HuberGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& residual = ctx.In("Residual");
    const T* r = residual.data<T>();
    const T* dout = ctx.In("Out@GRAD").data<T>();
    const T delta = static_cast<T>(ctx.Float("delta"));
    Tensor *gx = ctx.OutOpt("X@GRAD"), *gy = ctx.OutOpt("Y@GRAD");
    T* dx = gx ? gx->mutable_data<T>() : nullptr;
    T* dy = gy ? gy->mutable_data<T>() : nullptr;
    ForEachIndex(ctx, residual.numel(), [=](int64_t i) {
      const T d = dout[i] * std::min(std::max(r[i], -delta), delta);
      if (dx) dx[i] = -d;
      if (dy) dy[i] = d;
    });
    return Status::Ok();
  }
};

Status InferModified(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Y"));
  SetOutsLike(ctx, {{"X", "IntermediateVal"}});
  Shape out = ctx.InShape("X");
  if (out.known_rank() && out.rank() > 1) out = Shape{out[0], 1};
  if (out.is_static() && ctx.InShape("X").is_static() && out.numel() != ctx.InShape("X").numel())
    return InvalidArgument("X must be [N, 1], not ", ctx.InShape("X").ToString());
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct ModifiedHuber {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const T* x = in.data<T>();
    const T* y = ctx.In("Y").data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    Tensor* inter = ctx.OutOpt("IntermediateVal");
    T* mid = inter ? inter->mutable_data<T>() : nullptr;
    for (int64_t i = 0, n = in.numel(); i < n; ++i) {
      const T v = x[i] * (T(2) * y[i] - T(1));
      out[i] = v < T(-1) ? T(-4) * v : v < T(1) ? (T(1) - v) * (T(1) - v) : T(0);
      if (mid) mid[i] = v;
    }
    return Status::Ok();
  }
};

Status InferModifiedGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "IntermediateVal", "Out@GRAD"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "IntermediateVal", "Y"));
  SetOutsLike(ctx, {{"IntermediateVal", "X@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct ModifiedHuberGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& mid = ctx.In("IntermediateVal");
    const T* v = mid.data<T>();
    const T* y = ctx.In("Y").data<T>();
    const T* dout = ctx.In("Out@GRAD").data<T>();
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    for (int64_t i = 0, n = mid.numel(); i < n; ++i) {
      const T slope = v[i] < T(-1) ? T(-4) : v[i] < T(1) ? T(-2) * (T(1) - v[i]) : T(0);
      dx[i] = slope * (T(2) * y[i] - T(1)) * dout[i];
    }
    return Status::Ok();
  }
};

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
    for (int64_t r = 0; r < rows; ++r) {
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
    for (int64_t i = 0, n = in.numel(); i < n; ++i) {
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

HEDDLE_OP(huber_loss) {
  op.Doc("quadratic within delta of the target, linear beyond")
      .Input("X")
      .Input("Y")
      .Output("Out")
      .Output("Residual", kOptional)
      .Attr("delta", 1.0)
      .InferShape(InferHuber)
      .Kernels<Huber, float, double>();
}

HEDDLE_OP(huber_loss_grad) {
  op.Input("Residual")
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Y@GRAD", kOptional)
      .Attr("delta", 1.0)
      .InferShape(InferHuberGrad)
      .Kernels<HuberGrad, float, double>();
}

HEDDLE_OP(modified_huber_loss) {
  op.Doc("modified Huber loss for binary labels 0 and 1")
      .Input("X")
      .Input("Y")
      .Output("IntermediateVal", kOptional)
      .Output("Out")
      .InferShape(InferModified)
      .Kernels<ModifiedHuber, float, double>();
}

HEDDLE_OP(modified_huber_loss_grad) {
  op.Input("Y")
      .Input("IntermediateVal")
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .InferShape(InferModifiedGrad)
      .Kernels<ModifiedHuberGrad, float, double>();
}

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
