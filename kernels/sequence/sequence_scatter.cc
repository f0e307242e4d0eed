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

HEDDLE_EXAMPLES(sequence_scatter, R"(
example int64 120x1
in Ids int64 [120, 1] lod [[0, 0, 120, 120]] 1 0 1 0 0 0 1 2 2 1 0 0 2 2 1 0 2 2 0 2 0 1 2 0 1 1 2 2
  2 1 1 0*4 2 1 2 0*4 1 0 2 1 2 1 2 1 1 2 1 0 1 0 0 2 2 1 1 2*4 1 0 0 1 0 1 1 0 0 0 2 1 1 2 2 1 2 2
  1 1 0 1 2 1 2 0 2 0 1 0 1*4 2 0 0 1 2 0 1 2 1 1 2 1 1 0 1 0 1 0 2 2 1
in Updates float64 [120, 1] lod [[0, 0, 120, 120]] 0.624 0.302 0.56 0.402 0.818 0.517 0.803 0.309
  0.925 0.538 0.61 0.696 0.316 0.166 0.653 0.187 0.331 0.237 0.66 0.581 0.445 0.753 0.861 0.796
  0.932 0.839 0.725 0.567 0.975 0.173 0.631 0.968 0.388 0.717 0.589 0.768 0.481 0.546 0.825 0.51
  0.94 0.875 0.524 0.961 0.488 0.295 0.159 0.195 0.689 0.596 0.474 0.345 0.71 0.854 0.947 0.273
  0.617 0.424 0.897 0.846 0.531 0.682 0.409 0.452 0.23 0.732 0.395 0.223 0.646 0.216 0.603 0.467
  0.323 0.639 0.359 0.366 0.889 0.674 0.13 0.417 0.28 0.782 0.245 0.775 0.904 0.739 0.746 0.438
  0.123 0.76 0.144 0.954 0.46 0.209 0.703 0.495 0.252 0.381 0.137 0.553 0.152 0.789 0.868 0.431
  0.832 0.374 0.266 0.911 0.259 0.503 0.352 0.18 0.918 0.882 0.202 0.667 0.811 0.288 0.574 0.338
in X float64 [3, 4] 0.299 0.676 0.622 0.461 0.245 0.407 0.514 0.784 0.191 0.73 0.568 0.353
out Out float64 [3, 4] 0.299 0.676 0.622 0.461 22.099999999999998 25.656000000000006
  19.303000000000004 0.784 0.191 0.73 0.568 0.353

example int64 120x1, no. 2
in Ids int64 [120, 1] lod [[0, 0, 120, 120]] 1 0 1 0 0 0 1 2 2 1 0 0 2 2 1 0 2 2 0 2 0 1 2 0 1 1 2 2
  2 1 1 0*4 2 1 2 0*4 1 0 2 1 2 1 2 1 1 2 1 0 1 0 0 2 2 1 1 2*4 1 0 0 1 0 1 1 0 0 0 2 1 1 2 2 1 2 2
  1 1 0 1 2 1 2 0 2 0 1 0 1*4 2 0 0 1 2 0 1 2 1 1 2 1 1 0 1 0 1 0 2 2 1
in Updates float32 [120, 1] lod [[0, 0, 120, 120]] 0.624 0.302 0.56 0.402 0.818 0.517 0.803 0.309
  0.925 0.538 0.61 0.696 0.316 0.166 0.653 0.187 0.331 0.237 0.66 0.581 0.445 0.753 0.861 0.796
  0.932 0.839 0.725 0.567 0.975 0.173 0.631 0.968 0.388 0.717 0.589 0.768 0.481 0.546 0.825 0.51
  0.94 0.875 0.524 0.961 0.488 0.295 0.159 0.195 0.689 0.596 0.474 0.345 0.71 0.854 0.947 0.273
  0.617 0.424 0.897 0.846 0.531 0.682 0.409 0.452 0.23 0.732 0.395 0.223 0.646 0.216 0.603 0.467
  0.323 0.639 0.359 0.366 0.889 0.674 0.13 0.417 0.28 0.782 0.245 0.775 0.904 0.739 0.746 0.438
  0.123 0.76 0.144 0.954 0.46 0.209 0.703 0.495 0.252 0.381 0.137 0.553 0.152 0.789 0.868 0.431
  0.832 0.374 0.266 0.911 0.259 0.503 0.352 0.18 0.918 0.882 0.202 0.667 0.811 0.288 0.574 0.338
in X float32 [3, 4] 0.299 0.676 0.622 0.461 0.245 0.407 0.514 0.784 0.191 0.73 0.568 0.353
out Out float32 [3, 4] 0.299 0.676 0.622 0.461 22.099997 25.656 19.303 0.784 0.191 0.73 0.568 0.353

example int64 120x1, no. 3
in Ids int64 [120, 1] lod [[0, 0, 120, 120]] 1 0 1 0 0 0 1 2 2 1 0 0 2 2 1 0 2 2 0 2 0 1 2 0 1 1 2 2
  2 1 1 0*4 2 1 2 0*4 1 0 2 1 2 1 2 1 1 2 1 0 1 0 0 2 2 1 1 2*4 1 0 0 1 0 1 1 0 0 0 2 1 1 2 2 1 2 2
  1 1 0 1 2 1 2 0 2 0 1 0 1*4 2 0 0 1 2 0 1 2 1 1 2 1 1 0 1 0 1 0 2 2 1
in Updates int32 [120, 1] lod [[0, 0, 120, 120]] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1 0*4 1 1 0 1 0 1*5 0
  1 1 0 0 1 0 0 1 0 1 0 0 1 0 1*4 0*4 1 1 1 0 1 0 1 0 0 1 0 1 1 0 0 1 0 1 0 1 0 0 1 1 0*5 1 1 1 0 1
  0 1 1 0 0 0 1 0 0 1 1 0 1 0 1 0 1 1 0 1 1 0 1 1 0 1 0 1 1 1 0 0 1
in X int32 [3, 4] 1 0*5 1 0 0 0 1 1
out Out int32 [3, 4] 1 0 0 0 21 24 19 0 0 0 1 1
)")

HEDDLE_EXAMPLES(sequence_scatter_grad, R"(
example int64 120x1
in Ids int64 [120, 1] lod [[0, 30, 80, 120]] 1 0 1 0 0 0 1 2 2 1 0 0 2 2 1 0 2 2 0 2 0 1 2 0 1 1 2 2
  2 1 1 0*4 2 1 2 0*4 1 0 2 1 2 1 2 1 1 2 1 0 1 0 0 2 2 1 1 2*4 1 0 0 1 0 1 1 0 0 0 2 1 1 2 2 1 2 2
  1 1 0 1 2 1 2 0 2 0 1 0 1*4 2 0 0 1 2 0 1 2 1 1 2 1 1 0 1 0 1 0 2 2 1
in Out@GRAD float64 [3, 4] -0.3 0.3 -0 0.2 -0.5 -0 0.4 -0.1 -0.9 0.1 0.1 -0.8
in Updates float64 [120, 1] lod [[0, 30, 80, 120]] 0.626 0.296 0.56 0.399 0.824 0.516 0.81 0.303
  0.935 0.538 0.612 0.7 0.31 0.156 0.656 0.178 0.325 0.23 0.663 0.582 0.443 0.758 0.869 0.802 0.942
  0.846 0.729 0.567 0.986 0.164 0.634 0.979 0.384 0.722 0.589 0.773 0.479 0.545 0.832 0.509 0.949
  0.883 0.523 0.971 0.487 0.288 0.149 0.186 0.692 0.597 0.472 0.34 0.714 0.861 0.957 0.266 0.619
  0.421 0.905 0.854 0.531 0.685 0.406 0.45 0.222 0.736 0.391 0.215 0.648 0.208 0.604 0.465 0.318
  0.641 0.354 0.362 0.898 0.678 0.12 0.413 0.274 0.788 0.237 0.78 0.913 0.744 0.751 0.435 0.112
  0.766 0.134 0.964 0.457 0.2 0.707 0.494 0.244 0.377 0.127 0.553 0.142 0.795 0.876 0.428 0.839
  0.369 0.259 0.92 0.252 0.501 0.347 0.171 0.927 0.891 0.193 0.67 0.817 0.281 0.575 0.332
out Updates@GRAD float64 [120, 1] 0.3 -0.3 0.3 -0.3 -0.3 -0.3 0.3 -0 -0 0.3 -0.3 -0.3 -0 -0 0.3 -0.3
  -0 -0 -0.3 -0 -0.3 0.3 -0 -0.3 0.3 0.3 -0 -0 -0 0.3 -0 -0.5*4 0.4 -0 0.4 -0.5*4 -0 -0.5 0.4 -0 0.4
  -0 0.4 -0 -0 0.4 -0 -0.5 -0 -0.5 -0.5 0.4 0.4 -0 -0 0.4*4 -0 -0.5 -0.5 -0 -0.5 -0 -0 -0.5 -0.5
  -0.5 0.4 -0 -0 0.4 0.4 0.1*5 -0.9 0.1*4 -0.9 0.1 -0.9 0.1 -0.9 0.1*5 -0.9 -0.9 0.1 0.1 -0.9 0.1*7
  -0.9 0.1 -0.9 0.1 -0.9 0.1 0.1 0.1
out X@GRAD float64 [3, 4] -0.3 0.3 -0 0.2 -0.5 -0 0.4 -0.1 -0.9 0.1 0.1 -0.8

example int64 120x1, no. 2
in Ids int64 [120, 1] lod [[0, 30, 80, 120]] 1 0 1 0 0 0 1 2 2 1 0 0 2 2 1 0 2 2 0 2 0 1 2 0 1 1 2 2
  2 1 1 0*4 2 1 2 0*4 1 0 2 1 2 1 2 1 1 2 1 0 1 0 0 2 2 1 1 2*4 1 0 0 1 0 1 1 0 0 0 2 1 1 2 2 1 2 2
  1 1 0 1 2 1 2 0 2 0 1 0 1*4 2 0 0 1 2 0 1 2 1 1 2 1 1 0 1 0 1 0 2 2 1
in Out@GRAD float32 [3, 4] -0.3 0.3 -0 0.2 -0.5 -0 0.4 -0.1 -0.9 0.1 0.1 -0.8
in Updates float32 [120, 1] lod [[0, 30, 80, 120]] 0.626 0.296 0.56 0.399 0.824 0.516 0.81 0.303
  0.935 0.538 0.612 0.7 0.31 0.156 0.656 0.178 0.325 0.23 0.663 0.582 0.443 0.758 0.869 0.802 0.942
  0.846 0.729 0.567 0.986 0.164 0.634 0.979 0.384 0.722 0.589 0.773 0.479 0.545 0.832 0.509 0.949
  0.883 0.523 0.971 0.487 0.288 0.149 0.186 0.692 0.597 0.472 0.34 0.714 0.861 0.957 0.266 0.619
  0.421 0.905 0.854 0.531 0.685 0.406 0.45 0.222 0.736 0.391 0.215 0.648 0.208 0.604 0.465 0.318
  0.641 0.354 0.362 0.898 0.678 0.12 0.413 0.274 0.788 0.237 0.78 0.913 0.744 0.751 0.435 0.112
  0.766 0.134 0.964 0.457 0.2 0.707 0.494 0.244 0.377 0.127 0.553 0.142 0.795 0.876 0.428 0.839
  0.369 0.259 0.92 0.252 0.501 0.347 0.171 0.927 0.891 0.193 0.67 0.817 0.281 0.575 0.332
out Updates@GRAD float32 [120, 1] 0.3 -0.3 0.3 -0.3 -0.3 -0.3 0.3 -0 -0 0.3 -0.3 -0.3 -0 -0 0.3 -0.3
  -0 -0 -0.3 -0 -0.3 0.3 -0 -0.3 0.3 0.3 -0 -0 -0 0.3 -0 -0.5*4 0.4 -0 0.4 -0.5*4 -0 -0.5 0.4 -0 0.4
  -0 0.4 -0 -0 0.4 -0 -0.5 -0 -0.5 -0.5 0.4 0.4 -0 -0 0.4*4 -0 -0.5 -0.5 -0 -0.5 -0 -0 -0.5 -0.5
  -0.5 0.4 -0 -0 0.4 0.4 0.1*5 -0.9 0.1*4 -0.9 0.1 -0.9 0.1 -0.9 0.1*5 -0.9 -0.9 0.1 0.1 -0.9 0.1*7
  -0.9 0.1 -0.9 0.1 -0.9 0.1 0.1 0.1
out X@GRAD float32 [3, 4] -0.3 0.3 -0 0.2 -0.5 -0 0.4 -0.1 -0.9 0.1 0.1 -0.8
)")
