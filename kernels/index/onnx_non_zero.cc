// Positions of the elements that are not zero, one column each.
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

template <typename T>
struct OnnxNonZero {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const T* v = x.data<T>();
    const Shape shape = x.rank() == 0 ? Shape{1} : x.shape();  // a number is a vector of one
    CallHeap heap(ctx);
    std::pmr::vector<int64_t> at(&heap);
    at.reserve(static_cast<size_t>(x.numel() - std::count(v, v + x.numel(), T(0))));
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        if (v[i] != T(0)) at.push_back(i);
    const auto count = static_cast<int64_t>(at.size());
    int64_t* to =
        ctx.Alloc("Y", DType::kI64, {shape.rank(), count}).template mutable_data<int64_t>();
    const auto strides = RowMajorStrides(shape);
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (const int64_t i : at) *to++ = i / strides[axis] % shape[axis];
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_non_zero) {
  op.Doc("the positions of the elements that are not zero: one row per dimension of X")
      .Input("X")
      .Output("Y");
  op.Kernels<OnnxNonZero, bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double, float16,
             bfloat16>();
}
