// Reductions of rows by segment: of sorted ids (or of the rows that indices pick by sorted ids),
// and of any ids.
#include <cmath>
#include <limits>
#include <memory_resource>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/threads/look_meter.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"
#include "kernels/base/shape_checks.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/narrow.h"
#include "kernels/operands/operands.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

enum class Pool : uint8_t { kSum, kMean, kSqrtN, kProd, kMax, kMin };

Result<Pool> PoolOf(const OpContext& ctx) {
  const std::string& name = ctx.Str("pooltype");
  if (name == "SUM") return Pool::kSum;
  if (name == "MEAN") return Pool::kMean;
  if (name == "SQRTN") return Pool::kSqrtN;
  if (name == "PROD") return Pool::kProd;
  if (name == "MAX") return Pool::kMax;
  if (name == "MIN") return Pool::kMin;
  return InvalidArgument("unknown pooltype '", name, "'");
}

// Number of segments: ids must not fall, as runs of equal ids are the segments.
Result<int64_t> CheckIds(const Labels& ids, int64_t count) {
  for (const auto part : Stretches(count))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (ids[i] < (i == 0 ? 0 : ids[i - 1]))
        return InvalidArgument("SegmentIds must not fall or be negative, element ", i, " is ",
                               ids[i]);
  if (count == 0) return 0;
  if (ids[count - 1] > int64_t{1} << 40)
    return InvalidArgument("SegmentIds holds ", ids[count - 1], ", which is no segment");
  return ids[count - 1] + 1;
}

Status CheckRows(const Tensor& x, int64_t count) {
  if (x.rank() >= 1 && x.dim(0) == count) return Status::Ok();
  return InvalidArgument("SegmentIds must have one element per row of X ", x.shape().ToString());
}

// The value of a segment before its first row, and of one without rows.
template <typename T>
T InitOf(Pool pool) {
  if constexpr (!kIsComplex<T>) {
    if (pool == Pool::kMin) return std::numeric_limits<T>::max();
    if (pool == Pool::kMax) return std::numeric_limits<T>::lowest();
  }
  return pool == Pool::kProd ? T(1) : T(0);
}

// With keep_nan a NaN makes an extreme NaN; without it later ones are passed over.
template <typename T>
void Take(Pool pool, bool keep_nan, T v, T* acc) {
  if constexpr (!kIsComplex<T>) {
    if (pool == Pool::kMin || pool == Pool::kMax) {
      const bool better = pool == Pool::kMin ? v < *acc : *acc < v;
      if (better || (keep_nan && v != v)) *acc = v;
      return;
    }
  }
  *acc = pool == Pool::kProd ? MulFn::Apply(*acc, v) : AddFn::Apply(*acc, v);
}

// Sums to means, or to sums over the root of their number.
template <typename T>
Status DivideByCount(Pool pool, const std::pmr::vector<int64_t>& count, int64_t row, T* to) {
  for (size_t s = 0; s < count.size(); ++s) {
    const int64_t n = count[s];
    if (n < 2) continue;
    if constexpr (std::is_integral_v<T>)  // the number is one of the elements' type
      if (static_cast<T>(n) == 0)
        return InvalidArgument("segment ", s, " has ", n, " rows, a number that ",
                               Name(kDTypeOf<T>), " cannot hold");
    for (int64_t k = 0; k < row; ++k) {
      T& v = to[static_cast<int64_t>(s) * row + k];
      const double root = std::sqrt(static_cast<double>(n));
      if constexpr (std::is_integral_v<T>)
        v = pool == Pool::kMean ? static_cast<T>(v / static_cast<T>(n))
                                : static_cast<T>(static_cast<double>(v) / root);
      else if constexpr (kIsComplex<T>)
        v /= static_cast<typename T::value_type>(pool == Pool::kMean ? static_cast<double>(n)
                                                                     : root);
      else
        v /= pool == Pool::kMean ? static_cast<T>(n) : std::sqrt(static_cast<T>(n));
    }
  }
  return Status::Ok();
}

// Rows of `from`, row index(i) for entry i, taken into row id(i) of `to`; an id of -1 is left out.
// `count`: entries of each row.
template <typename T, typename Index, typename Id>
Status PoolSegments(Pool pool, bool keep_nan, const T* from, int64_t entries, int64_t row,
                    Index index, Id id, T* to, std::pmr::vector<int64_t>* count) {
  if (kIsComplex<T> && (pool == Pool::kMin || pool == Pool::kMax))
    return InvalidArgument("complex numbers have no order, and so no extremes");
  for (const int64_t i : Watched(entries)) {
    const int64_t s = id(i);
    if (s < 0) continue;
    T* acc = to + s * row;
    const T* v = from + index(i) * row;
    if ((*count)[static_cast<size_t>(s)]++ == 0)
      std::copy_n(v, row, acc);
    else
      for (int64_t k = 0; k < row; ++k) Take(pool, keep_nan, v[k], acc + k);
  }
  if (pool != Pool::kMean && pool != Pool::kSqrtN) return Status::Ok();
  return DivideByCount(pool, *count, row, to);
}

template <typename T>
void FillGaps(const std::pmr::vector<int64_t>& count, int64_t row, T value, T* to) {
  for (size_t s = 0; s < count.size(); ++s)
    if (count[s] == 0)
      std::fill(to + static_cast<int64_t>(s) * row, to + static_cast<int64_t>(s + 1) * row, value);
}

Result<Shape> RowsOf(int64_t n, const Shape& x, Key out) {
  ShortInts dims{n};
  for (int i = 1; i < x.rank(); ++i) dims.push_back(x[i]);
  return MakeShape(dims, out.name);
}

Status CheckIndices(const Tensor& index, int64_t count, const Tensor& x) {
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(index.dtype(), "Indices"));
  if (x.rank() < 1 || index.numel() != count)
    return InvalidArgument("Indices and SegmentIds have ", index.numel(), " and ", count,
                           " elements for X ", x.shape().ToString());
  for (const auto part : Stretches(count))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (const int64_t v = IntAt(index, i); v < 0 || v >= x.dim(0))
        return OutOfRange("Indices holds ", v, " at position ", i, ", expected 0 to ",
                          x.dim(0) - 1);
  return Status::Ok();
}

template <typename T>
struct SegmentPool {
  static Status Run(KernelContext& ctx) {
    const Tensor x = ctx.In("X");
    const Tensor segment_ids = ctx.In("SegmentIds");
    const Labels ids(ctx, segment_ids);
    const int64_t count = segment_ids.numel();
    const Tensor* index = ctx.InOpt("Indices");
    HEDDLE_ASSIGN_OR_RETURN(const Pool pool, PoolOf(ctx));
    HEDDLE_RETURN_IF_ERROR(index != nullptr ? CheckIndices(*index, count, x) : CheckRows(x, count));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t named, CheckIds(ids, count));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t segments, IntIn(ctx, "NumSegments", named));
    if (segments < named)
      return InvalidArgument("NumSegments is ", segments, ", SegmentIds reaches ", named - 1);
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, RowsOf(segments, x.shape(), "Out"));
    T* to = ctx.Alloc("Out", x.dtype(), shape).template mutable_data<T>();
    const int64_t row = x.shape().Product(1, x.rank());
    CallHeap heap(ctx);
    std::pmr::vector<int64_t> counts(static_cast<size_t>(segments), 0, &heap);
    const bool keep_nan = ctx.Bool("keep_nan");
    const auto id = [&](int64_t i) { return ids[i]; };
    HEDDLE_RETURN_IF_ERROR(index != nullptr
                               ? PoolSegments(
                                     pool, keep_nan, x.data<T>(), count, row,
                                     [&](int64_t i) { return IntAt(*index, i); }, id, to, &counts)
                               : PoolSegments(
                                     pool, keep_nan, x.data<T>(), count, row,
                                     [](int64_t i) { return i; }, id, to, &counts));
    T gap = pool == Pool::kProd ? T(1) : T(0);
    if constexpr (std::is_same_v<T, int64_t>)
      if (pool == Pool::kMax || pool == Pool::kMin) gap = ctx.Int("empty");
    FillGaps(counts, row, gap, to);
    if (!ctx.HasOut("SummedIds")) return Status::Ok();
    T* sizes = ctx.Alloc("SummedIds", x.dtype(), Shape{segments, 1}).template mutable_data<T>();
    for (const int64_t s : Watched(segments))
      sizes[s] = static_cast<T>(static_cast<double>(counts[static_cast<size_t>(s)]));
    return Status::Ok();
  }
};

template <typename T>
struct SegmentPoolGrad {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const Tensor &x = ctx.In("X"), &dout = ctx.In("Out@GRAD");
    const Labels ids(ctx, ctx.In("SegmentIds"));
    const int64_t count = ctx.In("SegmentIds").numel(), width = RowSize(x);
    HEDDLE_ASSIGN_OR_RETURN(const Pool pool, PoolOf(ctx));
    HEDDLE_RETURN_IF_ERROR(CheckRows(x, count));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t segments, CheckIds(ids, count));
    if (dout.numel() != segments * width)
      return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " must have ", segments,
                             " rows");
    if (pool == Pool::kProd || pool == Pool::kSqrtN)
      return Unimplemented("no gradient of pooltype '", ctx.Str("pooltype"), "'");
    const Tensor* out = pool == Pool::kMax || pool == Pool::kMin ? &ctx.In("Out") : nullptr;
    if (out && out->numel() != dout.numel()) return InvalidArgument("Out must fit Out@GRAD");
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    LookMeter meter;
    for (int64_t begin = 0, end = 0; begin < count; begin = end) {
      for (; end < count && ids[end] == ids[begin]; ++end) meter.Did(1);
      const C share = pool == Pool::kMean ? C(1) / static_cast<C>(end - begin) : C(1);
      for (const int64_t r : Watched(begin, end))
        for (const auto part : Stretches(width))
          for (int64_t k = part.begin; k < part.end; ++k) {
            const int64_t at = ids[r] * width + k, own = r * width + k;
            const bool chosen =
                !out || static_cast<C>(x.data<T>()[own]) == static_cast<C>(out->data<T>()[at]);
            dx[own] = chosen ? static_cast<T>(static_cast<C>(dout.data<T>()[at]) * share) : T(C(0));
          }
    }
    return Status::Ok();
  }
};

Status UnsortedShape(ShapeContext& ctx) {
  const Shape &data = ctx.InShape("X"), &ids = ctx.InShape("SegmentIds");
  if (!data.known_rank() || !ids.known_rank() || !Known(ctx, "NumSegments")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t n, IntIn(ctx, "NumSegments", 0));
  if (n < 0) return InvalidArgument("NumSegments is ", n, ", expected 0 or more");
  bool prefix = ids.rank() <= data.rank();
  for (int i = 0; prefix && i < ids.rank(); ++i)
    prefix = ids[i] < 0 || data[i] < 0 || ids[i] == data[i];
  if (!prefix)
    return InvalidArgument("SegmentIds has shape ", ids.ToString(),
                           ", expected the leading dimensions of X ", data.ToString());
  Shape out{n};
  for (int i = ids.rank(); i < data.rank(); ++i) out.push_back(data[i]);
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct UnsortedSegmentPool {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Pool pool, PoolOf(ctx));
    const Tensor &data = ctx.In("X"), &ids = ctx.In("SegmentIds");
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(ids.dtype(), "SegmentIds"));
    Tensor& out = ctx.Out("Out");
    const int64_t n = out.dim(0), row = data.shape().Product(ids.rank(), data.rank());
    for (const auto part : Stretches(ids.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        if (const int64_t v = IntAt(ids, i); v >= n)
          return OutOfRange("SegmentIds holds ", v, " at position ", i, ", expected less than ", n);
    if (out.numel() == 0) return Status::Ok();
    CallHeap heap(ctx);
    std::pmr::vector<int64_t> count(static_cast<size_t>(n), 0, &heap);
    T* to = out.template mutable_data<T>();
    HEDDLE_RETURN_IF_ERROR(PoolSegments(
        pool, true, data.data<T>(), ids.numel(), row, [](int64_t i) { return i; },
        [&](int64_t i) { return std::max<int64_t>(-1, IntAt(ids, i)); }, to, &count));
    FillGaps(count, row, InitOf<T>(pool), to);
    return Status::Ok();
  }
};

// Extremes of 16-bit floats: gaps are their own limits, which float's are beyond.
Status UnsortedNarrow(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Pool pool, PoolOf(ctx));
  HEDDLE_RETURN_IF_ERROR(RunInFloat(ctx));
  const Tensor &data = ctx.In("X"), &ids = ctx.In("SegmentIds");
  Tensor& out = ctx.Out("Out");
  if (out.numel() == 0 || (pool != Pool::kMax && pool != Pool::kMin)) return Status::Ok();
  const int64_t row = data.shape().Product(ids.rank(), data.rank());
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> count(static_cast<size_t>(out.dim(0)), 0, &heap);
  for (const auto part : Stretches(ids.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (const int64_t v = IntAt(ids, i); v >= 0) ++count[static_cast<size_t>(v)];
  const auto most = static_cast<uint16_t>(out.dtype() == DType::kF16 ? 0x7bff : 0x7f7f);
  const auto value = static_cast<uint16_t>(pool == Pool::kMax ? most | 0x8000 : most);
  FillGaps(count, row, value, static_cast<uint16_t*>(out.mutable_raw()));
  return Status::Ok();
}

// Each row of X, over its segment's size or the root of it, added to the rows of indices.
template <typename T>
struct ScatterSegments {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Pool pool, PoolOf(ctx));
    if (pool != Pool::kMean && pool != Pool::kSqrtN)
      return InvalidArgument("pooltype is '", ctx.Str("pooltype"), "', expected MEAN or SQRTN");
    const Tensor &grad = ctx.In("X"), &index = ctx.In("Indices"), &ids = ctx.In("SegmentIds");
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(index.dtype(), "Indices"));
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(ids.dtype(), "SegmentIds"));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t rows, IntIn(ctx, "Rows", 0));
    if (grad.rank() < 1 || index.numel() != ids.numel() || rows < 0)
      return InvalidArgument("Indices and SegmentIds have ", index.numel(), " and ", ids.numel(),
                             " elements for X ", grad.shape().ToString(), " and ", rows, " rows");
    CallHeap heap(ctx);
    std::pmr::vector<int64_t> count(static_cast<size_t>(grad.dim(0)), 0, &heap);
    for (const int64_t i : Watched(ids.numel())) {
      const int64_t s = IntAt(ids, i), r = IntAt(index, i);
      if (s < 0 || s >= grad.dim(0) || r < 0 || r >= rows)
        return OutOfRange("SegmentIds and Indices hold ", s, " and ", r, " at position ", i,
                          ", expected less than ", grad.dim(0), " and ", rows);
      ++count[static_cast<size_t>(s)];
    }
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, RowsOf(rows, grad.shape(), "Out"));
    Tensor& out = ctx.Alloc("Out", grad.dtype(), shape);
    T* to = out.template mutable_data<T>();
    ZeroBytes(ctx, to, out.bytes());
    const int64_t row = grad.shape().Product(1, grad.rank());
    for (const int64_t i : Watched(ids.numel())) {
      const int64_t s = IntAt(ids, i);
      const T n = static_cast<T>(count[static_cast<size_t>(s)]);
      const T factor = T(1) / (pool == Pool::kMean ? n : std::sqrt(n));
      for (int64_t k = 0; k < row; ++k)
        to[IntAt(index, i) * row + k] += grad.data<T>()[s * row + k] * factor;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(segment_pool) {
  op.Doc("sum, mean, sum over the root of the number, product or extreme of each segment's rows");
  op.Input("X").Input("SegmentIds").Input("Indices", kOptional).Input("NumSegments", kOptional);
  op.Output("Out").Output("SummedIds", kOptional).Attr("pooltype", "SUM").Attr("keep_nan", false);
  op.Attr("empty", int64_t{0}).KernelKey("X");  // what an int64 segment without rows gives
  op.Kernels<SegmentPool, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t,
             std::complex<float>, std::complex<double>>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloatAlloc);
}

HEDDLE_OP(segment_pool_grad) {
  op.Input("X")
      .Input("SegmentIds")
      .Input("Out", kOptional)
      .Input("SummedIds", kOptional)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("pooltype", "SUM")
      .InferShape(GradLikeInputs)
      .Kernels<SegmentPoolGrad, float, double, float16, int32_t, int64_t>();
}

HEDDLE_OP(unsorted_segment_pool) {
  op.Doc("rows of equal ids, in any order, as one; an id without rows gives the pool's identity");
  op.Input("X").Input("SegmentIds").Input("NumSegments", kShapeValue).Output("Out");
  op.Attr("pooltype", "SUM").InferShape(UnsortedShape).KernelKey("X");
  op.Kernels<UnsortedSegmentPool, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t,
             std::complex<float>, std::complex<double>>();
  op.Kernel({DType::kF16, DType::kBF16}, UnsortedNarrow);
}

HEDDLE_OP(scatter_segments) {
  op.Doc("each segment's row over its size (MEAN) or the root of that, added to picked rows");
  op.Input("X").Input("Indices").Input("SegmentIds").Input("Rows").Output("Out").KernelKey("X");
  op.Attr("pooltype", "MEAN").Kernels<ScatterSegments, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloatAlloc);
}
