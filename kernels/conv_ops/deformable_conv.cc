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
