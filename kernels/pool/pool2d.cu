// Two-dimensional pooling and its gradient. A thread computes one element of the result, so that
// sums do not depend on the order in which threads run.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernel_context.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/in_float.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/pixels.h"

namespace heddle::HEDDLE_GRID {
namespace {

struct PoolAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, pad = 0;
  bool adaptive = false;

  // The window of output o, before it is cut to the input. An average that counts padding divides
  // by its length.
  HEDDLE_BODY int64_t Begin(int64_t o) const { return adaptive ? o * in / out : o * stride - pad; }
  HEDDLE_BODY int64_t End(int64_t o) const {
    if (adaptive) return ((o + 1) * in + out - 1) / out;
    const int64_t end = o * stride - pad + kernel;
    return end < in + pad ? end : in + pad;
  }
  HEDDLE_BODY int64_t First(int64_t o) const { return Begin(o) > 0 ? Begin(o) : 0; }
  HEDDLE_BODY int64_t Last(int64_t o) const {  // behind it
    const int64_t end = End(o) < in ? End(o) : in;
    return end > First(o) ? end : First(o);
  }
  // The outputs that may look at input i: [FirstOf, LastOf).
  HEDDLE_BODY int64_t FirstOf(int64_t i) const {
    const int64_t o = adaptive ? i * out / in - 1 : (i + pad - kernel) / stride;
    return o > 0 ? o : 0;
  }
  HEDDLE_BODY int64_t LastOf(int64_t i) const {
    const int64_t o = adaptive ? (i + 1) * out / in + 2 : (i + pad) / stride + 1;
    return o < out ? o : out;
  }
};

struct PoolShape : Pixels {
  bool max = true, exclusive = true, skip_nan = false, keep_nan = false;
  float first = 0;  // what a window begins with
  PoolAxis h, w;

  HEDDLE_BODY Place In(int64_t i) const { return At(i, h.in, w.in); }
  HEDDLE_BODY Place Out(int64_t i) const { return At(i, h.out, w.out); }
  HEDDLE_BODY int64_t InAt(const Place& p, int64_t y, int64_t x) const {
    return Number(p, y, x, h.in, w.in);
  }
  HEDDLE_BODY int64_t OutAt(const Place& p, int64_t y, int64_t x) const {
    return Number(p, y, x, h.out, w.out);
  }
  HEDDLE_BODY float Greater(float value, float v) const {
    if (skip_nan) return v > value ? v : value;
    if (keep_nan) return v > value || v != v ? v : value;
    return value > v ? value : v;
  }
  HEDDLE_BODY float Share(int64_t oy, int64_t ox) const {
    const int64_t size = exclusive ? (h.Last(oy) - h.First(oy)) * (w.Last(ox) - w.First(ox))
                                   : (h.End(oy) - h.Begin(oy)) * (w.End(ox) - w.Begin(ox));
    return 1.0f / static_cast<float>(size);
  }
};

PoolShape PoolShapeOf(const OpContext& ctx, const Shape& in, const Shape& out) {
  PoolShape g;
  g.channels_last = ctx.Str("data_format") == "NHWC";
  g.max = ctx.Str("pooling_type") == "max";
  g.skip_nan = ctx.Bool("skip_nan");
  g.keep_nan = ctx.Bool("keep_nan");
  if (g.max) g.first = ctx.Bool("from_infinity") ? -INFINITY : std::numeric_limits<float>::lowest();
  const bool global = ctx.Bool("global_pooling"), adaptive = ctx.Bool("adaptive");
  g.exclusive = ctx.Bool("exclusive") || adaptive;
  g.batch = in[0];
  g.channels = in[g.channels_last ? 3 : 1];
  const int first = g.channels_last ? 1 : 2;
  const Ints &ksize = ctx.IntList("ksize"), &strides = ctx.IntList("strides"),
             &pads = ctx.IntList("paddings");
  const std::string& algorithm = ctx.Str("padding_algorithm");
  for (int d = 0; d < 2; ++d) {
    PoolAxis& a = d == 0 ? g.h : g.w;
    const auto at = static_cast<size_t>(d);
    a.in = in[first + d], a.out = out[first + d];
    a.kernel = global ? a.in : ksize.at(at);
    a.stride = !global && at < strides.size() ? strides[at] : 1;
    a.adaptive = adaptive && !global && !g.max;  // the greatest of fixed windows, as on the host
    if (global || adaptive || algorithm == "VALID") continue;
    if (algorithm == "SAME")
      a.pad = std::max<int64_t>(
                  0, ((a.in + a.stride - 1) / a.stride - 1) * a.stride + a.kernel - a.in) /
              2;
    else
      a.pad = pads.size() == 2 ? pads[at] : pads.at(2 * at);
  }
  return g;
}

struct PoolBody {
  PoolShape g;
  const float* x;
  float* out;
  HEDDLE_BODY void operator()(int64_t i) const {
    const auto p = g.Out(i);
    float value = g.first;
    for (int64_t y = g.h.First(p.y); y < g.h.Last(p.y); ++y)
      for (int64_t k = g.w.First(p.x); k < g.w.Last(p.x); ++k) {
        const float v = x[g.InAt(p, y, k)];
        value = g.max ? g.Greater(value, v) : value + v;
      }
    out[i] = g.max ? value : value * g.Share(p.y, p.x);
  }
};

struct PoolGradBody {
  PoolShape g;
  const float* x;
  const float* out;
  const float* dout;
  float* dx;
  // Element (y, k) is the first of the window's greatest.
  HEDDLE_BODY bool Greatest(const PoolShape::Place& p, int64_t oy, int64_t ox) const {
    const float best = out[g.OutAt(p, oy, ox)];
    if (x[g.InAt(p, p.y, p.x)] != best) return false;
    for (int64_t y = g.h.First(oy); y <= p.y; ++y)
      for (int64_t k = g.w.First(ox); k < (y < p.y ? g.w.Last(ox) : p.x); ++k)
        if (x[g.InAt(p, y, k)] == best) return false;
    return true;
  }
  HEDDLE_BODY void operator()(int64_t i) const {
    const auto p = g.In(i);
    float sum = 0;
    for (int64_t oy = g.h.FirstOf(p.y); oy < g.h.LastOf(p.y); ++oy) {
      if (p.y < g.h.First(oy) || p.y >= g.h.Last(oy)) continue;
      for (int64_t ox = g.w.FirstOf(p.x); ox < g.w.LastOf(p.x); ++ox) {
        if (p.x < g.w.First(ox) || p.x >= g.w.Last(ox)) continue;
        const float d = dout[g.OutAt(p, oy, ox)];
        if (!g.max)
          sum += d * g.Share(oy, ox);
        else if (Greatest(p, oy, ox))
          sum += d;
      }
    }
    dx[i] = sum;
  }
};

Status Pool(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  return Each(queue, out.numel(),
              PoolBody{PoolShapeOf(ctx, x.shape(), out.shape()), x.data<float>(),
                       out.mutable_data<float>()});
}
Status PoolGrad(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &dout = ctx.In("Out@GRAD");
  Tensor& dx = ctx.Out("X@GRAD");
  const PoolShape g = PoolShapeOf(ctx, x.shape(), dout.shape());
  return Each(queue, dx.numel(),
              PoolGradBody{g, x.data<float>(), g.max ? ctx.In("Out").data<float>() : nullptr,
                           dout.data<float>(), dx.mutable_data<float>()});
}
bool CoversPool(const CallView& call) { return call.HasIn("X") && call.InShape("X").rank() == 4; }

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(pool2d) { kernel = {InFloat<Pool>, CoversPool, kReals}; }
HEDDLE_CUDA_KERNEL(pool2d_grad) { kernel = {InFloat<PoolGrad>, CoversPool, kReals}; }
