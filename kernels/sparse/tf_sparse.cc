// Sparse tensors as indices, values and a shape; ranges of several rows; places in shapes.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/index_args.h"
#include "kernels/base/to_place.h"
#include "kernels/elementwise/arithmetic.h"
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

// Several ranges one after another, and where each ends.
template <typename T>
struct RaggedRange {
  static Status Run(KernelContext& ctx) {
    const Tensor* all[3] = {&ctx.In("starts"), &ctx.In("limits"), &ctx.In("deltas")};
    int64_t length = -1;  // of those that are no scalars
    for (const Tensor* t : all) {
      if (t->rank() > 1 || t->dtype() != all[0]->dtype() ||
          (t->rank() == 1 && length >= 0 && t->numel() != length))
        return InvalidArgument("starts, limits and deltas are not vectors of one length");
      if (t->rank() == 1) length = t->numel();
    }
    const int64_t rows = length < 0 ? 1 : length;
    const DType splits = DTypeFromProto(ctx.Int("Tsplits"));
    if (splits != DType::kI32 && splits != DType::kI64)
      return InvalidArgument("Tsplits is ", Name(splits), ", expected int32 or int64");
    std::vector<T> values;
    Ints ends{0};
    for (const int64_t r : Watched(rows)) {
      T v[3];
      for (int k = 0; k < 3; ++k) v[k] = all[k]->data<T>()[all[k]->rank() == 0 ? 0 : r];
      if (v[2] == T(0)) return InvalidArgument("deltas holds 0 at position ", r);
      const double size = std::ceil((static_cast<double>(v[1]) - static_cast<double>(v[0])) /
                                    static_cast<double>(v[2]));
      if (static_cast<double>(values.size()) + size > 1e9)
        return InvalidArgument("range ", r, " has ", size, " elements after ", values.size());
      T value = v[0];
      for (double i = 0; i < size; ++i, value = AddFn::Apply(value, v[2])) values.push_back(value);
      ends.push_back(static_cast<int64_t>(values.size()));
    }
    Tensor& out = ctx.Alloc("rt_nested_splits", splits, Shape{rows + 1});
    for (size_t i = 0; i < ends.size(); ++i)
      if (splits == DType::kI64)
        out.mutable_data<int64_t>()[i] = ends[i];
      else
        out.mutable_data<int32_t>()[i] = static_cast<int32_t>(ends[i]);
    T* to =
        ctx.Alloc("rt_dense_values", all[0]->dtype(), Shape{static_cast<int64_t>(values.size())})
            .template mutable_data<T>();
    std::copy(values.begin(), values.end(), to);
    return Status::Ok();
  }
};

template <typename T>
struct UnravelIndex {
  static Status Run(KernelContext& ctx) {
    const Tensor& indices = ctx.In("indices");
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "dims"));
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "dims"));
    if (indices.rank() > 1)
      return InvalidArgument("indices has shape ", indices.shape().ToString(),
                             ", expected at most one dimension");
    Shape out{shape.rank()};
    if (indices.rank() == 1) out.push_back(indices.numel());
    T* to = ctx.Alloc("output", indices.dtype(), out).template mutable_data<T>();
    const auto strides = RowMajorStrides(shape);
    const int64_t n = indices.numel(), total = shape.numel();
    for (const int64_t i : Watched(n)) {
      int64_t at = indices.data<T>()[i];
      if (at < 0 || at >= total)
        return OutOfRange("indices holds ", at, " at position ", i, ", expected 0 to ", total - 1);
      for (int d = 0; d < shape.rank(); ++d) {
        to[d * n + i] = static_cast<T>(at / strides[static_cast<size_t>(d)]);
        at %= strides[static_cast<size_t>(d)];
      }
    }
    return Status::Ok();
  }
};

// Counts the values in each of equal parts of a range; values outside count at its ends.
template <typename T>
struct Histogram {
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

Status NthShape(ShapeContext& ctx) {
  Shape x = ctx.InShape("input");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 1) return InvalidArgument("input is a scalar, expected at least one dimension");
  x.erase(x.rank() - 1);
  ctx.SetOut("values", x, ctx.InDType("input"));
  return Status::Ok();
}
template <typename T>
struct Nth {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    HEDDLE_ASSIGN_OR_RETURN(int64_t n, IntIn(ctx, "n", 0));
    const int64_t size = x.dim(-1), rows = ctx.Out("values").numel();
    if (n < 0 || n >= size) return InvalidArgument("n is ", n, ", expected 0 to ", size - 1);
    if (ctx.Bool("reverse")) n = size - 1 - n;
    T* to = ctx.Out("values").template mutable_data<T>();
    std::vector<T> row(static_cast<size_t>(size));
    for (const int64_t r : Watched(rows)) {
      WatchedCopy(x.data<T>() + r * size, size, row.begin());
      LookCount looks;
      std::nth_element(row.begin(), row.begin() + n, row.end(), looks.In(&Less<T>));
      to[r] = row[static_cast<size_t>(n)];
    }
    return Status::Ok();
  }
};

// The number itself, which then is one higher.
template <typename T>
struct CountUpTo {
  static Status Run(KernelContext& ctx) {
    const Tensor& ref = ctx.In("ref");
    if (ref.numel() != 1)
      return InvalidArgument("ref has shape ", ref.shape().ToString(), ", expected a scalar");
    const T v = *ref.data<T>();
    if (int64_t{v} >= ctx.Int("limit"))
      return OutOfRange("ref reached the limit of ", ctx.Int("limit"));
    *ctx.Out("output").template mutable_data<T>() = v;
    *ctx.Out("ref_out").template mutable_data<T>() = static_cast<T>(v + 1);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_sparse_tensor_dense_mat_mul) {
  op.Doc("the product of a sparse matrix and a dense one").Input("a_indices").Input("a_values");
  op.Input("a_shape", kShapeValue).Input("b").Output("product").Attr("adjoint_a", false);
  op.Attr("adjoint_b", false).InferShape(SparseMatMulShape).KernelKey("b");
  op.Kernels<SparseMatMul, float, double, int32_t>();
}
HEDDLE_OP(tf_sparse_fill_empty_rows) {
  op.Doc("a sparse tensor with default_value where a row has no entry").Input("indices");
  op.Input("values").Input("dense_shape").Input("default_value").Output("output_indices");
  op.Output("output_values").Output("empty_row_indicator").Output("reverse_index_map");
  op.KernelKey("values").AnyKernel(FillEmptyRows);
}
HEDDLE_OP(tf_sparse_reshape) {
  op.Doc("indices of a sparse tensor in another shape").Input("input_indices");
  op.Input("input_shape").Input("new_shape").Output("output_indices").Output("output_shape");
  op.KernelKey("input_indices").AnyKernel(SparseReshape);
}
HEDDLE_OP(tf_ragged_range) {
  op.Doc("several ranges one after another, and where they end").Input("starts").Input("limits");
  op.Input("deltas").Output("rt_nested_splits").Output("rt_dense_values").Attr("Tsplits", 3);
  op.KernelKey("starts").Kernels<RaggedRange, float, double, int32_t, int64_t>();
}
HEDDLE_OP(tf_unravel_index) {
  op.Doc("flat places as indices of a shape").Input("indices").Input("dims").Output("output");
  op.KernelKey("indices").Kernels<UnravelIndex, int32_t, int64_t>();
}
HEDDLE_OP(tf_histogram_fixed_width) {
  op.Doc("how many values fall into each of equal parts of a range").Input("values");
  op.Input("value_range").Input("nbins").Output("out").Attr("dtype", 2).KernelKey("values");
  op.Kernels<Histogram, float, double, int32_t, int64_t>();
}
HEDDLE_OP(tf_nth_element) {
  op.Doc("the element that would stand at place n of each sorted row").Input("input").Input("n");
  op.Output("values").Attr("reverse", false).InferShape(NthShape).KernelKey("input");
  op.Kernels<Nth, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_count_up_to) {
  op.Doc("ref, which becomes one more; an error at the limit").Input("ref").Output("output");
  op.Output("ref_out").Inplace("ref", "ref_out").Attr("limit", 1);
  op.InferShape([](ShapeContext& ctx) {
    ctx.SetOut("output", ctx.InShape("ref"), ctx.InDType("ref"));
    ctx.SetOut("ref_out", ctx.InShape("ref"), ctx.InDType("ref"));
    return Status::Ok();
  });
  op.Kernels<CountUpTo, int32_t, int64_t>();
}
