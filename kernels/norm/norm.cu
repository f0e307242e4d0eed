// batch_norm and layer_norm with their gradients, and heddle's fused_batch_norm.
#include <cmath>

#include "core/shapes.h"
#include "device/cuda/grid/epilogue.h"
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

struct Load {
  const float* x;
  HEDDLE_BODY float operator()(const Strides<2>::Places& p) const { return x[p.at[0]]; }
};
struct SquaredDistance {
  const float* x;
  const float* mean;
  HEDDLE_BODY float operator()(const Strides<2>::Places& p) const {
    const float d = x[p.at[0]] - mean[p.at[1]];
    return d * d;
  }
};
struct TimesNormal {  // dy times the normalised x
  const float* x;
  const float* dy;
  const float* mean;
  const float* inverse;
  HEDDLE_BODY float operator()(const Strides<2>::Places& p) const {
    return dy[p.at[0]] * (x[p.at[0]] - mean[p.at[1]]) * inverse[p.at[1]];
  }
};

struct InvertBody {
  const float* variance;
  float* inverse;
  float epsilon;
  HEDDLE_BODY void operator()(int64_t c) const { inverse[c] = 1.0f / sqrtf(variance[c] + epsilon); }
};
struct BlendBody {
  const float* running;
  const float* now;
  float* out;
  float momentum;
  const float* momentum_tensor;
  HEDDLE_BODY void operator()(int64_t c) const {
    const float m = momentum_tensor != nullptr ? *momentum_tensor : momentum;
    out[c] = running[c] * m + now[c] * (1.0f - m);
  }
};
struct NormalizeBody {
  Channels channels;
  const float* x;
  const float* mean;
  const float* inverse;
  const float* scale;
  const float* bias;
  float* y;
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t c = channels.Of(i);
    const float factor = inverse[c] * (scale != nullptr ? scale[c] : 1.0f);
    const float shift = (bias != nullptr ? bias[c] : 0.0f) - mean[c] * factor;
    y[i] = x[i] * factor + shift;
  }
};

const float* DataOr(const Tensor* t) { return t != nullptr ? t->data<float>() : nullptr; }
Status CopyUnlessSame(Queue& queue, const Tensor& from, Tensor* to) {
  if (to == nullptr || to->raw() == from.raw()) return Status::Ok();
  return queue.Copy(to->mutable_raw(), from.raw(), from.bytes());
}

Status Normalize(Queue& queue, KernelContext& ctx, const Channels& c, const float* mean,
                 const float* inverse) {
  const Tensor& x = ctx.In("X");
  return Each(queue, x.numel(),
              NormalizeBody{c, x.data<float>(), mean, inverse, DataOr(ctx.InOpt("Scale")),
                            DataOr(ctx.InOpt("Bias")), ctx.Out("Y").mutable_data<float>()});
}

// Computes the batch's statistics, one number per channel.
Status Moments(Queue& queue, const Channels& c, const float* x, float* mean, float* variance) {
  Strides<2> kept, reduced;
  Cut(c, &kept, &reduced);
  const float share = 1.0f / static_cast<float>(c.count());
  HEDDLE_RETURN_IF_ERROR(ReduceInto<SumOp>(queue, kept, reduced, Load{x}, mean, share));
  return ReduceInto<SumOp>(queue, kept, reduced, SquaredDistance{x, mean}, variance, share);
}

Status BatchNorm(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Channels c = ChannelsOf(ctx, x.shape());
  const auto epsilon = static_cast<float>(ctx.Float("epsilon"));
  const int64_t n = c.channels;
  Scratch scratch(queue);
  HEDDLE_RETURN_IF_ERROR(scratch.Take(3 * n));
  float *const inverse = scratch.data(), *const mean = inverse + n, *const variance = mean + n;
  const Tensor &running_mean = ctx.In("Mean"), &running_variance = ctx.In("Variance");
  if (UsesRunning(ctx)) {
    HEDDLE_RETURN_IF_ERROR(
        Each(queue, n, InvertBody{running_variance.data<float>(), inverse, epsilon}));
    HEDDLE_RETURN_IF_ERROR(Normalize(queue, ctx, c, running_mean.data<float>(), inverse));
    HEDDLE_RETURN_IF_ERROR(CopyUnlessSame(queue, running_mean, ctx.OutOpt("MeanOut")));
    return CopyUnlessSame(queue, running_variance, ctx.OutOpt("VarianceOut"));
  }
  HEDDLE_RETURN_IF_ERROR(Moments(queue, c, x.data<float>(), mean, variance));
  HEDDLE_RETURN_IF_ERROR(Each(queue, n, InvertBody{variance, inverse, epsilon}));
  HEDDLE_RETURN_IF_ERROR(Normalize(queue, ctx, c, mean, inverse));
  const size_t bytes = static_cast<size_t>(n) * sizeof(float);
  if (Tensor* t = ctx.OutOpt("SavedMean"))
    HEDDLE_RETURN_IF_ERROR(queue.Copy(t->mutable_raw(), mean, bytes));
  if (Tensor* t = ctx.OutOpt("SavedVariance"))
    HEDDLE_RETURN_IF_ERROR(queue.Copy(t->mutable_raw(), inverse, bytes));
  const auto momentum = static_cast<float>(ctx.Float("momentum"));
  const float* const tensor = DataOr(ctx.InOpt("MomentumTensor"));
  HEDDLE_RETURN_IF_ERROR(
      Each(queue, n,
           BlendBody{running_mean.data<float>(), mean, ctx.Out("MeanOut").mutable_data<float>(),
                     momentum, tensor}));
  return Each(queue, n,
              BlendBody{running_variance.data<float>(), variance,
                        ctx.Out("VarianceOut").mutable_data<float>(), momentum, tensor});
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
  const Tensor* mean = ctx.InOpt("SavedMean");
  const float* inverse = DataOr(ctx.InOpt("SavedVariance"));
  if (fixed) {
    mean = ctx.InOpt("Mean") != nullptr ? ctx.InOpt("Mean") : ctx.InOpt("MeanOut");
    const Tensor* const variance =
        ctx.InOpt("Variance") != nullptr ? ctx.InOpt("Variance") : ctx.InOpt("VarianceOut");
    if (variance == nullptr) return InvalidArgument("the running variance holds nothing");
    HEDDLE_RETURN_IF_ERROR(Each(queue, n,
                                InvertBody{variance->data<float>(), scratch.data() + 2 * n,
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
  HEDDLE_RETURN_IF_ERROR(ReduceInto<SumOp>(queue, kept, reduced, Load{dys}, sum_dy));
  HEDDLE_RETURN_IF_ERROR(ReduceInto<SumOp>(
      queue, kept, reduced, TimesNormal{xs, dys, mean->data<float>(), inverse}, sum_normal));
  Tensor* const dx = ctx.OutOpt("X@GRAD");
  if (dx == nullptr) return Status::Ok();
  return Each(
      queue, x.numel(),
      BatchNormGradBody{c, xs, dys, mean->data<float>(), inverse, DataOr(ctx.InOpt("Scale")),
                        sum_dy, sum_normal, dx->mutable_data<float>(),
                        1.0f / static_cast<float>(c.count()), fixed});
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

struct LayerNormBody {
  const float* x;
  const float* scale;
  const float* bias;
  float* y;
  float* mean_out;
  float* variance_out;
  int64_t width;
  float epsilon;
  HEDDLE_BODY void operator()(Group& group, int64_t row) const {
    const float* const from = x + row * width;
    float sum = 0, squares = 0;
    for (int64_t i = group.rank(); i < width; i += group.size()) sum += from[i];
    const float mean = group.Reduce(sum, SumOp()) / static_cast<float>(width);
    for (int64_t i = group.rank(); i < width; i += group.size())
      squares += (from[i] - mean) * (from[i] - mean);
    const float variance = group.Reduce(squares, SumOp()) / static_cast<float>(width);
    const float factor = 1.0f / sqrtf(variance + epsilon);
    for (int64_t i = group.rank(); i < width; i += group.size()) {
      float v = (from[i] - mean) * factor;
      if (scale != nullptr) v *= scale[i];
      y[row * width + i] = bias != nullptr ? v + bias[i] : v;
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
  return Groups(queue, r.rows, r.width,
                LayerNormBody{x.data<float>(), DataOr(ctx.InOpt("Scale")),
                              DataOr(ctx.InOpt("Bias")), ctx.Out("Y").mutable_data<float>(),
                              mean != nullptr ? mean->mutable_data<float>() : nullptr,
                              variance != nullptr ? variance->mutable_data<float>() : nullptr,
                              r.width, static_cast<float>(ctx.Float("epsilon"))});
}

// dx = factor (g - mean(g) - normal mean(g normal)) with g = dy scale.
struct LayerNormGradBody {
  const float* x;
  const float* dy;
  const float* scale;
  const float* mean;
  const float* variance;
  const float* addend;  // or null; may be dx
  float* dx;
  int64_t width;
  float epsilon;
  HEDDLE_BODY void operator()(Group& group, int64_t row) const {
    const float factor = 1.0f / sqrtf(variance[row] + epsilon), m = mean[row];
    const int64_t begin = row * width;
    float sum = 0, mixed = 0;
    for (int64_t i = group.rank(); i < width; i += group.size()) {
      const float g = dy[begin + i] * (scale != nullptr ? scale[i] : 1.0f);
      sum += g;
      mixed += g * (x[begin + i] - m) * factor;
    }
    sum = group.Reduce(sum, SumOp()) / static_cast<float>(width);
    mixed = group.Reduce(mixed, SumOp()) / static_cast<float>(width);
    for (int64_t i = group.rank(); i < width; i += group.size()) {
      const float g = dy[begin + i] * (scale != nullptr ? scale[i] : 1.0f);
      const float d = factor * (g - sum - (x[begin + i] - m) * factor * mixed);
      dx[begin + i] = addend != nullptr ? addend[begin + i] + d : d;
    }
  }
};
struct TimesNormalOfRow {  // operands: the element, the row
  const float* x;
  const float* dy;
  const float* mean;
  const float* variance;
  float epsilon;
  HEDDLE_BODY float operator()(const Strides<2>::Places& p) const {
    const int32_t row = p.at[1];
    return dy[p.at[0]] * (x[p.at[0]] - mean[row]) / sqrtf(variance[row] + epsilon);
  }
};

Status LayerNormGrad(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Rows r = RowsOf(ctx, x.shape());
  const auto epsilon = static_cast<float>(ctx.Float("epsilon"));
  const float *const xs = x.data<float>(), *const dy = ctx.In("Y@GRAD").data<float>();
  const float *const mean = ctx.In("Mean").data<float>(), *const variance =
                                                              ctx.In("Variance").data<float>();
  Strides<2> kept, reduced;
  kept.Add(r.width, {1, 0});
  reduced.Add(r.rows, {r.width, 1});
  if (Tensor* t = ctx.OutOpt("Bias@GRAD"))
    HEDDLE_RETURN_IF_ERROR(
        ReduceInto<SumOp>(queue, kept, reduced, Load{dy}, t->mutable_data<float>()));
  if (Tensor* t = ctx.OutOpt("Scale@GRAD"))
    HEDDLE_RETURN_IF_ERROR(ReduceInto<SumOp>(queue, kept, reduced,
                                             TimesNormalOfRow{xs, dy, mean, variance, epsilon},
                                             t->mutable_data<float>()));
  Tensor* const dx = ctx.OutOpt("X@GRAD");
  if (dx == nullptr || r.width == 0) return Status::Ok();
  return Groups(queue, r.rows, r.width,
                LayerNormGradBody{xs, dy, DataOr(ctx.InOpt("Scale")), mean, variance,
                                  DataOr(ctx.InOpt("AddendOfX")), dx->mutable_data<float>(),
                                  r.width, epsilon});
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(batch_norm) { kernel = {BatchNorm}; }
HEDDLE_CUDA_KERNEL(batch_norm_grad) { kernel = {BatchNormGrad}; }
HEDDLE_CUDA_KERNEL(fused_batch_norm) { kernel = {FusedBatchNorm}; }
HEDDLE_CUDA_KERNEL(layer_norm) { kernel = {LayerNorm}; }
HEDDLE_CUDA_KERNEL(layer_norm_grad) { kernel = {LayerNormGrad}; }
