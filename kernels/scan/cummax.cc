// cummax and cummin: the running extreme element and where it was seen last.
#include <algorithm>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/threads/look_meter.h"
#include "kernels/base/along_line.h"
#include "kernels/base/check.h"

namespace heddle {
namespace {

struct CumMax {
  template <typename T>
  static bool Takes(T x, T best) {
    return x >= best;
  }
};
struct CumMin {
  template <typename T>
  static bool Takes(T x, T best) {
    return x <= best;
  }
};

template <typename Cmp, typename T, typename Index>
void Scan(const KernelContext& ctx, const AxisLines& lines, const T* x, T* out, Index* indices) {
  lines.ForEach(ctx, 4, [&](int64_t line) {
    T best = lines.n > 0 ? x[lines.Begin(line)] : T(0);
    Index index = 0;
    AlongLine(lines, line, [&](int64_t i, int64_t at) {
      if (IsNan(x[at]) || (!IsNan(best) && Cmp::Takes(x[at], best))) {  // NaN stays
        best = x[at];
        index = static_cast<Index>(i);
      }
      out[at] = best;
      indices[at] = index;
    });
  });
}

template <typename Cmp>
struct Extreme {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      const Tensor& x = ctx.In("x");
      HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x.shape(), ctx.Int("axis")));
      T* out = ctx.Out("out").template mutable_data<T>();
      Tensor& indices = ctx.Out("indices");
      if (indices.dtype() == DType::kI32)
        Scan<Cmp>(ctx, lines, x.data<T>(), out, indices.mutable_data<int32_t>());
      else
        Scan<Cmp>(ctx, lines, x.data<T>(), out, indices.mutable_data<int64_t>());
      return Status::Ok();
    }
  };
};

Status InferCumExtreme(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("x");
  ctx.SetOut("out", x, ctx.InDType("x"));
  ctx.SetOut("indices", x, DTypeFromProto(ctx.Int("dtype")));
  ctx.ShareLoD("x", "out");
  ctx.ShareLoD("x", "indices");
  return Status::Ok();
}

template <typename T, typename Index>
Status Scatter(const AxisLines& lines, const Index* index, const T* dout, T* dx) {
  LookMeter meter;
  for (int64_t l = 0; l < lines.lines(); ++l) {
    const int64_t begin = lines.Begin(l);
    for (int64_t i = 0, at = begin; i < lines.n; ++i, at += lines.inner) {
      meter.Did(2);
      if (index[at] < 0 || index[at] >= lines.n)
        return OutOfRange("indices holds ", index[at], ", expected 0 to ", lines.n - 1);
      dx[begin + index[at] * lines.inner] += dout[at];
    }
  }
  return Status::Ok();
}

template <typename T>
struct CumExtremeGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& dout = ctx.In("out@GRAD");
    const Tensor& index = ctx.In("indices");
    Tensor& dx = ctx.Out("x@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(dx.shape(), ctx.Int("axis")));
    WatchedFill(dx.mutable_data<T>(), dx.numel(), T(0));
    T* d = dx.mutable_data<T>();
    if (index.dtype() == DType::kI32)
      return Scatter(lines, index.data<int32_t>(), dout.data<T>(), d);
    return Scatter(lines, index.data<int64_t>(), dout.data<T>(), d);
  }
};

template <typename Cmp>
void Define(OpDef& op, const char* doc) {
  op.Doc(doc).Input("x").Output("out").Output("indices").Attr("axis", -1).Attr("dtype", 3);
  op.InferShape(&InferCumExtreme).Contract("axis: axis x; dtype: 2..3");
  op.Kernels<Extreme<Cmp>::template Kernel, float, double, int32_t, int64_t>();
}

void DefineGrad(OpDef& op, const char* doc) {
  op.Doc(doc).Input("x", kNoBuffer).Input("indices").Input("out@GRAD").Output("x@GRAD");
  op.Attr("axis", -1).Attr("dtype", 3).KernelKey("out@GRAD");
  op.Contract(
      "x: as out@GRAD; indices: index count x; out@GRAD: count x; axis: axis x; x@GRAD: like x");
  op.Kernels<CumExtremeGrad, float, double, int32_t, int64_t>();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(cummax) { Define<CumMax>(op, "running maximum along an axis, and its position"); }
HEDDLE_OP(cummin) { Define<CumMin>(op, "running minimum along an axis, and its position"); }
HEDDLE_OP(cummax_grad) { DefineGrad(op, "gradient of cummax"); }
HEDDLE_OP(cummin_grad) { DefineGrad(op, "gradient of cummin"); }
