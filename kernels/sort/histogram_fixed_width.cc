// How many values fall into each of equal parts of a range that is an operand.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/to_place.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// Counts the values in each of equal parts of a range; values outside count at its ends.
template <typename T>
struct FixedWidthHistogram {
  static Status Run(KernelContext& ctx) {
    const Tensor &values = ctx.In("values"), &range = ctx.In("value_range");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t bins, IntIn(ctx, "nbins", 100));
    const DType dtype = DTypeFromProto(ctx.Int("dtype"));
    if (range.numel() != 2 || range.dtype() != values.dtype() || bins < 1 ||
        (dtype != DType::kI32 && dtype != DType::kI64))
      return InvalidArgument("value_range is ", Name(range.dtype()), " ", range.shape().ToString(),
                             ", nbins ", bins, " and dtype ", Name(dtype));
    const double low = static_cast<double>(range.data<T>()[0]);
    const double high = static_cast<double>(range.data<T>()[1]);
    if (!(low < high) || !std::isfinite(high - low))
      return InvalidArgument("value_range is ", low, " to ", high);
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape({bins}, "nbins"));
    Ints counts(static_cast<size_t>(bins), 0);
    const double step = (high - low) / static_cast<double>(bins);
    for (const int64_t i : Watched(values.numel())) {
      const double v = static_cast<double>(values.data<T>()[i]);
      if (std::isnan(v)) return InvalidArgument("values holds NaN at position ", i);
      // (The step of many parts of the least numbers is 0.)
      const double place = (std::min(std::max(v, low), high) - low) / step;
      ++counts[static_cast<size_t>(std::clamp<int64_t>(ToPlace(std::floor(place)), 0, bins - 1))];
    }
    Tensor& out = ctx.Alloc("out", dtype, shape);
    for (size_t i = 0; i < counts.size(); ++i)
      if (dtype == DType::kI64)
        out.mutable_data<int64_t>()[i] = counts[i];
      else
        out.mutable_data<int32_t>()[i] = static_cast<int32_t>(counts[i]);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(histogram_fixed_width) {
  op.Doc("how many values fall into each of equal parts of a range").Input("values");
  op.Input("value_range").Input("nbins").Output("out").Attr("dtype", 2).KernelKey("values");
  op.Kernels<FixedWidthHistogram, float, double, int32_t, int64_t>();
}
