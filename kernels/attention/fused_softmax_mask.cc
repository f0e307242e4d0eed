// softmax(X + Mask) along the last axis, and softmax with everything above the diagonal masked.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// X is [batch, heads, rows, columns]; all heads share the one of Mask.
Status MaskShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &mask = ctx.InShape("Mask");
  if (!x.is_static() || !mask.is_static()) return ctx.Defer();
  if (x.rank() != 4 || mask.rank() != 4 || mask[0] != x[0] || mask[1] != 1 || mask[2] != x[2] ||
      mask[3] != x[3])
    return InvalidArgument("Mask ", mask.ToString(), " does not fit X ", x.ToString());
  if (ctx.InDType("X") != ctx.InDType("Mask"))
    return InvalidArgument("X and Mask must have one dtype");
  ctx.SetOut("Out", x, ctx.InDType("X"));
  return Status::Ok();
}

Status TriangleShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (x.known_rank() && x.rank() != 4)
    return InvalidArgument("X must have 4 axes, not ", x.ToString());
  return SameShape(ctx);
}

// Softmax of the first n elements of `row`, each with `add` (which may be null); the rest gets 0.
template <typename T>
void SoftmaxRow(const T* row, const T* add, int64_t n, int64_t width, T* to) {
  T top = -std::numeric_limits<T>::infinity(), sum(0);
  for (const auto part : Stretches(n))
    for (int64_t k = part.begin; k < part.end; ++k)
      top = std::max(top, to[k] = row[k] + (add ? add[k] : T(0)));
  for (const auto part : Stretches(n))
    for (int64_t k = part.begin; k < part.end; ++k) sum += to[k] = std::exp(to[k] - top);
  for (const auto part : Stretches(n))
    for (int64_t k = part.begin; k < part.end; ++k) to[k] /= sum;
  std::fill(to + n, to + width, T(0));
}

template <typename T>
struct Masked {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &mask = ctx.In("Mask");
    const int64_t heads = x.dim(1), rows = x.dim(2), width = x.dim(3);
    T* to = ctx.Out("Out").template mutable_data<T>();
    ForEachIndex(
        ctx, x.dim(0) * heads * rows,
        [&](int64_t i) {
          const int64_t sample = i / (heads * rows), at = sample * rows + i % rows;
          SoftmaxRow(x.data<T>() + i * width, mask.data<T>() + at * width, width, width,
                     to + i * width);
        },
        256);
    return Status::Ok();
  }
};

template <typename T>
struct Triangle {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const int64_t rows = x.dim(2), width = x.dim(3);
    T* to = ctx.Out("Out").template mutable_data<T>();
    ForEachIndex(
        ctx, x.dim(0) * x.dim(1) * rows,
        [&](int64_t i) {
          SoftmaxRow<T>(x.data<T>() + i * width, nullptr, std::min(i % rows + 1, width), width,
                        to + i * width);
        },
        256);
    return Status::Ok();
  }
};

Status GradShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "Softmax", "Out@GRAD"));
  if (ctx.InDType("Softmax") != ctx.InDType("Out@GRAD"))
    return InvalidArgument("Softmax and Out@GRAD must have one dtype");
  ctx.SetOut("X@GRAD", ctx.InShape("Softmax"), ctx.InDType("Softmax"));
  return Status::Ok();
}

template <typename T>
struct Grad {
  static Status Run(KernelContext& ctx) {
    const Tensor& softmax = ctx.In("Softmax");
    const int64_t width = softmax.rank() > 0 ? softmax.dim(-1) : 1;
    T* out = ctx.Out("X@GRAD").template mutable_data<T>();
    const T *all = softmax.data<T>(), *grads = ctx.In("Out@GRAD").template data<T>();
    ForEachIndex(
        ctx, width > 0 ? softmax.numel() / width : 0,
        [&](int64_t i) {
          const T *y = all + i * width, *dy = grads + i * width;
          T sum(0);
          for (int64_t k = 0; k < width; ++k) sum += y[k] * dy[k];
          for (int64_t k = 0; k < width; ++k) out[i * width + k] = y[k] * (dy[k] - sum);
        },
        256);
    return Status::Ok();
  }
};

void DefineMaskedGrad(OpDef& op) {
  op.Input("Softmax").Input("Out@GRAD").Output("X@GRAD").InferShape(GradShape);
  op.Kernels<Grad, float, double>();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_softmax_mask) {
  op.Doc("softmax(X + Mask) along the last axis");
  op.Input("X").Input("Mask").Output("Out").InferShape(MaskShape);
  op.Kernels<Masked, float, double>();
}
HEDDLE_OP(fused_softmax_mask_grad) { DefineMaskedGrad(op); }
HEDDLE_OP(fused_softmax_mask_upper_triangle) {
  op.Doc("softmax along the last axis, of the elements up to the diagonal; 0 above it");
  op.Input("X").Output("Out").InferShape(TriangleShape).Kernels<Triangle, float, double>();
}
HEDDLE_OP(fused_softmax_mask_upper_triangle_grad) { DefineMaskedGrad(op); }
