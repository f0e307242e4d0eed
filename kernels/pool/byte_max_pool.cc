// byte_max_pool: maxima of 8-bit integers in windows. An operator of heddle, made by a pass of the
// maxima of dequantised numbers.
#include <algorithm>
#include <limits>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/pool/pool.h"

namespace heddle {
namespace {

Result<PoolGeometry> ByteGeometry(const OpContext& ctx, const Shape& x) {
  PoolAttrs a;
  a.ksize = ctx.IntList("ksize");
  a.strides = ctx.IntList("strides");
  a.paddings = ctx.IntList("paddings");
  a.ceil = ctx.Bool("ceil_mode");
  a.padding_algorithm = ctx.Str("padding_algorithm");
  a.channels_last = ctx.Str("data_format") == "NHWC";
  return PoolGeometryOf(a, x);
}

struct BytePoolState final : KernelState {
  PoolGeometry geometry;
};

Status BytePoolShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() != 4) return InvalidArgument("X has shape ", x.ToString(), ", expected rank 4");
  HEDDLE_ASSIGN_OR_RETURN(const PoolGeometry g, ByteGeometry(ctx, x));
  ctx.SetOut("Out", PoolOutShape(g), ctx.InDType("X"));
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> PrepareBytePool(PrepareContext& ctx) {
  auto state = std::make_unique<BytePoolState>();
  HEDDLE_ASSIGN_OR_RETURN(state->geometry, ByteGeometry(ctx, ctx.InShape("X")));
  return std::unique_ptr<KernelState>(std::move(state));
}

template <typename T>
void TakeGreater(const T* __restrict x, int64_t n, T* __restrict out) {
  for (int64_t c = 0; c < n; ++c) out[c] = std::max(out[c], x[c]);
}
template <typename T>
void ChannelsLastWindow(const PoolGeometry& g, const PoolWindow& h, const PoolWindow& w, const T* x,
                        T* out) {
  std::fill_n(out, g.channels, std::numeric_limits<T>::min());
  for (int64_t y = h.begin; y < h.end; ++y)
    for (int64_t v = w.begin; v < w.end; ++v)
      TakeGreater(x + (y * g.in[2] + v) * g.channels, g.channels, out);
}
template <typename T>
T PlaneWindow(const PoolGeometry& g, const PoolWindow& h, const PoolWindow& w, const T* plane) {
  T most = std::numeric_limits<T>::min();
  for (int64_t y = h.begin; y < h.end; ++y)
    for (int64_t v = w.begin; v < w.end; ++v) most = std::max(most, plane[y * g.in[2] + v]);
  return most;
}

template <typename T>
struct BytePool {
  static Status Run(KernelContext& ctx) {
    const PoolGeometry& g = ctx.State<BytePoolState>().geometry;
    const T* const x = ctx.In("X").data<T>();
    T* const out = ctx.Out("Out").template mutable_data<T>();
    // A row of the result, of all channels or of one.
    const int64_t planes = g.channels_last ? 1 : g.channels, width = g.out[2];
    const int64_t step = g.channels_last ? g.channels : 1;
    const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, width * step));
    ctx.ParallelFor(g.batch * planes * g.out[1], grain, [&](int64_t begin, int64_t end) {
      for (const int64_t r : Watched(begin, end)) {
        const PoolWindow& h = g.windows[1][static_cast<size_t>(r % g.out[1])];
        const T* const from = x + r / g.out[1] * g.in_size() * step;
        T* const to = out + r * width * step;
        for (int64_t v = 0; v < width; ++v) {
          const PoolWindow& w = g.windows[2][static_cast<size_t>(v)];
          if (g.channels_last)
            ChannelsLastWindow(g, h, w, from, to + v * step);
          else
            to[v] = PlaneWindow(g, h, w, from);
        }
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(byte_max_pool) {
  op.Doc("maxima of the integers X in windows, as pool2d has them; padding counts for nothing");
  op.Input("X").Output("Out").Attr("ksize", Ints{1, 1}).Attr("strides", Ints{1, 1});
  op.Attr("paddings", Ints{0, 0}).Attr("ceil_mode", false);
  op.Attr("padding_algorithm", "EXPLICIT").Attr("data_format", "NCHW").Traits(kChannelsLast);
  op.InferShape(BytePoolShape).Prepare(PrepareBytePool).Kernels<BytePool, uint8_t, int8_t>();
}
