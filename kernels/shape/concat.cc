#include <array>
#include <span>

#include "core/operands/window.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// One operand: what it gives to each row of the result.
struct RowPart {
  const std::byte* data;
  int64_t bytes, step;  // step: from row to row
};

// An operand in any order of dimensions, into its place in the result.
void CopyPart(const KernelContext& ctx, const Tensor& x, int at, const Tensor& out,
              std::byte* dst) {
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t step = 1;
  for (int d = x.rank() - 1; d >= 0; --d) {
    dims[d] = {x.dim(d), x.strides()[d], step};
    step *= d == at ? out.dim(d) : x.dim(d);
  }
  StridedCopy(SizeOf(x.dtype()), std::span(dims).first(static_cast<size_t>(x.rank())))
      .Run(ctx, x.raw(), dst);
}

Status ConcatShape(ShapeContext& ctx) {
  const int count = ctx.InCount("X");
  if (count == 0) return InvalidArgument("'X' names no tensor");
  for (int i = 0; i < count; ++i)
    if (!ctx.InShape("X", i).known_rank()) return ctx.Defer();
  Shape out = ctx.InShape("X");
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "AxisTensor", "axis", out.rank(), &axis));
  if (out.rank() == 0) return InvalidArgument("'X' must have at least one dimension; use stack");
  if (!axis.known) return ctx.Defer();
  const int at = static_cast<int>(axis.value);
  for (int i = 1; i < count; ++i) {
    const Shape& x = ctx.InShape("X", i);
    bool fits = x.rank() == out.rank();
    for (int d = 0; fits && d < x.rank(); ++d) {
      if (d == at) continue;
      fits = x[d] == out[d] || x[d] < 0 || out[d] < 0;
      if (out[d] < 0) out[d] = x[d];
    }
    if (!fits)
      return InvalidArgument("'X' [", i, "] of shape ", x.ToString(),
                             " cannot be joined along axis ", at, " to ",
                             ctx.InShape("X").ToString());
    out[at] = out[at] < 0 || x[at] < 0 ? -1 : out[at] + x[at];
  }
  ctx.SetOut("Out", out, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

// Rows of the result, each of which takes a piece from every part: written in order, whatever the
// number of parts, and shared out by all of them.
void JoinRows(const KernelContext& ctx, std::span<const RowPart> parts, int64_t rows, int64_t row,
              std::byte* dst) {
  constexpr int64_t kGrainBytes = 64 << 10;
  ctx.ParallelFor(rows, 1 + kGrainBytes / (1 + row), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      std::byte* to = dst + r * row;
      for (const RowPart& part : parts) {
        CopyRow(to, part.data + r * part.step, part.bytes);
        to += part.bytes;
      }
    }
  });
}

Status Concat(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "AxisTensor", "axis", out.rank(), &axis));
  const int at = static_cast<int>(axis.value);
  const auto size = static_cast<int64_t>(SizeOf(out.dtype()));
  const int64_t rows = out.shape().Product(0, at);
  const int64_t inner = out.shape().Product(at + 1, out.rank()) * size;
  const int64_t row = out.dim(at) * inner;
  std::byte* dst = static_cast<std::byte*>(out.mutable_raw());
  const int count = ctx.InCount("X");
  constexpr int kMostParts = 16;
  std::array<RowPart, kMostParts> parts;
  // Long rows are cut, too, which is left to copies of one part after another.
  bool by_rows = count <= kMostParts && row <= (32 << 10) && rows > 1;
  for (int i = 0; i < count; ++i) {
    const Tensor& x = ctx.In("X", i);
    if (x.dtype() != out.dtype())
      return InvalidArgument("'X' [", i, "] is ", Name(x.dtype()), ", but 'X' [0] is ",
                             Name(out.dtype()));
    const int64_t step = RowStep(x, at) * size;
    by_rows = by_rows && step >= 0;
    if (by_rows)
      parts[static_cast<size_t>(i)] = {static_cast<const std::byte*>(x.raw()), x.dim(at) * inner,
                                       step};
  }
  if (by_rows) {
    JoinRows(ctx, std::span(parts).first(static_cast<size_t>(count)), rows, row, dst);
    return Status::Ok();
  }
  for (int i = 0; i < count; ++i) {
    const Tensor& x = ctx.In("X", i);
    const int64_t bytes = x.dim(at) * inner, step = RowStep(x, at) * size;
    if (step >= 0)
      CopyRows(ctx, x.raw(), step, dst, row, rows, bytes);
    else
      CopyPart(ctx, x, at, out, dst);
    dst += bytes;
  }
  return Status::Ok();
}

Status ConcatGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "AxisTensor", "axis", grad.rank(), &axis));
  const int at = static_cast<int>(axis.value);
  const int64_t rows = grad.shape().Product(0, at);
  const int64_t inner =
      grad.shape().Product(at + 1, grad.rank()) * static_cast<int64_t>(SizeOf(grad.dtype()));
  const int64_t row = grad.dim(at) * inner;
  const std::byte* src = static_cast<const std::byte*>(grad.raw());
  int64_t left = row;
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Shape& x = ctx.In("X", i).shape();
    bool fits = x.rank() == grad.rank() && x.dim(at) * inner <= left;
    for (int d = 0; fits && d < x.rank(); ++d) fits = d == at || x[d] == grad.dim(d);
    if (ctx.In("X", i).dtype() != grad.dtype())
      return InvalidArgument("'X' [", i, "] is ", Name(ctx.In("X", i).dtype()),
                             ", but 'Out@GRAD' is ", Name(grad.dtype()));
    if (!fits)
      return InvalidArgument("'X' [", i, "] of shape ", x.ToString(), " is no part of 'Out@GRAD' ",
                             grad.shape().ToString());
    const int64_t bytes = x.dim(at) * inner;
    if (ctx.HasOut("X@GRAD", i))
      CopyRows(ctx, src, row, ctx.Out("X@GRAD", i).mutable_raw(), bytes, rows, bytes);
    src += bytes;
    left -= bytes;
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(concat) {
  op.Doc("The tensors of X one after another along `axis`.")
      .Input("X", kList | kByStrides)
      .Input("AxisTensor", kOptional | kShapeValue)
      .Output("Out")
      .Attr("axis", 0)
      .Traits(kAlongAxis)
      .InferShape(ConcatShape)
      .AnyKernel(Concat);
}
HEDDLE_OP(concat_grad) {
  op.Input("Out@GRAD")
      .Input("X", kList | kNoBuffer)
      .Input("AxisTensor", kOptional)
      .Output("X@GRAD", kList)
      .Attr("axis", 0)
      .InferShape(GradLikeInputs)
      .AnyKernel(ConcatGrad);
}
