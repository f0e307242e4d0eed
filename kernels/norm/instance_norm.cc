#include <cmath>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/base/convert.h"
#include "kernels/norm/norm.h"

namespace heddle {
namespace {

template <typename T>
const T* DataOr(const Tensor* t) {
  return t ? t->data<T>() : nullptr;
}
template <typename T>
T* DataOr(Tensor* t) {
  return t ? t->mutable_data<T>() : nullptr;
}

template <typename T>
struct InstanceNorm {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {ctx.InOpt("Scale"), ctx.InOpt("Bias")}));
    const NormLayout layout = InstanceLayout(x.shape());
    Tensor scratch = ctx.Scratch(kDTypeOf<T>, {2 * layout.groups});
    T* mean = DataOr<T>(ctx.OutOpt("SavedMean"));
    T* inverse = DataOr<T>(ctx.OutOpt("SavedVariance"));
    if (!mean) mean = scratch.mutable_data<T>();
    if (!inverse) inverse = scratch.mutable_data<T>() + layout.groups;
    NormMoments(ctx, layout, x.data<T>(), mean, inverse);
    const T epsilon = static_cast<T>(ctx.Float("epsilon"));
    for (const int64_t g : Watched(layout.groups))
      inverse[g] = T(1) / std::sqrt(inverse[g] + epsilon);
    NormForward<T>(ctx, layout, x.data<T>(), {mean, inverse, false},
                   {DataOr<T>(ctx.InOpt("Scale")), DataOr<T>(ctx.InOpt("Bias"))},
                   ctx.Out("Y").mutable_data<T>());
    return Status::Ok();
  }
};

template <typename T>
struct InstanceNormGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const NormLayout layout = InstanceLayout(x.shape());
    Tensor scratch = ctx.Scratch(kDTypeOf<T>, {2 * layout.groups});
    T* sum_dy = scratch.mutable_data<T>();
    T* sum_dy_x = sum_dy + layout.groups;
    NormBackward<T>(ctx, layout, x.data<T>(), ctx.In("Y@GRAD").data<T>(),
                    {ctx.In("SavedMean").data<T>(), ctx.In("SavedVariance").data<T>(), false},
                    DataOr<T>(ctx.InOpt("Scale")), DataOr<T>(ctx.OutOpt("X@GRAD")), sum_dy,
                    sum_dy_x);
    if (Tensor* t = ctx.OutOpt("Scale@GRAD")) SumGroups(layout, sum_dy_x, t->mutable_data<T>());
    if (Tensor* t = ctx.OutOpt("Bias@GRAD")) SumGroups(layout, sum_dy, t->mutable_data<T>());
    return Status::Ok();
  }
};

template <typename T>
struct InstanceNormDoubleGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("x");
    const NormLayout layout = InstanceLayout(x.shape());
    Tensor scratch = ctx.Scratch(kDTypeOf<T>, {layout.groups});
    Tensor* dscale = ctx.OutOpt("fwd_scale@GRAD");
    const NormSecond<T> io{x.data<T>(),
                           ctx.In("grad_y").data<T>(),
                           DataOr<T>(ctx.InOpt("grad_x@GRAD")),
                           DataOr<T>(ctx.InOpt("grad_scale@GRAD")),
                           DataOr<T>(ctx.InOpt("grad_bias@GRAD")),
                           DataOr<T>(ctx.OutOpt("x@GRAD")),
                           DataOr<T>(ctx.OutOpt("grad_y@GRAD")),
                           dscale ? scratch.mutable_data<T>() : nullptr};
    NormDoubleBackward<T>(
        ctx, layout, {ctx.In("saved_mean").data<T>(), ctx.In("saved_variance").data<T>(), false},
        DataOr<T>(ctx.InOpt("fwd_scale")), io);
    if (dscale) SumGroups(layout, scratch.data<T>(), dscale->mutable_data<T>());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(instance_norm) {
  op.Doc("normalises each channel of each image to mean 0 and variance 1");
  op.Input("X").Input("Scale", kOptional).Input("Bias", kOptional).Output("Y");
  op.Output("SavedMean", kOptional).Output("SavedVariance", kOptional).Attr("epsilon", 1e-5);
  op.Contract(
      "X: float [N, C, ..._]; Scale, Bias: float count C; Y: like X; SavedMean, SavedVariance: as "
      "X [N*C]");
  op.Kernels<InstanceNorm, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(instance_norm_grad) {
  op.Input("X").Input("Scale", kOptional).Input("SavedMean").Input("SavedVariance");
  op.Input("Y@GRAD").Output("X@GRAD", kOptional).Output("Scale@GRAD", kOptional);
  op.Output("Bias@GRAD", kOptional);
  op.Contract(
      "X: float [N, C, ..._]; Scale: as X count C; SavedMean, SavedVariance: as X count N*C; "
      "Y@GRAD: as X count X; X@GRAD: like X; Scale@GRAD, Bias@GRAD: as X [C]");
  op.Kernels<InstanceNormGrad, float, double>();
}
HEDDLE_OP(instance_norm_double_grad) {
  op.Input("x").Input("fwd_scale", kOptional).Input("saved_mean").Input("saved_variance");
  op.Input("grad_y").Input("grad_x@GRAD", kOptional).Input("grad_scale@GRAD", kOptional);
  op.Input("grad_bias@GRAD", kOptional).Output("x@GRAD", kOptional);
  op.Output("fwd_scale@GRAD", kOptional).Output("grad_y@GRAD", kOptional);
  op.Contract(
      "x: float [N, C, ..._]; fwd_scale, grad_scale@GRAD, grad_bias@GRAD: as x count C; "
      "saved_mean, saved_variance: as x count N*C; grad_y, grad_x@GRAD: as x count x; x@GRAD, "
      "grad_y@GRAD: like x; fwd_scale@GRAD: as x [C]");
  op.Kernels<InstanceNormDoubleGrad, float, double>();
}
