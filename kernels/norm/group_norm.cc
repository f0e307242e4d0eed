#include <Eigen/Core>
#include <cmath>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/base/convert.h"

namespace heddle {
namespace {

struct Layout {
  bool channels_last = false;
  int64_t batch = 0, channels = 0, groups = 1, pixels = 1;
  int64_t per_group() const { return channels / groups; }
  int64_t count() const { return per_group() * pixels; }
  int64_t step() const { return channels_last ? channels : 1; }
  // The first element of a channel of an image.
  int64_t At(int64_t n, int64_t c) const {
    return n * channels * pixels + (channels_last ? c : c * pixels);
  }
};

Result<Layout> LayoutOf(const OpContext& ctx, const Shape& x) {
  if (x.rank() < 2)
    return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 or more");
  Layout l;
  const std::string& name = ctx.Str("data_layout");
  l.channels_last = name == "NHWC" || name == "NDHWC" || name == "NLC";
  const int axis = l.channels_last ? x.rank() - 1 : 1;
  l.batch = x[0];
  l.channels = x[axis];
  l.groups = ctx.Int("groups");
  if (l.groups < 1 || (l.channels >= 0 && l.channels % l.groups != 0))
    return InvalidArgument("groups is ", l.groups, ", expected a divisor of X's ", l.channels,
                           " channels");
  for (int i = 1; i < x.rank(); ++i)
    if (i != axis) l.pixels *= x[i];
  return l;
}

Status CheckCount(const ShapeContext& ctx, Key key, int64_t expected) {
  if (!ctx.HasIn(key) || expected < 0) return Status::Ok();
  const Shape& s = ctx.InShape(key);
  if (!s.is_static() || s.numel() == expected) return Status::Ok();
  return InvalidArgument(key.name, " has shape ", s.ToString(), ", expected ", expected,
                         " elements");
}

Status GroupNormShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Layout l, LayoutOf(ctx, x));
  const int64_t factors = ctx.Bool("per_group") ? l.groups : l.channels;
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Scale", factors));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Bias", factors));
  const DType dtype = ctx.InDType("X");
  ctx.SetOut("Y", x, dtype);
  ctx.ShareLoD("X", "Y");
  if (ctx.HasOut("Mean")) ctx.SetOut("Mean", {l.batch, l.groups}, dtype);
  if (ctx.HasOut("Variance")) ctx.SetOut("Variance", {l.batch, l.groups}, dtype);
  return Status::Ok();
}

// One channel of one image.
template <typename T, int kStep>
using Lane = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>, 0, Eigen::InnerStride<kStep>>;

template <typename T, int kStep>
struct Group {
  const Layout& l;
  int64_t n, first;  // image and first channel
  auto operator()(const T* x, int64_t c) const {
    using Const =
        Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>, 0, Eigen::InnerStride<kStep>>;
    return Const(x + l.At(n, first + c), l.pixels, Eigen::InnerStride<kStep>(l.step()));
  }
  auto operator()(T* x, int64_t c) const {
    return Lane<T, kStep>(x + l.At(n, first + c), l.pixels, Eigen::InnerStride<kStep>(l.step()));
  }
};

// Calls fn(group, index of the group); groups are independent.
template <typename T, typename Fn>
void ForGroups(const KernelContext& ctx, const Layout& l, Fn&& fn) {
  ctx.ParallelFor(l.batch * l.groups, 1 + 32768 / (1 + l.count()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / l.groups, first = i % l.groups * l.per_group();
      if (l.step() == 1)
        fn(Group<T, 1>{l, n, first}, i);
      else
        fn(Group<T, Eigen::Dynamic>{l, n, first}, i);
    }
  });
}

template <typename T>
const T* DataOr(const Tensor* t) {
  return t ? t->data<T>() : nullptr;
}

template <typename T>
struct GroupNorm {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Layout l, LayoutOf(ctx, in.shape()));
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {ctx.InOpt("Scale"), ctx.InOpt("Bias")}));
    const bool per_group = ctx.Bool("per_group");
    const T* x = in.data<T>();
    T* y = ctx.Out("Y").mutable_data<T>();
    const T* scale = DataOr<T>(ctx.InOpt("Scale"));
    const T* bias = DataOr<T>(ctx.InOpt("Bias"));
    Tensor* mean_out = ctx.OutOpt("Mean");
    Tensor* variance_out = ctx.OutOpt("Variance");
    const T epsilon = static_cast<T>(ctx.Float("epsilon")), count = static_cast<T>(l.count());
    ForGroups<T>(ctx, l, [&](const auto& g, int64_t index) {
      T sum(0), squares(0);
      for (const int64_t c : Watched(l.per_group())) sum += g(x, c).sum();
      const T mean = sum / count;
      for (const int64_t c : Watched(l.per_group())) squares += (g(x, c) - mean).square().sum();
      const T variance = squares / count;
      if (mean_out) mean_out->mutable_data<T>()[index] = mean;
      if (variance_out) variance_out->mutable_data<T>()[index] = variance;
      const T inverse = T(1) / std::sqrt(variance + epsilon);
      for (const int64_t c : Watched(l.per_group())) {
        const int64_t at = per_group ? g.first / l.per_group() : g.first + c;
        const T a = inverse * (scale ? scale[at] : T(1));
        g(y, c) = (g(x, c) - mean) * a + (bias ? bias[at] : T(0));
      }
    });
    return Status::Ok();
  }
};

Status GradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("Y@GRAD");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Layout l, LayoutOf(ctx, x));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Scale", l.channels));
  if (x.is_static()) {
    const Shape& in = ctx.InShape("X");
    if (in.is_static() && !(in == x))
      return InvalidArgument("X ", in.ToString(), " and Y@GRAD ", x.ToString(),
                             " must have the same shape");
    HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Mean", l.batch * l.groups));
    HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Variance", l.batch * l.groups));
  }
  const DType dtype = ctx.InDType("Y@GRAD");
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", x, dtype);
  if (ctx.HasOut("Scale@GRAD")) ctx.SetOut("Scale@GRAD", {l.channels}, dtype);
  if (ctx.HasOut("Bias@GRAD")) ctx.SetOut("Bias@GRAD", {l.channels}, dtype);
  return Status::Ok();
}

template <typename T>
struct GroupNormGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Layout l, LayoutOf(ctx, in.shape()));
    const T* x = in.data<T>();
    const T* dy = ctx.In("Y@GRAD").data<T>();
    const T* means = ctx.In("Mean").data<T>();
    const T* variances = ctx.In("Variance").data<T>();
    const T* scale = DataOr<T>(ctx.InOpt("Scale"));
    Tensor* dx_out = ctx.OutOpt("X@GRAD");
    T* dx = dx_out ? dx_out->mutable_data<T>() : nullptr;
    const T epsilon = static_cast<T>(ctx.Float("epsilon")), count = static_cast<T>(l.count());
    // Per image and channel: the sum of dy, and of dy times the normalised x.
    Tensor scratch = ctx.Scratch(kDTypeOf<T>, {2 * l.batch * l.channels});
    T* sums = scratch.mutable_data<T>();
    T* sums_x = sums + l.batch * l.channels;
    ForGroups<T>(ctx, l, [&](const auto& g, int64_t index) {
      const T mean = means[index], inverse = T(1) / std::sqrt(variances[index] + epsilon);
      T a(0), b(0);
      for (const int64_t c : Watched(l.per_group())) {
        const int64_t at = g.n * l.channels + g.first + c;
        const T s = scale ? scale[g.first + c] : T(1);
        sums[at] = g(dy, c).sum();
        sums_x[at] = inverse * (g(dy, c) * (g(x, c) - mean)).sum();
        a += s * sums[at];
        b += s * sums_x[at];
      }
      if (!dx) return;
      // Paddle leaves the mean's share out when there is no scale; its results are what counts.
      const T shift = scale ? a / count : T(0), slope = b * inverse / count;
      for (const int64_t c : Watched(l.per_group())) {
        const T s = scale ? scale[g.first + c] : T(1);
        g(dx, c) = inverse * (g(dy, c) * s - shift - (g(x, c) - mean) * slope);
      }
    });
    OverImages(l, sums_x, ctx.OutOpt("Scale@GRAD"));
    OverImages(l, sums, ctx.OutOpt("Bias@GRAD"));
    return Status::Ok();
  }

  static void OverImages(const Layout& l, const T* sums, Tensor* out) {
    if (!out) return;
    T* to = out->mutable_data<T>();
    for (const int64_t c : Watched(l.channels)) {
      to[c] = T(0);
      for (const int64_t n : Watched(l.batch)) to[c] += sums[n * l.channels + c];
    }
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(group_norm) {
  op.Doc(
      "normalises groups of channels of each image to mean 0 and variance 1; Scale and Bias are "
      "per "
      "channel, or per group");
  op.Input("X").Input("Scale", kOptional).Input("Bias", kOptional).Output("Y");
  op.Output("Mean", kOptional).Output("Variance", kOptional).Attr("epsilon", 1e-5);
  op.Attr("groups", -1).Attr("data_layout", "NCHW").Attr("per_group", false);
  op.InferShape(GroupNormShape).Kernels<GroupNorm, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(group_norm_grad) {
  op.Input("X").Input("Scale", kOptional).Input("Bias", kOptional).Input("Y", kNoBuffer);
  op.Input("Mean").Input("Variance").Input("Y@GRAD").Output("X@GRAD", kOptional);
  op.Output("Scale@GRAD", kOptional).Output("Bias@GRAD", kOptional).Attr("epsilon", 1e-5);
  op.Attr("groups", -1).Attr("data_layout", "NCHW").InferShape(GradShape);
  op.Kernels<GroupNormGrad, float, double>();
}
