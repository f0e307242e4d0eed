// batch_norm and layer_norm with their gradients, and heddle's fused_batch_norm.
#include <cmath>

#include "core/kernel_context.h"
#include "core/shapes.h"
#include "device/cuda/grid/epilogue.h"
#include "device/cuda/grid/in_float.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/reduce.h"

namespace heddle::HEDDLE_GRID {
namespace {

// --- per channel: the tensor as [outer, channels, inner] ---

struct Channels {
  int64_t outer = 1, channels = 1, inner = 1;
  int64_t count() const { return outer * inner; }
  HEDDLE_BODY int64_t Of(int64_t i) const { return i / inner % channels; }
};
Channels ChannelsOf(const OpContext& ctx, const Shape& x) {
  if (ctx.Str("data_layout") == "NHWC" || x.rank() == 2)
    return {x.Product(0, x.rank() - 1), x.dim(-1), 1};
  return {x[0], x[1], x.Product(2, x.rank())};
}
bool UsesRunning(const OpContext& ctx) {
  return (ctx.Bool("is_test") && !ctx.Bool("trainable_statistics")) || ctx.Bool("use_global_stats");
}

// Operands: the tensor's elements, and the channels.
void Cut(const Channels& c, Strides<2>* kept, Strides<2>* reduced) {
  kept->Add(c.channels, {c.inner, 1});
  reduced->Add(c.outer, {c.channels * c.inner, 0});
  reduced->Add(c.inner, {1, 0});
}

template <typename T>
struct Load {
  RealIn<T> x;
  HEDDLE_BODY float operator()(const Strides<2>::Places& p) const { return x[p.at[0]]; }
};
template <typename T>
struct SquaredDistance {
  RealIn<T> x;
  const float* mean;
  HEDDLE_BODY float operator()(const Strides<2>::Places& p) const {
    const float d = x[p.at[0]] - mean[p.at[1]];
    return d * d;
  }
};
template <typename T>
struct TimesNormal {  // dy times the normalised x
  RealIn<T> x, dy;
  const float* mean;
  const float* inverse;
  HEDDLE_BODY float operator()(const Strides<2>::Places& p) const {
    return dy[p.at[0]] * (x[p.at[0]] - mean[p.at[1]]) * inverse[p.at[1]];
  }
};

template <typename P>
struct InvertBody {
  RealIn<P> variance;
  float* inverse;
  float epsilon;
  HEDDLE_BODY void operator()(int64_t c) const { inverse[c] = 1.0f / sqrtf(variance[c] + epsilon); }
};
struct BlendBody {
  const float* running;
  const float* now;
  float* out;
  float momentum;
  HEDDLE_BODY void operator()(int64_t c) const {
    out[c] = running[c] * momentum + now[c] * (1.0f - momentum);
  }
};
template <typename T, typename P, typename M>  // the tensor, parameters, the mean
struct NormalizeBody {
  Channels channels;
  RealIn<T> x;
  RealIn<M> mean;
  const float* inverse;
  RealIn<P> scale, bias;
  RealOut<T> y;
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t c = channels.Of(i);
    const float factor = inverse[c] * (scale.there() ? scale[c] : 1.0f);
    const float shift = (bias.there() ? bias[c] : 0.0f) - mean[c] * factor;
    y[i] = x[i] * factor + shift;
  }
};

const float* DataOr(const Tensor* t) { return t != nullptr ? t->data<float>() : nullptr; }
Status CopyUnlessSame(Queue& queue, const Tensor& from, Tensor* to) {
  if (to == nullptr || to->raw() == from.raw()) return Status::Ok();
  return queue.Copy(to->mutable_raw(), from.raw(), from.bytes());
}

template <typename T, typename P, typename M>
Status Normalize(Queue& queue, KernelContext& ctx, const Channels& c, RealIn<M> mean,
                 const float* inverse) {
  const Tensor& x = ctx.In("X");
  return Each(queue, x.numel(),
              NormalizeBody<T, P, M>{c, ReadOf<T>(x), mean, inverse, ReadOr<P>(ctx.InOpt("Scale")),
                                     ReadOr<P>(ctx.InOpt("Bias")), WriteOf<T>(ctx.Out("Y"))});
}

// Computes the batch's statistics, one number per channel.
template <typename T>
Status Moments(Queue& queue, const Channels& c, RealIn<T> x, float* mean, float* variance) {
  Strides<2> kept, reduced;
  Cut(c, &kept, &reduced);
  const float share = 1.0f / static_cast<float>(c.count());
  HEDDLE_RETURN_IF_ERROR(ReduceInto<SumOp>(queue, kept, reduced, Load<T>{x}, mean, share));
  return ReduceInto<SumOp>(queue, kept, reduced, SquaredDistance<T>{x, mean}, variance, share);
}

// The running statistics normalise.
template <typename T, typename P>
Status BatchNormOfRunning(Queue& queue, KernelContext& ctx, const Channels& c, float epsilon) {
  const Tensor &mean = ctx.In("Mean"), &variance = ctx.In("Variance");
  Scratch scratch(queue);
  HEDDLE_RETURN_IF_ERROR(scratch.Take(c.channels));
  HEDDLE_RETURN_IF_ERROR(
      Each(queue, c.channels, InvertBody<P>{ReadOf<P>(variance), scratch.data(), epsilon}));
  HEDDLE_RETURN_IF_ERROR((Normalize<T, P, P>(queue, ctx, c, ReadOf<P>(mean), scratch.data())));
  HEDDLE_RETURN_IF_ERROR(CopyUnlessSame(queue, mean, ctx.OutOpt("MeanOut")));
  return CopyUnlessSame(queue, variance, ctx.OutOpt("VarianceOut"));
}

// One element per channel has no statistics, and is handed on.
Status OneElement(Queue& queue, KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CopyUnlessSame(queue, ctx.In("X"), &ctx.Out("Y")));
  HEDDLE_RETURN_IF_ERROR(CopyUnlessSame(queue, ctx.In("Mean"), ctx.OutOpt("MeanOut")));
  HEDDLE_RETURN_IF_ERROR(CopyUnlessSame(queue, ctx.In("Variance"), ctx.OutOpt("VarianceOut")));
  for (const Key key : {Key("SavedMean"), Key("SavedVariance")})
    if (Tensor* t = ctx.OutOpt(key))
      HEDDLE_RETURN_IF_ERROR(queue.Zero(t->mutable_raw(), t->bytes()));
  return Status::Ok();
}

// The batch's statistics normalise, and go into the running ones.
template <typename T, typename P>
Status BatchNormOfBatch(Queue& queue, KernelContext& ctx, const Channels& c, float epsilon) {
  const int64_t n = c.channels;
  if (c.count() == 1) return OneElement(queue, ctx);
  Scratch scratch(queue);
  HEDDLE_RETURN_IF_ERROR(scratch.Take(3 * n));
  float *const inverse = scratch.data(), *const mean = inverse + n, *const variance = mean + n;
  HEDDLE_RETURN_IF_ERROR(Moments(queue, c, ReadOf<T>(ctx.In("X")), mean, variance));
  HEDDLE_RETURN_IF_ERROR(Each(queue, n, InvertBody<float>{{variance}, inverse, epsilon}));
  HEDDLE_RETURN_IF_ERROR((Normalize<T, P, float>(queue, ctx, c, {mean}, inverse)));
  const size_t bytes = static_cast<size_t>(n) * sizeof(float);
  if (Tensor* t = ctx.OutOpt("SavedMean"))
    HEDDLE_RETURN_IF_ERROR(queue.Copy(t->mutable_raw(), mean, bytes));
  if (Tensor* t = ctx.OutOpt("SavedVariance"))
    HEDDLE_RETURN_IF_ERROR(queue.Copy(t->mutable_raw(), inverse, bytes));
  const auto momentum = static_cast<float>(ctx.Float("momentum"));
  const auto blend = [&](Key running, const float* now, Key out) {
    return Each(queue, n,
                BlendBody{ctx.In(running).data<float>(), now, ctx.Out(out).mutable_data<float>(),
                          momentum});
  };
  HEDDLE_RETURN_IF_ERROR(blend("Mean", mean, "MeanOut"));
  return blend("Variance", variance, "VarianceOut");
}

// The type of scale and bias; float32 where neither is there.
DType ParameterType(const KernelContext& ctx, DType without) {
  for (const Key key : {Key("Scale"), Key("Bias")})
    if (const Tensor* const t = ctx.InOpt(key)) return t->dtype();
  return without;
}
// fn(tag of `type`, tag of `parameters`), which is float32 or the same.
template <typename Fn>
Status VisitTypes(DType type, DType parameters, Fn&& fn) {
  return VisitReal(type, [&](auto tag) {
    return parameters == type ? fn(tag, tag) : fn(tag, TypeTag<float>{});
  });
}

Status BatchNorm(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Channels c = ChannelsOf(ctx, x.shape());
  const auto epsilon = static_cast<float>(ctx.Float("epsilon"));
  return VisitTypes(x.dtype(), ParameterType(ctx, ctx.In("Mean").dtype()), [&](auto t, auto p) {
    using T = typename decltype(t)::type;
    using P = typename decltype(p)::type;
    return UsesRunning(ctx) ? BatchNormOfRunning<T, P>(queue, ctx, c, epsilon)
                            : BatchNormOfBatch<T, P>(queue, ctx, c, epsilon);
  });
}

// Parameters are float32 or have X's type; statistics are float32, but for running ones that are
// only read.
bool CoversBatchNorm(const CallView& call) {
  if (!call.Bool("lone_passes") || call.Bool("saves_variance") || call.Bool("unbiased"))
    return false;
  const DType type = call.InDType("X"), mean = call.InDType("Mean");
  DType parameters = mean;
  for (const Key key : {Key("Scale"), Key("Bias")})
    if (call.HasIn(key)) parameters = call.InDType(key);
  if (parameters != DType::kF32 && parameters != type) return false;
  for (const Key key : {Key("Scale"), Key("Bias")})
    if (call.HasIn(key) && call.InDType(key) != parameters) return false;
  if (call.InDType("Variance") != mean || call.OutDType("Y") != type) return false;
  return mean == (UsesRunning(call) ? parameters : DType::kF32);
}

struct BatchNormGradBody {
  Channels channels;
  const float* x;
  const float* dy;
  const float* mean;
  const float* inverse;
  const float* scale;
  const float* sum_dy;
  const float* sum_dy_normal;
  float* dx;
  float share;  // 1 / elements of a channel
  bool fixed;   // the statistics do not depend on x
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t c = channels.Of(i);
    const float factor = inverse[c] * (scale != nullptr ? scale[c] : 1.0f);
    const float normal = (x[i] - mean[c]) * inverse[c];
    const float away = fixed ? 0.0f : sum_dy[c] * share + normal * sum_dy_normal[c] * share;
    dx[i] = factor * (dy[i] - away);
  }
};

Status BatchNormGrad(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &dy = ctx.In("Y@GRAD");
  const Channels c = ChannelsOf(ctx, x.shape());
  const int64_t n = c.channels;
  Scratch scratch(queue);
  HEDDLE_RETURN_IF_ERROR(scratch.Take(3 * n));
  const bool fixed = UsesRunning(ctx);
  if (c.count() == 1 && !fixed) {
    for (const Key key : {Key("Scale@GRAD"), Key("Bias@GRAD")})
      if (Tensor* t = ctx.OutOpt(key))
        HEDDLE_RETURN_IF_ERROR(queue.Zero(t->mutable_raw(), t->bytes()));
    return CopyUnlessSame(queue, dy, ctx.OutOpt("X@GRAD"));
  }
  const Tensor* mean = ctx.InOpt("SavedMean");
  const float* inverse = DataOr(ctx.InOpt("SavedVariance"));
  if (fixed) {
    mean = ctx.InOpt("Mean") != nullptr ? ctx.InOpt("Mean") : ctx.InOpt("MeanOut");
    const Tensor* const variance =
        ctx.InOpt("Variance") != nullptr ? ctx.InOpt("Variance") : ctx.InOpt("VarianceOut");
    if (variance == nullptr) return InvalidArgument("the running variance holds nothing");
    HEDDLE_RETURN_IF_ERROR(Each(queue, n,
                                InvertBody<float>{{variance->data<float>()},
                                                  scratch.data() + 2 * n,
                                                  static_cast<float>(ctx.Float("epsilon"))}));
    inverse = scratch.data() + 2 * n;
  }
  if (mean == nullptr || inverse == nullptr)
    return InvalidArgument("the mean and variance of the forward pass hold nothing");
  Tensor *const ds = ctx.OutOpt("Scale@GRAD"), *const db = ctx.OutOpt("Bias@GRAD");
  float* const sum_dy = db != nullptr ? db->mutable_data<float>() : scratch.data();
  float* const sum_normal = ds != nullptr ? ds->mutable_data<float>() : scratch.data() + n;
  const float *const xs = x.data<float>(), *const dys = dy.data<float>();
  Strides<2> kept, reduced;
  Cut(c, &kept, &reduced);
  HEDDLE_RETURN_IF_ERROR(ReduceInto<SumOp>(queue, kept, reduced, Load<float>{{dys}}, sum_dy));
  HEDDLE_RETURN_IF_ERROR(
      ReduceInto<SumOp>(queue, kept, reduced,
                        TimesNormal<float>{{xs}, {dys}, mean->data<float>(), inverse}, sum_normal));
  Tensor* const dx = ctx.OutOpt("X@GRAD");
  if (dx == nullptr) return Status::Ok();
  return Each(
      queue, x.numel(),
      BatchNormGradBody{c, xs, dys, mean->data<float>(), inverse, DataOr(ctx.InOpt("Scale")),
                        sum_dy, sum_normal, dx->mutable_data<float>(),
                        1.0f / static_cast<float>(c.count()), fixed});
}

// X and its gradient have one type, all else is float32 or has it, too.
bool CoversBatchNormGrad(const CallView& call) {
  if (!call.Bool("lone_passes") || call.Bool("saves_variance")) return false;
  const DType type = call.InDType("X");
  if (call.InDType("Y@GRAD") != type || !IsReal(type)) return false;
  if (call.HasOut("X@GRAD") && call.OutDType("X@GRAD") != type) return false;
  for (const Key key : {Key("Scale"), Key("SavedMean"), Key("SavedVariance"), Key("Mean"),
                        Key("Variance"), Key("MeanOut"), Key("VarianceOut")})
    if (call.HasIn(key) && !IsReal(call.InDType(key))) return false;
  for (const Key key : {Key("Scale@GRAD"), Key("Bias@GRAD")})
    if (call.HasOut(key) && !IsReal(call.OutDType(key))) return false;
  return true;
}

struct AffineBody {
  Channels channels;
  const float* x;
  const float* scale;
  const float* bias;
  float* y;
  Element op;
  ElementArgs args;
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t c = channels.Of(i);
    y[i] = Compute(op, x[i] * scale[c] + bias[c], 0, args);
  }
};
Status FusedBatchNorm(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const Activation a, ActivationOf(ctx));
  return Each(
      queue, x.numel(),
      AffineBody{ChannelsOf(ctx, x.shape()), x.data<float>(), ctx.In("Scale").data<float>(),
                 ctx.In("Bias").data<float>(), ctx.Out("Y").mutable_data<float>(), a.op, a.args});
}

// --- layer_norm: per row ---

template <typename T, typename P>
struct LayerNormBody {
  RealIn<T> x;
  RealIn<P> scale, bias;
  RealOut<T> y;
  float* mean_out;
  float* variance_out;
  int64_t width;
  float epsilon;
  HEDDLE_BODY void operator()(Group& group, int64_t row) const {
    const RealIn<T> from = x + row * width;
    float sum = 0, squares = 0;
    for (int64_t i = group.rank(); i < width; i += group.size()) sum += from[i];
    const float mean = group.Reduce(sum, SumOp()) / static_cast<float>(width);
    for (int64_t i = group.rank(); i < width; i += group.size())
      squares += (from[i] - mean) * (from[i] - mean);
    const float variance = group.Reduce(squares, SumOp()) / static_cast<float>(width);
    const float factor = 1.0f / sqrtf(variance + epsilon);
    for (int64_t i = group.rank(); i < width; i += group.size()) {
      float v = (from[i] - mean) * factor;
      if (scale.there()) v *= scale[i];
      y[row * width + i] = bias.there() ? v + bias[i] : v;
    }
    if (group.rank() != 0) return;
    if (mean_out != nullptr) mean_out[row] = mean;
    if (variance_out != nullptr) variance_out[row] = variance;
  }
};

struct Rows {
  int64_t rows, width;
};
Rows RowsOf(const OpContext& ctx, const Shape& x) {
  const int at = static_cast<int>(ctx.Int("begin_norm_axis"));
  return {x.Product(0, at), x.Product(at, x.rank())};
}

Status LayerNorm(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Rows r = RowsOf(ctx, x.shape());
  Tensor *const mean = ctx.OutOpt("Mean"), *const variance = ctx.OutOpt("Variance");
  if (r.width == 0) return Status::Ok();
  return VisitTypes(x.dtype(), ParameterType(ctx, DType::kF32), [&](auto t, auto p) {
    using T = typename decltype(t)::type;
    using P = typename decltype(p)::type;
    return Groups(
        queue, r.rows, r.width,
        LayerNormBody<T, P>{ReadOf<T>(x), ReadOr<P>(ctx.InOpt("Scale")),
                            ReadOr<P>(ctx.InOpt("Bias")), WriteOf<T>(ctx.Out("Y")),
                            mean != nullptr ? mean->mutable_data<float>() : nullptr,
                            variance != nullptr ? variance->mutable_data<float>() : nullptr,
                            r.width, static_cast<float>(ctx.Float("epsilon"))});
  });
}
// Scale and bias are float32 or have X's type; statistics are float32.
bool CoversLayerNorm(const CallView& call) {
  if (call.Bool("inverse_deviation")) return false;
  const DType type = call.InDType("X");
  DType parameters = DType::kUnknown;
  for (const Key key : {Key("Scale"), Key("Bias")}) {
    if (!call.HasIn(key)) continue;
    const DType own = call.InDType(key);
    if ((own != DType::kF32 && own != type) || (parameters != DType::kUnknown && own != parameters))
      return false;
    parameters = own;
  }
  for (const Key key : {Key("Mean"), Key("Variance")})
    if (call.HasOut(key) && call.OutDType(key) != DType::kF32) return false;
  return call.OutDType("Y") == type;
}

// dx = factor (g - mean(g) - normal mean(g normal)) with g = dy scale.
template <typename T, typename P>
struct LayerNormGradBody {
  RealIn<T> x, dy;
  RealIn<P> scale;
  const float* mean;
  const float* variance;
  RealIn<T> addend;  // or null; may be dx
  RealOut<T> dx;
  int64_t width;
  float epsilon;
  HEDDLE_BODY void operator()(Group& group, int64_t row) const {
    const float factor = 1.0f / sqrtf(variance[row] + epsilon), m = mean[row];
    const int64_t begin = row * width;
    float sum = 0, mixed = 0;
    for (int64_t i = group.rank(); i < width; i += group.size()) {
      const float g = dy[begin + i] * (scale.there() ? scale[i] : 1.0f);
      sum += g;
      mixed += g * (x[begin + i] - m) * factor;
    }
    sum = group.Reduce(sum, SumOp()) / static_cast<float>(width);
    mixed = group.Reduce(mixed, SumOp()) / static_cast<float>(width);
    for (int64_t i = group.rank(); i < width; i += group.size()) {
      const float g = dy[begin + i] * (scale.there() ? scale[i] : 1.0f);
      const float d = factor * (g - sum - (x[begin + i] - m) * factor * mixed);
      dx[begin + i] = addend.there() ? addend[begin + i] + d : d;
    }
  }
};
template <typename T>
struct TimesNormalOfRow {  // operands: the element, the row
  RealIn<T> x, dy;
  const float* mean;
  const float* variance;
  float epsilon;
  HEDDLE_BODY float operator()(const Strides<2>::Places& p) const {
    const int32_t row = p.at[1];
    return dy[p.at[0]] * (x[p.at[0]] - mean[row]) / sqrtf(variance[row] + epsilon);
  }
};

template <typename T, typename P>
Status LayerNormGradAs(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Rows r = RowsOf(ctx, x.shape());
  const auto epsilon = static_cast<float>(ctx.Float("epsilon"));
  const auto xs = ReadOf<T>(x), dy = ReadOf<T>(ctx.In("Y@GRAD"));
  const auto* const mean = ctx.In("Mean").data<float>();
  const auto* const variance = ctx.In("Variance").data<float>();
  Strides<2> kept, reduced;
  kept.Add(r.width, {1, 0});
  reduced.Add(r.rows, {r.width, 1});
  if (Tensor* t = ctx.OutOpt("Bias@GRAD"))
    HEDDLE_RETURN_IF_ERROR(
        ReduceInto<SumOp>(queue, kept, reduced, Load<T>{dy}, t->mutable_data<P>()));
  if (Tensor* t = ctx.OutOpt("Scale@GRAD"))
    HEDDLE_RETURN_IF_ERROR(ReduceInto<SumOp>(queue, kept, reduced,
                                             TimesNormalOfRow<T>{xs, dy, mean, variance, epsilon},
                                             t->mutable_data<P>()));
  Tensor* const dx = ctx.OutOpt("X@GRAD");
  if (dx == nullptr || r.width == 0) return Status::Ok();
  return Groups(queue, r.rows, r.width,
                LayerNormGradBody<T, P>{xs, dy, ReadOr<P>(ctx.InOpt("Scale")), mean, variance,
                                        ReadOr<T>(ctx.InOpt("AddendOfX")), WriteOf<T>(*dx), r.width,
                                        epsilon});
}
Status LayerNormGrad(Queue& queue, KernelContext& ctx) {
  const Tensor *const scale = ctx.InOpt("Scale"), *const bias_grad = ctx.OutOpt("Bias@GRAD");
  const DType parameters = scale != nullptr       ? scale->dtype()
                           : bias_grad != nullptr ? bias_grad->dtype()
                                                  : DType::kF32;
  return VisitTypes(ctx.In("X").dtype(), parameters, [&](auto t, auto p) {
    return LayerNormGradAs<typename decltype(t)::type, typename decltype(p)::type>(queue, ctx);
  });
}
bool CoversLayerNormGrad(const CallView& call) {
  const DType type = call.InDType("X");
  DType parameters = DType::kF32;
  for (const Key key : {Key("Scale"), Key("Bias")})
    if (call.HasIn(key)) parameters = call.InDType(key);
  if (parameters != DType::kF32 && parameters != type) return false;
  for (const Key key : {Key("Scale"), Key("Bias")})
    if (call.HasIn(key) && call.InDType(key) != parameters) return false;
  for (const Key key : {Key("Scale@GRAD"), Key("Bias@GRAD")})
    if (call.HasOut(key) && call.OutDType(key) != parameters) return false;
  if (call.HasIn("AddendOfX") && call.InDType("AddendOfX") != type) return false;
  return call.InDType("Y@GRAD") == type && call.InDType("Mean") == DType::kF32 &&
         call.InDType("Variance") == DType::kF32;
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(batch_norm) {
  kernel = {BatchNorm, CoversBatchNorm, kReals};
  kernel.mixes = true;
}
HEDDLE_CUDA_KERNEL(batch_norm_grad) {
  kernel = {InFloat<BatchNormGrad>, CoversBatchNormGrad, kReals};
  kernel.mixes = true;
}
HEDDLE_CUDA_KERNEL(fused_batch_norm) { kernel = {FusedBatchNorm}; }
HEDDLE_CUDA_KERNEL(layer_norm) {
  kernel = {LayerNorm, CoversLayerNorm, kReals};
  kernel.mixes = true;
}
HEDDLE_CUDA_KERNEL(layer_norm_grad) {
  kernel = {LayerNormGrad, CoversLayerNormGrad, kReals};
  kernel.mixes = true;
}
