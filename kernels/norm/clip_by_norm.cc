#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/slot_kinds.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

// out = x, shrunk so that its 2-norm is max_norm when it is greater. `out` may be x.
template <typename T>
void Clip(const KernelContext& ctx, const T* x, T* out, int64_t n) {
  T square = 0;
  RunReduce(ctx, MakeReducePlan(std::array{n}, 1), ReduceLoop<SumOfSquares, T, T>::kLoops, x,
            &square);
  const T norm = std::sqrt(square), max = static_cast<T>(ctx.Float("max_norm"));
  const T scale = norm > max ? max / norm : T(1);
  ctx.ParallelFor(n, kElementGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = x[i] * scale;
  });
}

// Repeated rows are added up first.
template <typename T>
Status ClipRows(const KernelContext& ctx, const SelectedRows& x, Value* out) {
  if (x.value.rank() == 0 || x.value.dim(0) < std::ssize(x.rows))
    return InvalidArgument("X has fewer values than rows");
  std::map<int64_t, int64_t> place;
  for (int64_t row : x.rows) place.emplace(row, 0);
  SelectedRows merged;
  merged.height = x.height;
  for (auto& [row, at] : place) {
    at = std::ssize(merged.rows);
    merged.rows.push_back(row);
  }
  Shape shape = x.value.shape();
  shape[0] = std::ssize(merged.rows);
  const int64_t width = shape.Product(1, shape.rank());
  merged.value = ctx.Scratch(kDTypeOf<T>, shape);
  T* to = merged.value.template mutable_data<T>();
  WatchedFill(to, shape.numel(), T(0));
  for (size_t i = 0; i < x.rows.size(); ++i) {
    const T* from = x.value.data<T>() + static_cast<int64_t>(i) * width;
    T* row = to + place[x.rows[i]] * width;
    for (int64_t k = 0; k < width; ++k) row[k] += from[k];
  }
  Clip(ctx, to, to, shape.numel());
  out->mutable_rows() = std::move(merged);
  return Status::Ok();
}

template <typename T>
Status ClipAny(KernelContext& ctx, const Value& x) {
  if (x.is_rows()) return ClipRows<T>(ctx, x.rows(), ctx.OutVar("Out"));
  Tensor& out = ctx.Out("Out");
  Clip(ctx, x.tensor().data<T>(), out.mutable_data<T>(), out.numel());
  return Status::Ok();
}

Status Run(KernelContext& ctx) {
  const Value* x = ctx.InVar("X");
  if (x == nullptr || !x->initialized()) return InvalidArgument("input X holds nothing");
  switch (x->is_rows() ? x->rows().value.dtype() : x->tensor().dtype()) {
    case DType::kF32:
      return ClipAny<float>(ctx, *x);
    case DType::kF64:
      return ClipAny<double>(ctx, *x);
    default:
      return Unimplemented("has no kernel for this dtype; it has kernels for float32, float64");
  }
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(clip_by_norm) {
  op.Doc("x, scaled down where its 2-norm is above max_norm; also selected rows");
  op.Input("X", kAnyKind | kTakesRows)
      .Output("Out", kTakesRows)
      .Attr("max_norm", 1.0)
      .Inplace("X", "Out");
  op.InferShape(&SameShape).AnyKernel(&Run);
}
