#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/index/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// The new offsets: Y's own, or Y's elements, or the attribute's.
Status NewOffsets(const KernelContext& ctx, const Tensor& x, LoD* lod) {
  std::vector<size_t> level;
  if (const Tensor* y = ctx.InOpt("Y")) {
    if (y->has_lod()) {
      *lod = y->lod();
      return Status::Ok();
    }
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(y->dtype(), "Y"));
    for (const auto part : Stretches(y->numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        level.push_back(static_cast<size_t>(IntAt(*y, i)));
  } else {
    for (int64_t v : ctx.IntList("target_lod")) level.push_back(static_cast<size_t>(v));
  }
  bool good = level.size() >= 2 && level[0] == 0 && x.rank() > 0;
  for (size_t i = 1; good && i < level.size(); ++i) good = level[i] >= level[i - 1];
  if (!good || level.back() != static_cast<size_t>(x.dim(0)))
    return InvalidArgument("the new offsets must rise from 0 to the number of rows of 'X' ",
                           x.shape().ToString());
  if (ctx.Bool("append")) *lod = x.lod();
  lod->push_back(std::move(level));
  return Status::Ok();
}

Status LodReset(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  LoD lod;
  HEDDLE_RETURN_IF_ERROR(NewOffsets(ctx, x, &lod));
  Tensor& out = ctx.Alloc("Out", x.dtype(), x.shape());
  CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
  out.set_lod(std::move(lod));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(lod_reset) {
  op.Doc("X with other sequence offsets.")
      .Input("X")
      .Input("Y", kOptional)
      .Output("Out")
      .Attr("target_lod", Ints{})
      .Attr("append", false)
      .AnyKernel(LodReset);
}
HEDDLE_OP(lod_reset_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(CopyFirst);
}

HEDDLE_EXAMPLES(lod_reset, R"(
example float64 10x2
in X float64 [10, 2] lod [[0, 3, 5, 10]] 0.287 0.902 0.193 0.334 0.712 0.807 0.145 0.618 0.523 0.571
  0.24 0.76 0.429 0.476 0.854 0.665 0.098 0.051 0.382 0.949
in Y int32 [1, 4] 0 4 7 10
out Out float64 [10, 2] lod [[0, 4, 7, 10]] 0.287 0.902 0.193 0.334 0.712 0.807 0.145 0.618 0.523
  0.571 0.24 0.76 0.429 0.476 0.854 0.665 0.098 0.051 0.382 0.949

example float32 10x2
in X float32 [10, 2] lod [[0, 3, 5, 10]] 0.287 0.902 0.193 0.334 0.712 0.807 0.145 0.618 0.523 0.571
  0.24 0.76 0.429 0.476 0.854 0.665 0.098 0.051 0.382 0.949
in Y int32 [1, 4] 0 4 7 10
out Out float32 [10, 2] lod [[0, 4, 7, 10]] 0.287 0.902 0.193 0.334 0.712 0.807 0.145 0.618 0.523
  0.571 0.24 0.76 0.429 0.476 0.854 0.665 0.098 0.051 0.382 0.949

example int64 10x2
in X int64 [10, 2] lod [[0, 3, 5, 10]] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1 0*4
in Y int32 [1, 4] 0 4 7 10
out Out int64 [10, 2] lod [[0, 4, 7, 10]] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1 0*4

example float16 10x2
in X float16 [10, 2] lod [[0, 3, 5, 10]] 0.287 0.902 0.193 0.334 0.712 0.807 0.145 0.618 0.523 0.571
  0.24 0.76 0.429 0.476 0.854 0.665 0.098 0.051 0.382 0.949
in Y int32 [1, 4] 0 4 7 10
out Out float16 [10, 2] lod [[0, 4, 7, 10]] 0.287 0.902 0.193 0.334 0.712 0.807 0.145 0.618 0.523
  0.571 0.24 0.76 0.429 0.476 0.854 0.665 0.098 0.051 0.382 0.949
)")

HEDDLE_EXAMPLES(lod_reset_grad, R"(
example float64 10x3
in Out@GRAD float64 [10, 3] lod [[0, 7, 10]] -0.7 0.4 -0.5 -0.1 -0.2 0.2 0.2 -0.6 -0.6 0.4 -0.1 -0
  -0.8 -0.3 -0.9 -0.5 0.1 -0.6 0.1 0.7 0.7 -0.1 0.4 0.8 -0.3 -0.6 -0.5 0.7 -1 -0.5
in X float64 [10, 3] lod [[0, 3, 5, 10]] 0.356 0.932 0.74 0.324 0.772 0.132 0.292 0.228 0.964 0.58
  0.644 0.068 0.1 0.452 0.484 0.516 0.804 0.836 0.548 0.26 0.164 0.708 0.612 0.868 0.036 0.9 0.676
  0.388 0.42 0.196
out X@GRAD float64 [10, 3] lod [[0, 3, 5, 10]] -0.7 0.4 -0.5 -0.1 -0.2 0.2 0.2 -0.6 -0.6 0.4 -0.1 -0
  -0.8 -0.3 -0.9 -0.5 0.1 -0.6 0.1 0.7 0.7 -0.1 0.4 0.8 -0.3 -0.6 -0.5 0.7 -1 -0.5

example float32 10x3
in Out@GRAD float32 [10, 3] lod [[0, 7, 10]] -0.7 0.4 -0.5 -0.1 -0.2 0.2 0.2 -0.6 -0.6 0.4 -0.1 -0
  -0.8 -0.3 -0.9 -0.5 0.1 -0.6 0.1 0.7 0.7 -0.1 0.4 0.8 -0.3 -0.6 -0.5 0.7 -1 -0.5
in X float32 [10, 3] lod [[0, 3, 5, 10]] 0.356 0.932 0.74 0.324 0.772 0.132 0.292 0.228 0.964 0.58
  0.644 0.068 0.1 0.452 0.484 0.516 0.804 0.836 0.548 0.26 0.164 0.708 0.612 0.868 0.036 0.9 0.676
  0.388 0.42 0.196
out X@GRAD float32 [10, 3] lod [[0, 3, 5, 10]] -0.7 0.4 -0.5 -0.1 -0.2 0.2 0.2 -0.6 -0.6 0.4 -0.1 -0
  -0.8 -0.3 -0.9 -0.5 0.1 -0.6 0.1 0.7 0.7 -0.1 0.4 0.8 -0.3 -0.6 -0.5 0.7 -1 -0.5
)")
