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

HEDDLE_EXAMPLES(sequence_pool, R"(
example float32 4x2, pooltype LAST
attr pooltype STRING "LAST"
in X float32 [4, 2] lod [[0, 4]] -0.52 0.86 0.52 -0.86 0.17 1.21 -1.21 -0.17
out MaxIndex ?
out Out float32 [1, 2] -1.21 -0.17

example float32 11x3, pad_value 0.3, pooltype FIRST
attr pad_value FLOAT 0.3
attr pooltype STRING "FIRST"
in X float32 [11, 3] lod [[0, 11]] 0.946 0.602 0.497 0.153 0.84 0.55 0.629 0.259 0.285 0.655 0.312
  0.179 0.417 0.867 0.761 0.444 0.127 0.206 0.523 0.338 0.232 0.576 0.788 0.92 0.814 0.364 0.893
  0.708 0.973 0.47 0.391 0.735 0.682
out MaxIndex ?
out Out float32 [1, 3] 0.946 0.602 0.497

example float32 11x3, pooltype SQRT
attr pooltype STRING "SQRT"
in X float32 [11, 3] lod [[0, 11]] 0.497 0.259 0.417 0.708 0.312 0.391 0.867 0.55 0.153 0.602 0.523
  0.735 0.761 0.814 0.655 0.206 0.788 0.127 0.444 0.364 0.946 0.84 0.285 0.179 0.92 0.629 0.973
  0.682 0.47 0.338 0.576 0.232 0.893
out MaxIndex ?
out Out float32 [1, 3] 2.1416352 1.5756984 1.7508762

example float32 13x3, pad_value 0.5, pooltype MAX
attr pad_value FLOAT 0.5
attr pooltype STRING "MAX"
in X float32 [13, 3] lod [[0, 13]] 1.33 0.61 2.77 1.18 0.32 2.48 1.61 1.25 2.62 1.4 1.69 1.9 2.05
  0.89 1.04 0.39 0.46 2.55 2.69 0.82 2.91 1.76 0.53 2.19 1.54 1.83 2.33 0.17 2.26 2.84 0.75 2.12
  0.68 0.97 1.97 0.24 1.47 2.41 1.11
out MaxIndex int32 [1, 3] 6 12 6
out Out float32 [1, 3] 2.69 2.41 2.91

example float64 4x2, pooltype LAST
attr pooltype STRING "LAST"
in X float64 [4, 2] lod [[0, 4]] -0.52 0.86 0.52 -0.86 0.17 1.21 -1.21 -0.17
out MaxIndex ?
out Out float64 [1, 2] -1.21 -0.17
)")

HEDDLE_EXAMPLES(sequence_pool_grad, R"(
example float64 4x1, pooltype LAST
attr pooltype STRING "LAST"
in Out@GRAD float64 [1, 1] 0.1
in X float64 [4, 1] lod [[0, 4]] 0.24 -0.24 -0.72 0.72
out X@GRAD float64 [4, 1] lod [[0, 4]] 0 0 0 0.1

example float64 13x3, pad_value 0.5, pooltype MAX
attr pad_value FLOAT 0.5
attr pooltype STRING "MAX"
in MaxIndex int32 [1, 3] 11 7 12
in Out@GRAD float64 [1, 3] 0.5 0.4 -0.4
in X float64 [13, 3] lod [[0, 13]] 0.25 2.48 0.32 2.12 2.63 2.34 1.26 1.54 0.82 0.97 2.7 0.17 1.98
  1.11 1.47 1.04 2.77 2.55 1.62 0.75 2.19 0.68 2.84 1.69 2.05 0.61 0.39 1.76 0.9 0.46 0.54 2.41 1.18
  2.27 1.83 1.91 1.4 1.33 2.91
out X@GRAD float64 [13, 3] lod [[0, 13]] 0*22 0.4 0*10 0.5 0*4 -0.4

example float64 7x2, pooltype SQRT
attr pooltype STRING "SQRT"
in Out@GRAD float64 [2, 2] 0 0.4 -0.5 0.3
in X float64 [7, 2] lod [[0, 4, 7]] -0.12 -0.81 0.35 -0.58 0.58 1.27 -1.5 -1.27 1.5 -0.35 1.04 0.12
  -1.04 0.81
out X@GRAD float64 [7, 2] lod [[0, 4, 7]] 0 0.2 0 0.2 0 0.2 0 0.2 -0.2886751345948129
  0.17320508075688773 -0.2886751345948129 0.17320508075688773 -0.2886751345948129
  0.17320508075688773

example float32 4x1, pooltype LAST
attr pooltype STRING "LAST"
in Out@GRAD float32 [1, 1] 0.1
in X float32 [4, 1] lod [[0, 4]] 0.24 -0.24 -0.72 0.72
out X@GRAD float32 [4, 1] lod [[0, 4]] 0 0 0 0.1
)")
