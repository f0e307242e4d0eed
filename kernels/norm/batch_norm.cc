#include <cmath>
#include <cstring>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/kept.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"
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
  if (s.numel() == 0 && !UsesRunning(ctx) && ctx.Float("momentum") == 0) return Status::Ok();
  if (UsesRunning(ctx) &&
      (key.hash == Key("SavedMean").hash || key.hash == Key("SavedVariance").hash))
    return Status::Ok();  // not read
  return InvalidArgument(key.name, " has shape ", s.ToString(), ", X has ", channels, " channels");
}

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

Status BatchNormShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 2)
    return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 or more");
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
    if (layout.count() == 1 && ctx.Bool("lone_passes")) return OneElement(ctx);
    T* mean = inverse + n;
    T* variance = mean + n;
    NormMoments(ctx, layout, x.data<T>(), mean, variance);
    Invert(variance, n, epsilon, inverse);
    if (x.numel() > 0) NormForward(ctx, layout, x.data<T>(), {mean, inverse, false}, params, y);
    Save(ctx, "SavedMean", mean, n);
    Save(ctx, "SavedVariance", ctx.Bool("saves_variance") ? variance : inverse, n);
    if (ctx.Bool("unbiased") && layout.count() > 1) {
      const T unbiased = static_cast<T>(layout.count()) / static_cast<T>(layout.count() - 1);
      for (const int64_t i : Watched(n)) variance[i] *= unbiased;
    }
    const T momentum = static_cast<T>(ctx.Float("momentum"));
    if (Tensor* out = ctx.OutOpt("MeanOut")) Blend(ctx.In("Mean"), mean, momentum, *out);
    if (Tensor* out = ctx.OutOpt("VarianceOut"))
      Blend(ctx.In("Variance"), variance, momentum, *out);
    return Status::Ok();
  }

  // With lone_passes, as in Paddle: a batch with one element per channel has no statistics to go
  // by, and passes.
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
    T* to = out.mutable_data<T>();
    if (momentum == T(0))  // what ran before may be missing
      return WatchedMemcpy(to, now, out.bytes());
    const T* from = running.data<T>();
    for (const auto part : Stretches(out.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = from[i] * momentum + now[i] * (T(1) - momentum);
  }
};

Status GradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 2)
    return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 or more");
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
    if (!ctx.Bool("saves_variance")) return NormStats<T>{m->data<T>(), v->data<T>(), false};
    hold = ctx.Scratch(kDTypeOf<T>, {n});
    Invert(v->data<T>(), n, static_cast<T>(ctx.Float("epsilon")), hold.mutable_data<T>());
    return NormStats<T>{m->data<T>(), hold.data<T>(), false};
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
    if (layout.count() == 1 && !UsesRunning(ctx) && ctx.Bool("lone_passes")) {
      // The forward pass handed X on.
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
  if (x.rank() < 2)
    return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 or more");
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
  // A batch of one element per channel is its own result; SavedVariance is the variance instead of
  // 1 / sqrt(variance + epsilon).
  op.Attr("lone_passes", true).Attr("saves_variance", false);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(batch_norm) {
  op.Doc("normalises each channel with the batch's or the running mean and variance");
  op.Input("X").Input("Scale", kOptional).Input("Bias", kOptional).Input("Mean").Input("Variance");
  op.Input("MomentumTensor", kOptional | kNoBuffer);  // as in Paddle, the attribute alone counts
  op.Output("Y").Output("MeanOut", kOptional | kKeptInInference);
  op.Output("VarianceOut", kOptional | kKeptInInference);
  op.Output("SavedMean", kOptional).Output("SavedVariance", kOptional);
  op.Output("ReserveSpace", kOptional);
  Attrs(op);
  op.Attr("unbiased", false);  // of the variance that VarianceOut takes in
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
