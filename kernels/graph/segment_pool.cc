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
