#include <array>
#include <span>

#include "core/operands/window.h"
#include "core/shapes.h"
#include "kernels/index/index_args.h"
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

HEDDLE_EXAMPLES(concat, R"(
example an axis of 8 bits
in AxisTensor int8 [1] -1
in X float32 [2, 1] 1 2
in X float32 [2, 2] 3 4 5 6
out Out float32 [2, 3] 1 3 4 2 5 6

example float32 1x4, axis 1
attr axis INT 1
in AxisTensor int32 [1] 1
in X float32 [1, 2] 0.666 0.633
in X float32 [1, 4] 0.461 0.095 0.278 -0.087
in X float32 [1, 1] 0.724
in X float32 [1, 1] 0.233
out Out float32 [1, 8] 0.666 0.633 0.461 0.095 0.278 -0.087 0.724 0.233

example bool 3, axis -1
attr axis INT -1
in AxisTensor int32 [1] -1
in X bool [3] 0 1 0
in X bool [1] 1
out Out bool [4] 0 1 0 1

example float64 3, axis -1
attr axis INT -1
in X float64 [3] -1.12 -0.82 -1.3
out Out float64 [3] -1.12 -0.82 -1.3

example float64 1x3x4, axis 1
attr axis INT 1
in X float64 [1, 1, 4] -0.37 0.06 0.28 -0.15
in X float64 [1, 1, 4] -0.37 -0.03 0.3 0.64
in X float64 [1, 3, 4] -0.06 -0.49 -0.64 -0.78 0.52 -0.21 -0.35 0.23 0.8 0.66 0.37 0.08
in X float64 [1, 1, 4] 0.812 0.282 0.459 0.635
out Out float64 [1, 6, 4] -0.37 0.06 0.28 -0.15 -0.37 -0.03 0.3 0.64 -0.06 -0.49 -0.64 -0.78 0.52
  -0.21 -0.35 0.23 0.8 0.66 0.37 0.08 0.812 0.282 0.459 0.635

example int64 1x4, axis 1
attr axis INT 1
in AxisTensor int32 [1] 1
in X int64 [1, 2] 1 1
in X int64 [1, 4] 0*4
in X int64 [1, 1] 1
in X int64 [1, 1] 1
out Out int64 [1, 8] 1 1 0*4 1 1

example complex64 1x4, axis 1
attr axis INT 1
in AxisTensor int32 [1] 1
in X complex64 [1, 2] 0.666+0.8j 0.633+0.3j
in X complex64 [1, 4] 0.461+0.5j 0.095-0.7j 0.278-0.8j -0.087+0.6j
in X complex64 [1, 1] 0.724-0.3j
in X complex64 [1, 1] 0.233+0.1j
out Out complex64 [1, 8] 0.666+0.8j 0.633+0.3j 0.461+0.5j 0.095-0.7j 0.278-0.8j -0.087+0.6j
  0.724-0.3j 0.233+0.1j

example bfloat16 1x4, axis 1
attr axis INT 1
in AxisTensor int32 [1] 1
in X bfloat16 [1, 2] 0.664 0.633
in X bfloat16 [1, 4] 0.46 0.095 0.277 -0.087
in X bfloat16 [1, 1] 0.723
in X bfloat16 [1, 1] 0.233
out Out bfloat16 [1, 8] 0.664 0.633 0.46 0.095 0.277 -0.087 0.723 0.233

example float16 1x4, axis 1
attr axis INT 1
in AxisTensor int32 [1] 1
in X float16 [1, 2] 0.666 0.633
in X float16 [1, 4] 0.461 0.095 0.278 -0.087
in X float16 [1, 1] 0.724
in X float16 [1, 1] 0.233
out Out float16 [1, 8] 0.666 0.633 0.461 0.095 0.278 -0.087 0.724 0.233
)")

HEDDLE_EXAMPLES(concat_grad, R"(
example float64 1x8, axis 1
attr axis INT 1
in AxisTensor int32 [1] 1
in Out@GRAD float64 [1, 8] 0.7 -0.6 -0.1 0.3 0.9 -0.6 0.2 0.8
in X float64 [1, 2] 0.753 0.848
in X float64 [1, 4] -0.087 0.278 0.461 0.095
in X float64 [1, 1] 0.724
in X float64 [1, 1] 0.233
out X@GRAD float64 [1, 2] 0.7 -0.6
out X@GRAD float64 [1, 4] -0.1 0.3 0.9 -0.6
out X@GRAD float64 [1, 1] 0.2
out X@GRAD float64 [1, 1] 0.8

example float64 12
in AxisTensor int32 [1] 0
in Out@GRAD float64 [12] 0.1 -0.8 0.4 -0.5 0.9 -0 -0.2 -0.9 0.6 0.2 -0.3 0.7
in X float64 [4] 0.604 0.408 0.212 0.8
in X float64 [4] 0.2 0.791 0.397 0.594
in X float64 [4] 0.6 0.402 0.204 0.798
out X@GRAD float64 [4] 0.1 -0.8 0.4 -0.5
out X@GRAD float64 [4] 0.9 -0 -0.2 -0.9
out X@GRAD float64 [4] 0.6 0.2 -0.3 0.7

example float64 1x6x4, axis 1
attr axis INT 1
in Out@GRAD float64 [1, 6, 4] 0.7 -0.6 -0.1 0.3 0.9 -0.6 0.2 0.8 -0.5 0.5 0.3 0.6 0.8 -0.3 0.2 0 0.3
  0.3 -1 0 0.4 0.8 -0.1 -0.5
in X float64 [1, 1, 4] -0.37 0.28 0.06 -0.15
in X float64 [1, 1, 4] -0.37 0.64 0.3 -0.03
in X float64 [1, 3, 4] -0.06 -0.49 0.37 0.23 0.08 -0.35 -0.78 -0.21 -0.64 0.8 0.66 0.52
in X float64 [1, 1, 4] 0.282 0.459 0.635 0.812
out X@GRAD float64 [1, 1, 4] 0.7 -0.6 -0.1 0.3
out X@GRAD float64 [1, 1, 4] 0.9 -0.6 0.2 0.8
out X@GRAD float64 [1, 3, 4] -0.5 0.5 0.3 0.6 0.8 -0.3 0.2 0 0.3 0.3 -1 0
out X@GRAD float64 [1, 1, 4] 0.4 0.8 -0.1 -0.5

example float32 1x8, axis 1
attr axis INT 1
in AxisTensor int32 [1] 1
in Out@GRAD float32 [1, 8] 0.7 -0.6 -0.1 0.3 0.9 -0.6 0.2 0.8
in X float32 [1, 2] 0.753 0.848
in X float32 [1, 4] -0.087 0.278 0.461 0.095
in X float32 [1, 1] 0.724
in X float32 [1, 1] 0.233
out X@GRAD float32 [1, 2] 0.7 -0.6
out X@GRAD float32 [1, 4] -0.1 0.3 0.9 -0.6
out X@GRAD float32 [1, 1] 0.2
out X@GRAD float32 [1, 1] 0.8
)")
