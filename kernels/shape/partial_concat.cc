// partial_concat and partial_sum: the same columns of several matrices, side by side or added up.
#include <algorithm>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

struct Columns {
  int64_t begin, count;
};
Result<Columns> ColumnsOf(const OpContext& ctx, const Shape& x) {
  const int64_t width = x[1], start = ctx.Int("start_index"), length = ctx.Int("length");
  const int64_t begin = start < 0 ? start + width : start;
  const int64_t count = length < 0 ? width - begin : length;
  if (begin < 0 || begin > width || count > width - begin)
    return InvalidArgument("columns from ", start, ", ", length, " of them, do not fit X ",
                           x.ToString());
  return Columns{begin, count};
}

Status CheckInputs(const ShapeContext& ctx) {
  const Shape& first = ctx.InShape("X");
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Shape& x = ctx.InShape("X", i);
    if (x.rank() != 2 || !(x == first) || ctx.InDType("X", i) != ctx.InDType("X"))
      return InvalidArgument("X[", i, "] has shape ", x.ToString(), ", X[0] ", first.ToString(),
                             "; expected equal matrices");
  }
  return Status::Ok();
}

template <bool kSum>
Status PartialShape(ShapeContext& ctx) {
  for (int i = 0; i < ctx.InCount("X"); ++i)
    if (!ctx.InShape("X", i).is_static()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckInputs(ctx));
  const Shape& x = ctx.InShape("X");
  HEDDLE_ASSIGN_OR_RETURN(const Columns c, ColumnsOf(ctx, x));
  ctx.SetOut("Out", {x[0], c.count * (kSum ? 1 : ctx.InCount("X"))}, ctx.InDType("X"));
  return Status::Ok();
}

// Rows of Out and of each X are `step` and `width` apart.
template <bool kSum, typename T>
Status RunPartial(KernelContext& ctx) {
  const Shape& shape = ctx.In("X").shape();
  HEDDLE_ASSIGN_OR_RETURN(const Columns c, ColumnsOf(ctx, shape));
  const int n = ctx.InCount("X");
  const int64_t step = c.count * (kSum ? 1 : n);
  T* out = ctx.Out("Out").template mutable_data<T>();
  for (const int64_t r : Watched(shape[0]))
    for (int i = 0; i < n; ++i) {
      const T* x = ctx.In("X", i).template data<T>() + r * shape[1] + c.begin;
      T* to = out + r * step + (kSum ? 0 : i * c.count);
      for (int64_t k = 0; k < c.count; ++k) to[k] = kSum && i > 0 ? to[k] + x[k] : x[k];
    }
  return Status::Ok();
}
template <typename T>
struct PartialConcat {
  static Status Run(KernelContext& ctx) { return RunPartial<false, T>(ctx); }
};
template <typename T>
struct PartialSum {
  static Status Run(KernelContext& ctx) { return RunPartial<true, T>(ctx); }
};

template <bool kSum>
Status PartialGradShape(ShapeContext& ctx) {
  for (int i = 0; i < ctx.InCount("X"); ++i)
    if (!ctx.InShape("X", i).is_static()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckInputs(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const Columns c, ColumnsOf(ctx, ctx.InShape("X")));
  const Shape want{ctx.InShape("X")[0], c.count * (kSum ? 1 : ctx.InCount("X"))};
  if (ctx.InShape("Out@GRAD").is_static() && !(ctx.InShape("Out@GRAD") == want))
    return InvalidArgument("Out@GRAD has shape ", ctx.InShape("Out@GRAD").ToString(), ", expected ",
                           want.ToString());
  if (ctx.InDType("Out@GRAD") != ctx.InDType("X"))
    return InvalidArgument("Out@GRAD is ", Name(ctx.InDType("Out@GRAD")), ", X ",
                           Name(ctx.InDType("X")));
  for (int i = 0; i < ctx.InCount("X"); ++i)
    if (ctx.HasOut("X@GRAD", i)) ctx.SetOut("X@GRAD", ctx.InShape("X", i), ctx.InDType("X", i), i);
  return Status::Ok();
}

template <bool kSum>
Status RunPartialGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  const auto element = static_cast<int64_t>(SizeOf(grad.dtype()));
  for (int i = 0; i < ctx.OutCount("X@GRAD"); ++i) {
    Tensor* out = ctx.OutOpt("X@GRAD", i);
    if (out == nullptr || out->numel() == 0) continue;
    HEDDLE_ASSIGN_OR_RETURN(const Columns c, ColumnsOf(ctx, out->shape()));
    ZeroBytes(ctx, out->mutable_raw(), out->bytes());
    if (grad.numel() == 0) continue;
    CopyRows(ctx, grad.data<std::byte>() + (kSum ? 0 : i * c.count * element),
             grad.dim(1) * element, out->mutable_data<std::byte>() + c.begin * element,
             out->dim(1) * element, out->dim(0), c.count * element);
  }
  return Status::Ok();
}

void DeclareGrad(OpDef& op) {
  op.Input("X", kList | kNoBuffer).Input("Out@GRAD").Output("X@GRAD", kList | kOptional);
  op.Attr("start_index", 0).Attr("length", -1);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(partial_concat) {
  op.Doc("columns start_index to start_index + length of every X, side by side");
  op.Input("X", kList).Output("Out").Attr("start_index", 0).Attr("length", -1);
  op.InferShape(PartialShape<false>);
  op.Kernels<PartialConcat, float, double, int32_t, int64_t, std::complex<float>,
             std::complex<double>>();
}
HEDDLE_OP(partial_concat_grad) {
  DeclareGrad(op);
  op.InferShape(PartialGradShape<false>).AnyKernel(RunPartialGrad<false>);
}
HEDDLE_OP(partial_sum) {
  op.Doc("columns start_index to start_index + length of every X, added up");
  op.Input("X", kList).Output("Out").Attr("start_index", 0).Attr("length", -1);
  op.InferShape(PartialShape<true>).Kernels<PartialSum, float, double, int32_t, int64_t>();
}
HEDDLE_OP(partial_sum_grad) {
  DeclareGrad(op);
  op.InferShape(PartialGradShape<true>).AnyKernel(RunPartialGrad<true>);
}
