// Reductions of rows by segment: of sorted ids, of any ids, and of rows picked by indices.
#include <cmath>
#include <memory_resource>
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

enum class How : uint8_t { kSum, kMean, kSqrtN, kProd, kMin, kMax };

template <typename T>
T InitOf(How how) {
  if constexpr (!kIsComplex<T>) {
    if (how == How::kMin) return std::numeric_limits<T>::max();
    if (how == How::kMax) return std::numeric_limits<T>::lowest();
  }
  return how == How::kProd ? T(1) : T(0);
}
template <typename T>
void Take(How how, T v, T* acc) {
  if constexpr (!kIsComplex<T>) {
    if (how == How::kMin) {
      *acc = v < *acc || v != v ? v : *acc;
      return;
    }
    if (how == How::kMax) {
      *acc = v > *acc || v != v ? v : *acc;
      return;
    }
  }
  if (how == How::kProd)
    *acc = MulFn::Apply(*acc, v);
  else
    *acc = AddFn::Apply(*acc, v);
}

// Rows of `from`, row index(i) for entry i, taken into row id(i) of `to`; an id of -1 is left out.
// `count`: entries of each row.
template <typename T, typename Index, typename Id>
Status ReduceSegments(How how, const T* from, int64_t entries, int64_t row, Index index, Id id,
                      T* to, std::pmr::vector<int64_t>* count) {
  for (const int64_t i : Watched(entries)) {
    const int64_t s = id(i);
    if (s < 0) continue;
    T* acc = to + s * row;
    if ((*count)[static_cast<size_t>(s)]++ == 0) WatchedFill(acc, row, InitOf<T>(how));
    const T* v = from + index(i) * row;
    for (int64_t k = 0; k < row; ++k) Take(how, v[k], acc + k);
  }
  if (how != How::kMean && how != How::kSqrtN) return Status::Ok();
  for (size_t s = 0; s < count->size(); ++s) {
    const int64_t n = (*count)[s];
    if (n < 2) continue;
    if constexpr (std::is_integral_v<T>)  // TensorFlow divides by the number as an element
      if (static_cast<T>(n) == 0)
        return InvalidArgument("segment ", s, " has ", n, " rows, a number that ",
                               Name(kDTypeOf<T>), " cannot hold");
    for (int64_t k = 0; k < row; ++k) {
      T& v = to[static_cast<int64_t>(s) * row + k];
      if constexpr (std::is_integral_v<T>)
        v = static_cast<T>(v / static_cast<T>(n));
      else if constexpr (kIsComplex<T>)
        v /= static_cast<typename T::value_type>(n);
      else
        v /= how == How::kMean ? static_cast<T>(n) : std::sqrt(static_cast<T>(n));
    }
  }
  return Status::Ok();
}

// One more than the last id, after a check that ids are sorted.
Result<int64_t> SortedSegments(const Tensor& ids) {
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ids.dtype(), "segment_ids"));
  if (ids.rank() != 1)
    return InvalidArgument("segment_ids has shape ", ids.shape().ToString(), ", expected a vector");
  int64_t last = 0;
  for (const int64_t i : Watched(ids.numel())) {
    const int64_t v = IntAt(ids, i);
    if (v < last)
      return InvalidArgument("segment_ids holds ", v, " at position ", i, " after ", last,
                             ", expected ids that do not fall");
    last = v;
  }
  if (last > int64_t{1} << 40) return InvalidArgument("segment_ids holds ", last);
  return ids.numel() == 0 ? 0 : last + 1;
}

Result<Shape> Segments(int64_t n, const Shape& data, int from) {
  ShortInts dims{n};
  for (int i = from; i < data.rank(); ++i) dims.push_back(data[i]);
  return MakeShape(dims, "output");
}

template <typename T>
void FillGaps(const std::pmr::vector<int64_t>& count, int64_t row, T value, T* to) {
  for (size_t s = 0; s < count.size(); ++s)
    if (count[s] == 0)
      std::fill(to + static_cast<int64_t>(s) * row, to + static_cast<int64_t>(s + 1) * row, value);
}

template <typename T>
Status RunSegment(KernelContext& ctx, How how) {
  const Tensor &data = ctx.In("data"), &ids = ctx.In("segment_ids");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t n, SortedSegments(ids));
  if (data.rank() < 1 || data.dim(0) != ids.numel())
    return InvalidArgument("data has shape ", data.shape().ToString(), " for ", ids.numel(),
                           " segment_ids, expected as many rows");
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, Segments(n, data.shape(), 1));
  T* to = ctx.Alloc("output", data.dtype(), shape).template mutable_data<T>();
  if (shape.numel() == 0) return Status::Ok();
  const int64_t row = data.shape().Product(1, data.rank());
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> count(static_cast<size_t>(n), 0, &heap);
  HEDDLE_RETURN_IF_ERROR(ReduceSegments(
      how, data.data<T>(), ids.numel(), row, [](int64_t i) { return i; },
      [&](int64_t i) { return IntAt(ids, i); }, to, &count));
  T gap = how == How::kProd ? T(1) : T(0);
  if constexpr (std::is_same_v<T, int64_t>)
    if (how == How::kMax || how == How::kMin) gap = ctx.Int("empty");
  FillGaps(count, row, gap, to);
  return Status::Ok();
}
template <How kHow>
struct Segment {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) { return RunSegment<T>(ctx, kHow); }
  };
};

Status UnsortedShape(ShapeContext& ctx) {
  const Shape &data = ctx.InShape("data"), &ids = ctx.InShape("segment_ids");
  if (!data.known_rank() || !ids.known_rank() || !Known(ctx, "num_segments")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t n, IntIn(ctx, "num_segments", 0));
  if (n < 0) return InvalidArgument("num_segments is ", n, ", expected 0 or more");
  bool prefix = ids.rank() <= data.rank();
  for (int i = 0; prefix && i < ids.rank(); ++i)
    prefix = ids[i] < 0 || data[i] < 0 || ids[i] == data[i];
  if (!prefix)
    return InvalidArgument("segment_ids has shape ", ids.ToString(),
                           ", expected the leading dimensions of data ", data.ToString());
  Shape out{n};
  for (int i = ids.rank(); i < data.rank(); ++i) out.push_back(data[i]);
  ctx.SetOut("output", out, ctx.InDType("data"));
  return Status::Ok();
}

template <typename T>
Status RunUnsorted(KernelContext& ctx, How how) {
  const Tensor &data = ctx.In("data"), &ids = ctx.In("segment_ids");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ids.dtype(), "segment_ids"));
  Tensor& out = ctx.Out("output");
  const int64_t n = out.dim(0), row = data.shape().Product(ids.rank(), data.rank());
  for (const auto part : Stretches(ids.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (const int64_t v = IntAt(ids, i); v >= n)
        return OutOfRange("segment_ids holds ", v, " at position ", i, ", expected less than ", n);
  if (out.numel() == 0) return Status::Ok();
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> count(static_cast<size_t>(n), 0, &heap);
  T* to = out.template mutable_data<T>();
  HEDDLE_RETURN_IF_ERROR(ReduceSegments(
      how, data.data<T>(), ids.numel(), row, [](int64_t i) { return i; },
      [&](int64_t i) { return std::max<int64_t>(-1, IntAt(ids, i)); }, to, &count));
  FillGaps(count, row, InitOf<T>(how), to);
  return Status::Ok();
}
template <How kHow>
struct Unsorted {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) { return RunUnsorted<T>(ctx, kHow); }
  };
};

// Extremes of 16-bit floats: gaps are their own limits, which float's are beyond.
Status RunNarrowExtremes(KernelContext& ctx, How how) {
  HEDDLE_RETURN_IF_ERROR(RunInFloat(ctx));
  const Tensor &data = ctx.In("data"), &ids = ctx.In("segment_ids");
  Tensor& out = ctx.Out("output");
  if (out.numel() == 0) return Status::Ok();
  const int64_t row = data.shape().Product(ids.rank(), data.rank());
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> count(static_cast<size_t>(out.dim(0)), 0, &heap);
  for (const auto part : Stretches(ids.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (const int64_t v = IntAt(ids, i); v >= 0) ++count[static_cast<size_t>(v)];
  const auto most = static_cast<uint16_t>(out.dtype() == DType::kF16 ? 0x7bff : 0x7f7f);
  const auto value = static_cast<uint16_t>(how == How::kMax ? most | 0x8000 : most);
  FillGaps(count, row, value, static_cast<uint16_t*>(out.mutable_raw()));
  return Status::Ok();
}
template <How kHow>
Status NarrowExtremes(KernelContext& ctx) {
  return RunNarrowExtremes(ctx, kHow);
}

template <typename T>
Status RunSparseSegment(KernelContext& ctx, How how) {
  const Tensor &data = ctx.In("data"), &index = ctx.In("indices"), &ids = ctx.In("segment_ids");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(index.dtype(), "indices"));
  HEDDLE_ASSIGN_OR_RETURN(int64_t n, SortedSegments(ids));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t given, IntIn(ctx, "num_segments", n));
  if (given < n) return InvalidArgument("num_segments is ", given, ", segment_ids reaches ", n - 1);
  n = given;
  if (data.rank() < 1 || index.numel() != ids.numel())
    return InvalidArgument("indices and segment_ids have ", index.numel(), " and ", ids.numel(),
                           " elements for data ", data.shape().ToString());
  for (const auto part : Stretches(index.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (const int64_t v = IntAt(index, i); v < 0 || v >= data.dim(0))
        return OutOfRange("indices holds ", v, " at position ", i, ", expected 0 to ",
                          data.dim(0) - 1);
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, Segments(n, data.shape(), 1));
  T* to = ctx.Alloc("output", data.dtype(), shape).template mutable_data<T>();
  if (shape.numel() == 0) return Status::Ok();
  const int64_t row = data.shape().Product(1, data.rank());
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> count(static_cast<size_t>(n), 0, &heap);
  HEDDLE_RETURN_IF_ERROR(ReduceSegments(
      how, data.data<T>(), ids.numel(), row, [&](int64_t i) { return IntAt(index, i); },
      [&](int64_t i) { return IntAt(ids, i); }, to, &count));
  FillGaps(count, row, T(0), to);
  return Status::Ok();
}
template <How kHow>
struct SparseSegment {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) { return RunSparseSegment<T>(ctx, kHow); }
  };
};

// Each row of grad, over its segment's size or the root of it, added to the rows of indices.
template <typename T>
Status RunSparseSegmentGrad(KernelContext& ctx, How how) {
  const Tensor &grad = ctx.In("grad"), &index = ctx.In("indices"), &ids = ctx.In("segment_ids");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(index.dtype(), "indices"));
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ids.dtype(), "segment_ids"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t rows, IntIn(ctx, "output_dim0", 0));
  if (grad.rank() < 1 || index.numel() != ids.numel() || rows < 0)
    return InvalidArgument("indices and segment_ids have ", index.numel(), " and ", ids.numel(),
                           " elements for grad ", grad.shape().ToString(), " and ", rows, " rows");
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> count(static_cast<size_t>(grad.dim(0)), 0, &heap);
  for (const int64_t i : Watched(ids.numel())) {
    const int64_t s = IntAt(ids, i), r = IntAt(index, i);
    if (s < 0 || s >= grad.dim(0) || r < 0 || r >= rows)
      return OutOfRange("segment_ids and indices hold ", s, " and ", r, " at position ", i,
                        ", expected less than ", grad.dim(0), " and ", rows);
    ++count[static_cast<size_t>(s)];
  }
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, Segments(rows, grad.shape(), 1));
  Tensor& out = ctx.Alloc("output", grad.dtype(), shape);
  T* to = out.template mutable_data<T>();
  ZeroBytes(ctx, to, out.bytes());
  const int64_t row = grad.shape().Product(1, grad.rank());
  for (const int64_t i : Watched(ids.numel())) {
    const int64_t s = IntAt(ids, i);
    const T n = static_cast<T>(count[static_cast<size_t>(s)]);
    const T factor = T(1) / (how == How::kMean ? n : std::sqrt(n));
    for (int64_t k = 0; k < row; ++k)
      to[IntAt(index, i) * row + k] += grad.data<T>()[s * row + k] * factor;
  }
  return Status::Ok();
}
template <How kHow>
struct SparseSegmentGrad {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) { return RunSparseSegmentGrad<T>(ctx, kHow); }
  };
};

using C64 = std::complex<float>;
using C128 = std::complex<double>;

template <How kHow, bool kComplex>
void DefineSegment(OpDef& op, const char* doc) {
  op.Doc(doc).Input("data").Input("segment_ids").Output("output").KernelKey("data");
  op.Kernels<Segment<kHow>::template Kernel, float, double, uint8_t, int8_t, int16_t, int32_t,
             int64_t>();
  // What a segment without rows gives, of int64.
  if constexpr (kHow == How::kMax || kHow == How::kMin) op.Attr("empty", int64_t{0});
  if constexpr (kComplex) op.Kernels<Segment<kHow>::template Kernel, C64, C128>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloatAlloc);
}
template <How kHow, bool kComplex>
void DefineUnsorted(OpDef& op, const char* doc) {
  op.Doc(doc).Input("data").Input("segment_ids").Input("num_segments", kShapeValue);
  op.Output("output").InferShape(UnsortedShape).KernelKey("data");
  op.Kernels<Unsorted<kHow>::template Kernel, float, double, uint8_t, int8_t, int16_t, int32_t,
             int64_t>();
  if constexpr (kComplex) op.Kernels<Unsorted<kHow>::template Kernel, C64, C128>();
  constexpr bool kExtreme = kHow == How::kMin || kHow == How::kMax;
  op.Kernel({DType::kF16, DType::kBF16}, kExtreme ? &NarrowExtremes<kHow> : &RunInFloat);
}
template <How kHow>
void DefineSparse(OpDef& op, const char* doc) {
  op.Doc(doc).Input("data").Input("indices").Input("segment_ids");
  op.Input("num_segments", kOptional).Output("output").KernelKey("data");
  op.Kernels<SparseSegment<kHow>::template Kernel, float, double>();
  if constexpr (kHow == How::kSum)
    op.Kernels<SparseSegment<kHow>::template Kernel, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloatAlloc);
}
template <How kHow>
void DefineSparseGrad(OpDef& op, const char* doc) {
  op.Doc(doc).Input("grad").Input("indices").Input("segment_ids").Input("output_dim0");
  op.Output("output").KernelKey("grad");
  op.Kernels<SparseSegmentGrad<kHow>::template Kernel, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloatAlloc);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_segment_sum) {
  DefineSegment<How::kSum, true>(op, "sums of rows of equal, sorted ids");
}
HEDDLE_OP(tf_segment_mean) { DefineSegment<How::kMean, true>(op, "means of rows of equal ids"); }
HEDDLE_OP(tf_segment_prod) {
  DefineSegment<How::kProd, true>(op, "products of rows of equal ids; gaps are 1");
}
HEDDLE_OP(tf_segment_min) { DefineSegment<How::kMin, false>(op, "minima of rows of equal ids"); }
HEDDLE_OP(tf_segment_max) { DefineSegment<How::kMax, false>(op, "maxima of rows of equal ids"); }
HEDDLE_OP(tf_unsorted_segment_sum) {
  DefineUnsorted<How::kSum, true>(op, "sums of rows of equal ids; negative ids are left out");
}
HEDDLE_OP(tf_unsorted_segment_prod) {
  DefineUnsorted<How::kProd, true>(op, "products of rows of equal ids; gaps are 1");
}
HEDDLE_OP(tf_unsorted_segment_min) {
  DefineUnsorted<How::kMin, false>(op, "minima of rows of equal ids; gaps are the greatest number");
}
HEDDLE_OP(tf_unsorted_segment_max) {
  DefineUnsorted<How::kMax, false>(op, "maxima of rows of equal ids; gaps are the least number");
}
HEDDLE_OP(tf_sparse_segment_sum) {
  DefineSparse<How::kSum>(op, "sums of the rows of data that indices pick, by sorted ids");
}
HEDDLE_OP(tf_sparse_segment_mean) {
  DefineSparse<How::kMean>(op, "means of the rows of data that indices pick, by sorted ids");
}
HEDDLE_OP(tf_sparse_segment_sqrt_n) {
  DefineSparse<How::kSqrtN>(op, "sums of picked rows over the root of their number");
}
HEDDLE_OP(tf_sparse_segment_mean_grad) {
  DefineSparseGrad<How::kMean>(op, "gradient of tf_sparse_segment_mean");
}
HEDDLE_OP(tf_sparse_segment_sqrt_n_grad) {
  DefineSparseGrad<How::kSqrtN>(op, "gradient of tf_sparse_segment_sqrt_n");
}
