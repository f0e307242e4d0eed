// lookup_table_v2 and lookup_table: rows of a table by id, and the table's gradient.
#include <algorithm>

#include "core/interrupts.h"
#include "core/operands/addend.h"
#include "core/operands/any_address.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/index/gather_rows.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Row length of the table: dimension 1, of a tensor or of selected rows.
const Tensor* Table(const Value* w) {
  if (w == nullptr || w->is_array()) return nullptr;
  if (w->is_rows()) return w->initialized() ? &w->rows().value : nullptr;
  return &w->tensor();
}

Status LookupShape(ShapeContext& ctx, bool drops_last) {
  const Tensor* w = Table(ctx.InVar("W"));
  const Shape& ids = ctx.InShape("Ids");
  if (w == nullptr || !w->shape().known_rank() || !ids.known_rank()) return ctx.Defer();
  if (w->rank() != 2)
    return InvalidArgument("'W' must be a matrix, not of shape ", w->shape().ToString());
  Shape out = ids;
  if (drops_last) {
    if (ids.rank() < 1 || (ids.dim(-1) != 1 && ids.dim(-1) >= 0))
      return InvalidArgument("the last dimension of 'Ids' must be 1, not ", ids.ToString());
    out.erase(ids.rank() - 1);
  } else if (ids.rank() == Shape::kMaxRank) {
    return InvalidArgument("'Ids' has too many dimensions");
  }
  out.push_back(w->dim(1));
  ctx.SetOut("Out", out, w->dtype());
  ctx.ShareLoD("Ids", "Out");
  return Status::Ok();
}
Status LookupV2Shape(ShapeContext& ctx) { return LookupShape(ctx, false); }
Status LookupV1Shape(ShapeContext& ctx) { return LookupShape(ctx, true); }

IndexRange RangeOf(const KernelContext& ctx, int64_t rows) {
  IndexRange range;
  range.size = rows;
  range.padding = ctx.Int("padding_idx");
  return range;
}

// The table is given as some of its rows: ids are looked for among them.
Status LookupRows(KernelContext& ctx, const SelectedRows& w, const Tensor& ids, Tensor& out) {
  HEDDLE_RETURN_IF_ERROR(CheckIndices(ids, RangeOf(ctx, w.height), "Ids"));
  Tensor places = ctx.Scratch(DType::kI64, ids.shape());
  const int64_t padding = ctx.Int("padding_idx");
  for (const int64_t i : Watched(ids.numel())) {
    const int64_t id = ids.dtype() == DType::kI64 ? ids.data<int64_t>()[i] : ids.data<int32_t>()[i];
    const auto found = std::find(w.rows.begin(), w.rows.end(), id);
    if (found == w.rows.end() && id != padding)
      return OutOfRange("'Ids' holds ", id, ", which is none of the table's selected rows");
    places.mutable_data<int64_t>()[i] = id == padding ? -1 : found - w.rows.begin();
  }
  IndexRange range;
  range.size = static_cast<int64_t>(w.rows.size());
  range.allow_any = true;
  const int64_t row = w.value.dim(1) * static_cast<int64_t>(SizeOf(w.value.dtype()));
  GatherRows(ctx, w.value.raw(), places, range, 1, row, out.mutable_raw());
  return Status::Ok();
}

Status Lookup(KernelContext& ctx) {
  const Tensor& ids = ctx.In("Ids");
  Tensor& out = ctx.Out("Out");
  const Value* var = ctx.InVar("W");
  if (var != nullptr && var->is_rows()) return LookupRows(ctx, var->rows(), ids, out);
  const Tensor& w = ctx.In("W");
  const IndexRange range = RangeOf(ctx, w.dim(0));
  HEDDLE_RETURN_IF_ERROR(CheckIndices(ids, range, "Ids"));
  const int64_t row = w.dim(1) * static_cast<int64_t>(SizeOf(w.dtype()));
  GatherRows(ctx, w.raw(), ids, range, 1, row, out.mutable_raw());
  return Status::Ok();
}

Status GradShape(ShapeContext& ctx) {
  if (ctx.Bool("is_sparse") && ctx.HasIn("AddendOfW"))
    return InvalidArgument("'AddendOfW' cannot be added to a sparse gradient");
  if (ctx.Bool("is_sparse")) return ctx.Defer();  // the kernel makes selected rows
  return GradLikeInputs(ctx);
}

// One row of the gradient per id; equal ids stay apart.
Status SparseGrad(KernelContext& ctx, const Tensor& ids, const Tensor& grad, int64_t height,
                  int64_t width) {
  SelectedRows& out = ctx.OutVar("W@GRAD")->mutable_rows();
  const int64_t n = ids.numel();
  out.height = height;
  out.rows.resize(static_cast<size_t>(n));
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i)
      out.rows[static_cast<size_t>(i)] =
          ids.dtype() == DType::kI64 ? ids.data<int64_t>()[i] : ids.data<int32_t>()[i];
  out.value = ctx.Scratch(grad.dtype(), Shape{n, width});
  CopyBytes(ctx, grad.raw(), out.value.mutable_raw(), grad.bytes());
  return Status::Ok();
}

Status LookupGrad(KernelContext& ctx) {
  const Tensor& ids = ctx.In("Ids");
  const Tensor& grad = ctx.In("Out@GRAD");
  const Value* var = ctx.InVar("W");
  const Tensor* w = Table(var);
  if (w == nullptr || w->rank() != 2) return InvalidArgument("'W' must be a matrix");
  const int64_t height = var->is_rows() ? var->rows().height : w->dim(0);
  const IndexRange range = RangeOf(ctx, height);
  HEDDLE_RETURN_IF_ERROR(CheckIndices(ids, range, "Ids"));
  if (grad.numel() != ids.numel() * w->dim(1))
    return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(), " does not fit 'Ids' ",
                           ids.shape().ToString(), " and a row length of ", w->dim(1));
  if (ctx.Bool("is_sparse")) return SparseGrad(ctx, ids, grad, height, w->dim(1));
  Tensor& out = ctx.Out("W@GRAD");
  const Tensor* const addend = ctx.InOpt("AddendOfW");
  if (addend == nullptr)
    ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  else if (addend->shape() != out.shape() || addend->dtype() != out.dtype())
    return InvalidArgument("'AddendOfW' is ", Name(addend->dtype()), " ",
                           addend->shape().ToString(), ", expected ", Name(out.dtype()), " ",
                           out.shape().ToString());
  else if (addend->raw() != out.raw())
    CopyBytes(ctx, addend->raw(), out.mutable_raw(), out.bytes());
  return ScatterAddRows(ctx, grad.raw(), ids, range, 1, w->dim(1), grad.dtype(), out.mutable_raw());
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(lookup_table_v2) {
  op.Doc("Rows of W named by Ids; padding_idx (unless -1) stands for a row of zeros.")
      .Input("W", kAnyKind | kTakesRows | kAnyAddress)
      .Input("Ids")
      .Output("Out")
      .Attr("padding_idx", -1)
      .Attr("is_sparse", false)
      .InferShape(LookupV2Shape)
      .AnyKernel(Lookup);
}
HEDDLE_OP(lookup_table_v2_grad) {
  op.Input("Out@GRAD")
      .Input("Ids")
      .Input("W", kNoBuffer)
      .Input("AddendOfW", kOptional | kAddend)
      .Output("W@GRAD", kTakesRows)
      .Inplace("AddendOfW", "W@GRAD")
      .Attr("padding_idx", -1)
      .Attr("is_sparse", false)
      .InferShape(GradShape)
      .AnyKernel(LookupGrad);
}
HEDDLE_OP(lookup_table) {
  op.Doc("lookup_table_v2 whose Ids have a last dimension of 1.")
      .Input("W", kAnyKind | kTakesRows | kAnyAddress)
      .Input("Ids")
      .Output("Out")
      .Attr("padding_idx", -1)
      .Attr("is_sparse", false)
      .InferShape(LookupV1Shape)
      .AnyKernel(Lookup);
}
HEDDLE_OP(lookup_table_grad) {
  op.Input("Out@GRAD")
      .Input("Ids")
      .Input("W", kNoBuffer)
      .Input("AddendOfW", kOptional | kAddend)
      .Output("W@GRAD", kTakesRows)
      .Inplace("AddendOfW", "W@GRAD")
      .Attr("padding_idx", -1)
      .Attr("is_sparse", false)
      .InferShape(GradShape)
      .AnyKernel(LookupGrad);
}

HEDDLE_EXAMPLES(lookup_table_v2, R"(
example bfloat16 3x3, no is_sparse, padding_idx 11
attr is_sparse BOOLEAN false
attr padding_idx LONG 11
in Ids int64 [2] 11 11
in W bfloat16 [3, 3] 0.2 0.7 0.3 0.1 0.7 0.9 0.7 0.8 0.8
out Out bfloat16 [2, 3] 0*6

example float32 7x2 rows
in Ids int32 [4] 0 4 3 5
in W float32 [7, 2] rows [0, 1, 2, 3, 4, 5, 6] height 7 0 3 3 6 1 4 0 5 1 5 0 1 3 4
out Out float32 [4, 2] 0 3 1 5 0 5 0 1

example float32 4x3, no is_sparse
attr is_sparse BOOLEAN false
in Ids int64 [1] 3
in W float32 [4, 3] 0.82 0.07 0.37 -0.08 0.67 0.52 -0.52 -0.67 -0.82 0.22 -0.37 -0.23
out Out float32 [1, 3] 0.22 -0.37 -0.23

example float64 6x9, no is_sparse
attr is_sparse BOOLEAN false
in Ids int64 [3] 2 4 2
in W float64 [6, 9] 0.68 -0.24 -0.38 0.08 0.29 -0.41 -0.27 0.01 0.36 0.93 0.54 -0.2 0.19 -0.87 0.22
  0.61 0.4 0.89 0.75 -0.31 -0.34 -0.66 -0.17 -0.63 -0.59 0.86 -0.56 -0.49 -0.77 -0.84 -0.45 0.15
  0.82 0.33 -0.1 -0.8 -0.73 -0.03 0.12 0.04 -0.52 0.72 0.57 0.26 -0.06 -0.7 0.65 -0.91 0.47 -0.13
  0.5 0.79 0.43 -0.94
out Out float64 [3, 9] 0.75 -0.31 -0.34 -0.66 -0.17 -0.63 -0.59 0.86 -0.56 -0.73 -0.03 0.12 0.04
  -0.52 0.72 0.57 0.26 -0.06 0.75 -0.31 -0.34 -0.66 -0.17 -0.63 -0.59 0.86 -0.56
)")

HEDDLE_EXAMPLES(lookup_table_v2_grad, R"(
example added to what is there
gradient none: the addend is no part of the gradient
in AddendOfW float32 [3, 2] 1 2 3 4 5 6
in Ids int64 [3] 2 0 2
in Out@GRAD float32 [3, 2] 0.5 -1 0.25 8 2 0.125
in W float32 [3, 2] 0.1 0.2 0.3 0.4 0.5 0.6
from lookup_table_v2_grad Ids=Ids Out@GRAD=Out@GRAD W=W -> W@GRAD=t
from elementwise_add X=t Y=AddendOfW -> Out=W@GRAD
out W@GRAD float32 [3, 2] 1.25 10 3 4 7.5 5.125

example float64 3x3, no is_sparse
attr is_sparse BOOLEAN false
in Ids int64 [1, 1] 0
in Out@GRAD float64 [1, 1, 3] -1 0.9 -0.1
in W float64 [3, 3] -0.3900497021093728 -0.25 0.73 0.59 0.31 0.03 0.17 -0.11 0.45
out W@GRAD float64 [3, 3] -1 0.9 -0.1 0*6

example bfloat16 3x3, no is_sparse
attr is_sparse BOOLEAN false
in Ids int64 [2] 1 1
in Out@GRAD bfloat16 [2, 3] 0.7 0.6 0.5 0.6 0.1 0.3
in W bfloat16 [3, 3] 0.7 0.9 0.7 0.2 0.9 0.2 0.7 0.4 0.2
out W@GRAD bfloat16 [3, 3] 0 0 0 1.3 0.7 0.8 0 0 0

example float64 1x4x2, is_sparse
attr is_sparse BOOLEAN true
in Ids int64 [1, 4] 0 1 0 0
in Out@GRAD float64 [1, 4, 2] 0.2 -0.7 -0.1 0.5 -0.4 -0.7 -1 -0.2
in W float64 [3, 2] 0.857 0.573 0.431 0.148 0.29 0.715
out W@GRAD float64 [4, 2] rows [0, 1, 0, 0] height 3 0.2 -0.7 -0.1 0.5 -0.4 -0.7 -1 -0.2

example float32 3x3, no is_sparse
attr is_sparse BOOLEAN false
in Ids int64 [1, 1] 0
in Out@GRAD float32 [1, 1, 3] -1 0.9 -0.1
in W float32 [3, 3] -0.3900497 -0.25 0.73 0.59 0.31 0.03 0.17 -0.11 0.45
out W@GRAD float32 [3, 3] -1 0.9 -0.1 0*6
)")

HEDDLE_EXAMPLES(lookup_table, R"(
example float64 3x3, padding_idx 11
attr padding_idx LONG 11
in Ids int64 [2, 1] 11 11
in W float64 [3, 3] 0.399 0.599 0.499 0.699 0.1 0.3 0.2 0.799 0.899
out Out float64 [2, 3] 0*6

example float32 4x4, padding_idx 0
attr padding_idx LONG 0
in Ids int64 [1, 1] 0
in W float32 [4, 4] -0.31 -0.65 0.59 0.14 -0.2 0.82 -0.43 0.25 0.03 0.48 -0.77 0.37 -0.88 0.71 -0.09
  -0.54
out Out float32 [1, 4] 0*4

example float64 4x3, padding_idx 1
attr padding_idx LONG 1
in Ids int64 [3, 3, 1] 3 0 0 1 3 0 0 2 3
in W float64 [4, 3] 0.2 0.33 -0.05 -0.42 -0.3 -0.67 0.58 0.45 0.7 0.08 -0.55 -0.17
out Out float64 [3, 3, 3] 0.08 -0.55 -0.17 0.2 0.33 -0.05 0.2 0.33 -0.05 0 0 0 0.08 -0.55 -0.17 0.2
  0.33 -0.05 0.2 0.33 -0.05 0.58 0.45 0.7 0.08 -0.55 -0.17

example int8 7x2 rows
in W int8 [7, 2] rows [0, 1, 2, 3, 4, 5, 6] height 7 0 0 1*6 0*6
in Ids int64 [4, 1] 0 4 3 5
out Out int8 [4, 2] 0*4 1 1 0 0

example bfloat16 3x3, padding_idx 11
attr padding_idx LONG 11
in Ids int64 [2, 1] 11 11
in W bfloat16 [3, 3] 0.398 0.598 0.498 0.7 0.1 0.3 0.2 0.8 0.9
out Out bfloat16 [2, 3] 0*6
)")

HEDDLE_EXAMPLES(lookup_table_grad, R"(
example float64 2x4x4, padding_idx 5
attr padding_idx LONG 5
in Ids int64 [2, 4, 1] 1*8
in Out@GRAD float64 [2, 4, 4] -0.4 -1 0.1 -0.8 0.3 0.5 0.2 -0.3 0.4 -0 0.9 0.1 -0.7 -0.8 -0.9 0.8
  0.3 -0.2 -0.1 0.1 -0.1 0.8 -0.8 0.2 -0.3 -0.8 -0.9 0.5 -0.6 -0.5 -0.8 -0.1
in W float64 [3, 4] 0.11 0.4 -0.32 -0.18 0.83 -0.75 -0.61 -0.03 0.54 0.25 -0.47 0.69
out W@GRAD float64 [3, 4] 0*4 -1.1 -2 -2.3 0.5000000000000001 0*4

example float64 7x4
in Ids int64 [3, 1] 4 1 1
in Out@GRAD float64 [3, 4] -0.7 -0.7 -0.6 -0.7 -0.5 -0.3 -0.3 -0 0.5 -0.7 -0.8 -0.1
in W float64 [7, 4] -0.62 0.61 0.8 0.87 -0.49 -0.1 -0.43 0.09 0.48 0.29 -0.69 -0.04 0.35 0.93 0.22
  -0.17 0.16 0.55 -0.56 -0.23 -0.3 0.03 0.74 -0.75 -0.82 -0.36 0.67 0.42
out W@GRAD float64 [7, 4] 0*5 -1 -1.1 -0.1 0*8 -0.7 -0.7 -0.6 -0.7 0*8

example float32 2x4x4, padding_idx 5
attr padding_idx LONG 5
in Ids int64 [2, 4, 1] 1*8
in Out@GRAD float32 [2, 4, 4] -0.4 -1 0.1 -0.8 0.3 0.5 0.2 -0.3 0.4 -0 0.9 0.1 -0.7 -0.8 -0.9 0.8
  0.3 -0.2 -0.1 0.1 -0.1 0.8 -0.8 0.2 -0.3 -0.8 -0.9 0.5 -0.6 -0.5 -0.8 -0.1
in W float32 [3, 4] 0.11 0.4 -0.32 -0.18 0.83 -0.75 -0.61 -0.03 0.54 0.25 -0.47 0.69
out W@GRAD float32 [3, 4] 0*4 -1.1 -2 -2.3 0.5 0*4
)")
