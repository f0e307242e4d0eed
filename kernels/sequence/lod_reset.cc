#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
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
