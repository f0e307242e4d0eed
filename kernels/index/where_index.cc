// where_index: the coordinates of the elements that are not zero.
#include "core/interrupts.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Coordinates of the elements that are not zero.
template <typename T>
struct WhereIndex {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Condition");
    const T* v = x.data<T>();
    const int64_t n = x.numel();
    auto holds = [v](int64_t i) { return static_cast<ComputeType<T>>(v[i]) != ComputeType<T>(0); };
    int64_t count = 0;
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) count += holds(i) ? 1 : 0;
    // By axis, a number is a vector of one.
    const bool by_axis = ctx.Bool("by_axis");
    const Shape shape = by_axis && x.rank() == 0 ? Shape{1} : x.shape();
    const int rank = shape.rank();
    const auto strides = RowMajorStrides(shape);
    int64_t* out = ctx.Alloc("Out", DType::kI64, by_axis ? Shape{rank, count} : Shape{count, rank})
                       .template mutable_data<int64_t>();
    if (by_axis) {
      for (const int64_t i : Watched(n)) {
        if (!holds(i)) continue;
        for (int d = 0; d < rank; ++d) out[d * count] = i / strides[d] % shape[d];
        ++out;
      }
      return Status::Ok();
    }
    for (const int64_t i : Watched(n)) {
      if (!holds(i)) continue;
      int64_t rest = i;
      for (int d = 0; d < rank; ++d) {
        *out++ = rest / strides[d];
        rest %= strides[d];
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(where_index) {
  op.Doc(
        "Coordinates of the elements of Condition that are not zero, one row each, or with by_axis "
        "one column.")
      .Input("Condition")
      .Output("Out")
      .Attr("by_axis", false)
      .Kernels<WhereIndex, bool, int32_t, int64_t, float, double, uint8_t, int8_t, int16_t, float16,
               bfloat16>();
}
