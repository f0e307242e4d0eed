// Normalisation by statistics of channels.
#include <cmath>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/check.h"
#include "kernels/base/visit_one_of.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// Mean and variance of n elements.
struct Moments {
  double mean = 0, variance = 0;
};
template <typename T>
Moments MomentsOf(const T* x, int64_t n) {
  Moments m;
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) m.mean += static_cast<double>(x[i]);
  m.mean /= static_cast<double>(n);
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) {
      const double d = static_cast<double>(x[i]) - m.mean;
      m.variance += d * d;
    }
  m.variance /= static_cast<double>(n);
  return m;
}

Status CheckVector(const ShapeContext& ctx, Key key, int64_t n) {
  const Shape& s = ctx.InShape(key);
  if (!s.is_static() || (s.rank() == 1 && s[0] == n)) return Status::Ok();
  return InvalidArgument("input ", key.name, " has shape ", s.ToString(), ", expected [", n, "]");
}

Status OnnxBatchNormShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.is_static()) {
    ctx.SetOut("Y", Shape::Unknown(), ctx.InDType("X"));
    for (const Key& key : {Key("running_mean"), Key("running_var")})
      if (ctx.HasOut(key)) ctx.SetOut(key, Shape::Unknown(), ctx.InDType("input_mean"));
    return ctx.Defer();
  }
  const int64_t channels = x.rank() < 2 ? 1 : x[1];
  for (const Key& key : {Key("scale"), Key("B"), Key("input_mean"), Key("input_var")})
    HEDDLE_RETURN_IF_ERROR(CheckVector(ctx, key, channels));
  for (const Key& key : {Key("input_mean"), Key("input_var")})
    if (!IsFloat(ctx.InDType(key)))
      return InvalidArgument("input ", key.name, " is ", Name(ctx.InDType(key)),
                             ", expected a float type");
  ctx.SetOut("Y", x, ctx.InDType("X"));
  for (const Key& key : {Key("running_mean"), Key("running_var")})
    if (ctx.HasOut(key)) ctx.SetOut(key, {channels}, ctx.InDType("input_mean"));
  return Status::Ok();
}

// Scale, bias and statistics may be of another float type than X.
template <typename T>
std::pmr::vector<T> Numbers(const KernelContext& ctx, Key key, CallHeap* heap) {
  const Tensor& t = ctx.In(key);
  std::pmr::vector<T> values(static_cast<size_t>(t.numel()), heap);
  ConvertElements(ctx, t.raw(), t.dtype(), values.data(), kDTypeOf<T>, t.numel());
  return values;
}

template <typename T>
struct OnnxBatchNorm {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const int64_t channels = x.rank() < 2 ? 1 : x.dim(1);
    const int64_t images = x.rank() < 1 ? 1 : x.dim(0);
    const int64_t size = x.rank() < 2 ? 1 : x.shape().Product(2, x.rank());
    CallHeap heap(ctx);
    const std::pmr::vector<T> scale = Numbers<T>(ctx, "scale", &heap);
    const std::pmr::vector<T> bias = Numbers<T>(ctx, "B", &heap);
    const std::pmr::vector<T> mean = Numbers<T>(ctx, "input_mean", &heap);
    const std::pmr::vector<T> var = Numbers<T>(ctx, "input_var", &heap);
    const bool training = ctx.Int("training_mode") != 0;
    const double epsilon = ctx.Float("epsilon"), momentum = ctx.Float("momentum");
    const T* from = x.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    std::pmr::vector<T> all(&heap);
    if (training) all.reserve(static_cast<size_t>(images * size));
    for (const int64_t c : Watched(channels)) {
      const auto at = static_cast<size_t>(c);
      Moments m{static_cast<double>(mean[at]), static_cast<double>(var[at])};
      if (training) {
        all.clear();
        for (int64_t n = 0; n < images; ++n) {
          const T* plane = from + (n * channels + c) * size;
          all.insert(all.end(), plane, plane + size);
        }
        m = MomentsOf(all.data(), static_cast<int64_t>(all.size()));
        Keep(ctx, "running_mean", c, momentum, static_cast<double>(mean[at]), m.mean);
        Keep(ctx, "running_var", c, momentum, static_cast<double>(var[at]), m.variance);
      } else {
        Keep(ctx, "running_mean", c, 1, m.mean, 0);
        Keep(ctx, "running_var", c, 1, m.variance, 0);
      }
      const double f = static_cast<double>(scale[at]) / std::sqrt(m.variance + epsilon);
      const double shift = static_cast<double>(bias[at]) - m.mean * f;
      for (int64_t n = 0; n < images; ++n)
        for (int64_t i = (n * channels + c) * size; i < (n * channels + c + 1) * size; ++i)
          to[i] = static_cast<T>(static_cast<double>(from[i]) * f + shift);
    }
    return Status::Ok();
  }

  static void Keep(const KernelContext& ctx, Key key, int64_t c, double momentum, double old,
                   double fresh) {
    Tensor* out = ctx.OutOpt(key);
    if (out == nullptr) return;
    VisitOneOf<float, double, float16, bfloat16>(key.name, out->dtype(), [&](auto tag) {
      using U = typename decltype(tag)::type;
      out->mutable_data<U>()[c] = U(static_cast<ComputeType<U>>(
          momentum == 1 ? old : old * momentum + fresh * (1 - momentum)));
    });
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_batch_normalization) {
  op.Doc(
      "channels by given statistics, or (training_mode) by their own, which are then averaged in");
  op.Input("X").Input("scale").Input("B").Input("input_mean").Input("input_var");
  op.Output("Y").Output("running_mean", kOptional).Output("running_var", kOptional);
  op.Attr("epsilon", 1e-5).Attr("momentum", 0.9).Attr("training_mode", 0);
  op.InferShape(OnnxBatchNormShape).Kernels<OnnxBatchNorm, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
