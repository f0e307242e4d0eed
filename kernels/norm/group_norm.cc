#include <Eigen/Core>
#include <cmath>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/shapes.h"

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
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Scale", l.channels));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Bias", l.channels));
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
        const T a = inverse * (scale ? scale[g.first + c] : T(1));
        g(y, c) = (g(x, c) - mean) * a + (bias ? bias[g.first + c] : T(0));
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
  op.Doc("normalises groups of channels of each image to mean 0 and variance 1");
  op.Input("X").Input("Scale", kOptional).Input("Bias", kOptional).Output("Y");
  op.Output("Mean", kOptional).Output("Variance", kOptional).Attr("epsilon", 1e-5);
  op.Attr("groups", -1).Attr("data_layout", "NCHW");
  op.InferShape(GroupNormShape).Kernels<GroupNorm, float, double>();
}
HEDDLE_OP(group_norm_grad) {
  op.Input("X").Input("Scale", kOptional).Input("Bias", kOptional).Input("Y", kOptional);
  op.Input("Mean").Input("Variance").Input("Y@GRAD").Output("X@GRAD", kOptional);
  op.Output("Scale@GRAD", kOptional).Output("Bias@GRAD", kOptional).Attr("epsilon", 1e-5);
  op.Attr("groups", -1).Attr("data_layout", "NCHW").InferShape(GradShape);
  op.Kernels<GroupNormGrad, float, double>();
}

HEDDLE_EXAMPLES(group_norm, R"(
example float32 1x2x2x2, groups 1
attr groups INT 1
in Bias float32 [2] 0.348 0.725
in Scale float32 [2] 0.9264 0.9384
in X float32 [1, 2, 2, 2] -0.24 -0.01 0.11 -0.13 0.34 -0.36 -0.48 0.22
out Mean float32 [1, 1] -0.068749994
out Variance float32 [1, 1] 0.071610935
out Y float32 [1, 2, 2, 2] -0.24480122 0.5513698 0.9667633 0.13597618 2.1582625 -0.2962544
  -0.7170286 1.7374882

example float64 2x3x3x2, data_layout NHWC, epsilon 0.5, groups 2
attr data_layout STRING "NHWC"
attr epsilon FLOAT 0.5
attr groups INT 2
in Bias float64 [2] 0.812 0.935
in Scale float64 [2] 0.103 0.337
in X float64 [2, 3, 3, 2] 0.676 0.216 0.378 0.162 0.757 0.73 0.297 0.432 0.324 0.405 0.973 0.865
  0.054 0.568 0.514 0.838 0.622 0.459 0.108 0.649 0.027 0.351 0.703 0.27 0.946 0.892 0.189 0.081
  0.486 0.541 0.784 0.919 0.595 0.243 0.135 0.811
out Mean float64 [2, 2] 0.5105555555555555 0.5194444444444444 0.4414444444444443 0.5285555555555556
out Variance float64 [2, 2] 0.06897958024691359 0.05686891358024698 0.10072024691358039
  0.08435558024691359
out Y float64 [2, 3, 3, 2] 0.8345912921942021 0.7979646528813615 0.7938996564219725
  0.773578282064936 0.8456517703739022 1.0300867750969682 0.7828391782422724 0.895510136147064
  0.7865260043021725 0.8833169507388512 0.8751463788531022 1.0910527021380323 0.7496577437031724
  0.9569276626476914 0.8124703358348021 1.0788595167298194 0.8272176400744021 0.9077033215552768
  0.7676876710840331 0.9880979893196394 0.7569233632600612 0.856724550800015 0.8467588211490125
  0.8210156631487077 0.8790517446209284 1.0952246522735614 0.7784519789080051 0.7376949252956573
  0.8179211075959023 0.9404861391178964 0.8575231289729844 1.1071276148239972 0.8324064107170498
  0.8091127005982719 0.7712757736920237 1.0595157646222542

example float32 1x3x2x4, groups 3
attr groups INT 3
in X float32 [1, 3, 2, 4] -0.52 0.82 -0.68 -0.44 0.9 0.67 -0.76 0.43 0.51 0.35 0.19 -0.13 0.27 -0.6
  -0.05 0.03 -0.2 -0.28 0.11 0.75 -0.84 -0.92 -0.36 0.59
out Mean float32 [1, 3] 0.052500002 0.071249984 -0.14375001
out Variance float32 [1, 3] 0.44976875 0.10391094 0.31967342
out Y float32 [1, 3, 2, 4] -0.8536424 1.1444027 -1.0922151 -0.73435616 1.2636889 0.92074096
  -1.2115012 0.5628821 1.3610234 0.8646958 0.3683682 -0.62428707 0.616532 -2.0822494 -0.37612325
  -0.12795942 -0.09948609 -0.24097745 0.44879293 1.5807238 -1.231417 -1.3729084 -0.38246882 1.297741
)")

HEDDLE_EXAMPLES(group_norm_grad, R"(
example float64 1x2x2x2, groups 1
attr groups INT 1
in Bias float64 [2] 0.827 0.221
in Mean float64 [1, 1] -0.06875
in Scale float64 [2] 0.9618 0.9556
in Variance float64 [1, 1] 0.0716109375
in X float64 [1, 2, 2, 2] -0.36 -0.48 0.34 0.11 -0.13 -0.01 -0.24 0.22
in Y float64 [1, 2, 2, 2] -0.2197204424301451 -0.6509872341610201 2.2960025093332934
  1.4694078251824494 0.0022932266461843376 0.43077996627814974 -0.3904862846831173 1.252046217239417
in Y@GRAD float64 [1, 2, 2, 2] -0.3 0.8 0.7 -0.8 0.3 -0.2 0.7 0.1
out Bias@GRAD float64 [2] 0.3999999999999999 0.8999999999999999
out Scale@GRAD float64 [2] -0.3680579727723301 -0.45259920763500944
out X@GRAD float64 [1, 2, 2, 2] -2.059361318614579 1.7291958101538754 2.495405752491582
  -3.2111459187208906 0.40573928436905526 -1.2149003353328993 1.6830334373303082 0.17203328832354717

example float64 2x2x2x2, groups 2
attr groups INT 2
in Bias float64 [2] -0.621 -0.735
in Mean float64 [2, 2] 0.10499999999999998 0.020000000000000004 0.1925 -0.155
in Scale float64 [2] 1.077 1.15
in Variance float64 [2, 2] 0.26752499999999996 0.1214 0.06681875 0.133325
in X float64 [2, 2, 2, 2] 0.7 -0.53 -0.27 0.52 -0.18 -0.44 0.26 0.44 -0.09 0.61 0.17 0.08 -0.35 0.35
  -0.62 -0
in Y float64 [2, 2, 2, 2] 0.617917438433653 -1.9432060057233105 -1.4018303183405378
  0.24311888563019513 -1.3950861287664809 -2.253198096162906 0.057103354519776994 0.6511808704096097
  -1.797935022456433 1.1183641482320734 -0.7147381876292734 -1.0896909381463673 -1.349130079302248
  0.85543943614172 -2.199464035259207 -0.24684532158026423
in Y@GRAD float64 [2, 2, 2, 2] -0 -0.3 -0.9 0.3 -0.6 0.4 0.6 0.3 0.3 -0 -0.1 -0.5 -0.5 -0.6 -0.4
  -0.2
out Bias@GRAD float64 [2] -1.1999999999999997 -1
out Scale@GRAD float64 [2] 1.1599661420721608 0.4529084947959158
out X@GRAD float64 [2, 2, 2, 2] -0.28691103449768834 0.6500269753130306 -0.929396321646154
  0.5662803808308123 -2.277836750110509 1.3865899922393798 1.066686624997247 -0.1754398671261175
  1.4467295740819721 0.483264018024909 -0.11335851506387258 -1.8166350770430086 -0.29435359166731506
  -0.40054952716168385 -0.05993007947848585 0.7548331983074846

example float32 1x2x2x2, groups 1
attr groups INT 1
in Bias float32 [2] 0.827 0.221
in Mean float32 [1, 1] -0.06875
in Scale float32 [2] 0.9618 0.9556
in Variance float32 [1, 1] 0.071610935
in X float32 [1, 2, 2, 2] -0.36 -0.48 0.34 0.11 -0.13 -0.01 -0.24 0.22
in Y float32 [1, 2, 2, 2] -0.21972044 -0.6509872 2.2960026 1.4694078 0.0022932265 0.43077996
  -0.39048627 1.2520462
in Y@GRAD float32 [1, 2, 2, 2] -0.3 0.8 0.7 -0.8 0.3 -0.2 0.7 0.1
out Bias@GRAD float32 [2] 0.40000004 0.90000004
out Scale@GRAD float32 [2] -0.3680579 -0.4525992
out X@GRAD float32 [1, 2, 2, 2] -2.0593612 1.7291957 2.4954054 -3.2111456 0.40573937 -1.2149004
  1.6830333 0.17203328
)")
