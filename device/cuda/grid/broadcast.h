// Operators of two operands that broadcast.
#pragma once

#include "core/shapes.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/real.h"
#include "device/cuda/grid/strides.h"

namespace heddle::HEDDLE_GRID {

inline int64_t AxisOf(const OpContext& ctx) {
  return ctx.def().FindAttr("axis") >= 0 ? ctx.Int("axis") : -1;
}

// Operands X, Y and one of the result's own shape.
struct Operands3 {
  Steps x, y, out;
};
inline Operands3 StepsOf(const Shape& x, const Shape& y, const Shape& out, int64_t axis) {
  const Alignment at = Align(x, y, axis);
  return {Spread(x, out, at.x), Spread(y, out, at.y), RowMajor(out)};
}

template <typename Fn, typename T, typename Out>
struct BinaryBody {
  Strides<2> strides;
  const T* x;
  const T* y;
  Out* out;
  HEDDLE_BODY void operator()(int64_t i) const {
    const auto p = strides.At(static_cast<uint32_t>(i));
    Put(Fn::template Apply<ComputeType<T>>(ValueOf(x[p.at[0]]), ValueOf(y[p.at[1]])), out + i);
  }
};

template <typename Fn, typename T, typename Out>
Status Binary(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  const Operands3 s = StepsOf(x.shape(), y.shape(), out.shape(), AxisOf(ctx));
  return Each(queue, out.numel(),
              BinaryBody<Fn, T, Out>{MakeStrides<2>(out.shape(), {s.x, s.y}), x.data<T>(),
                                     y.data<T>(), out.mutable_data<Out>()});
}

inline bool SameDTypes(const CallView& call) { return call.InDType("X") == call.InDType("Y"); }

// Out is bool; Fn::Apply(a, b) compares two elements of any type in kPlain.
template <typename Fn>
Status Predicate(Queue& queue, KernelContext& ctx) {
  switch (ctx.In("X").dtype()) {
    case DType::kF32:
      return Binary<Fn, float, bool>(queue, ctx);
    case DType::kF16:
      return Binary<Fn, float16, bool>(queue, ctx);
    case DType::kBF16:
      return Binary<Fn, bfloat16, bool>(queue, ctx);
    case DType::kI32:
      return Binary<Fn, int32_t, bool>(queue, ctx);
    case DType::kI64:
      return Binary<Fn, int64_t, bool>(queue, ctx);
    case DType::kBool:
      return Binary<Fn, bool, bool>(queue, ctx);
    default:
      return Unimplemented("no CUDA kernel for ", Name(ctx.In("X").dtype()));
  }
}

}  // namespace heddle::HEDDLE_GRID
