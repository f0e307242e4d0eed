// deformable_conv and deformable_conv_v1, which has no mask: convolutions whose taps are moved
// about.
#include <algorithm>
#include <cmath>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/gemm/gemm.h"

namespace heddle {
namespace {

struct Geometry {
  int64_t batch, in_c, in_h, in_w, out_c, out_h, out_w, kernel_h, kernel_w, groups, deformable;
  int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  int64_t taps() const { return kernel_h * kernel_w; }
  int64_t pixels() const { return out_h * out_w; }
  int64_t in_size() const { return in_h * in_w; }
};

Result<Geometry> GeometryOf(const OpContext& ctx, const Shape& x, const Shape& filter) {
  const Ints &strides = ctx.IntList("strides"), &pads = ctx.IntList("paddings"),
             &dilations = ctx.IntList("dilations");
  if (x.rank() != 4 || filter.rank() != 4 || strides.size() != 2 || pads.size() != 2 ||
      dilations.size() != 2)
    return InvalidArgument("Input ", x.ToString(), ", Filter ", filter.ToString(), ", strides ",
                           strides.size(), ", paddings ", pads.size(), ", dilations ",
                           dilations.size(), " numbers: expected ranks 4 and two numbers each");
  Geometry g{x[0],
             x[1],
             x[2],
             x[3],
             filter[0],
             0,
             0,
             filter[2],
             filter[3],
             ctx.Int("groups"),
             ctx.Int("deformable_groups"),
             strides[0],
             strides[1],
             pads[0],
             pads[1],
             dilations[0],
             dilations[1]};
  if (g.stride_h < 1 || g.stride_w < 1 || g.dilation_h < 1 || g.dilation_w < 1 || g.groups < 1 ||
      g.deformable < 1 || g.in_c % g.deformable != 0 || g.out_c % g.groups != 0 ||
      filter[1] * g.groups != g.in_c || g.taps() < 1)
    return InvalidArgument("Input ", x.ToString(), " and Filter ", filter.ToString(), " with ",
                           g.groups, " groups and ", g.deformable,
                           " deformable groups do not go together");
  const int64_t room_h = g.in_h + 2 * g.pad_h - (g.dilation_h * (g.kernel_h - 1) + 1);
  const int64_t room_w = g.in_w + 2 * g.pad_w - (g.dilation_w * (g.kernel_w - 1) + 1);
  if (room_h < 0 || room_w < 0)
    return InvalidArgument("the kernel is larger than the padded input: Input ", x.ToString(),
                           ", Filter ", filter.ToString());
  g.out_h = room_h / g.stride_h + 1;
  g.out_w = room_w / g.stride_w + 1;
  return g;
}

template <bool kMask>
Status CheckOperands(const ShapeContext& ctx, const Geometry& g) {
  const Shape offset{g.batch, 2 * g.deformable * g.taps(), g.out_h, g.out_w};
  if (!(ctx.InShape("Offset") == offset))
    return InvalidArgument("Offset has shape ", ctx.InShape("Offset").ToString(), ", expected ",
                           offset.ToString());
  if constexpr (kMask) {
    const Shape mask{g.batch, g.deformable * g.taps(), g.out_h, g.out_w};
    if (!(ctx.InShape("Mask") == mask))
      return InvalidArgument("Mask has shape ", ctx.InShape("Mask").ToString(), ", expected ",
                             mask.ToString());
  }
  return Status::Ok();
}

template <bool kMask>
Status ForwardShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("Input"), &filter = ctx.InShape("Filter");
  if (!x.is_static() || !filter.is_static() || !ctx.InShape("Offset").is_static())
    return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(ctx, x, filter));
  HEDDLE_RETURN_IF_ERROR(CheckOperands<kMask>(ctx, g));
  ctx.SetOut("Output", {g.batch, g.out_c, g.out_h, g.out_w}, ctx.InDType("Input"));
  return Status::Ok();
}

// The four neighbours of a place in an image, their weights and the weights' slopes.
template <typename T>
struct Place {
  int count = 0;
  int64_t at[4];
  T weight[4], slope_h[4], slope_w[4];
};

template <typename T>
Place<T> PlaceOf(const Geometry& g, T h, T w) {
  Place<T> p;
  if (!(h > T(-1) && w > T(-1) && h < static_cast<T>(g.in_h) && w < static_cast<T>(g.in_w)))
    return p;
  const int64_t h0 = static_cast<int64_t>(std::floor(h)), w0 = static_cast<int64_t>(std::floor(w));
  const T dh = h - static_cast<T>(h0), dw = w - static_cast<T>(w0);
  for (int i = 0; i < 4; ++i) {
    const int64_t y = h0 + i / 2, x = w0 + i % 2;
    if (y < 0 || y >= g.in_h || x < 0 || x >= g.in_w) continue;
    const T wh = i / 2 ? dh : T(1) - dh, ww = i % 2 ? dw : T(1) - dw;
    p.at[p.count] = y * g.in_w + x;
    p.weight[p.count] = wh * ww;
    p.slope_h[p.count] = i / 2 ? ww : -ww;
    p.slope_w[p.count] = i % 2 ? wh : -wh;
    ++p.count;
  }
  return p;
}

// The operands of one image.
template <typename T>
struct Image {
  const T *x, *offset, *mask;
};

// Calls fn(place, deformable group, tap, pixel) for every moved tap of deformable group `d`.
template <typename T, typename Fn>
void ForPlaces(const Geometry& g, const Image<T>& image, int64_t d, Fn&& fn) {
  for (int64_t tap = 0; tap < g.taps(); ++tap) {
    const T* off_h = image.offset + (d * g.taps() + tap) * 2 * g.pixels();
    const T* off_w = off_h + g.pixels();
    const int64_t kh = tap / g.kernel_w * g.dilation_h - g.pad_h;
    const int64_t kw = tap % g.kernel_w * g.dilation_w - g.pad_w;
    for (const int64_t p : Watched(g.pixels())) {
      const T h = static_cast<T>(p / g.out_w * g.stride_h + kh) + off_h[p];
      const T w = static_cast<T>(p % g.out_w * g.stride_w + kw) + off_w[p];
      fn(PlaceOf(g, h, w), tap, p);
    }
  }
}

template <typename T>
T MaskAt(const Geometry& g, const Image<T>& image, int64_t d, int64_t tap, int64_t p) {
  return image.mask ? image.mask[(d * g.taps() + tap) * g.pixels() + p] : T(1);
}

// columns[channel * taps + tap][pixel]
template <typename T>
void Unroll(const KernelContext& ctx, const Geometry& g, const Image<T>& image, T* columns) {
  const int64_t channels = g.in_c / g.deformable;
  ctx.ParallelFor(g.deformable, 1, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d)
      ForPlaces(g, image, d, [&](const Place<T>& place, int64_t tap, int64_t p) {
        const T mask = MaskAt(g, image, d, tap, p);
        for (int64_t c = d * channels; c < (d + 1) * channels; ++c) {
          T sum(0);
          for (int k = 0; k < place.count; ++k)
            sum += place.weight[k] * image.x[c * g.in_size() + place.at[k]];
          columns[(c * g.taps() + tap) * g.pixels() + p] = sum * mask;
        }
      });
  });
}

template <typename T>
Image<T> ImageOf(const KernelContext& ctx, const Geometry& g, bool mask, int64_t n) {
  return {ctx.In("Input").data<T>() + n * g.in_c * g.in_size(),
          ctx.In("Offset").data<T>() + n * 2 * g.deformable * g.taps() * g.pixels(),
          mask ? ctx.In("Mask").data<T>() + n * g.deformable * g.taps() * g.pixels() : nullptr};
}

template <bool kMask>
struct Deformable {
  template <typename T>
  struct Forward {
    static Status Run(KernelContext& ctx) {
      HEDDLE_ASSIGN_OR_RETURN(const Geometry g,
                              GeometryOf(ctx, ctx.In("Input").shape(), ctx.In("Filter").shape()));
      const int64_t rows = g.in_c * g.taps(), k = rows / g.groups, m = g.out_c / g.groups;
      Tensor scratch = ctx.Scratch(kDTypeOf<T>, {rows * g.pixels()});
      T* columns = scratch.mutable_data<T>();
      for (int64_t n = 0; n < g.batch; ++n) {
        Unroll(ctx, g, ImageOf<T>(ctx, g, kMask, n), columns);
        T* out = ctx.Out("Output").mutable_data<T>() + n * g.out_c * g.pixels();
        for (int64_t i = 0; i < g.groups; ++i)
          ParallelGemm(ctx, GemmDims::Dense(m, g.pixels(), k), T(1),
                       ctx.In("Filter").data<T>() + i * m * k, columns + i * k * g.pixels(), T(0),
                       out + i * m * g.pixels());
      }
      return Status::Ok();
    }
  };

  template <typename T>
  struct Backward {
    static T* Cleared(const KernelContext& ctx, Key key) {
      Tensor* t = ctx.OutOpt(key);
      if (t) WatchedFill(t->mutable_data<T>(), t->numel(), T(0));
      return t ? t->mutable_data<T>() : nullptr;
    }

    static Status Run(KernelContext& ctx) {
      HEDDLE_ASSIGN_OR_RETURN(const Geometry g,
                              GeometryOf(ctx, ctx.In("Input").shape(), ctx.In("Filter").shape()));
      const int64_t rows = g.in_c * g.taps(), k = rows / g.groups, m = g.out_c / g.groups;
      T* dx = Cleared(ctx, "Input@GRAD");
      T* doffset = Cleared(ctx, "Offset@GRAD");
      T* dfilter = Cleared(ctx, "Filter@GRAD");
      T* dmask = nullptr;
      if constexpr (kMask) dmask = Cleared(ctx, "Mask@GRAD");
      Tensor scratch = ctx.Scratch(kDTypeOf<T>, {rows * g.pixels()});
      T* columns = scratch.mutable_data<T>();
      for (int64_t n = 0; n < g.batch; ++n) {
        const Image<T> image = ImageOf<T>(ctx, g, kMask, n);
        const T* grad = ctx.In("Output@GRAD").data<T>() + n * g.out_c * g.pixels();
        if (dfilter) {
          Unroll(ctx, g, image, columns);
          for (int64_t i = 0; i < g.groups; ++i)
            ParallelGemm(ctx, GemmDims::Dense(m, k, g.pixels(), false, true), T(1),
                         grad + i * m * g.pixels(), columns + i * k * g.pixels(), T(1),
                         dfilter + i * m * k);
        }
        for (int64_t i = 0; i < g.groups; ++i)
          ParallelGemm(ctx, GemmDims::Dense(k, g.pixels(), m, true), T(1),
                       ctx.In("Filter").data<T>() + i * m * k, grad + i * m * g.pixels(), T(0),
                       columns + i * k * g.pixels());
        const int64_t taps = g.deformable * g.taps() * g.pixels();
        Spread(g, image, columns, dx ? dx + n * g.in_c * g.in_size() : nullptr,
               doffset ? doffset + n * 2 * taps : nullptr, dmask ? dmask + n * taps : nullptr);
      }
      return Status::Ok();
    }

    // From the gradient of the columns to those of the image, the offsets and the mask.
    static void Spread(const Geometry& g, const Image<T>& image, const T* columns, T* dx,
                       T* doffset, T* dmask) {
      const int64_t channels = g.in_c / g.deformable;
      for (int64_t d = 0; d < g.deformable; ++d)
        ForPlaces(g, image, d, [&](const Place<T>& place, int64_t tap, int64_t p) {
          const T mask = MaskAt(g, image, d, tap, p);
          T by_h(0), by_w(0), by_mask(0);
          for (int64_t c = d * channels; c < (d + 1) * channels; ++c) {
            const T grad = columns[(c * g.taps() + tap) * g.pixels() + p];
            for (int k = 0; k < place.count; ++k) {
              const int64_t at = c * g.in_size() + place.at[k];
              const T value = image.x[at] * grad;
              if (dx) dx[at] += grad * mask * place.weight[k];
              by_h += value * place.slope_h[k];
              by_w += value * place.slope_w[k];
              by_mask += value * place.weight[k];
            }
          }
          const int64_t at = d * g.taps() + tap;
          if (doffset) {
            doffset[2 * at * g.pixels() + p] = by_h * mask;
            doffset[(2 * at + 1) * g.pixels() + p] = by_w * mask;
          }
          if (dmask) dmask[at * g.pixels() + p] = by_mask;
        });
    }
  };
};

void GradOut(ShapeContext& ctx, Key out, Key in) {
  if (ctx.HasOut(out)) ctx.SetOut(out, ctx.InShape(in), ctx.InDType(in));
}

template <bool kMask>
Status BackwardShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("Input"), &filter = ctx.InShape("Filter");
  if (!x.is_static() || !filter.is_static() || !ctx.InShape("Offset").is_static())
    return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(ctx, x, filter));
  HEDDLE_RETURN_IF_ERROR(CheckOperands<kMask>(ctx, g));
  const Shape out{g.batch, g.out_c, g.out_h, g.out_w};
  if (!(ctx.InShape("Output@GRAD") == out))
    return InvalidArgument("Output@GRAD has shape ", ctx.InShape("Output@GRAD").ToString(),
                           ", expected ", out.ToString());
  GradOut(ctx, "Input@GRAD", "Input");
  GradOut(ctx, "Filter@GRAD", "Filter");
  GradOut(ctx, "Offset@GRAD", "Offset");
  if constexpr (kMask) GradOut(ctx, "Mask@GRAD", "Mask");
  return Status::Ok();
}

void Attrs(OpDef& op) {
  op.Attr("strides", Ints{1, 1}).Attr("paddings", Ints{0, 0}).Attr("dilations", Ints{1, 1});
  op.Attr("groups", 1).Attr("deformable_groups", 1);
}

template <bool kMask>
void Define(OpDef& op) {
  op.Input("Input").Input("Offset").Input("Filter").Output("Output");
  if (kMask) op.Input("Mask");
  Attrs(op);
  op.InferShape(ForwardShape<kMask>);
  op.Kernels<Deformable<kMask>::template Forward, float, double>();
}
template <bool kMask>
void DefineGrad(OpDef& op) {
  op.Input("Input").Input("Offset").Input("Filter").Input("Output@GRAD");
  op.Output("Input@GRAD", kOptional).Output("Offset@GRAD", kOptional);
  op.Output("Filter@GRAD", kOptional);
  if (kMask) op.Input("Mask").Output("Mask@GRAD", kOptional);
  Attrs(op);
  op.InferShape(BackwardShape<kMask>);
  op.Kernels<Deformable<kMask>::template Backward, float, double>();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(deformable_conv) {
  op.Doc("convolution whose taps Offset moves and Mask weighs, per output pixel");
  Define<true>(op);
}
HEDDLE_OP(deformable_conv_grad) { DefineGrad<true>(op); }
HEDDLE_OP(deformable_conv_v1) {
  op.Doc("convolution whose taps Offset moves, per output pixel");
  Define<false>(op);
}
HEDDLE_OP(deformable_conv_v1_grad) { DefineGrad<false>(op); }

HEDDLE_EXAMPLES(deformable_conv, R"(
example float32 1x4x3x4
attr im2col_step INT 1
in Filter float32 [2, 4, 1, 1] -0.55 -0.76 -0.12 0.1 0.53 -0.33 0.74 0.31
in Input float32 [1, 4, 3, 4] -0.07 -0.22 0.05 0.52 0.79 0.01 0.32 0.71 -0.88 0.91 0.75 0.87 0.09
  -0.38 -0.73 0.67 -0.61 0.48 -0.03 -0.53 -0.42 0.29 0.4 0.56 -0.69 -0.65 -0.34 -0.49 0.83 -0.92
  -0.46 -0.18 -0.14 0.44 0.36 -0.77 -0.57 -0.81 -0.3 0.21 0.13 -0.84 0.25 0.17 -0.1 0.64 -0.26 0.6
in Mask float32 [1, 1, 3, 4] 0.185 0.37 0.616 0.863 0.431 0.739 0.247 0.493 0.308 0.678 0.801 0.555
in Offset float32 [1, 2, 3, 4] 1.04 1.15 0.18 -0.25 -0.46 0.72 0.82 0.29 -0.89 -1.21 0.39 -0.57 0.5
  0.61 -0.68 -1.11 0.07 -0.78 -0.36 0.93 -1 -0.03 1.25 -0.14
out Output float32 [1, 2, 3, 4] -0.035273213 -0.09814706 0.19818623 0.33893698 -0.013158847
  0.22815683 -0.16117568 -0.0062757754 0 -0.1234326 -0.2754661 -0.16991442 0.017660094 -0.11523257
  -0.34638637 -0.09596842 0.10895465 0.07057233 0.10500784 0.010457278 0 -0.6511807 -0.039394192
  0.117380545

example float64 1x4x3x4
attr im2col_step INT 1
in Filter float64 [2, 4, 1, 1] -0.55 -0.76 -0.12 0.1 0.53 -0.33 0.74 0.31
in Input float64 [1, 4, 3, 4] -0.07 -0.22 0.05 0.52 0.79 0.01 0.32 0.71 -0.88 0.91 0.75 0.87 0.09
  -0.38 -0.73 0.67 -0.61 0.48 -0.03 -0.53 -0.42 0.29 0.4 0.56 -0.69 -0.65 -0.34 -0.49 0.83 -0.92
  -0.46 -0.18 -0.14 0.44 0.36 -0.77 -0.57 -0.81 -0.3 0.21 0.13 -0.84 0.25 0.17 -0.1 0.64 -0.26 0.6
in Mask float64 [1, 1, 3, 4] 0.185 0.37 0.616 0.863 0.431 0.739 0.247 0.493 0.308 0.678 0.801 0.555
in Offset float64 [1, 2, 3, 4] 1.04 1.15 0.18 -0.25 -0.46 0.72 0.82 0.29 -0.89 -1.21 0.39 -0.57 0.5
  0.61 -0.68 -1.11 0.07 -0.78 -0.36 0.93 -1 -0.03 1.25 -0.14
out Output float64 [1, 2, 3, 4] -0.03527320999999999 -0.09814706949999999 0.19818627136
  0.33893699325 -0.013158835139999998 0.22815684991999996 -0.16117568063999999 -0.006275781539999985
  0 -0.12343260522000002 -0.27546610274999994 -0.16991437110000007 0.0176601 -0.11523254100000008
  -0.3463863603200001 -0.09596840475000007 0.10895469672000002 0.07057237168000005
  0.10500786087999996 0.010457289219999975 0 -0.65118067944 -0.03939418125000001 0.11738060189999994
)")

HEDDLE_EXAMPLES(deformable_conv_grad, R"(
example float64 1x4x3x4
attr im2col_step INT 1
in Filter float64 [2, 4, 1, 1] -0.76 0.53 -0.33 0.74 0.1 -0.55 0.31 -0.12
in Input float64 [1, 4, 3, 4] -0.57 0.91 -0.61 0.36 0.29 -0.69 -0.81 0.64 -0.84 -0.34 0.71 -0.18
  -0.07 -0.3 -0.26 0.56 0.87 -0.77 0.67 0.09 0.21 -0.49 -0.46 -0.73 -0.38 -0.53 -0.1 -0.22 -0.42
  0.44 0.32 0.6 0.4 0.01 0.79 -0.14 0.52 0.48 0.13 0.75 0.05 0.83 -0.88 0.17 0.25 -0.92 -0.65 -0.03
in Mask float64 [1, 1, 3, 4] 0.431 0.863 0.678 0.493 0.616 0.247 0.801 0.555 0.37 0.739 0.308 0.185
in Offset float64 [1, 2, 3, 4] 1.25 0.82 0.5 -0.46 0.61 -1.21 -1.11 -0.78 0.93 1.04 0.39 1.15 -0.89
  0.29 -0.14 -0.57 -0.25 0.18 -1 0.72 -0.36 -0.68 0.07 -0.03
in Output@GRAD float64 [1, 2, 3, 4] 0.3 -0.3 -0.8 0.3 -0.1 0.4 -0.4 0.1 -0.7 -0 -0.7 0 -0.6 -0.9
  -0.4 0.6 0.5 0.7 -0.5 -0.1 0.1 0.2 0.5 0.5
out Filter@GRAD float64 [2, 4, 1, 1] 0.17928836469999998 0.15941847739999998 -0.11868641719999992
  0.04399076239999998 0.24964054059999996 0.3551722904 -0.028456024799999924 -0.2832496382
out Input@GRAD float64 [1, 4, 3, 4] 0 0.18581000880000006 0.13809932400000002 -0.02965596480000002
  0.012462120000000012 0.09629380679999999 0.1939152732 -0.002940168000000003 0.04107999199999998 0
  0.1016919288 0.00765423119999998 0 0.0446069986 -0.07636264199999997 -0.006484260599999993
  -0.041711422500000025 0.1591375296 0.009480230400000011 0.003692304000000004 -0.09370246349999997
  0 -0.11287454640000001 -0.00849593359999998 0 -0.016003960999999994 0.04889419079999999
  0.0022017221999999954 0.023739952500000012 -0.08379454799999997 0.0038757479999999983
  -0.002188032000000002 0.05394710949999998 0 0.06744516240000001 0.005076517599999987 0
  -0.1727121004 -0.1335253296 0.027595422000000015 -0.01369021500000001 -0.08309624040000001
  -0.18199299959999998 0.0029401680000000026 -0.04306452499999997 0 -0.10099301520000001
  -0.007601624799999982
out Mask@GRAD float64 [1, 1, 3, 4] 0.047658599999999995 -0.27057340799999996 -0.2208420000000001
  0.03395163599999998 -0.15869205 -0.03818085800000004 0.09892350000000005 0.019352480000000023
  -0.025645311999999934 0 0.8032217700000001 0
out Offset@GRAD float64 [1, 2, 3, 4] -0.008164002000000002 -0.2822910971999999 0.09544775519999987
  0.03099658619999998 0.09307452000000002 -0.011937559400000016 0.08903115000000006
  -0.02753688000000003 0.135553792 0 -0.4055611560000001 0 0.18673505999999995 0.4475904624
  -0.023526600000000064 -0.05873345640000001 -0.13033907040000003 0.06070689430000002 -0.2216018565
  -0.03835938000000001 -0.014826195999999965 0 -0.19932189199999994 0

example float32 1x4x3x4
attr im2col_step INT 1
in Filter float32 [2, 4, 1, 1] -0.76 0.53 -0.33 0.74 0.1 -0.55 0.31 -0.12
in Input float32 [1, 4, 3, 4] -0.57 0.91 -0.61 0.36 0.29 -0.69 -0.81 0.64 -0.84 -0.34 0.71 -0.18
  -0.07 -0.3 -0.26 0.56 0.87 -0.77 0.67 0.09 0.21 -0.49 -0.46 -0.73 -0.38 -0.53 -0.1 -0.22 -0.42
  0.44 0.32 0.6 0.4 0.01 0.79 -0.14 0.52 0.48 0.13 0.75 0.05 0.83 -0.88 0.17 0.25 -0.92 -0.65 -0.03
in Mask float32 [1, 1, 3, 4] 0.431 0.863 0.678 0.493 0.616 0.247 0.801 0.555 0.37 0.739 0.308 0.185
in Offset float32 [1, 2, 3, 4] 1.25 0.82 0.5 -0.46 0.61 -1.21 -1.11 -0.78 0.93 1.04 0.39 1.15 -0.89
  0.29 -0.14 -0.57 -0.25 0.18 -1 0.72 -0.36 -0.68 0.07 -0.03
in Output@GRAD float32 [1, 2, 3, 4] 0.3 -0.3 -0.8 0.3 -0.1 0.4 -0.4 0.1 -0.7 -0 -0.7 0 -0.6 -0.9
  -0.4 0.6 0.5 0.7 -0.5 -0.1 0.1 0.2 0.5 0.5
out Filter@GRAD float32 [2, 4, 1, 1] 0.17928833 0.1594185 -0.11868645 0.043990765 0.2496405
  0.35517228 -0.028456002 -0.28324968
out Input@GRAD float32 [1, 4, 3, 4] 0 0.18581 0.13809933 -0.029655965 0.012462119 0.0962938
  0.19391528 -0.0029401681 0.04107999 0 0.10169196 0.0076542264 0 0.044607017 -0.07636264
  -0.0064842654 -0.041711416 0.15913753 0.009480216 0.0036923045 -0.09370248 0 -0.11287457
  -0.008495928 0 -0.016003955 0.0488942 0.0022017243 0.023739953 -0.083794534 0.0038757734
  -0.0021880323 0.053947117 0 0.06744518 0.005076514 0 -0.1727121 -0.13352534 0.027595423
  -0.013690212 -0.08309625 -0.18199302 0.0029401684 -0.04306452 0 -0.100993045 -0.0076016197
out Mask@GRAD float32 [1, 1, 3, 4] 0.047658607 -0.27057344 -0.22084202 0.033951625 -0.15869205
  -0.03818082 0.098923475 0.019352477 -0.025645286 0 0.80322194 0
out Offset@GRAD float32 [1, 2, 3, 4] -0.008164005 -0.28229114 0.09544779 0.03099658 0.09307454
  -0.011937549 0.08903112 -0.027536878 0.13555378 0 -0.40556115 0 0.18673506 0.44759047 -0.02352652
  -0.058733456 -0.13033906 0.060706884 -0.22160183 -0.03835938 -0.014826182 0 -0.19932193 0
)")

HEDDLE_EXAMPLES(deformable_conv_v1, R"(
example 3x3
attr strides INTS [1, 1]
attr paddings INTS [1, 1]
attr dilations INTS [1, 1]
attr groups INT 1
attr deformable_groups INT 1
attr im2col_step INT 1
in Input float32 [1, 2, 3, 3] -0.18 -0.19 -0.94 -0.88 0.12 0.42 -0.12 0.04 0.91 -0.4 -0.09 -0.1 0.32
  0.43 -0.11 0.44 0.68 0.12
in Offset float32 [1, 18, 3, 3] -0.52 0.26 -0.08 0.83 0.13 0.63 0.02 -0.65 0.13 0.02 -0.27 -0.97
  0.48 0.96 0.8 0.27 -0.11 0.11 0.73 -0.33 0.57 -0.03 -0.12 -0.39 0.07 0.87 -0.14 -0.8 -0.78 0.08
  -0.69 -0.25 0.84 -0.1 0.23 -0.99 0.64 -0.44 0.87 -0.68 0.64 0.48 0.55 -0.26 -0.42 0.15 -0.73 0.69
  0.22 0.35 0.61 0.77 0.53 -0.3 0.3 -0.52 -0.21 0.01 0.09 -0.38 -0.11 -0.24 -0.62 -0.92 -0.62 0.25
  0.23 -0.08 0.66 -0.9 -0.71 -0.48 0.95 -0.82 0.65 0.8 0.88 0.31 -0.17 0.94 0.53 -0.01 0.9 0.74
  -0.27 -0.5 -0.57 0.53 -0.13 0.86 0.05 -0.65 0.88 -0.14 0.44 -0.38 -0.22 0.25 -0.36 0.47 0.14 -0.47
  -0.19 0.42 -0.5 -0.57 -0.5 -0.85 0.72 0.22 -0.68 -0.02 0.86 0.98 0.37 -0.99 0.45 -0.3 -0.36 0.16
  0.64 -0.6 -0.2 0.5 0.05 -0.35 -0.76 -0.66 0 0.96 -0.8 0.34 0.37 -0.6 -0.91 0.05 -0.24 0.91 -0.53
  0.03 -0.25 0.24 0.63 0.61 -0.13 -0.63 -0.11 -0.88 0.02 0.04 -0 -0.46 -0.02 -0.69 0.13 -0.1 0.12
  0.72 0.46 0.1 0.92 0.05
in Filter float32 [1, 2, 3, 3] -0.5 0.47 0.03 -0.44 -0.97 0.19 0.58 -0.31 0.22 0.53 -0.18 0.25 0.38
  -0.13 -0.92 -0.29 -0.07 0.72
out Output float32 [1, 1, 3, 3] 0.9301293 -0.33757913 -0.14891271 0.35394418 0.5161542 -0.4415581
  -0.6618409 -0.3133705 0.30404946
)")

HEDDLE_EXAMPLES(deformable_conv_v1_grad, R"(
example 3x3
attr im2col_step INT 1
attr paddings INTS [1, 1]
in Filter float64 [1, 2, 3, 3] -0.5 0.47 0.03 -0.44 -0.97 0.19 0.58 -0.31 0.22 0.53 -0.18 0.25 0.38
  -0.13 -0.92 -0.29 -0.07 0.72
in Input float64 [1, 2, 3, 3] -0.18 -0.19 -0.94 -0.88 0.12 0.42 -0.12 0.04 0.91 -0.4 -0.09 -0.1 0.32
  0.43 -0.11 0.44 0.68 0.12
in Offset float64 [1, 18, 3, 3] -0.52 0.26 -0.08 0.83 0.13 0.63 0.02 -0.65 0.13 0.02 -0.27 -0.97
  0.48 0.96 0.8 0.27 -0.11 0.11 0.73 -0.33 0.57 -0.03 -0.12 -0.39 0.07 0.87 -0.14 -0.8 -0.78 0.08
  -0.69 -0.25 0.84 -0.1 0.23 -0.99 0.64 -0.44 0.87 -0.68 0.64 0.48 0.55 -0.26 -0.42 0.15 -0.73 0.69
  0.22 0.35 0.61 0.77 0.53 -0.3 0.3 -0.52 -0.21 0.01 0.09 -0.38 -0.11 -0.24 -0.62 -0.92 -0.62 0.25
  0.23 -0.08 0.66 -0.9 -0.71 -0.48 0.95 -0.82 0.65 0.8 0.88 0.31 -0.17 0.94 0.53 -0.01 0.9 0.74
  -0.27 -0.5 -0.57 0.53 -0.13 0.86 0.05 -0.65 0.88 -0.14 0.44 -0.38 -0.22 0.25 -0.36 0.47 0.14 -0.47
  -0.19 0.42 -0.5 -0.57 -0.5 -0.85 0.72 0.22 -0.68 -0.02 0.86 0.98 0.37 -0.99 0.45 -0.3 -0.36 0.16
  0.64 -0.6 -0.2 0.5 0.05 -0.35 -0.76 -0.66 0 0.96 -0.8 0.34 0.37 -0.6 -0.91 0.05 -0.24 0.91 -0.53
  0.03 -0.25 0.24 0.63 0.61 -0.13 -0.63 -0.11 -0.88 0.02 0.04 -0 -0.46 -0.02 -0.69 0.13 -0.1 0.12
  0.72 0.46 0.1 0.92 0.05
in Output@GRAD float64 [1, 1, 3, 3] 0.9 -0.8 0.4 -0.6 0.8 0.2 0.9 0.7 0.1
out Filter@GRAD float64 [1, 2, 3, 3] -0.35008870000000003 -0.8371747 0.3685931 -0.6677044000000001
  -0.5926769999999999 0.3463853 0.2710944 0.30926830000000005 -0.022463899999999898
  -0.00426420000000001 0.5435268000000001 6.88000000000355e-5 0.35838840000000005 1.0684003
  0.38450870000000004 0.009146400000000054 0.32235760000000013 0.10200960000000005
out Input@GRAD float64 [1, 2, 3, 3] -0.18274970000000001 0.1491713 0.0935359 -1.0358972000000002
  -0.43662100000000004 -0.14249930000000005 -0.22341609999999976 -0.5771369000000001
  0.07016589999999998 0.07505039999999998 0.08239480000000005 -0.3953873999999998 0.5834843000000002
  0.16747810000000013 -0.41556400000000016 -0.39367160000000034 -0.7487356000000004
  -0.2707550999999999
out Offset@GRAD float64 [1, 18, 3, 3] 0 0.071248 0 -0.21070080000000002 0.11603200000000005
  -0.10482400000000001 -0.0768852 0.4557868 0.013998400000000001 0 0.02537600000000001 0 -0.2911368
  0.07189600000000002 -0.027603400000000007 0.5429448 0.09384199999999998 -0.047462800000000006
  -0.0022679999999999974 0 -0.1559584 0.0023435999999999995 -0.046380000000000005
  -0.01356160000000001 0.271836 -0.014108500000000013 0.005798900000000003 -0.008278199999999993 0
  0.09662639999999999 0.007333199999999984 -0.04259200000000002 0.051703599999999995
  -0.40293719999999994 0.3320835 0.015575399999999996 -0.028755 0 0 0.02022 0.019915999999999996 0
  0.062475300000000004 0.012600699999999992 0.0011489999999999992 -0.014400000000000001 0 0
  0.004799999999999999 0.0229504 0 -0.10741049999999999 0.0174006 0.0030986 0 0.02213120000000001
  0.05238000000000001 0.039854400000000005 -0.21255680000000005 -0.07532880000000003 0 -0.0586264
  -0.007091999999999998 0 0.02795520000000001 0.10307920000000001 -0.3035472 0.38624640000000005
  -0.017021600000000005 0 0.2025184 -0.023898000000000003 0.5215913999999999 -0.6815359999999999
  -0.1370615999999999 0.3297263999999999 -0.28308 -0.038305800000000015 -0.29692169999999996
  0.0720776 0.012576200000000013 0.7044569999999999 -0.10494720000000003 -0.027265999999999978
  -0.12585599999999997 -0.2257184000000001 -0.0782786 -0.2898387 -0.007828800000000006
  0.042220099999999976 -0.08690670000000003 0.059580799999999975 0.05030879999999998 0.2945526
  -0.054984000000000026 0.026760000000000003 -0.07745040000000006 0.19442500000000001 -0.0100725
  -0.08905049999999998 -0.024248000000000002 -0.0595552 -0.021704400000000013 -0.10308800000000003
  -0.015862400000000002 -0.11607840000000008 0.35726250000000004 -0.010516000000000001 0
  -0.20787200000000003 0.06041279999999999 -0.15590400000000001 0.063104 0.035728 0 0.137228 0 0
  0.4111039999999999 -0.0752144 0.123192 -0.02208640000000002 9.279999999999998e-5 0
  0.01607759999999999 0 0.1364805 0.0485728 -0.006047999999999992 0.0018047999999999988
  0.0016327999999999863 0.046575 0 0.14365050000000001 0.011329500000000004 -0.08134560000000002
  0.09623519999999999 0.048999999999999995 -0.00015360000000000016 -0.072208 -0.03042600000000001 0
  -0.09681000000000002 0.026435500000000008 0.34977779999999997 -0.20323200000000008
  0.011680000000000012 -0.105432 -0.06419840000000006 0 0 -0.016049600000000015 0 0.2601306
  -0.136608 0.007567999999999995 0.18568800000000002 -0.22469440000000002 0 0 -0.09228519999999998 0
)")
