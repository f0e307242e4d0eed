// Sparse tensors whose indices, values and shape are three operands.
#include <memory_resource>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status SparseMatMulShape(ShapeContext& ctx) {
  const Shape& b = ctx.InShape("b");
  if (!b.known_rank() || !Known(ctx, "a_shape")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts a, IntsIn(ctx, "a_shape"));
  if (a.size() != 2 || b.rank() != 2)
    return InvalidArgument("a_shape has ", a.size(), " elements and b shape ", b.ToString(),
                           ", expected matrices");
  const int64_t inner = a[ctx.Bool("adjoint_a") ? 0 : 1], other = b[ctx.Bool("adjoint_b") ? 1 : 0];
  if (other >= 0 && inner != other)
    return InvalidArgument("a has ", inner, " columns and b ", other, " rows");
  HEDDLE_RETURN_IF_ERROR(MakeShape(a, "a_shape").status());
  ctx.SetOut("product", {a[ctx.Bool("adjoint_a") ? 1 : 0], b[ctx.Bool("adjoint_b") ? 0 : 1]},
             ctx.InDType("b"));
  return Status::Ok();
}
template <typename T>
struct SparseMatMul {
  static Status Run(KernelContext& ctx) {
    const Tensor &indices = ctx.In("a_indices"), &values = ctx.In("a_values"), &b = ctx.In("b");
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(indices.dtype(), "a_indices"));
    Tensor& out = ctx.Out("product");
    const bool turn_a = ctx.Bool("adjoint_a"), turn_b = ctx.Bool("adjoint_b");
    const int64_t cols = out.dim(1), inner = b.dim(turn_b ? 1 : 0);
    if (indices.rank() != 2 || indices.dim(1) != 2 || values.numel() != indices.dim(0) ||
        values.dtype() != b.dtype())
      return InvalidArgument("a_indices has shape ", indices.shape().ToString(), " and a_values ",
                             values.shape().ToString());
    T* to = out.template mutable_data<T>();
    WatchedFill(to, out.numel(), T(0));
    for (const int64_t i : Watched(values.numel())) {
      const int64_t r = IntAt(indices, 2 * i + (turn_a ? 1 : 0));
      const int64_t k = IntAt(indices, 2 * i + (turn_a ? 0 : 1));
      if (r < 0 || r >= out.dim(0) || k < 0 || k >= inner)
        return OutOfRange("a_indices holds ", IntAt(indices, 2 * i), " and ",
                          IntAt(indices, 2 * i + 1), " at position ", i);
      const T v = values.data<T>()[i];
      for (int64_t c = 0; c < cols; ++c)
        to[r * cols + c] += v * b.data<T>()[turn_b ? c * inner + k : k * cols + c];
    }
    return Status::Ok();
  }
};

// Rows without an entry get one at their beginning.
Status FillEmptyRows(KernelContext& ctx) {
  const Tensor &indices = ctx.In("indices"), &values = ctx.In("values");
  const Tensor &shape = ctx.In("dense_shape"), &other = ctx.In("default_value");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(indices.dtype(), "indices"));
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(shape.dtype(), "dense_shape"));
  const int64_t n = values.numel(), rank = shape.numel();
  if (indices.rank() != 2 || indices.dim(0) != n || indices.dim(1) != rank || rank < 1 ||
      other.numel() != 1 || other.dtype() != values.dtype())
    return InvalidArgument("indices has shape ", indices.shape().ToString(), ", values ",
                           values.shape().ToString(), " and dense_shape ",
                           shape.shape().ToString());
  const int64_t rows = IntAt(shape, 0);
  HEDDLE_RETURN_IF_ERROR(MakeShape({rows}, "dense_shape").status());
  std::vector<std::vector<int64_t>> entries(static_cast<size_t>(rows));
  for (const int64_t i : Watched(n)) {
    const int64_t r = IntAt(indices, i * rank);
    if (r < 0 || r >= rows)
      return OutOfRange("indices holds row ", r, " at position ", i, ", expected 0 to ", rows - 1);
    entries[static_cast<size_t>(r)].push_back(i);
  }
  int64_t total = n;
  bool* empty = ctx.Alloc("empty_row_indicator", DType::kBool, Shape{rows}).mutable_data<bool>();
  for (const int64_t r : Watched(rows)) {
    empty[r] = entries[static_cast<size_t>(r)].empty();
    total += empty[r] ? 1 : 0;
  }
  int64_t* places =
      ctx.Alloc("output_indices", DType::kI64, Shape{total, rank}).mutable_data<int64_t>();
  Tensor& made = ctx.Alloc("output_values", values.dtype(), Shape{total});
  int64_t* back = ctx.Alloc("reverse_index_map", DType::kI64, Shape{n}).mutable_data<int64_t>();
  const size_t size = SizeOf(values.dtype());
  auto* to = static_cast<std::byte*>(made.mutable_raw());
  int64_t at = 0;
  const auto put = [&](const void* value) {
    WatchedMemcpy(to + static_cast<size_t>(at) * size, value, size);
    ++at;
  };
  for (const int64_t r : Watched(rows)) {
    if (empty[r]) {
      std::fill(places + at * rank, places + (at + 1) * rank, 0);
      places[at * rank] = r;
      put(other.raw());
    }
    for (const int64_t i : entries[static_cast<size_t>(r)]) {
      for (int64_t d = 0; d < rank; ++d) places[at * rank + d] = IntAt(indices, i * rank + d);
      back[i] = at;
      put(static_cast<const std::byte*>(values.raw()) + static_cast<size_t>(i) * size);
    }
  }
  return Status::Ok();
}

Status SparseReshape(KernelContext& ctx) {
  const Tensor& indices = ctx.In("input_indices");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(indices.dtype(), "input_indices"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts from, IntsIn(ctx, "input_shape"));
  HEDDLE_ASSIGN_OR_RETURN(ShortInts to, IntsIn(ctx, "new_shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape old, MakeShape(from, "input_shape"));
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == -1 && open < 0)
      open = static_cast<int64_t>(i);
    else if (to[i] < 0 || to[i] > int64_t{1} << 40 || known > int64_t{1} << 22)
      return InvalidArgument("new_shape holds ", to[i], " at position ", i);
    else
      known *= to[i];
  }
  if (open >= 0) to[static_cast<size_t>(open)] = known == 0 ? 0 : old.numel() / known;
  HEDDLE_ASSIGN_OR_RETURN(const Shape made, MakeShape(to, "new_shape"));
  if (made.numel() != old.numel())
    return InvalidArgument("new_shape ", made.ToString(), " does not hold what ", old.ToString(),
                           " does");
  if (indices.rank() != 2 || indices.dim(1) != old.rank())
    return InvalidArgument("input_indices has shape ", indices.shape().ToString(), ", expected ",
                           old.rank(), " columns");
  const int64_t n = indices.dim(0);
  int64_t* places =
      ctx.Alloc("output_indices", DType::kI64, Shape{n, made.rank()}).mutable_data<int64_t>();
  const auto strides = RowMajorStrides(old), parts = RowMajorStrides(made);
  for (const int64_t i : Watched(n)) {
    int64_t at = 0;
    for (int d = 0; d < old.rank(); ++d) {
      const int64_t v = IntAt(indices, i * old.rank() + d);
      if (v < 0 || v >= old[d])
        return OutOfRange("input_indices holds ", v, " for dimension ", d, " of ", old.ToString());
      at += v * strides[static_cast<size_t>(d)];
    }
    for (int d = 0; d < made.rank(); ++d) {
      const int64_t part = std::max<int64_t>(1, parts[static_cast<size_t>(d)]);
      places[i * made.rank() + d] = at / part;
      at %= part;
    }
  }
  int64_t* shape =
      ctx.Alloc("output_shape", DType::kI64, Shape{made.rank()}).mutable_data<int64_t>();
  std::copy(made.begin(), made.end(), shape);
  return Status::Ok();
}

Status SparseToDenseShape(ShapeContext& ctx) {
  if (!Known(ctx, "output_shape")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "output_shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "output_shape"));
  ctx.SetOut("dense", shape, ctx.InDType("sparse_values"));
  return Status::Ok();
}
Status SparseToDense(KernelContext& ctx) {
  const Tensor &indices = ctx.In("sparse_indices"), &values = ctx.In("sparse_values");
  const Tensor& other = ctx.In("default_value");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(indices.dtype(), "sparse_indices"));
  Tensor& out = ctx.Out("dense");
  const int64_t count = indices.rank() == 0 ? 1 : indices.dim(0);
  const int64_t rank = indices.rank() == 2 ? indices.dim(1) : 1;
  if (indices.rank() > 2 || rank != out.rank() || (rank == 0 && count > 1) || other.numel() != 1 ||
      other.dtype() != values.dtype() || (values.numel() != 1 && values.numel() != count))
    return InvalidArgument("sparse_indices has shape ", indices.shape().ToString(),
                           ", sparse_values ", values.shape().ToString(), " for a result ",
                           out.shape().ToString());
  const auto strides = RowMajorStrides(out.shape());
  const bool validates = ctx.Bool("validate_indices");
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> places(&heap);
  places.reserve(static_cast<size_t>(count));
  for (const int64_t i : Watched(count)) {
    int64_t at = 0;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t v = IntAt(indices, i * rank + d);
      if (v < 0 || v >= out.dim(static_cast<int>(d)))
        return OutOfRange("sparse_indices holds ", v, " for dimension ", d, " of ",
                          out.shape().ToString());
      at += v * strides[static_cast<size_t>(d)];
    }
    if (validates && !places.empty() && at <= places.back())
      return InvalidArgument("sparse_indices are not in order or not distinct at position ", i);
    places.push_back(at);
  }
  VisitElementSize(values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(out.mutable_raw());
    const T* from = static_cast<const T*>(values.raw());
    WatchedFill(to, out.numel(), *static_cast<const T*>(other.raw()));
    for (size_t i = 0; i < places.size(); ++i) to[places[i]] = from[values.numel() == 1 ? 0 : i];
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(coo_matmul) {
  op.Doc("the product of a sparse matrix and a dense one").Input("a_indices").Input("a_values");
  op.Input("a_shape", kShapeValue).Input("b").Output("product").Attr("adjoint_a", false);
  op.Attr("adjoint_b", false).InferShape(SparseMatMulShape).KernelKey("b");
  op.Kernels<SparseMatMul, float, double, int32_t>();
}
HEDDLE_OP(coo_fill_empty_rows) {
  op.Doc("a sparse tensor with default_value where a row has no entry").Input("indices");
  op.Input("values").Input("dense_shape").Input("default_value").Output("output_indices");
  op.Output("output_values").Output("empty_row_indicator").Output("reverse_index_map");
  op.KernelKey("values").AnyKernel(FillEmptyRows);
}
HEDDLE_OP(coo_reshape) {
  op.Doc("indices of a sparse tensor in another shape").Input("input_indices");
  op.Input("input_shape").Input("new_shape").Output("output_indices").Output("output_shape");
  op.KernelKey("input_indices").AnyKernel(SparseReshape);
}
HEDDLE_OP(coo_to_dense) {
  op.Doc("default_value everywhere but at sparse_indices");
  op.Input("sparse_indices").Input("output_shape", kShapeValue).Input("sparse_values");
  op.Input("default_value").Output("dense").Attr("validate_indices", true);
  op.InferShape(SparseToDenseShape).KernelKey("sparse_values").AnyKernel(SparseToDense);
}
