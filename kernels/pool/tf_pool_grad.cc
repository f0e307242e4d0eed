// Gradients of pooling, and maxima with the places that they come from.
#include "kernels/operands/operands.h"
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

Status MaxGradShape(ShapeContext& ctx) {
  ctx.SetOut("output", ctx.InShape("orig_input"), ctx.InDType("orig_input"));
  return Status::Ok();
}

Status CheckOut(const TfWindows& w, const Tensor& t, const char* slot) {
  const Shape want = w.Layout(w.out, w.channels);
  if (t.shape() == want) return Status::Ok();
  return InvalidArgument(slot, " has shape ", t.shape().ToString(), ", expected ", want.ToString());
}

template <typename T>
struct MaxPoolGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("orig_input"), &grad = ctx.In("grad");
    HEDDLE_ASSIGN_OR_RETURN(const TfWindows w, TfWindowsOf(ctx, x.shape(), nullptr));
    HEDDLE_RETURN_IF_ERROR(CheckOut(w, grad, "grad"));
    if (grad.dtype() != x.dtype())
      return InvalidArgument("grad is ", Name(grad.dtype()), ", orig_input ", Name(x.dtype()));
    const T *from = x.data<T>(), *dy = grad.data<T>();
    Tensor& out = ctx.Out("output");
    T* dx = out.template mutable_data<T>();
    ZeroBytes(ctx, dx, out.bytes());
    ForEachPlane(ctx, w, [&](int64_t, int64_t, int64_t in_at, int64_t out_at) {
      ForEachTfPosition(w, [&](const std::array<int64_t, 3>& at, int64_t i) {
        const int64_t tap = MaxTap(w, at, from + in_at);
        if (tap >= 0) dx[in_at + tap * w.pixel_step()] += dy[out_at + i * w.pixel_step()];
      });
    });
    return Status::Ok();
  }
};

Status AvgGradShape(ShapeContext& ctx) {
  if (!Known(ctx, "orig_input_shape")) {
    Shape open = ctx.InShape("grad");
    if (!open.known_rank()) return ctx.Defer();
    for (int i = 0; i < open.rank(); ++i) open[i] = -1;
    ctx.SetOut("output", open, ctx.InDType("grad"));
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "orig_input_shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "orig_input_shape"));
  ctx.SetOut("output", shape, ctx.InDType("grad"));
  return Status::Ok();
}

template <typename T>
struct AvgPoolGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& grad = ctx.In("grad");
    Tensor& out = ctx.Out("output");
    HEDDLE_ASSIGN_OR_RETURN(const TfWindows w, TfWindowsOf(ctx, out.shape(), nullptr));
    HEDDLE_RETURN_IF_ERROR(CheckOut(w, grad, "grad"));
    const T* dy = grad.data<T>();
    T* dx = out.template mutable_data<T>();
    ZeroBytes(ctx, dx, out.bytes());
    ForEachPlane(ctx, w, [&](int64_t, int64_t, int64_t in_at, int64_t out_at) {
      ForEachTfPosition(w, [&](const std::array<int64_t, 3>& at, int64_t i) {
        int64_t taps = 0;
        ForEachTfTap(w, at, [&](int64_t, int64_t) { ++taps; });
        if (taps == 0) return;
        const T share = dy[out_at + i * w.pixel_step()] / static_cast<T>(taps);
        ForEachTfTap(w, at,
                     [&](int64_t pixel, int64_t) { dx[in_at + pixel * w.pixel_step()] += share; });
      });
    });
    return Status::Ok();
  }
};

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

void DefineMaxGrad(OpDef& op, const char* doc, bool explicit_paddings) {
  op.Doc(doc).Input("orig_input").Input("orig_output", kNoBuffer).Input("grad").Output("output");
  DeclareTfWindows(op, {.ksize = true, .explicit_paddings = explicit_paddings});
  op.InferShape(MaxGradShape).KernelKey("orig_input").Kernels<MaxPoolGrad, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
void DefineAvgGrad(OpDef& op, const char* doc) {
  op.Doc(doc).Input("orig_input_shape", kShapeValue).Input("grad").Output("output");
  DeclareTfWindows(op, {.ksize = true});
  op.InferShape(AvgGradShape).KernelKey("grad").Kernels<AvgPoolGrad, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_max_pool_grad) {
  DefineMaxGrad(op, "gradient of max pooling: all of it goes to the first of the greatest", true);
}
HEDDLE_OP(tf_max_pool3d_grad) { DefineMaxGrad(op, "gradient of 3-D max pooling", false); }
HEDDLE_OP(tf_avg_pool_grad) { DefineAvgGrad(op, "gradient of average pooling"); }
HEDDLE_OP(tf_avg_pool3d_grad) { DefineAvgGrad(op, "gradient of 3-D average pooling"); }
HEDDLE_OP(tf_max_pool_with_argmax) {
  op.Doc("maxima of windows, and the flat place of each in its image (or in the batch)");
  op.Input("input").Output("output").Output("argmax").Attr("Targmax", 3);
  op.Attr("include_batch_in_index", false);
  DeclareTfWindows(op, {.ksize = true});
  op.InferShape(ArgmaxShape)
      .Kernels<MaxPoolWithArgmax, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
