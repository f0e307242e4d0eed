// diag_embed: vectors as diagonals of matrices.
#include <algorithm>

#include "core/shapes.h"
#include "kernels/strided/index_diagonal.h"

namespace heddle {
namespace {

// --- diag_embed ---

Status EmbedShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("Input");
  if (!out.known_rank()) return ctx.Defer();
  if (out.rank() == 0 || out.rank() == Shape::kMaxRank)
    return InvalidArgument("'Input' of shape ", out.ToString(), " cannot be put on a diagonal");
  const int64_t length = out.dim(-1), offset = ctx.Int("offset");
  const int64_t size = length < 0 ? -1 : length + (offset < 0 ? -offset : offset);
  out.erase(out.rank() - 1);
  HEDDLE_ASSIGN_OR_RETURN(const int a, NormalAxis(ctx.Int("dim1"), out.rank() + 2));
  HEDDLE_ASSIGN_OR_RETURN(const int b, NormalAxis(ctx.Int("dim2"), out.rank() + 2));
  if (a == b) return InvalidArgument("'dim1' and 'dim2' must differ");
  out.insert(std::min(a, b), size);
  out.insert(std::max(a, b), size);
  ctx.SetOut("Out", out, ctx.InDType("Input"));
  return Status::Ok();
}

Status DiagEmbed(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, MakeDiagonal(out.shape(), ctx.Int("dim1"),
                                                         ctx.Int("dim2"), ctx.Int("offset")));
  return EmbedDiagonal(ctx, ctx.In("Input"), d, out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(diag_embed) {
  op.Doc("Input's last axis as a diagonal of two new axes.")
      .Input("Input")
      .Output("Out")
      .Attr("offset", 0)
      .Attr("dim1", -2)
      .Attr("dim2", -1)
      .InferShape(EmbedShape)
      .AnyKernel(DiagEmbed);
}
