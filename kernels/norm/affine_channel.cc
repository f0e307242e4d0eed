#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/norm/norm.h"

namespace heddle {
namespace {

// Only "NCHW" has the channels second.
NormLayout LayoutOf(const OpContext& ctx, const Shape& x) {
  return BatchLayout(x, ctx.Str("data_layout") != "NCHW");
}

Status CheckShapes(const ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& scale = ctx.InShape("Scale");
  if (!x.known_rank()) return Status::Ok();
  if (x.rank() < 2) return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 or 4");
  const int64_t channels = x.dim(ctx.Str("data_layout") != "NCHW" || x.rank() == 2 ? -1 : 1);
  if (scale.is_static() && channels >= 0 && scale.numel() != channels)
    return InvalidArgument("Scale has shape ", scale.ToString(), ", X has ", channels, " channels");
  return Status::Ok();
}

Status AffineShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx));
  if (ctx.InShape("Bias").is_static() && ctx.InShape("Scale").is_static() &&
      ctx.InShape("Bias").numel() != ctx.InShape("Scale").numel())
    return InvalidArgument("Bias has shape ", ctx.InShape("Bias").ToString(), ", Scale ",
                           ctx.InShape("Scale").ToString());
  return SameShape(ctx);
}

// Mean 0 and variance 1: what is left of a normalisation is its scale and bias.
template <typename T>
struct Plain {
  Tensor hold;
  NormStats<T> stats;
  Plain(const KernelContext& ctx, const NormLayout& layout) {
    const int64_t n = layout.groups;
    hold = ctx.Scratch(sizeof(T) == 4 ? DType::kF32 : DType::kF64, {2 * n});
    T* data = hold.mutable_data<T>();
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) data[i] = T(0), data[n + i] = T(1);
    stats = {data, data + n, true};
  }
};

template <typename T>
struct AffineChannel {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const NormLayout layout = LayoutOf(ctx, x.shape());
    const Plain<T> plain(ctx, layout);
    NormForward<T>(ctx, layout, x.data<T>(), plain.stats,
                   {ctx.In("Scale").data<T>(), ctx.In("Bias").data<T>()},
                   ctx.Out("Out").mutable_data<T>());
    return Status::Ok();
  }
};

Status AffineGradShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx));
  const Shape &x = ctx.InShape("X"), &grad = ctx.InShape("Out@GRAD");
  if (x.is_static() && grad.is_static() && !(x == grad))
    return InvalidArgument("Out@GRAD has shape ", grad.ToString(), ", X ", x.ToString());
  const DType dtype = ctx.InDType("X");
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", x, dtype);
  if (ctx.HasOut("Scale@GRAD")) ctx.SetOut("Scale@GRAD", ctx.InShape("Scale"), dtype);
  if (ctx.HasOut("Bias@GRAD")) ctx.SetOut("Bias@GRAD", ctx.InShape("Scale"), dtype);
  return Status::Ok();
}

template <typename T>
struct AffineChannelGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const NormLayout layout = LayoutOf(ctx, x.shape());
    const Plain<T> plain(ctx, layout);
    Tensor hold = ctx.Scratch(sizeof(T) == 4 ? DType::kF32 : DType::kF64, {2 * layout.groups});
    T* sums = hold.mutable_data<T>();
    const auto out = [&](Key key, T* other) {
      Tensor* t = ctx.OutOpt(key);
      return t ? t->mutable_data<T>() : other;
    };
    NormBackward<T>(ctx, layout, x.data<T>(), ctx.In("Out@GRAD").data<T>(), plain.stats,
                    ctx.In("Scale").data<T>(), out("X@GRAD", nullptr), out("Bias@GRAD", sums),
                    out("Scale@GRAD", sums + layout.groups));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(affine_channel) {
  op.Doc("Scale * x + Bias, per channel");
  op.Input("X").Input("Scale").Input("Bias").Output("Out").Inplace("X", "Out");
  op.Attr("data_layout", "AnyLayout").InferShape(AffineShape);
  op.Kernels<AffineChannel, float, double>();
}
HEDDLE_OP(affine_channel_grad) {
  op.Input("X").Input("Scale").Input("Out@GRAD").Output("X@GRAD", kOptional);
  op.Output("Scale@GRAD", kOptional).Output("Bias@GRAD", kOptional);
  op.Attr("data_layout", "AnyLayout").InferShape(AffineGradShape);
  op.Kernels<AffineChannelGrad, float, double>();
}
