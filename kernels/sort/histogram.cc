// histogram: counts of elements per bin.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"

namespace heddle {
namespace {

constexpr int64_t kMaxBins = int64_t{1} << 40;

// Integers are widened, so that no difference overflows.
template <typename T>
struct Histogram {
  using Wide = std::conditional_t<std::is_integral_v<T>, __int128, T>;
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    int64_t* count = ctx.Out("Out").template mutable_data<int64_t>();
    const T* x = xt.data<T>();
    const int64_t n = xt.numel(), bins = ctx.Int("bins");
    WatchedFill(count, bins, int64_t{0});
    auto low = static_cast<Wide>(ctx.Int("min")), high = static_cast<Wide>(ctx.Int("max"));
    if (n == 0) return Status::Ok();
    if (low == high) {
      low = *std::min_element(x, x + n);
      high = *std::max_element(x, x + n);
    }
    if (low == high) {
      --low;
      ++high;
    }
    if (!std::isfinite(static_cast<double>(low)) || !std::isfinite(static_cast<double>(high)))
      return InvalidArgument("the range of the histogram is not finite");
    if (high < low) return InvalidArgument("attribute max is below attribute min");
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) {
        if (!(x[i] >= low && x[i] <= high)) continue;
        const Wide bin = (x[i] - low) * static_cast<Wide>(bins) / (high - low);
        ++count[bin < static_cast<Wide>(bins) ? static_cast<int64_t>(bin) : bins - 1];
      }
    return Status::Ok();
  }
};

Status InferHistogram(ShapeContext& ctx) {
  const int64_t bins = ctx.Int("bins");
  if (bins < 1 || bins > kMaxBins)
    return InvalidArgument("attribute bins is ", bins, ", expected 1 to ", kMaxBins);
  ctx.SetOut("Out", Shape{bins}, DType::kI64);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(histogram) {
  op.Doc("number of elements in each of some equal bins").Input("X").Output("Out");
  op.Attr("bins", 100).Attr("min", 0).Attr("max", 0).InferShape(&InferHistogram);
  op.Kernels<Histogram, float, double, int32_t, int64_t>();
}
