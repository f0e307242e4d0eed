// load and load_combine: read variables from files of Paddle's format from within a program. The
// format is that of heddle/params.h; the path is used as given.
#include "core/kernel_context.h"
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

Status LoadOne(KernelContext& ctx) {
  if (ctx.Int("seek") >= 0) return Unimplemented("loading a part of a tensor (seek)");
  return Load(ctx);
}

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
