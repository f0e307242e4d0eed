// Tensors changed in the slices that tuples of indices name, or in rows, one update after another.
#include "core/memory/watched_bytes.h"
#include "kernels/index/nd_rows.h"
#include "kernels/operands/narrow.h"
#include "kernels/operands/operands.h"
#include "kernels/scatter/combine.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

struct Slices {
  Shape tuples;     // the shape of Index, where it has tuples in its last dimension
  int64_t row = 1;  // elements of a slice
};

// Where shapes are known. One update serves all slices.
Result<Slices> SlicesOf(const OpContext& ctx, const Shape& x, const Shape& index,
                        const Shape& updates) {
  Slices s{index};
  if (ctx.Bool("rows")) {
    if (x.rank() == 0 || index.rank() == Shape::kMaxRank)
      return InvalidArgument("X has shape ", x.ToString(), " and Index ", index.ToString(),
                             ", expected rows to change");
    s.tuples.push_back(1);
  }
  if (s.tuples.rank() == 0)
    return InvalidArgument("Index is a scalar, expected at least one dimension");
  const int64_t k = s.tuples.dim(-1);
  if (k > x.rank())
    return InvalidArgument("Index ", index.ToString(), " holds tuples of ", k,
                           ", but the tensor has shape ", x.ToString());
  if (s.tuples.rank() - 1 + x.rank() - k > Shape::kMaxRank)
    return InvalidArgument("Updates for a tensor ", x.ToString(), " and Index ", index.ToString(),
                           " have more than ", Shape::kMaxRank, " dimensions");
  s.row = x.Product(static_cast<int>(k), x.rank());
  Shape want(s.tuples.dims().first(static_cast<size_t>(s.tuples.rank() - 1)));
  for (int i = static_cast<int>(k); i < x.rank(); ++i) want.push_back(x[i]);
  const bool one = updates.rank() == 0 && k > 0 && ctx.InVar("X") != nullptr;
  if (one || want == updates) return s;
  return InvalidArgument("Updates has shape ", updates.ToString(), ", expected ", want.ToString());
}

Status ScatterNdShape(ShapeContext& ctx) {
  const DType dtype = ctx.InDType("Updates");
  Shape x;
  if (ctx.HasIn("X")) {
    x = ctx.InShape("X");
    if (ctx.InDType("X") != dtype)
      return InvalidArgument("Updates is ", Name(dtype), ", X is ", Name(ctx.InDType("X")));
  } else {
    if (!Known(ctx, "Shape")) return OpenShape(ctx, "Shape", "Out", dtype);
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "Shape"));
    HEDDLE_ASSIGN_OR_RETURN(x, MakeShape(dims, "Shape"));
  }
  const Shape &index = ctx.InShape("Index"), &updates = ctx.InShape("Updates");
  if (x.is_static() && index.is_static() && updates.is_static())
    HEDDLE_RETURN_IF_ERROR(SlicesOf(ctx, x, index, updates).status());
  ctx.SetOut("Out", x, dtype);
  return Status::Ok();
}

Status ScatterNd(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  Tensor kept_index, kept_updates;
  const Tensor& given = Apart(ctx, ctx.In("Index"), out, &kept_index);
  const Tensor& updates = Apart(ctx, ctx.In("Updates"), out, &kept_updates);
  HEDDLE_ASSIGN_OR_RETURN(const Slices s,
                          SlicesOf(ctx, out.shape(), given.shape(), updates.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const Update how, UpdateOf(ctx.Str("reduce")));
  HEDDLE_ASSIGN_OR_RETURN(const bool new_stays, NewStays(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const CombineFn combine, CombineOf(how, new_stays, out.dtype()));
  if (how == Update::kDiv && !IsFloat(out.dtype()) && !IsComplex(out.dtype()))
    HEDDLE_RETURN_IF_ERROR(NoZeroDivisor(updates));
  // Slices without elements need no memory, but may be many.
  const bool none = s.row == 0 && s.tuples.dim(-1) == 0;
  Tensor rows;
  if (!none) {
    HEDDLE_ASSIGN_OR_RETURN(
        rows, RowsOfNdIndex(ctx, given.Reshaped(s.tuples), out.shape(), "Index", ctx.Bool("wrap")));
  }
  if (const Tensor* x = ctx.InOpt("X"); x == nullptr)
    ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  else if (out.raw() != x->raw())
    CopyBytes(ctx, x->raw(), out.mutable_raw(), x->bytes());
  if (s.row == 0) return Status::Ok();
  const auto size = static_cast<int64_t>(SizeOf(out.dtype())), row = s.row * size;
  const bool one = updates.rank() == 0 && rows.numel() * s.row != 1;
  const auto* from = static_cast<const std::byte*>(updates.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  const int64_t* at = rows.data<int64_t>();
  for (const int64_t i : Watched(rows.numel()))
    combine(to + at[i] * row, one ? from : from + i * row, s.row, one ? 0 : 1);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(scatter_nd) {
  op.Doc(
      "X, or zeros of a shape, with Updates put in or combined in order: in the slices that tuples "
      "of Index name, or with `rows` in the rows that its numbers name");
  op.Input("X", kOptional).Input("Index").Input("Updates").Input("Shape", kOptional | kShapeValue);
  op.Output("Out").Attr("reduce", "assign").Attr("undecided", "old").Attr("rows", false);
  op.Attr("wrap", false).Inplace("X", "Out").InferShape(ScatterNdShape).KernelKey("Updates");
  op.AnyKernel(ScatterNd);
}
