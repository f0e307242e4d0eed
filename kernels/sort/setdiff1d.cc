// The elements of a vector that another one lacks.
#include <memory_resource>
#include <unordered_set>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/narrow.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Result<DType> IndexDType(const OpContext& ctx, Key attr) {
  const DType dtype = DTypeFromProto(ctx.Int(attr));
  if (dtype == DType::kI32 || dtype == DType::kI64) return dtype;
  return InvalidArgument(attr.name, " is ", Name(dtype), ", expected int32 or int64");
}
void SetPlace(Tensor& t, int64_t i, int64_t value) {
  if (t.dtype() == DType::kI64)
    t.mutable_data<int64_t>()[i] = value;
  else
    t.mutable_data<int32_t>()[i] = static_cast<int32_t>(value);
}

// The elements of x that are not in y, and their positions in x.
template <typename T>
struct SetDifference {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("x"), &y = ctx.In("y");
    HEDDLE_ASSIGN_OR_RETURN(const DType index, IndexDType(ctx, "out_idx"));
    if (x.rank() != 1 || y.rank() != 1 || x.dtype() != y.dtype())
      return InvalidArgument("x has shape ", x.shape().ToString(), " and y ", y.shape().ToString(),
                             ", expected vectors of one dtype");
    CallHeap heap(ctx);
    std::pmr::unordered_set<T> seen(&heap);
    seen.reserve(static_cast<size_t>(y.numel()));
    seen.insert(y.data<T>(), y.data<T>() + y.numel());
    std::pmr::vector<int64_t> kept(&heap);
    kept.reserve(static_cast<size_t>(x.numel()));
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        if (!seen.contains(x.data<T>()[i])) kept.push_back(i);
    const Shape shape{static_cast<int64_t>(kept.size())};
    T* to = ctx.Alloc("out", x.dtype(), shape).template mutable_data<T>();
    Tensor& where = ctx.Alloc("idx", index, shape);
    for (size_t i = 0; i < kept.size(); ++i) {
      to[i] = x.data<T>()[kept[i]];
      SetPlace(where, static_cast<int64_t>(i), kept[i]);
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(setdiff1d) {
  op.Doc("elements of x that are not in y, and their positions").Input("x").Input("y");
  op.Output("out").Output("idx").Attr("out_idx", 2);
  op.Kernels<SetDifference, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloatAlloc);
}
