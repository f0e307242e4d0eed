#include <limits>

#include "core/interrupts.h"
#include "core/threads/look_meter.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

enum class Pool { kSum, kMean, kMax, kMin };

Result<Pool> PoolOf(const std::string& name) {
  if (name == "SUM") return Pool::kSum;
  if (name == "MEAN") return Pool::kMean;
  if (name == "MAX") return Pool::kMax;
  if (name == "MIN") return Pool::kMin;
  return InvalidArgument("unknown pooltype '", name, "'");
}

// Number of segments: ids must not fall, as runs of equal ids are the segments.
Result<int64_t> CheckIds(const Labels& ids, int64_t count, const Tensor& x) {
  if (x.rank() < 1 || x.dim(0) != count)
    return InvalidArgument("SegmentIds must have one element per row of X ", x.shape().ToString());
  for (const auto part : Stretches(count))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (ids[i] < (i == 0 ? 0 : ids[i - 1]))
        return InvalidArgument("SegmentIds must not fall or be negative, element ", i, " is ",
                               ids[i]);
  if (count == 0) return 0;
  if (ids[count - 1] == std::numeric_limits<int64_t>::max())
    return InvalidArgument("SegmentIds holds ", ids[count - 1], ", which is no segment");
  return ids[count - 1] + 1;
}

// Rows [begin, end) to one row.
template <typename T>
void PoolRows(Pool pool, const T* x, int64_t begin, int64_t end, int64_t width, T* out) {
  using C = ComputeType<T>;
  LookMeter meter;
  for (int64_t k = 0; k < width; ++k) {
    meter.Did(end - begin);
    C value = static_cast<C>(x[begin * width + k]);
    for (int64_t r = begin + 1; r < end; ++r) {
      const C v = static_cast<C>(x[r * width + k]);
      value = pool == Pool::kMax   ? std::max(value, v)
              : pool == Pool::kMin ? std::min(value, v)
                                   : value + v;
    }
    if (pool == Pool::kMean) value /= static_cast<C>(end - begin);
    out[k] = static_cast<T>(value);
  }
}

template <typename T>
struct SegmentPool {
  static Status Run(KernelContext& ctx) {
    const Tensor x = ctx.In("X");
    const Tensor segment_ids = ctx.In("SegmentIds");
    const Labels ids(ctx, segment_ids);
    const int64_t count = segment_ids.numel();
    HEDDLE_ASSIGN_OR_RETURN(const Pool pool, PoolOf(ctx.Str("pooltype")));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t segments, CheckIds(ids, count, x));
    Shape shape = x.shape();
    shape[0] = segments;
    const int64_t width = RowSize(x);
    Tensor& out = ctx.Alloc("Out", x.dtype(), shape);
    T* sizes = nullptr;
    if (ctx.HasOut("SummedIds"))
      sizes = ctx.Alloc("SummedIds", x.dtype(), Shape{segments, 1}).template mutable_data<T>();
    if (sizes) ZeroAll(*ctx.OutOpt("SummedIds"));
    ZeroAll(out);
    LookMeter meter;
    for (int64_t begin = 0, end = 0; begin < count; begin = end) {
      for (; end < count && ids[end] == ids[begin]; ++end) meter.Did(1);
      PoolRows(pool, x.data<T>(), begin, end, width, out.mutable_data<T>() + ids[begin] * width);
      if (sizes) sizes[ids[begin]] = static_cast<T>(static_cast<ComputeType<T>>(end - begin));
    }
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
    HEDDLE_ASSIGN_OR_RETURN(const Pool pool, PoolOf(ctx.Str("pooltype")));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t segments, CheckIds(ids, count, x));
    if (dout.numel() != segments * width)
      return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " must have ", segments,
                             " rows");
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

}  // namespace
}  // namespace heddle

HEDDLE_OP(segment_pool) {
  op.Doc("sum, mean, maximum or minimum of the rows of each segment")
      .Input("X")
      .Input("SegmentIds")
      .Output("Out")
      .Output("SummedIds", kOptional)
      .Attr("pooltype", "SUM")
      .Kernels<SegmentPool, float, double, float16, int32_t, int64_t>();
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

HEDDLE_EXAMPLES(segment_pool, R"(
example float32 3x3, pooltype MEAN
attr pooltype STRING "MEAN"
in SegmentIds int32 [3] 0 0 1
in X float32 [3, 3] 4 1 4 5 2 6 1 2 6
out Out float32 [2, 3] 4.5 1.5 5 1 2 6
out SummedIds ?

example float64 3x4, pooltype MIN
attr pooltype STRING "MIN"
in SegmentIds int64 [3] 0 1 2
in X float64 [3, 4] -0.54 -0.38 0.38 0.54 0.84 0.08 -0.08 -0.85 -0.69 -0.23 0.23 0.69
out Out float64 [3, 4] -0.54 -0.38 0.38 0.54 0.84 0.08 -0.08 -0.85 -0.69 -0.23 0.23 0.69
out SummedIds ?

example float32 3x3, pooltype MAX
attr pooltype STRING "MAX"
in SegmentIds int32 [3] 0 0 1
in X float32 [3, 3] 4 1 4 5 2 6 1 2 6
out Out float32 [2, 3] 5 2 6 1 2 6
out SummedIds ?

example float16 3x4, pooltype MEAN
attr pooltype STRING "MEAN"
in SegmentIds int64 [3] 1 1 2
in X float16 [3, 4] 0.08 0.38 -0.38 -0.23 0.84 -0.85 -0.69 -0.08 0.54 0.23 -0.54 0.69
out Out float16 [3, 4] 0*4 0.4597 -0.2351 -0.5347 -0.1549 0.54 0.23 -0.54 0.69
out SummedIds ?
)")

HEDDLE_EXAMPLES(segment_pool_grad, R"(
example float64 3x4, pooltype MEAN
attr pooltype STRING "MEAN"
in Out float64 [2, 4] -0.54 0.54 0.38 -0.08 -0.77 0.22999999999999998 0.155 0.22499999999999998
in Out@GRAD float64 [2, 4] 0.1 0.4 0 0.7 0.3 0.3 -0.6 -0.5
in SegmentIds int64 [3] 0 1 1
in SummedIds float32 [0, 1] none
in X float64 [3, 4] -0.54 0.54 0.38 -0.08 -0.69 -0.23 0.08 0.84 -0.85 0.69 0.23 -0.39
out X@GRAD float64 [3, 4] 0.1 0.4 0 0.7 0.15 0.15 -0.3 -0.25 0.15 0.15 -0.3 -0.25

example float64 3x4, pooltype MIN
attr pooltype STRING "MIN"
in Out float64 [2, 4] -0.54 -0.85 -0.39 0.54 0.08 0.84 0.23 -0.08
in Out@GRAD float64 [2, 4] 0.3 0.8 -0.7 0.2 -0.8 -0.6 -0.5 -0
in SegmentIds int64 [3] 0 0 1
in X float64 [3, 4] -0.23 -0.85 -0.39 0.69 -0.54 -0.69 0.38 0.54 0.08 0.84 0.23 -0.08
out X@GRAD float64 [3, 4] 0 0.8 -0.7 0 0.3 0 -0 0.2 -0.8 -0.6 -0.5 -0

example float64 3x4
in Out float64 [3, 4] 0*4 0.9199999999999999 -0.47 -1.08 -0.31 0.54 0.23 -0.54 0.69
in Out@GRAD float64 [3, 4] 0.4 -0.1 -0.1 -0.4 0.6 -0.9 0.6 0.1 -0.7 -0.1 -0.3 -0.5
in SegmentIds int32 [3] 1 1 2
in X float64 [3, 4] 0.08 0.38 -0.39 -0.23 0.84 -0.85 -0.69 -0.08 0.54 0.23 -0.54 0.69
out X@GRAD float64 [3, 4] 0.6 -0.9 0.6 0.1 0.6 -0.9 0.6 0.1 -0.7 -0.1 -0.3 -0.5
)")
