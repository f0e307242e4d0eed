// Greatest elements in order, bounds in sorted rows, counts, and differences of lists.
#include <memory_resource>
#include <numeric>
#include <unordered_set>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/narrow.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Result<DType> PositionType(const OpContext& ctx, Key attr) {
  const DType dtype = DTypeFromProto(ctx.Int(attr));
  if (dtype == DType::kI32 || dtype == DType::kI64) return dtype;
  return InvalidArgument(attr.name, " is ", Name(dtype), ", expected int32 or int64");
}
void SetIndex(Tensor& t, int64_t i, int64_t value) {
  if (t.dtype() == DType::kI64)
    t.mutable_data<int64_t>()[i] = value;
  else
    t.mutable_data<int32_t>()[i] = static_cast<int32_t>(value);
}

Status TopKShape(ShapeContext& ctx) {
  Shape x = ctx.InShape("input");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 1) return InvalidArgument("input is a scalar, expected at least one dimension");
  HEDDLE_ASSIGN_OR_RETURN(const DType index, PositionType(ctx, "index_type"));
  int64_t& n = x[x.rank() - 1];
  if (!Known(ctx, "k")) {
    n = -1;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t k, IntIn(ctx, "k", 1));
    if (k < 0 || (n >= 0 && k > n))
      return InvalidArgument("k is ", k, ", expected 0 to ", n, " for input ",
                             ctx.InShape("input").ToString());
    n = k;
  }
  ctx.SetOut("values", x, ctx.InDType("input"));
  ctx.SetOut("indices", x, index);
  return Status::Ok();
}

template <typename T>
struct TopKRows {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    Tensor &values = ctx.Out("values"), &indices = ctx.Out("indices");
    const int64_t n = x.dim(-1), k = values.dim(-1);
    if (k > n) return InvalidArgument("k is ", k, ", but rows have ", n, " elements");
    const int64_t rows = x.shape().Product(0, x.rank() - 1);
    ctx.ParallelFor(k == 0 ? 0 : rows, 1 + 4096 / (1 + n), [&](int64_t begin, int64_t end) {
      CallHeap heap(ctx);  // of the thread
      std::pmr::vector<int64_t> order(static_cast<size_t>(n), &heap);
      for (int64_t r = begin; r < end; ++r) {
        const T* row = x.data<T>() + r * n;
        std::iota(order.begin(), order.end(), 0);
        LookCount looks;
        std::partial_sort(order.begin(), order.begin() + k, order.end(),
                          looks.In([row](auto a, auto b) {
                            return Greater(row[a], row[b]) || (!Greater(row[b], row[a]) && a < b);
                          }));
        for (int64_t i = 0; i < k; ++i) {
          values.template mutable_data<T>()[r * k + i] = row[order[static_cast<size_t>(i)]];
          SetIndex(indices, r * k + i, order[static_cast<size_t>(i)]);
        }
      }
    });
    return Status::Ok();
  }
};

Status InTopKShape(ShapeContext& ctx) {
  const Shape &p = ctx.InShape("predictions"), &t = ctx.InShape("targets");
  if (!p.known_rank() || !t.known_rank()) return ctx.Defer();
  if (p.rank() != 2 || t.rank() != 1 || (p[0] >= 0 && t[0] >= 0 && p[0] != t[0]))
    return InvalidArgument("predictions has shape ", p.ToString(), " and targets ", t.ToString());
  ctx.SetOut("precision", t, DType::kBool);
  return Status::Ok();
}

// Whether fewer than k predictions are greater than the target's.
Status InTopK(KernelContext& ctx) {
  const Tensor &p = ctx.In("predictions"), &targets = ctx.In("targets");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(targets.dtype(), "targets"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t k, IntIn(ctx, "k", 1));
  const int64_t n = p.dim(1);
  bool* to = ctx.Out("precision").mutable_data<bool>();
  for (const int64_t r : Watched(p.dim(0))) {
    const float* row = p.data<float>() + r * n;
    const int64_t target = IntAt(targets, r);
    bool bad = target < 0 || target >= n || !std::isfinite(row[target]);
    int64_t above = 0;
    for (int64_t i = 0; !bad && i < n; ++i) {
      bad = !std::isfinite(row[i]);
      above += row[i] > row[target] ? 1 : 0;
    }
    to[r] = !bad && above < k;
  }
  return Status::Ok();
}

Status BoundShape(ShapeContext& ctx) {
  const Shape &s = ctx.InShape("sorted_inputs"), &v = ctx.InShape("values");
  if (!s.known_rank() || !v.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const DType index, PositionType(ctx, "out_type"));
  if (s.rank() != 2 || v.rank() != 2 || (s[0] >= 0 && v[0] >= 0 && s[0] != v[0]))
    return InvalidArgument("sorted_inputs has shape ", s.ToString(), " and values ", v.ToString(),
                           ", expected matrices of as many rows");
  ctx.SetOut("output", v, index);
  return Status::Ok();
}

template <bool kUpper>
struct Bound {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      const Tensor &sorted = ctx.In("sorted_inputs"), &values = ctx.In("values");
      if (values.dtype() != sorted.dtype())
        return InvalidArgument("values is ", Name(values.dtype()), ", sorted_inputs ",
                               Name(sorted.dtype()));
      Tensor& out = ctx.Out("output");
      const int64_t n = sorted.dim(1), m = values.dim(1);
      for (const int64_t i : Watched(values.numel())) {
        const T *row = sorted.data<T>() + i / m * n, v = values.data<T>()[i];
        const T* at =
            kUpper ? std::upper_bound(row, row + n, v) : std::lower_bound(row, row + n, v);
        SetIndex(out, i, at - row);
      }
      return Status::Ok();
    }
  };
};

Status BucketizeShape(ShapeContext& ctx) {
  ctx.SetOut("output", ctx.InShape("input"), DType::kI32);
  return Status::Ok();
}
template <typename T>
struct Bucketize {
  static Status Run(KernelContext& ctx) {
    const Floats& bounds = ctx.Attr<Floats>("boundaries");
    if (!std::is_sorted(bounds.begin(), bounds.end()))
      return InvalidArgument("boundaries are not sorted");
    const Tensor& x = ctx.In("input");
    int32_t* to = ctx.Out("output").mutable_data<int32_t>();
    for (const int64_t i : Watched(x.numel())) {
      const auto v = static_cast<double>(x.data<T>()[i]);
      to[i] =
          static_cast<int32_t>(std::upper_bound(bounds.begin(), bounds.end(), v) - bounds.begin());
    }
    return Status::Ok();
  }
};

// The elements of x that are not in y, and their positions in x.
template <typename T>
struct ListDiff {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("x"), &y = ctx.In("y");
    HEDDLE_ASSIGN_OR_RETURN(const DType index, PositionType(ctx, "out_idx"));
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
      SetIndex(where, static_cast<int64_t>(i), kept[i]);
    }
    return Status::Ok();
  }
};

Status InvertShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("x");
  if (x.known_rank() && x.rank() != 1)
    return InvalidArgument("x has shape ", x.ToString(), ", expected a vector");
  ctx.SetOut("y", x, ctx.InDType("x"));
  return Status::Ok();
}
template <typename T>
struct Invert {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("x");
    T* to = ctx.Out("y").template mutable_data<T>();
    const int64_t n = x.numel();
    WatchedFill(to, n, T(-1));
    for (const int64_t i : Watched(n)) {
      const int64_t v = x.data<T>()[i];
      if (v < 0 || v >= n || to[v] >= 0)
        return InvalidArgument("x holds ", v, " at position ", i, ", expected 0 to ", n - 1,
                               ", each once");
      to[v] = static_cast<T>(i);
    }
    return Status::Ok();
  }
};

// Counts of numbers below `size`, or sums of their weights; of each row where there are rows.
template <typename T>
struct DenseBincount {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("input"), &weights = ctx.In("weights");
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(x.dtype(), "input"));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t size, IntIn(ctx, "size", 0));
    const bool weighted = weights.numel() > 0, binary = ctx.Bool("binary_output");
    const bool rows = x.rank() == 2 && !ctx.Bool("flatten");
    if (size < 0 || (x.rank() > 2 && !ctx.Bool("flatten")) ||
        (weighted && weights.numel() != x.numel()))
      return InvalidArgument("size is ", size, ", input has shape ", x.shape().ToString(),
                             " and weights ", weights.shape().ToString());
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape,
                            MakeShape(rows ? Ints{x.dim(0), size} : Ints{size}, "output"));
    Tensor& out = ctx.Alloc("output", weights.dtype(), shape);
    T* to = out.template mutable_data<T>();
    WatchedFill(to, out.numel(), T(0));
    const int64_t row = rows ? x.dim(1) : x.numel();
    for (const int64_t i : Watched(x.numel())) {
      const int64_t v = IntAt(x, i);
      if (v < 0)
        return InvalidArgument("input holds ", v, " at position ", i, ", expected 0 or more");
      if (v >= size) continue;
      T& bin = to[(rows ? i / row * size : 0) + v];
      bin = binary ? T(1) : AddFn::Apply(bin, weighted ? weights.data<T>()[i] : T(1));
    }
    return Status::Ok();
  }
};

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

HEDDLE_OP(tf_top_k_v2) {
  op.Doc("the k greatest elements of each row in order, the first of equals first");
  op.Input("input").Input("k", kShapeValue).Output("values").Output("indices");
  op.Attr("sorted", true).Attr("index_type", 2).InferShape(TopKShape).KernelKey("input");
  op.Kernels<TopKRows, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_in_top_k_v2) {
  op.Doc("whether a row's target is among its k greatest predictions, all of them finite");
  op.Input("predictions").Input("targets").Input("k").Output("precision");
  op.InferShape(InTopKShape).KernelKey("predictions").Kernel(DType::kF32, InTopK);
}
HEDDLE_OP(tf_lower_bound) {
  op.Doc("where each value would stand in its sorted row, before equals");
  op.Input("sorted_inputs").Input("values").Output("output").Attr("out_type", 2);
  op.InferShape(BoundShape)
      .Kernels<Bound<false>::Kernel, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_upper_bound) {
  op.Doc("where each value would stand in its sorted row, after equals");
  op.Input("sorted_inputs").Input("values").Output("output").Attr("out_type", 2);
  op.InferShape(BoundShape)
      .Kernels<Bound<true>::Kernel, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_bucketize) {
  op.Doc("how many of boundaries each element reaches").Input("input").Output("output");
  op.Attr("boundaries", Floats{}).InferShape(BucketizeShape);
  op.Kernels<Bucketize, float, double, int32_t, int64_t>();
}
HEDDLE_OP(tf_list_diff) {
  op.Doc("elements of x that are not in y, and their positions").Input("x").Input("y");
  op.Output("out").Output("idx").Attr("out_idx", 2);
  op.Kernels<ListDiff, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloatAlloc);
}
HEDDLE_OP(tf_invert_permutation) {
  op.Doc("where each of 0, 1, … stands in x").Input("x").Output("y").InferShape(InvertShape);
  op.Kernels<Invert, int32_t, int64_t>();
}
HEDDLE_OP(tf_dense_bincount) {
  op.Doc("how often each number below size occurs, or the sum of weights there");
  op.Input("input").Input("size").Input("weights").Output("output");
  op.Attr("binary_output", false).Attr("flatten", false).KernelKey("weights");
  op.Kernels<DenseBincount, float, double, int32_t, int64_t>();
}
HEDDLE_OP(tf_sparse_to_dense) {
  op.Doc("default_value everywhere but at sparse_indices");
  op.Input("sparse_indices").Input("output_shape", kShapeValue).Input("sparse_values");
  op.Input("default_value").Output("dense").Attr("validate_indices", true);
  op.InferShape(SparseToDenseShape).KernelKey("sparse_values").AnyKernel(SparseToDense);
}
