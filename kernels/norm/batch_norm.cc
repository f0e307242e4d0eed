#include <cmath>
#include <cstring>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/elementwise/convert.h"
#include "kernels/norm/norm.h"

namespace heddle {
namespace {

bool ChannelsLast(const OpContext& ctx) { return ctx.Str("data_layout") == "NHWC"; }
// The running statistics are used, not the batch's.
bool UsesRunning(const OpContext& ctx) {
  return (ctx.Bool("is_test") && !ctx.Bool("trainable_statistics")) || ctx.Bool("use_global_stats");
}

int64_t Channels(const OpContext& ctx, const Shape& x) {
  return x.dim(ChannelsLast(ctx) || x.rank() == 2 ? -1 : 1);
}

Status CheckParam(const ShapeContext& ctx, Key key, int64_t channels) {
  if (!ctx.HasIn(key)) return Status::Ok();
  const Shape& s = ctx.InShape(key);
  if (channels < 0 || !s.is_static() || s.numel() == channels) return Status::Ok();
  if (UsesRunning(ctx) &&
      (key.hash == Key("SavedMean").hash || key.hash == Key("SavedVariance").hash))
    return Status::Ok();  // not read
  return InvalidArgument(key.name, " has shape ", s.ToString(), ", X has ", channels, " channels");
}

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

Status BatchNormShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 2 || x.rank() > 5)
    return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 to 5");
  const int64_t channels = Channels(ctx, x);
  for (const Key key : {Key("Scale"), Key("Bias"), Key("Mean"), Key("Variance")})
    HEDDLE_RETURN_IF_ERROR(CheckParam(ctx, key, channels));
  const DType dtype = ctx.InDType("X");
  ctx.SetOut("Y", x, dtype);
  ctx.ShareLoD("X", "Y");
  // As in Paddle: statistics of 16-bit floats are float32, where the running ones are.
  const bool half = IsHalf(dtype);
  const DType running = half ? ctx.InDType("Mean") : dtype;
  ctx.SetOut("MeanOut", {channels}, running);
  ctx.SetOut("VarianceOut", {channels}, running);
  const Shape saved{UsesRunning(ctx) ? 0 : channels};
  if (ctx.HasOut("SavedMean")) ctx.SetOut("SavedMean", saved, half ? DType::kF32 : dtype);
  if (ctx.HasOut("SavedVariance")) ctx.SetOut("SavedVariance", saved, half ? DType::kF32 : dtype);
  if (ctx.HasOut("ReserveSpace")) ctx.SetOut("ReserveSpace", {0}, dtype);
  return Status::Ok();
}

template <typename T>
const T* DataOr(const Tensor* t) {
  return t ? t->data<T>() : nullptr;
}

template <typename T>
void Invert(const T* variance, int64_t n, T epsilon, T* inverse) {
  for (int64_t i = 0; i < n; ++i) inverse[i] = T(1) / std::sqrt(variance[i] + epsilon);
}

void CopyUnlessSame(const Tensor& from, Tensor& to) {
  if (from.raw() != to.raw()) WatchedMemcpy(to.mutable_raw(), from.raw(), to.bytes());
}

template <typename T>
struct BatchNorm {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const NormLayout layout = BatchLayout(x.shape(), ChannelsLast(ctx));
    const int64_t n = layout.channels;
    const T epsilon = static_cast<T>(ctx.Float("epsilon"));
    const NormParams<T> params{DataOr<T>(ctx.InOpt("Scale")), DataOr<T>(ctx.InOpt("Bias"))};
    Tensor scratch = ctx.Scratch(kDTypeOf<T>, {3 * n});
    T* inverse = scratch.mutable_data<T>();
    T* y = ctx.Out("Y").mutable_data<T>();
    if (UsesRunning(ctx)) {
      const Tensor &mean = ctx.In("Mean"), &variance = ctx.In("Variance");
      Invert(variance.data<T>(), n, epsilon, inverse);
      NormForward(ctx, layout, x.data<T>(), {mean.data<T>(), inverse, true}, params, y);
      if (Tensor* out = ctx.OutOpt("MeanOut")) CopyUnlessSame(mean, *out);
      if (Tensor* out = ctx.OutOpt("VarianceOut")) CopyUnlessSame(variance, *out);
      return Status::Ok();
    }
    if (layout.count() == 1) return OneElement(ctx);
    T* mean = inverse + n;
    T* variance = mean + n;
    NormMoments(ctx, layout, x.data<T>(), mean, variance);
    Invert(variance, n, epsilon, inverse);
    NormForward(ctx, layout, x.data<T>(), {mean, inverse, false}, params, y);
    Save(ctx, "SavedMean", mean, n);
    Save(ctx, "SavedVariance", inverse, n);
    const T momentum = static_cast<T>(ctx.Float("momentum"));
    if (Tensor* out = ctx.OutOpt("MeanOut")) Blend(ctx.In("Mean"), mean, momentum, *out);
    if (Tensor* out = ctx.OutOpt("VarianceOut"))
      Blend(ctx.In("Variance"), variance, momentum, *out);
    return Status::Ok();
  }

  // As in Paddle: a batch with one element per channel has no statistics to go by, and passes.
  static Status OneElement(KernelContext& ctx) {
    CopyUnlessSame(ctx.In("X"), ctx.Out("Y"));
    if (Tensor* out = ctx.OutOpt("MeanOut")) CopyUnlessSame(ctx.In("Mean"), *out);
    if (Tensor* out = ctx.OutOpt("VarianceOut")) CopyUnlessSame(ctx.In("Variance"), *out);
    for (const Key key : {Key("SavedMean"), Key("SavedVariance")})
      if (Tensor* t = ctx.OutOpt(key)) WatchedMemset(t->mutable_raw(), 0, t->bytes());
    return Status::Ok();
  }

  static void Save(const KernelContext& ctx, Key key, const T* from, int64_t n) {
    if (Tensor* t = ctx.OutOpt(key))
      WatchedMemcpy(t->mutable_raw(), from, static_cast<size_t>(n) * sizeof(T));
  }
  static void Blend(const Tensor& running, const T* now, T momentum, Tensor& out) {
    const T* from = running.data<T>();
    T* to = out.mutable_data<T>();
    for (const auto part : Stretches(out.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = from[i] * momentum + now[i] * (T(1) - momentum);
  }
};

Status GradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 2) return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 to 5");
  const int64_t channels = Channels(ctx, x);
  for (const Key key : {Key("Scale"), Key("SavedMean"), Key("SavedVariance"), Key("MeanOut"),
                        Key("VarianceOut"), Key("Mean"), Key("Variance")})
    HEDDLE_RETURN_IF_ERROR(CheckParam(ctx, key, channels));
  const DType dtype = ctx.InDType("X");
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", x, dtype);
  DType parameters = dtype;
  if (IsHalf(dtype)) parameters = ctx.HasIn("Scale") ? ctx.InDType("Scale") : DType::kF32;
  if (ctx.HasOut("Scale@GRAD")) ctx.SetOut("Scale@GRAD", {channels}, parameters);
  if (ctx.HasOut("Bias@GRAD")) ctx.SetOut("Bias@GRAD", {channels}, parameters);
  return Status::Ok();
}

// Mean and inverse standard deviation that the forward pass used. `hold` has room for the latter.
template <typename T>
Result<NormStats<T>> StatsOf(const KernelContext& ctx, int64_t n, const Tensor* mean,
                             const Tensor* variance, Tensor& hold) {
  if (!UsesRunning(ctx)) {
    const Tensor *m = ctx.InOpt("SavedMean"), *v = ctx.InOpt("SavedVariance");
    if (!m || !v) return InvalidArgument("SavedMean and SavedVariance hold nothing");
    return NormStats<T>{m->data<T>(), v->data<T>(), false};
  }
  if (!mean || !variance) return InvalidArgument("the running mean and variance hold nothing");
  hold = ctx.Scratch(kDTypeOf<T>, {n});
  Invert(variance->data<T>(), n, static_cast<T>(ctx.Float("epsilon")), hold.mutable_data<T>());
  return NormStats<T>{mean->data<T>(), hold.data<T>(), true};
}

const Tensor* FirstOf(const Tensor* a, const Tensor* b) { return a ? a : b; }

template <typename T>
struct BatchNormGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &dy = ctx.In("Y@GRAD");
    if (!(dy.shape() == x.shape()))
      return InvalidArgument("Y@GRAD has shape ", dy.shape().ToString(), ", X ",
                             x.shape().ToString());
    const NormLayout layout = BatchLayout(x.shape(), ChannelsLast(ctx));
    const int64_t n = layout.channels;
    Tensor hold;
    HEDDLE_ASSIGN_OR_RETURN(
        const NormStats<T> stats,
        StatsOf<T>(ctx, n, FirstOf(ctx.InOpt("Mean"), ctx.InOpt("MeanOut")),
                   FirstOf(ctx.InOpt("Variance"), ctx.InOpt("VarianceOut")), hold));
    Tensor* dx = ctx.OutOpt("X@GRAD");
    Tensor* scale_grad = ctx.OutOpt("Scale@GRAD");
    Tensor* bias_grad = ctx.OutOpt("Bias@GRAD");
    if (layout.count() == 1 && !UsesRunning(ctx)) {  // the forward pass handed X on
      if (dx != nullptr) CopyUnlessSame(dy, *dx);
      for (Tensor* t : {scale_grad, bias_grad})
        if (t != nullptr) WatchedMemset(t->mutable_raw(), 0, t->bytes());
      return Status::Ok();
    }
    Tensor scratch = ctx.Scratch(kDTypeOf<T>, {2 * n});
    T* sums = scratch.mutable_data<T>();
    NormBackward(ctx, layout, x.data<T>(), dy.data<T>(), stats, DataOr<T>(ctx.InOpt("Scale")),
                 dx ? dx->mutable_data<T>() : nullptr,
                 bias_grad ? bias_grad->mutable_data<T>() : sums,
                 scale_grad ? scale_grad->mutable_data<T>() : sums + n);
    return Status::Ok();
  }
};

Status DoubleGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 2) return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 to 5");
  const int64_t channels = Channels(ctx, x);
  for (const Key key : {Key("Scale"), Key("SavedMean"), Key("SavedVariance"), Key("Mean"),
                        Key("Variance"), Key("DDScale"), Key("DDBias")})
    HEDDLE_RETURN_IF_ERROR(CheckParam(ctx, key, channels));
  const DType dtype = ctx.InDType("X");
  if (ctx.HasOut("DX")) ctx.SetOut("DX", x, dtype);
  if (ctx.HasOut("DDY")) ctx.SetOut("DDY", x, dtype);
  if (ctx.HasOut("DScale")) ctx.SetOut("DScale", {channels}, dtype);
  return Status::Ok();
}

template <typename T>
struct BatchNormDoubleGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &dy = ctx.In("DY");
    const Tensor* ddx = ctx.InOpt("DDX");
    if (!(dy.shape() == x.shape()) || (ddx && !(ddx->shape() == x.shape())))
      return InvalidArgument("DY has shape ", dy.shape().ToString(), ", X ", x.shape().ToString());
    const NormLayout layout = BatchLayout(x.shape(), ChannelsLast(ctx));
    Tensor hold;
    HEDDLE_ASSIGN_OR_RETURN(
        const NormStats<T> stats,
        StatsOf<T>(ctx, layout.channels, ctx.InOpt("Mean"), ctx.InOpt("Variance"), hold));
    const auto out = [&](Key key) {
      Tensor* t = ctx.OutOpt(key);
      return t ? t->mutable_data<T>() : nullptr;
    };
    const NormSecond<T> io{x.data<T>(),
                           dy.data<T>(),
                           DataOr<T>(ddx),
                           DataOr<T>(ctx.InOpt("DDScale")),
                           DataOr<T>(ctx.InOpt("DDBias")),
                           out("DX"),
                           out("DDY"),
                           out("DScale")};
    NormDoubleBackward(ctx, layout, stats, DataOr<T>(ctx.InOpt("Scale")), io);
    return Status::Ok();
  }
};

void Attrs(OpDef& op) {
  op.Attr("is_test", false).Attr("momentum", 0.9).Attr("epsilon", 1e-5);
  op.Attr("data_layout", "NCHW").Attr("use_global_stats", false);
  op.Attr("trainable_statistics", false);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(batch_norm) {
  op.Doc("normalises each channel with the batch's or the running mean and variance");
  op.Input("X").Input("Scale", kOptional).Input("Bias", kOptional).Input("Mean").Input("Variance");
  op.Input("MomentumTensor", kOptional | kNoBuffer);  // as in Paddle, the attribute alone counts
  op.Output("Y").Output("MeanOut", kOptional).Output("VarianceOut", kOptional);
  op.Output("SavedMean", kOptional).Output("SavedVariance", kOptional);
  op.Output("ReserveSpace", kOptional);
  Attrs(op);
  op.Traits(kChannelsLast)
      .Inplace("X", "Y")
      .Inplace("Mean", "MeanOut")
      .Inplace("Variance", "VarianceOut");
  op.InferShape(BatchNormShape).Kernels<BatchNorm, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(batch_norm_grad) {
  op.Input("X").Input("Y@GRAD").Input("Scale", kOptional).Input("Bias", kOptional | kNoBuffer);
  op.Input("SavedMean", kOptional).Input("SavedVariance", kOptional);
  op.Input("ReserveSpace", kOptional).Input("Mean", kOptional).Input("Variance", kOptional);
  op.Input("MeanOut", kOptional).Input("VarianceOut", kOptional);
  op.Output("X@GRAD", kOptional).Output("Scale@GRAD", kOptional).Output("Bias@GRAD", kOptional);
  Attrs(op);
  op.InferShape(GradShape).Kernels<BatchNormGrad, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(batch_norm_grad_grad) {
  op.Input("X").Input("DY").Input("Scale", kOptional).Input("SavedMean", kOptional);
  op.Input("SavedVariance", kOptional).Input("Mean", kOptional).Input("Variance", kOptional);
  op.Input("DDX", kOptional).Input("DDScale", kOptional).Input("DDBias", kOptional);
  op.Output("DX", kOptional).Output("DScale", kOptional).Output("DDY", kOptional);
  Attrs(op);
  op.InferShape(DoubleGradShape).Kernels<BatchNormDoubleGrad, float, double>();
}

HEDDLE_EXAMPLES(batch_norm, R"(
example float32 4x2, epsilon 0.001, momentum 0.8
attr epsilon FLOAT 0.001
attr momentum FLOAT 0.8
in Bias float32 [2] -0.334 -0.065
in Mean float32 [2] -0.075 -0.662
in Scale float32 [2] 0.59 0.605
in Variance float32 [2] 1.2 1.319
in X float32 [4, 2] -0.32 0.02 0.19 -0.15 0.52 -0.48 -0.65 0.35
out MeanOut=Mean float32 [2] -0.073 -0.54260004
out ReserveSpace float32 [0]
out SavedMean float32 [2] -0.065 -0.065000005
out SavedVariance float32 [2] 2.2106535 3.319988
out VarianceOut=Variance float32 [2] 1.000725 1.073145
out Y float32 [4, 2] -0.6665928 0.10573041 -0.0014071763 -0.23573038 0.429007 -0.898566 -1.0970069
  0.768566

example float32 2x3, data_layout NHWC, is_test, use_global_stats
attr data_layout STRING "NHWC"
attr is_test BOOLEAN true
attr use_global_stats BOOLEAN true
in Mean float32 [3] 0.42 0.86 0.11
in Variance float32 [3] 0.84 0.68 1.4
in X float32 [2, 3] -0.199 0.172 -0.076 0.296 -0.323 0.048
out MeanOut=Mean float32 [3] 0.42 0.86 0.11
out SavedMean ?
out SavedVariance ?
out VarianceOut=Variance float32 [3] 0.84 0.68 1.4
out Y float32 [2, 3] -0.67538035 -0.8343164 -0.15719813 -0.13529426 -1.4345876 -0.05239938

example float32 3x1x2x4, epsilon 0.001, momentum 0.8
attr epsilon FLOAT 0.001
attr momentum FLOAT 0.8
in Bias float32 [1] 0.193
in Mean float32 [1] -0.599
in Scale float32 [1] 1.11
in Variance float32 [1] 0.638
in X float32 [3, 1, 2, 4] -0.31 0.27 -0.83 -0.6 -0.48 0.45 0.33 -0.42 -0.71 0.39 0.21 -0.36 -0.65
  -0.07 -0.19 0.04 -0.77 0.1 -0.25 -0.13 -0.02 0.16 0.5 -0.54
out MeanOut=Mean float32 [1] -0.5115333
out ReserveSpace float32 [0]
out SavedMean float32 [1] -0.16166666
out SavedVariance float32 [1] 2.4878068
out VarianceOut=Variance float32 [1] 0.54251444
out Y float32 [3, 1, 2, 4] -0.2166174 1.3850327 -1.6525793 -1.0174425 -0.68606657 1.8820963
  1.5507206 -0.52037865 -1.3212035 1.7164085 1.2193446 -0.35469073 -1.1555157 0.44613433 0.11475843
  0.7498955 -1.4868915 0.9155835 -0.050929487 0.28044638 0.5842076 1.0812714 2.0201697 -0.8517546

example float64 2x3, data_layout NHWC, is_test, use_global_stats
attr data_layout STRING "NHWC"
attr is_test BOOLEAN true
attr use_global_stats BOOLEAN true
in Mean float64 [3] 0.42 0.86 0.11
in Variance float64 [3] 0.84 0.68 1.4
in X float64 [2, 3] -0.199 0.172 -0.076 0.296 -0.323 0.048
out MeanOut=Mean float64 [3] 0.42 0.86 0.11
out SavedMean ?
out SavedVariance ?
out VarianceOut=Variance float64 [3] 0.84 0.68 1.4
out Y float64 [2, 3] -0.6753803501713306 -0.8343164154681686 -0.1571981299586281
  -0.13529428662559773 -1.4345876736901795 -0.05239937665287604

example float32, MomentumTensor is not read
attr momentum FLOAT 0.8
attr epsilon FLOAT 0.001
in Bias float32 [2] -0.334 -0.065
in Mean float32 [2] -0.075 -0.662
in Scale float32 [2] 0.59 0.605
in Variance float32 [2] 1.2 1.319
in X float32 [4, 2] -0.32 0.02 0.19 -0.15 0.52 -0.48 -0.65 0.35
in MomentumTensor float32 [1] 0.3
out MeanOut=Mean float32 [2] -0.073 -0.54260004
out ReserveSpace float32 [0]
out SavedMean float32 [2] -0.065 -0.065000005
out SavedVariance float32 [2] 2.2106535 3.319988
out VarianceOut=Variance float32 [2] 1.000725 1.073145
out Y float32 [4, 2] -0.6665928 0.10573041 -0.0014071763 -0.23573038 0.429007 -0.898566 -1.0970069
  0.768566

example float64, one element per channel
attr momentum FLOAT 0.8
attr epsilon FLOAT 0.001
in Bias float64 [2] -0.334 -0.065
in Mean float64 [2] -0.075 -0.662
in Scale float64 [2] 0.59 0.605
in Variance float64 [2] 1.2 1.319
in X float64 [1, 2, 1, 1] -0.32 0.02
out MeanOut=Mean float64 [2] -0.075 -0.662
out ReserveSpace float64 [0]
out SavedMean float64 [2] 0 0
out SavedVariance float64 [2] 0 0
out VarianceOut=Variance float64 [2] 1.2 1.319
out Y float64 [1, 2, 1, 1] -0.32 0.02
)")

HEDDLE_EXAMPLES(batch_norm_grad, R"(
example float64 4x2, epsilon 0.001, momentum 0.8
attr epsilon FLOAT 0.001
attr momentum FLOAT 0.8
in Bias float64 [2] -0.307 -0.397
in MeanOut float64 [2] -0.18839999997615814 -0.5552000091671944
in ReserveSpace float64 [0]
in SavedMean float64 [2] -0.19 0.060000000000000005
in SavedVariance float64 [2] 3.082399656788253 2.509033097941494
in Scale float64 [2] 0.602 0.581
in VarianceOut float64 [2] 1.0720500144213438 1.0307700130075217
in X float64 [4, 2] -0.32 0.35 0.19 -0.48 0.02 0.52 -0.65 -0.15
in Y@GRAD float64 [4, 2] -0.4 -0.2 -0.2 0.8 0.6 -1 -0 -0.1
out Bias@GRAD float64 [2] -1.1102230246251565e-16 -0.4999999999999999
out Scale@GRAD float64 [2] 0.3144047649924017 -2.330891747987648
out X@GRAD float64 [4, 2] -0.683796904107102 0.5087550497402158 -0.5419599543238712
  0.1974980431066248 1.0189517100167096 -0.29511716043432545 0.20680514841426373 -0.4111359324125153

example float64 4x3, epsilon 0.001, use_global_stats
attr epsilon FLOAT 0.001
attr use_global_stats BOOLEAN true
in Bias float64 [3] -0.069 0.352 0.177
in Mean float64 [3] -0.57 0.33 -0.22
in MeanOut float64 [3] -0.57 0.33 -0.22
in ReserveSpace float64 [0]
in SavedMean float64 [3] 6.9113402912341e-310 2.75859453324e-313 2.97079411234e-313
in SavedVariance float64 [3] 4.68011838724695e-310 6.9113402912346e-310 4.6801183872533e-310
in Scale float64 [3] 1.261 1.056 1.137
in Variance float64 [3] 0.663 0.776 0.623
in VarianceOut float64 [3] 0.663 0.776 0.623
in X float64 [4, 3] 0.06 0.36 -0.39 -0.24 0.81 -0.83 -0.68 -0.09 0.51 0.21 -0.53 0.66
in Y@GRAD float64 [4, 3] -0.4 0.9 -0.4 0.2 0.1 0.6 -0.7 -0.4 0 0.8 0.1 -0.8
out Bias@GRAD float64 [3] -0.09999999999999987 0.7 -0.6000000000000001
out Scale@GRAD float64 [3] 0.6320088930824336 0.17811034422895117 -1.2684560572240164
out X@GRAD float64 [4, 3] -0.6190005547005426 1.0781915360203518 -0.5757423301651524
  0.3095002773502713 0.11979905955781688 0.8636134952477285 -1.0832509707259494 -0.4791962382312675
  0 1.2380011094010852 0.11979905955781688 -1.1514846603303048

example float32 4x2, epsilon 0.001, momentum 0.8
attr epsilon FLOAT 0.001
attr momentum FLOAT 0.8
in Bias float32 [2] -0.307 -0.397
in MeanOut float32 [2] -0.1884 -0.5552
in ReserveSpace float32 [0]
in SavedMean float32 [2] -0.19 0.06
in SavedVariance float32 [2] 3.0823996 2.5090332
in Scale float32 [2] 0.602 0.581
in VarianceOut float32 [2] 1.07205 1.0307701
in X float32 [4, 2] -0.32 0.35 0.19 -0.48 0.02 0.52 -0.65 -0.15
in Y@GRAD float32 [4, 2] -0.4 -0.2 -0.2 0.8 0.6 -1 -0 -0.1
out Bias@GRAD float32 [2] 0 -0.49999997
out Scale@GRAD float32 [2] 0.31440473 -2.3308916
out X@GRAD float32 [4, 2] -0.6837969 0.50875497 -0.5419599 0.19749814 1.0189518 -0.29511726
  0.20680511 -0.4111359

example float32, one element per channel
gradient none: the forward operator hands one element per channel on as it is
attr epsilon FLOAT 0.001
in Scale float32 [2] 0.59 0.605
in Bias float32 [2] 0.59 0.605
in SavedMean float32 [2] 0 0
in SavedVariance float32 [2] 0 0
in X float32 [1, 2, 1, 1] -0.32 0.02
in Y@GRAD float32 [1, 2, 1, 1] 3 4
out X@GRAD float32 [1, 2, 1, 1] 3 4
out Scale@GRAD float32 [2] 0 0
out Bias@GRAD float32 [2] 0 0
)")

HEDDLE_EXAMPLES(batch_norm_grad_grad, R"(
example float64 2x3x4x3, data_layout NHWC, use_global_stats
attr data_layout STRING "NHWC"
attr use_global_stats BOOLEAN true
in DDBias float64 [3] 0 0 0
in DDScale float64 [3] 0 0 0
in DDX float64 [2, 3, 4, 3] 1.2 1.1 1.3 1.5 1.4 1.5 1.5 0.62 1.1 1.2 1.5 0.72 0.58 0.96 0.66 1.1
  0.65 1.1 0.72 0.9 1.4 0.53 1.4 1.3 1.1 1.3 0.74 0.63 1.5 0.99 0.56 1.1 0.74 0.58 0.77 1.4 1.1 1.4
  1.3 1.3 1.3 1.4 1 0.84 1.1 0.93 0.54 0.89 0.91 1.2 0.57 0.55 0.8 0.53 1.1 1.4 0.7 1 1.1 1.3 1.5
  1.3 0.73 1 0.61 1.2 0.78 1.3 0.88 1.1 0.8 1.5
in DY float64 [2, 3, 4, 3] 0.414 0.319 0.13 0.535 0.292 0.711 0.954 0.251 0.454 0.103 0.143 0.306
  0.333 0.468 0.792 0.981 0.9 0.157 0.589 0.724 0.643 0.062 0.941 0.279 0.846 0.089 0.373 0.927 0.17
  0.224 0.697 0.819 0.738 0.441 0.197 0.549 0.508 0.076 0.968 0.873 0.765 0.387 0.4 0.63 0.833 0.346
  0.184 0.67 0.522 0.657 0.022 0.684 0.806 0.116 0.211 0.265 0.616 0.36 0.049 0.481 0.752 0.603
  0.035 0.914 0.427 0.238 0.86 0.576 0.779 0.887 0.495 0.562
in Mean float64 [3] 0.97 0.16 0.64
in SavedMean float64 [3] 1.3103e-320 0 1.03e-321
in SavedVariance float64 [3] 0 0 0
in Scale float64 [3] 1.3 0.73 1.4
in Variance float64 [3] 1.3 1.2 0.76
in X float64 [2, 3, 4, 3] 0.72 0.94 -0.25 -0.12 -0.69 0.13 0.8 0.02 0.67 0.56 -0.47 0.23 0.64 -0.36
  0.88 0.61 0.07 -0.55 -0.09 -0.31 0.37 -0.82 -0.74 0.15 -0.44 -0.17 -0.96 0.59 0.45 0.32 -0.71 0.53
  -0.88 -0.5 -0.28 -0.63 0.83 0.51 -0.33 0.75 -0.93 -0.06 -0.2 0.4 -0.79 -0.39 -0.14 0.05 -0.9 0.91
  0.78 -0.77 0.34 -0.58 -0.6 0.42 -0.52 -0.23 0.21 0.29 -0.01 -0.04 0.86 0.18 0.97 -0.66 0.48 -0.85
  0.69 0.1 -0.41 0.26
out DDY float64 [2, 3, 4, 3] 1.368205247801342 0.73303230183293 2.0876694436002463
  1.7102565597516777 0.93295020233282 2.408849358000284 1.7102565597516777 0.413163661033106
  1.7664895292002085 1.368205247801342 0.9995895024994499 1.1562476918401365 0.6612992031039819
  0.6397372815996479 1.059893717520125 1.254188143817897 0.43315545108309494 1.7664895292002085
  0.8209231486808052 0.59975370149967 2.248259400800265 0.6042906511122594 0.93295020233282
  2.0876694436002463 1.254188143817897 0.8663109021661899 1.1883656832801404 0.7183077550957047
  0.9995895024994499 1.5898405762801877 0.638495782307293 0.73303230183293 1.1883656832801404
  0.6612992031039819 0.513122611283051 2.248259400800265 1.254188143817897 0.93295020233282
  2.0876694436002463 1.4822223517847872 0.8663109021661899 2.248259400800265 1.1401710398344518
  0.559770121399692 1.7664895292002085 1.06035906704604 0.35985222089980196 1.4292506190801688
  1.0375556462493511 0.79967160199956 0.915362756040108 0.6270940719089485 0.53311440133304
  0.8511267731601005 1.254188143817897 0.93295020233282 1.1241297004001325 1.1401710398344518
  0.73303230183293 2.0876694436002463 1.7102565597516777 0.8663109021661899 1.1723066875601384
  1.1401710398344518 0.406499731016443 1.9270794864002274 0.8893334110708723 0.8663109021661899
  1.413191623360167 1.254188143817897 0.53311440133304 2.408849358000284
out DScale float64 [3] 12.534066881282873 10.345632678142984 13.775211526526741
out DX float64 [2, 3, 4, 3] 0*72

example float32 2x3x4x3, data_layout NHWC, use_global_stats
attr data_layout STRING "NHWC"
attr use_global_stats BOOLEAN true
in DDBias float32 [3] 0 0 0
in DDScale float32 [3] 0 0 0
in DDX float32 [2, 3, 4, 3] 1.2 1.1 1.3 1.5 1.4 1.5 1.5 0.62 1.1 1.2 1.5 0.72 0.58 0.96 0.66 1.1
  0.65 1.1 0.72 0.9 1.4 0.53 1.4 1.3 1.1 1.3 0.74 0.63 1.5 0.99 0.56 1.1 0.74 0.58 0.77 1.4 1.1 1.4
  1.3 1.3 1.3 1.4 1 0.84 1.1 0.93 0.54 0.89 0.91 1.2 0.57 0.55 0.8 0.53 1.1 1.4 0.7 1 1.1 1.3 1.5
  1.3 0.73 1 0.61 1.2 0.78 1.3 0.88 1.1 0.8 1.5
in DY float32 [2, 3, 4, 3] 0.414 0.319 0.13 0.535 0.292 0.711 0.954 0.251 0.454 0.103 0.143 0.306
  0.333 0.468 0.792 0.981 0.9 0.157 0.589 0.724 0.643 0.062 0.941 0.279 0.846 0.089 0.373 0.927 0.17
  0.224 0.697 0.819 0.738 0.441 0.197 0.549 0.508 0.076 0.968 0.873 0.765 0.387 0.4 0.63 0.833 0.346
  0.184 0.67 0.522 0.657 0.022 0.684 0.806 0.116 0.211 0.265 0.616 0.36 0.049 0.481 0.752 0.603
  0.035 0.914 0.427 0.238 0.86 0.576 0.779 0.887 0.495 0.562
in Mean float32 [3] 0.97 0.16 0.64
in SavedMean float32 [3] 0 0 0
in SavedVariance float32 [3] 0 0 0
in Scale float32 [3] 1.3 0.73 1.4
in Variance float32 [3] 1.3 1.2 0.76
in X float32 [2, 3, 4, 3] 0.72 0.94 -0.25 -0.12 -0.69 0.13 0.8 0.02 0.67 0.56 -0.47 0.23 0.64 -0.36
  0.88 0.61 0.07 -0.55 -0.09 -0.31 0.37 -0.82 -0.74 0.15 -0.44 -0.17 -0.96 0.59 0.45 0.32 -0.71 0.53
  -0.88 -0.5 -0.28 -0.63 0.83 0.51 -0.33 0.75 -0.93 -0.06 -0.2 0.4 -0.79 -0.39 -0.14 0.05 -0.9 0.91
  0.78 -0.77 0.34 -0.58 -0.6 0.42 -0.52 -0.23 0.21 0.29 -0.01 -0.04 0.86 0.18 0.97 -0.66 0.48 -0.85
  0.69 0.1 -0.41 0.26
out DDY float32 [2, 3, 4, 3] 1.3682054 0.73303235 2.0876694 1.7102566 0.93295014 2.4088492 1.7102566
  0.41316366 1.7664895 1.3682054 0.9995895 1.1562477 0.66129917 0.6397373 1.0598937 1.2541882
  0.43315545 1.7664895 0.8209232 0.59975374 2.2482593 0.60429066 0.93295014 2.0876694 1.2541882
  0.8663109 1.1883657 0.71830773 0.9995895 1.5898407 0.6384958 0.73303235 1.1883657 0.66129917
  0.5131226 2.2482593 1.2541882 0.93295014 2.0876694 1.4822223 0.8663109 2.2482593 1.140171
  0.5597701 1.7664895 1.0603591 0.35985225 1.4292506 1.0375557 0.79967165 0.9153627 0.6270941
  0.53311443 0.8511267 1.2541882 0.93295014 1.1241297 1.140171 0.73303235 2.0876694 1.7102566
  0.8663109 1.1723067 1.140171 0.40649974 1.9270796 0.8893334 0.8663109 1.4131916 1.2541882
  0.53311443 2.4088492
out DScale float32 [3] 12.534068 10.3456335 13.775211
out DX float32 [2, 3, 4, 3] 0*72
)")
