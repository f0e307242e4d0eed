#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status CheckIds(const Offsets& offsets, const Labels& ids, int64_t count, int64_t rows,
                int64_t width) {
  if (SequenceCount(offsets) != rows)
    return InvalidArgument("Ids has ", SequenceCount(offsets), " sequences for ", rows,
                           " rows of X");
  for (const auto part : Stretches(count))
    for (int64_t k = part.begin; k < part.end; ++k)
      if (ids[k] < 0 || ids[k] >= width)
        return OutOfRange("id ", ids[k], " is not in [0, ", width, ")");
  if (Begin(offsets, rows) != count)
    return InvalidArgument("the sequences of Ids end at ", Begin(offsets, rows), ", but it has ",
                           count, " elements");
  return Status::Ok();
}

Status InferScatter(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Ids", "Updates"));
  return SameShape(ctx);
}

template <typename T>
struct SequenceScatter {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &index = ctx.In("Ids"), &updates = ctx.In("Updates");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(index, "Ids"));
    const Labels ids(ctx, index);
    const int64_t count = index.numel(), width = RowSize(x);
    if (x.rank() != 2 || updates.dtype() != x.dtype() || count != index.dim(0))
      return InvalidArgument("X must be a matrix, Ids [N, 1] and Updates of X's dtype");
    HEDDLE_RETURN_IF_ERROR(CheckIds(*offsets, ids, count, x.dim(0), width));
    Tensor& out = ctx.Out("Out");
    T* to = out.mutable_data<T>();
    if (out.raw() != x.raw() && x.bytes() > 0) WatchedMemcpy(to, x.raw(), x.bytes());
    for (const int64_t i : Watched(x.dim(0)))
      for (int64_t k = Begin(*offsets, i); k < Begin(*offsets, i + 1); ++k)
        to[i * width + ids[k]] += updates.data<T>()[k];
    return Status::Ok();
  }
};

Status InferScatterGrad(ShapeContext& ctx) {
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", ctx.InShape("Out@GRAD"), ctx.InDType("Out@GRAD"));
  if (ctx.HasOut("Updates@GRAD")) {
    ctx.SetOut("Updates@GRAD", ctx.InShape("Updates"), ctx.InDType("Updates"));
    ctx.ShareLoD("Updates", "Updates@GRAD");
  }
  return CheckSameCount(ctx, "Ids", "Updates");
}

template <typename T>
struct SequenceScatterGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &dout = ctx.In("Out@GRAD"), &index = ctx.In("Ids");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(index, "Ids"));
    const Labels ids(ctx, index);
    const int64_t width = RowSize(dout);
    if (dout.rank() != 2) return InvalidArgument("Out@GRAD must be a matrix");
    HEDDLE_RETURN_IF_ERROR(CheckIds(*offsets, ids, index.numel(), dout.dim(0), width));
    if (Tensor* du = ctx.OutOpt("Updates@GRAD")) {
      if (du->numel() != index.numel())
        return InvalidArgument("Updates has ", du->numel(), " elements, Ids has ", index.numel());
      for (const int64_t i : Watched(dout.dim(0)))
        for (int64_t k = Begin(*offsets, i); k < Begin(*offsets, i + 1); ++k)
          du->mutable_data<T>()[k] = dout.data<T>()[i * width + ids[k]];
    }
    if (Tensor* dx = ctx.OutOpt("X@GRAD"))
      if (dx->raw() != dout.raw() && dout.bytes() > 0)
        WatchedMemcpy(dx->mutable_raw(), dout.raw(), dout.bytes());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_scatter) {
  op.Doc("adds the updates of sequence i at its ids to row i of X")
      .Input("X")
      .Input("Ids")
      .Input("Updates")
      .Output("Out")
      .Inplace("X", "Out")
      .InferShape(InferScatter)
      .Kernels<SequenceScatter, float, double, int32_t, int64_t>();
}

HEDDLE_OP(sequence_scatter_grad) {
  op.Input("Ids")
      .Input("Updates", kNoBuffer)
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Updates@GRAD", kOptional)
      .KernelKey("Out@GRAD")
      .InferShape(InferScatterGrad)
      .Kernels<SequenceScatterGrad, float, double, int32_t, int64_t>();
}
