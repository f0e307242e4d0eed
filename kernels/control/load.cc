// load and load_combine: read variables from files of Paddle's format from within a program. The
// format is that of heddle/params.h; the path is used as given.
#include "core/kernel_context.h"
#include "core/memory/watched_bytes.h"
#include "heddle/params.h"
#include "kernels/base/convert.h"

namespace heddle {
namespace {

Status Load(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(auto tensors, ReadTensors(ctx.Str("file_path")));
  if (std::ssize(tensors) != ctx.OutCount("Out"))
    return InvalidArgument("'", ctx.Str("file_path"), "' holds ", tensors.size(), " tensors, not ",
                           ctx.OutCount("Out"));
  for (int i = 0; i < ctx.OutCount("Out"); ++i) {
    Value* out = ctx.OutVar("Out", i);
    if (out == nullptr) continue;
    Tensor& t = tensors[static_cast<size_t>(i)];
    out->MutableTensor() = ctx.Bool("load_as_fp16") ? ToFp16(ctx, t) : std::move(t);
  }
  return Status::Ok();
}

// The elements from number `seek` on, as many as `shape` has.
Status LoadPart(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto tensors, ReadTensors(ctx.Str("file_path")));
  if (tensors.size() != 1)
    return InvalidArgument("'", ctx.Str("file_path"), "' holds ", tensors.size(),
                           " tensors, not 1");
  const Tensor& all = tensors[0];
  const int64_t seek = ctx.Int("seek");
  Shape shape;
  for (const int64_t d : ctx.IntList("shape")) {
    if (d < 0 || shape.rank() == Shape::kMaxRank)
      return InvalidArgument("'shape' has the dimension ", d, " or too many of them");
    shape.push_back(d);
  }
  if (shape.numel() > all.numel() || seek > all.numel() - shape.numel())
    return OutOfRange("seek ", seek, " and shape ", shape.ToString(), " reach past the ",
                      all.numel(), " elements of '", ctx.Str("file_path"), "'");
  Value* out = ctx.OutVar("Out");
  if (out == nullptr) return Status::Ok();
  Tensor part = ctx.Scratch(all.dtype(), shape);
  const auto size = static_cast<int64_t>(SizeOf(all.dtype()));
  WatchedMemcpy(part.mutable_raw(), static_cast<const std::byte*>(all.raw()) + seek * size,
                part.bytes());
  out->MutableTensor() = ctx.Bool("load_as_fp16") ? ToFp16(ctx, part) : std::move(part);
  return Status::Ok();
}

Status LoadOne(KernelContext& ctx) { return ctx.Int("seek") >= 0 ? LoadPart(ctx) : Load(ctx); }

Status LoadCombined(KernelContext& ctx) {
  if (ctx.Bool("model_from_memory")) return Unimplemented("model_from_memory");
  return Load(ctx);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(load) {
  op.Doc("Reads Out from the file file_path.").Output("Out").Attr("file_path", "");
  op.Attr("load_as_fp16", false).Attr("seek", -1).Attr("shape", Ints{});
  op.Traits(kSideEffect).AnyKernel(LoadOne);
}

HEDDLE_OP(load_combine) {
  op.Doc("Reads all of Out from the file file_path, in their order.").Output("Out", kList);
  op.Attr("file_path", "").Attr("load_as_fp16", false).Attr("model_from_memory", false);
  op.Traits(kSideEffect).AnyKernel(LoadCombined);
}
