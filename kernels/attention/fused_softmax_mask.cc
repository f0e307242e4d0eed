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

HEDDLE_EXAMPLES(fused_softmax_mask, R"(
example float32
in X float32 [1, 2, 4, 8] 0.65 0.8 0.88 0.31 -0.17 0.94 0.53 -0.01 0.9 0.74 -0.27 -0.5 -0.57 0.53
  -0.13 0.86 0.05 -0.65 0.88 -0.14 0.44 -0.38 -0.22 0.25 -0.36 0.47 0.14 -0.47 -0.19 0.42 -0.5 -0.57
  -0.5 -0.85 0.72 0.22 -0.68 -0.02 0.86 0.98 0.37 -0.99 0.45 -0.3 -0.36 0.16 0.64 -0.6 -0.2 0.5 0.05
  -0.35 -0.76 -0.66 0 0.96 -0.8 0.34 0.37 -0.6 -0.91 0.05 -0.24 0.91
in Mask float32 [1, 1, 4, 8] -10000 -10000 -10000 0 0 -10000*4 0 -10000*4 0 0 -10000 0 0 0 -10000*8
  0 -10000 -10000 -10000
out Out float32 [1, 2, 4, 8] 9.9075084e-29 9.9075084e-29 9.9075084e-29 0.6177479 0.38225213
  9.9075084e-29 9.9075084e-29 9.9075084e-29 7.1012305e-29 0.3927038 7.1012305e-29*4 0.16452387
  0.4427723 1.016917e-28 0.13729723 0.6340629 0.22863989 1.016917e-28*4 1.6038109e-28*4 1
  1.6038109e-28 1.6038109e-28 1.6038109e-28 1.1402285e-28 1.1402285e-28 1.1402285e-28 0.7109495
  0.2890505 1.1402285e-28 1.1402285e-28 1.1402285e-28 1.0797792e-28 0.13191123 1.0797792e-28*4
  0.6732584 0.19483036 7.766477e-29 0.4842514 0.30877233 0.20697628 7.766477e-29*4 1.6038109e-28*4 1
  1.6038109e-28 1.6038109e-28 1.6038109e-28
)")

HEDDLE_EXAMPLES(fused_softmax_mask_grad, R"(
example float32
in Out@GRAD float64 [1, 2, 4, 8] 0.5 0.3 0.3 0.4 0.7 0.6 -0 0.9 0 0.9 -0.1 -0.3 0.4 0.3 0.9 -0.7 0.3
  0.4 0.1 -0.1 0.9 0.9 -0.7 -0.6 -0.3 -0.1 -1 -0.5 -0.1 0.2 0 -0.3 -0.5 0.1 0.3 1 -0.3 -0.3 0.9 -0.1
  -1 -0 0.5 0.5 -0.5 -0.4 0.2 -1 0.7 0.1 -0.4 -0.8 0.1 0.4 -0.7 -0.7 0.9 0.5 -0.1 -0.5 -0.5 0.7 0.4
  0.6
in Softmax float64 [1, 2, 4, 8] 9.907507691681976e-29 9.907507691681976e-29 9.907507691681976e-29
  0.617747874769249 0.382252125230751 9.907507691681976e-29 9.907507691681976e-29
  9.907507691681976e-29 7.101230596445707e-29 0.39270381433027585 7.101230596445707e-29*4
  0.16452387140912625 0.44277231426059777 1.016916977536838e-28 0.1372972322569712
  0.6340628957750543 0.22863987196797447 1.016916977536838e-28*4 1.603810890548638e-28*4 1
  1.603810890548638e-28 1.603810890548638e-28 1.603810890548638e-28 1.1402285549401188e-28
  1.1402285549401188e-28 1.1402285549401188e-28 0.7109495026250039 0.289050497374996
  1.1402285549401188e-28 1.1402285549401188e-28 1.1402285549401188e-28 1.0797791679547104e-28
  0.13191123328518078 1.0797791679547104e-28*4 0.6732584086552345 0.19483035805958476
  7.766476657598918e-29 0.48425139792772764 0.3087723237809168 0.20697627829135548
  7.766476657598918e-29*4 1.603810890548638e-28*4 1 1.603810890548638e-28 1.603810890548638e-28
  1.603810890548638e-28
out X@GRAD float64 [1, 2, 4, 8] -1.4539899209743661e-30 -2.126900530433832e-29
  -2.126900530433832e-29 -0.07084063139619756 0.07084063139619756 8.453517770707609e-30
  -5.099152837938425e-29 3.817604084575354e-29 -1.3603422483428463e-29 0.2782054027039686
  -2.0704653079874168e-29 -3.4907114272765584e-29 1.4801499902354366e-29 7.700269305908656e-30
  0.11655458447189095 -0.3947599871758595 2.079989830813043e-29 0.04181233500242219
  0.002877887661903703 -0.044690222664325895 8.181491696034071e-29 8.181491696034071e-29
  -8.089179944555337e-29 -7.0722629670185e-29 -3.2076217810972755e-29 0 -1.4434298014937742e-28
  -6.415243562194552e-29 0 4.8114326716459147e-29 1.603810890548638e-29 -3.2076217810972755e-29
  -1.2818841122055794e-28 -5.977469792415083e-29 -3.697012682534845e-29 0.26715039954494246
  -0.2671503995449424 -1.0538384012175558e-28 3.144358647105868e-29 -8.257926902295319e-29
  -1.014799486900066e-28 0.007938243411967147 6.048692650319997e-29 6.048692650319997e-29
  -4.7490990292271076e-29 -3.669319861272397e-29 0.17516748159097673 -0.18310572500294386
  7.305651307761742e-29 0.1649674116065715 -0.049198296149931944 -0.11576911545663959
  2.6457653132023914e-29 4.975708310482067e-29 -3.567416012876742e-29 -3.567416012876742e-29
  2.245335246768093e-28 1.603810890548638e-28 6.415243562194552e-29 0 0 1.9245730686583654e-28
  1.4434298014937742e-28 1.764191979603502e-28
)")

HEDDLE_EXAMPLES(fused_softmax_mask_upper_triangle, R"(
example float32
in X float32 [1, 2, 4, 4] -0.73 0.54 -0.78 0.33 0.4 0.03 -0.44 -0.17 -0.84 0.24 0.73 -0.92 0.51 0.94
  0.58 -0.74 -0.65 -0.58 0 0.71 -0.1 -0.86 0.59 -0.01 -0.86 0.23 0.14 -0.06 -0.31 -0.41 -0.57 0.01
from assign_value -> Out=mask
attr shape INTS [4, 4]
attr dtype INT 5
attr fp32_values FLOATS [0.0, -1e+30, -1e+30, -1e+30, 0.0, 0.0, -1e+30, -1e+30, 0.0, 0.0, 0.0,
  -1e+30, 0.0, 0.0, 0.0, 0.0]
from elementwise_add X=X Y=mask -> Out=sum
from softmax X=sum -> Out=Out
attr axis INT -1
out Out float32 [1, 2, 4, 4] 1 1.6038109e-28 1.6038109e-28 1.6038109e-28 0.591459 0.40854102
  9.485884e-29 9.485884e-29 0.11426838 0.33648372 0.54924786 8.808897e-29 0.2566557 0.39454588
  0.2752653 0.07353308 1 1.6038109e-28 1.6038109e-28 1.6038109e-28 0.68135375 0.31864625
  1.0927625e-28 1.0927625e-28 0.14941975 0.4444153 0.406165 7.1275814e-29 0.24672979 0.22325036
  0.19024141 0.33977845

example float64
in X float64 [1, 2, 4, 4] -0.55 -0.97 -0.28 0.54 0.78 -0.53 0.4 -0.87 -0.73 -0.65 -0.13 -0.64 -0.04
  0.22 0.71 -1 0.28 -0.89 -0.78 0.05 -0.59 -0.49 -0.56 -0.02 -0.72 0.58 -0.89 0.44 -0.63 0.02 0.25
  0.79
from assign_value -> Out=mask
attr shape INTS [4, 4]
attr dtype INT 6
attr fp64_values FLOAT64S [0.0, -1e+30, -1e+30, -1e+30, 0.0, 0.0, -1e+30, -1e+30, 0.0, 0.0, 0.0,
  -1e+30, 0.0, 0.0, 0.0, 0.0]
from elementwise_add X=X Y=mask -> Out=sum
from softmax X=sum -> Out=Out
attr axis INT -1
out Out float64 [1, 2, 4, 4] 1 1.603810890548638e-28 1.603810890548638e-28 1.603810890548638e-28
  0.7875131558774608 0.21248684412253915 1.2630221758465989e-28 1.2630221758465989e-28
  0.25605533298779715 0.2773814308348858 0.46656323617731715 7.482791993107975e-29
  0.20847131575218114 0.2703727216058038 0.44133377891063363 0.07982218373138147 1
  1.603810890548638e-28 1.603810890548638e-28 1.603810890548638e-28 0.47502081252106
  0.5249791874789399 8.419673381900989e-29 8.419673381900989e-29 0.1813907103946107
  0.6655763291880323 0.15303296041735695 1.0674585652431516e-28 0.1056684690434809
  0.2024122667921786 0.2547560809944841 0.43716318316985636
)")

HEDDLE_EXAMPLES(fused_softmax_mask_upper_triangle_grad, R"(
example float32
in Softmax float32 [1, 1, 3, 3] 1 0 0 0.25 0.75 0 0.5 0.2 0.3
in Out@GRAD float32 [1, 1, 3, 3] 0.66 -0.81 0.62 -0.8 -0.07 -0.81 0.77 0.63 0.79
from softmax_grad Out=Softmax Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
attr axis INT -1
out X@GRAD float32 [1, 1, 3, 3] 0 -0 -0 -0.136875 0.136875 -0 0.010999978 -0.023600006 0.012599999

example float64
in Softmax float64 [1, 1, 3, 3] 1 0 0 0.25 0.75 0 0.5 0.2 0.3
in Out@GRAD float64 [1, 1, 3, 3] -0.4 -0.49 0.26 0.99 0.78 -0.86 -0.03 -0.24 0.77
from softmax_grad Out=Softmax Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
attr axis INT -1
out X@GRAD float64 [1, 1, 3, 3] 0 -0 0 0.03937499999999999 -0.03937499999999999 -0
  -0.09899999999999999 -0.0816 0.1806
)")
