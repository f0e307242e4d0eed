// cummax and cummin: the running extreme element and where it was seen last.
#include <algorithm>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/threads/look_meter.h"
#include "kernels/base/check.h"
#include "kernels/reduce/along_line.h"

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
  if (x.known_rank()) HEDDLE_RETURN_IF_ERROR(NormalAxis(ctx.Int("axis"), x.rank()).status());
  const DType dtype = DTypeFromProto(ctx.Int("dtype"));
  if (dtype != DType::kI32 && dtype != DType::kI64)
    return InvalidArgument("attribute dtype is ", ctx.Int("dtype"),
                           ", expected 2 (int32) or 3 (int64)");
  ctx.SetOut("out", x, ctx.InDType("x"));
  ctx.SetOut("indices", x, dtype);
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
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&dx}));
    if (dout.numel() != dx.numel() || index.numel() != dx.numel())
      return InvalidArgument("indices and out@GRAD must have x's shape ", dx.shape().ToString());
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(dx.shape(), ctx.Int("axis")));
    WatchedFill(dx.mutable_data<T>(), dx.numel(), T(0));
    T* d = dx.mutable_data<T>();
    if (index.dtype() == DType::kI32)
      return Scatter(lines, index.data<int32_t>(), dout.data<T>(), d);
    if (index.dtype() == DType::kI64)
      return Scatter(lines, index.data<int64_t>(), dout.data<T>(), d);
    return InvalidArgument("indices must be int32 or int64, got ", Name(index.dtype()));
  }
};

template <typename Cmp>
void Define(OpDef& op, const char* doc) {
  op.Doc(doc).Input("x").Output("out").Output("indices").Attr("axis", -1).Attr("dtype", 3);
  op.InferShape(&InferCumExtreme);
  op.Kernels<Extreme<Cmp>::template Kernel, float, double, int32_t, int64_t>();
}

void DefineGrad(OpDef& op, const char* doc) {
  op.Doc(doc).Input("x", kNoBuffer).Input("indices").Input("out@GRAD").Output("x@GRAD");
  op.Attr("axis", -1).Attr("dtype", 3).KernelKey("out@GRAD").InferShape(&GradLikeInputs);
  op.Kernels<CumExtremeGrad, float, double, int32_t, int64_t>();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(cummax) { Define<CumMax>(op, "running maximum along an axis, and its position"); }
HEDDLE_OP(cummin) { Define<CumMin>(op, "running minimum along an axis, and its position"); }
HEDDLE_OP(cummax_grad) { DefineGrad(op, "gradient of cummax"); }
HEDDLE_OP(cummin_grad) { DefineGrad(op, "gradient of cummin"); }

HEDDLE_EXAMPLES(cummax, R"(
example float32 2x4, axis -2, dtype 2
attr axis INT -2
attr dtype INT 2
in x float32 [2, 4] 0.52 -0.52 0.17 0.86 -1.21 -0.17 -0.86 1.21
out indices int32 [2, 4] 0*5 1 0 1
out out float32 [2, 4] 0.52 -0.52 0.17 0.86 0.52 -0.17 0.17 1.21

example float64 4x4, dtype 2
attr dtype INT 2
in x float64 [4, 4] 0.351 0.177 0.814 0.582 0.409 0.93 0.293 0.64 0.525 0.756 0.119 0.698 0.061
  0.872 0.467 0.235
out indices int32 [4, 4] 0 0 2 2 0 1 1 1 0 1 1 1 0 1 1 1
out out float64 [4, 4] 0.351 0.351 0.814 0.814 0.409 0.93 0.93 0.93 0.525 0.756 0.756 0.756 0.061
  0.872 0.872 0.872
)")

HEDDLE_EXAMPLES(cummin, R"(
example float32 4, axis 0, dtype 2
attr axis INT 0
attr dtype INT 2
in x float32 [4] 0.24 -0.24 -0.72 0.72
out indices int32 [4] 0 1 2 2
out out float32 [4] 0.24 -0.24 -0.72 -0.72

example float32 4x3, axis -2, dtype 2
attr axis INT -2
attr dtype INT 2
in x float32 [4, 3] -0.99 0.71 -0.42 -0.71 0.14 -0.14 -1.56 0.42 0.99 1.27 1.56 -1.27
out indices int32 [4, 3] 0*4 1 0 2 1 0 2 1 3
out out float32 [4, 3] -0.99 0.71 -0.42 -0.99 0.14 -0.42 -1.56 0.14 -0.42 -1.56 0.14 -1.27

example float64 4x4, axis -2
attr axis INT -2
in x float64 [4, 4] 0.525 0.293 0.235 0.119 0.698 0.409 0.872 0.061 0.93 0.582 0.756 0.351 0.814
  0.467 0.177 0.64
out indices int64 [4, 4] 0*7 1 0 0 0 1 0 0 3 1
out out float64 [4, 4] 0.525 0.293 0.235 0.119 0.525 0.293 0.235 0.061 0.525 0.293 0.235 0.061 0.525
  0.293 0.177 0.061
)")

HEDDLE_EXAMPLES(cummax_grad, R"(
example int64 2x1, axis -2
attr axis INT -2
in indices int64 [2, 1] 0 0
in out@GRAD float64 [2, 1] 0.3 -0
in x float64 [2, 1] 0.2 -0.51
out x@GRAD float64 [2, 1] 0.3 0

example int32 2x4, axis -2, dtype 2
attr axis INT -2
attr dtype INT 2
in indices int32 [2, 4] 0*6 1 0
in out@GRAD float64 [2, 4] -0.1 -0.4 -0.5 0.8 -0.6 0.9 -0.9 0.5
in x float64 [2, 4] 0.17 0.86 -1.21 -0.17 -0.86 0.52 1.21 -0.52
out x@GRAD float64 [2, 4] -0.7 0.5 -0.5 1.3 0 0 -0.9 0

example int64 2x1, axis -2, no. 2
attr axis INT -2
in indices int64 [2, 1] 0 0
in out@GRAD float32 [2, 1] 0.3 -0
in x float32 [2, 1] 0.2 -0.51
out x@GRAD float32 [2, 1] 0.3 0
)")

HEDDLE_EXAMPLES(cummin_grad, R"(
example int32 4x3, axis -2, dtype 2
attr axis INT -2
attr dtype INT 2
in indices int32 [4, 3] 0*4 1 1 0 1 2 0 1 2
in out@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
in x float64 [4, 3] -0.99 0.99 0.71 -0.14 -1.27 -0.42 0.14 1.56 -1.56 1.27 0.42 -0.71
out x@GRAD float64 [4, 3] -0.9 -0.5 0.2 0 0.7 0 0 0 -1.8 0 0 0

example int64 4x4, axis -2
attr axis INT -2
in indices int64 [4, 4] 0*7 1 0 0 0 1 0 0 3 1
in out@GRAD float64 [4, 4] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0 -0.3
in x float64 [4, 4] 0.535 0.304 0.247 0.131 0.707 0.419 0.88 0.074 0.938 0.592 0.765 0.362 0.823
  0.477 0.189 0.65
out x@GRAD float64 [4, 4] 2.6 -2 -2.8 -0.2 0 0 0 0.3000000000000001 0*8
)")
