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
