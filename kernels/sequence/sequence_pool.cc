#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

enum class Pool { kAverage, kSum, kSqrt, kMax, kLast, kFirst };

Result<Pool> PoolOf(const std::string& name) {
  if (name == "AVERAGE") return Pool::kAverage;
  if (name == "SUM") return Pool::kSum;
  if (name == "SQRT") return Pool::kSqrt;
  if (name == "MAX") return Pool::kMax;
  if (name == "LAST") return Pool::kLast;
  if (name == "FIRST") return Pool::kFirst;
  return InvalidArgument("unknown pooltype '", name, "'");
}

template <typename T>
T Divisor(Pool pool, int64_t length) {
  const T n = static_cast<T>(length);
  return pool == Pool::kAverage ? n : pool == Pool::kSqrt ? std::sqrt(n) : T(1);
}

// One sequence of `length` > 0 rows.
template <typename T>
void PoolRows(Pool pool, const T* x, int64_t length, int64_t width, T* out) {
  if (pool == Pool::kFirst || pool == Pool::kLast) {
    WatchedCopy(pool == Pool::kFirst ? x : x + (length - 1) * width, width, out);
    return;
  }
  WatchedCopy(x, width, out);
  for (const int64_t r : Watched(1, length))
    for (int64_t k = 0; k < width; ++k) out[k] += x[r * width + k];
  const T divisor = Divisor<T>(pool, length);
  if (divisor != T(1))
    for (int64_t k = 0; k < width; ++k) out[k] /= divisor;
}

template <typename T>
void MaxRows(const T* x, int64_t begin, int64_t length, int64_t width, T* out, int32_t* index) {
  for (const int64_t k : Watched(width)) {
    int64_t best = 0;
    for (int64_t r = 1; r < length; ++r)
      if (x[r * width + k] > x[best * width + k]) best = r;
    out[k] = x[best * width + k];
    if (index) index[k] = static_cast<int32_t>(begin + best);
  }
}

template <typename T>
struct SequencePool {
  static Status Run(KernelContext& ctx) {
    const Tensor x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Pool pool, PoolOf(ctx.Str("pooltype")));
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    const int64_t count = SequenceCount(*offsets), width = RowSize(x);
    const T pad = static_cast<T>(ctx.Float("pad_value"));
    Shape shape = x.shape();
    shape[0] = count;
    Tensor& out = ctx.Alloc("Out", x.dtype(), shape);
    LoD outer = x.lod();
    outer.pop_back();
    out.set_lod(std::move(outer));
    int32_t* index = nullptr;
    if (ctx.HasOut("MaxIndex") && pool == Pool::kMax)
      index = ctx.Alloc("MaxIndex", DType::kI32, shape).template mutable_data<int32_t>();
    for (const int64_t i : Watched(count)) {
      const int64_t begin = Begin(*offsets, i), length = Length(*offsets, i);
      const T* rows = x.data<T>() + begin * width;
      T* to = out.mutable_data<T>() + i * width;
      if (length == 0) {
        WatchedFill(to, width, pad);
        if (index) WatchedFill(index + i * width, width, -1);
      } else if (pool == Pool::kMax) {
        MaxRows(rows, begin, length, width, to, index ? index + i * width : nullptr);
      } else {
        PoolRows(pool, rows, length, width, to);
      }
    }
    return Status::Ok();
  }
};

Status ScatterMax(const Tensor& index, int64_t rows, int64_t width) {
  const int32_t* at = index.data<int32_t>();
  for (const auto some : Stretches(index.numel()))
    for (int64_t i = some.begin; i < some.end; ++i)
      if (at[i] < -1 || at[i] >= rows) return OutOfRange("MaxIndex ", at[i], " of ", rows, " rows");
  return width == 0 || index.numel() % width == 0 ? Status::Ok()
                                                  : InvalidArgument("MaxIndex does not fit X");
}

template <typename T>
struct SequencePoolGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &dout = ctx.In("Out@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const Pool pool, PoolOf(ctx.Str("pooltype")));
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    const int64_t count = SequenceCount(*offsets), width = RowSize(x);
    if (dout.numel() != count * width)
      return InvalidArgument("Out@GRAD ", dout.shape().ToString(),
                             " must have one row for each of ", count, " sequences");
    Tensor& dx = ctx.Out("X@GRAD");
    ZeroAll(dx);
    T* to = dx.mutable_data<T>();
    const T* from = dout.data<T>();
    if (pool == Pool::kMax) {
      const Tensor& index = ctx.In("MaxIndex");
      if (index.numel() != dout.numel()) return InvalidArgument("MaxIndex does not fit Out@GRAD");
      HEDDLE_RETURN_IF_ERROR(ScatterMax(index, x.dim(0), width));
      for (const auto part : Stretches(count * width))
        for (int64_t i = part.begin; i < part.end; ++i)
          if (const int32_t row = index.data<int32_t>()[i]; row >= 0)
            to[row * width + i % width] = from[i];
      return Status::Ok();
    }
    for (const int64_t i : Watched(count)) {
      const int64_t begin = Begin(*offsets, i), length = Length(*offsets, i);
      const bool one = pool == Pool::kFirst || pool == Pool::kLast;
      const int64_t first = pool == Pool::kLast ? std::max<int64_t>(0, length - 1) : 0;
      const int64_t last = pool == Pool::kFirst ? std::min<int64_t>(1, length) : length;
      const T divisor = one ? T(1) : Divisor<T>(pool, length);
      for (int64_t r = first; r < last; ++r)
        for (int64_t k = 0; k < width; ++k)
          to[(begin + r) * width + k] = from[i * width + k] / divisor;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_pool) {
  op.Doc("one row per sequence: its sum, mean, maximum, first or last row")
      .Input("X")
      .Output("Out")
      .Output("MaxIndex", kOptional)
      .Attr("is_test", false)
      .Attr("pooltype", "AVERAGE")
      .Attr("pad_value", 0.0)
      .Kernels<SequencePool, float, double>();
}

HEDDLE_OP(sequence_pool_grad) {
  op.Input("X", kNoBuffer)
      .Input("MaxIndex", kOptional)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("is_test", false)
      .Attr("pooltype", "AVERAGE")
      .Attr("pad_value", 0.0)
      .InferShape(SequenceGradLikeX)
      .Kernels<SequencePoolGrad, float, double>();
}
