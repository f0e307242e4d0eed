// Maxima of windows with the places that they come from.
#include "kernels/base/convert.h"
#include "kernels/pool/tf_windows.h"

namespace heddle {
namespace {

// fn(channel, offset of the plane's first element in the input, in the output) for all planes.
template <typename Fn>
void ForEachPlane(const KernelContext& ctx, const TfWindows& w, Fn&& fn) {
  const int64_t in = w.in_size(), out = w.out_size();
  ctx.ParallelFor(w.batch * w.channels, 1 + 16384 / (1 + in), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t b = p / w.channels, c = p % w.channels;
      fn(b, c, b * in * w.channels + c * w.channel_step(in),
         b * out * w.channels + c * w.channel_step(out));
    }
  });
}

// The first of the greatest elements of a window; -1 where the window is empty.
template <typename T>
int64_t MaxTap(const TfWindows& w, const std::array<int64_t, 3>& at, const T* plane) {
  int64_t best = -1;
  T most{};
  ForEachTfTap(w, at, [&](int64_t pixel, int64_t) {
    const T v = plane[pixel * w.pixel_step()];
    if (best >= 0 && !(v > most)) return;
    best = pixel;
    most = v;
  });
  return best;
}

Status ArgmaxShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const TfWindows w, TfWindowsOf(ctx, x, nullptr));
  const DType dtype = DTypeFromProto(ctx.Int("Targmax"));
  if (dtype != DType::kI32 && dtype != DType::kI64)
    return InvalidArgument("Targmax is ", Name(dtype), ", expected int32 or int64");
  ctx.SetOut("output", w.Layout(w.out, w.channels), ctx.InDType("input"));
  ctx.SetOut("argmax", w.Layout(w.out, w.channels), dtype);
  return Status::Ok();
}

template <typename T>
struct MaxPoolWithArgmax {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    HEDDLE_ASSIGN_OR_RETURN(const TfWindows w, TfWindowsOf(ctx, x.shape(), nullptr));
    if (w.in_size() == 0 && w.out_size() > 0)
      return InvalidArgument("input has no pixels: ", x.shape().ToString());
    const T* from = x.data<T>();
    T* to = ctx.Out("output").template mutable_data<T>();
    Tensor& places = ctx.Out("argmax");
    const int64_t image = ctx.Bool("include_batch_in_index") ? w.in_size() * w.channels : 0;
    ForEachPlane(ctx, w, [&](int64_t b, int64_t c, int64_t in_at, int64_t out_at) {
      ForEachTfPosition(w, [&](const std::array<int64_t, 3>& at, int64_t i) {
        const int64_t tap = std::max<int64_t>(0, MaxTap(w, at, from + in_at));
        const int64_t o = out_at + i * w.pixel_step();
        const int64_t place = tap * w.channels + c + b * image;
        to[o] = from[in_at + tap * w.pixel_step()];
        if (places.dtype() == DType::kI64)
          places.mutable_data<int64_t>()[o] = place;
        else
          places.mutable_data<int32_t>()[o] = static_cast<int32_t>(place);
      });
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_max_pool_with_argmax) {
  op.Doc("maxima of windows, and the flat place of each in its image (or in the batch)");
  op.Input("input").Output("output").Output("argmax").Attr("Targmax", 3);
  op.Attr("include_batch_in_index", false);
  DeclareTfWindows(op, {.ksize = true});
  op.InferShape(ArgmaxShape)
      .Kernels<MaxPoolWithArgmax, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
