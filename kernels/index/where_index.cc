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
    const int rank = x.rank();
    const auto strides = RowMajorStrides(x.shape());
    int64_t* out =
        ctx.Alloc("Out", DType::kI64, Shape{count, rank}).template mutable_data<int64_t>();
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
  op.Doc("Coordinates of the elements of Condition that are not zero, one row each.")
      .Input("Condition")
      .Output("Out")
      .Kernels<WhereIndex, bool, int32_t, int64_t, float, double, uint8_t, int8_t, int16_t, float16,
               bfloat16>();
}

HEDDLE_EXAMPLES(where_index, R"(
example int64 3x2
in Condition int64 [3, 2] 1 1 0 1 0 1
out Out int64 [4, 2] 0 0 0 1 1 1 2 1

example int64 5
in Condition int64 [5] 1 1 1 0 1
out Out int64 [4, 1] 0 1 2 4

example float32 3x4
in Condition float32 [3, 4] 0 3 4 0 4 1 4 2 0 3 3 2
out Out int64 [9, 2] 0 1 0 2 1 0 1 1 1 2 1 3 2 1 2 2 2 3

example bfloat16 3x4
in Condition bfloat16 [3, 4] 2.9 0.5 1.5 2.4 0 1.7 1.4 0.9 1.8 3 3.9 0.9
out Out int64 [11, 2] 0 0 0 1 0 2 0 3 1 1 1 2 1 3 2 0 2 1 2 2 2 3
)")
