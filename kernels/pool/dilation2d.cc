// Maxima over windows: with a summand for each tap, and with sizes that are operands.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/only_value.h"
#include "kernels/operands/operands.h"
#include "kernels/pool/tf_windows.h"

namespace heddle {
namespace {

// A window over [N, H, W, C].
struct DilationPlane {
  int64_t size[2], stride[2], rate[2], pad[2], in[2], out[2];
};
Result<DilationPlane> PlaneOf(const Shape& x, const ShortInts& sizes, const ShortInts& strides,
                              const ShortInts& rates, const std::string& padding, bool last) {
  DilationPlane p;
  if (x.rank() != 4 || sizes.size() != 4 || strides.size() != 4 || rates.size() != 4 ||
      (padding != "SAME" && padding != "VALID"))
    return InvalidArgument("input has shape ", x.ToString(),
                           "; windows of four numbers and padding SAME or VALID are expected");
  for (int i = 0; i < 2; ++i) {
    const auto k = static_cast<size_t>(i + (last ? 1 : 2));
    p.size[i] = sizes[k];
    p.stride[i] = strides[k];
    p.rate[i] = rates[k];
    p.in[i] = x[static_cast<int>(k)];
    if (p.size[i] < 1 || p.stride[i] < 1 || p.rate[i] < 1 ||
        std::max({p.size[i], p.stride[i], p.rate[i]}) > int64_t{1} << 31)
      return InvalidArgument("a window holds ", p.size[i], ", ", p.stride[i], " and ", p.rate[i],
                             ", expected at least 1");
    const int64_t reach = (p.size[i] - 1) * p.rate[i] + 1;
    const bool same = padding == "SAME";
    p.out[i] = same ? (p.in[i] + p.stride[i] - 1) / p.stride[i]
                    : std::max<int64_t>(0, (p.in[i] - reach + p.stride[i]) / p.stride[i]);
    const int64_t total = std::max<int64_t>(0, (p.out[i] - 1) * p.stride[i] + reach - p.in[i]);
    p.pad[i] = same ? total / 2 : 0;
  }
  return p;
}

// fn(offset of the pixel, number of the tap) for the taps inside the image.
template <typename Fn>
void ForTaps(const DilationPlane& p, int64_t oy, int64_t ox, Fn&& fn) {
  const int64_t y0 = oy * p.stride[0] - p.pad[0], x0 = ox * p.stride[1] - p.pad[1];
  const TapRange ys = TapsInside(y0, p.rate[0], p.size[0], p.in[0]);
  const TapRange xs = TapsInside(x0, p.rate[1], p.size[1], p.in[1]);
  for (const int64_t ky : Watched(ys.begin, ys.end))
    for (int64_t kx = xs.begin; kx < xs.end; ++kx)
      fn((y0 + ky * p.rate[0]) * p.in[1] + x0 + kx * p.rate[1], ky * p.size[1] + kx);
}

Result<DilationPlane> DilationOf(const OpContext& ctx, const Shape& x, const Shape& filter) {
  if (filter.rank() != 3 || x.rank() != 4 || filter[2] != x[3])
    return InvalidArgument("filter has shape ", filter.ToString(), " for input ", x.ToString());
  return PlaneOf(x, {1, filter[0], filter[1], 1}, ctx.IntList("strides"), ctx.IntList("rates"),
                 ctx.Str("padding"), true);
}
Status DilationShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("input"), &filter = ctx.InShape("filter");
  if (!x.is_static() || !filter.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const DilationPlane p, DilationOf(ctx, x, filter));
  ctx.SetOut("output", {x[0], p.out[0], p.out[1], x[3]}, ctx.InDType("input"));
  return Status::Ok();
}
template <typename T>
struct Dilation {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("input"), &filter = ctx.In("filter");
    HEDDLE_ASSIGN_OR_RETURN(const DilationPlane p, DilationOf(ctx, x.shape(), filter.shape()));
    const int64_t c = x.dim(3), area = p.in[0] * p.in[1], places = p.out[0] * p.out[1];
    T* to = ctx.Out("output").template mutable_data<T>();
    for (const int64_t i : Watched(c > 0 ? x.dim(0) * places : 0)) {
      T* pixel = to + i * c;
      std::fill(pixel, pixel + c, std::numeric_limits<T>::lowest());
      const T* image = x.data<T>() + i / places * area * c;
      ForTaps(p, i % places / p.out[1], i % p.out[1], [&](int64_t at, int64_t tap) {
        for (int64_t k = 0; k < c; ++k)
          pixel[k] = std::max(pixel[k], image[at * c + k] + filter.data<T>()[tap * c + k]);
      });
    }
    return Status::Ok();
  }
};

template <typename Context>
Result<DilationPlane> PoolOf(const Context& ctx, const Shape& x) {
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts sizes, IntsIn(ctx, "ksize"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts strides, IntsIn(ctx, "strides"));
  HEDDLE_RETURN_IF_ERROR(CheckOnlyValue(ctx, "data_format"));
  return PlaneOf(x, sizes, strides, {1, 1, 1, 1}, ctx.Str("padding"), true);
}
Status PoolWindowsShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.is_static() || !Known(ctx, "ksize") || !Known(ctx, "strides"))
    return SameRank(ctx, "input", "output");
  HEDDLE_ASSIGN_OR_RETURN(const DilationPlane p, PoolOf(ctx, x));
  ctx.SetOut("output", {x[0], p.out[0], p.out[1], x[3]}, ctx.InDType("input"));
  return Status::Ok();
}
template <typename T>
struct PoolWindows {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    HEDDLE_ASSIGN_OR_RETURN(const DilationPlane p, PoolOf(ctx, x.shape()));
    const int64_t c = x.dim(3), area = p.in[0] * p.in[1], places = p.out[0] * p.out[1];
    T* to = ctx.Out("output").template mutable_data<T>();
    for (const int64_t i : Watched(c > 0 ? x.dim(0) * places : 0)) {
      T* pixel = to + i * c;
      std::fill(pixel, pixel + c, std::numeric_limits<T>::lowest());
      const T* image = x.data<T>() + i / places * area * c;
      ForTaps(p, i % places / p.out[1], i % p.out[1], [&](int64_t at, int64_t) {
        for (int64_t k = 0; k < c; ++k) pixel[k] = std::max(pixel[k], image[at * c + k]);
      });
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(dilation2d) {
  op.Doc("the greatest of a window's elements plus a filter").Input("input").Input("filter");
  op.Output("output").Attr("strides", Ints{}).Attr("rates", Ints{}).Attr("padding", "VALID");
  op.InferShape(DilationShape).Kernels<Dilation, float, double, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_max_pool_v2) {
  op.Doc("the greatest of windows whose sizes and strides are operands").Input("input");
  op.Input("ksize", kShapeValue).Input("strides", kShapeValue).Output("output");
  op.Attr("padding", "VALID").Attr("data_format", "NHWC").InferShape(PoolWindowsShape);
  op.KernelKey("input").Kernels<PoolWindows, float, double, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
