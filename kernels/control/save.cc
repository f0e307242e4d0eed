// save and save_combine: write variables to files of Paddle's format from within a program. The
// format is that of heddle/params.h; the path is used as given.
#include <filesystem>

#include "core/kernel_context.h"
#include "core/operands/slot_kinds.h"
#include "heddle/params.h"
#include "kernels/base/convert.h"

namespace heddle {
namespace {

Status Save(KernelContext& ctx) {
  const std::string& path = ctx.Str("file_path");
  std::error_code ignored;
  if (!ctx.Bool("overwrite") && std::filesystem::exists(path, ignored))
    return InvalidArgument("'", path, "' exists, and overwrite is false");
  NamedTensors tensors;
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Value* x = ctx.InVar("X", i);
    if (x == nullptr || !x->initialized()) return InvalidArgument("input ", i, " holds nothing");
    if (!x->is_tensor()) return Unimplemented("only tensors can be saved; input ", i, " is none");
    const Tensor& t = x->tensor();
    tensors.emplace_back("input " + std::to_string(i),
                         ctx.Bool("save_as_fp16") ? ToFp16(ctx, t) : t);
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  return WriteTensors(path, tensors);
}

Status SaveCombined(KernelContext& ctx) {
  if (ctx.Bool("save_to_memory")) return Unimplemented("save_to_memory");
  return Save(ctx);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(save) {
  op.Doc("Writes X to the file file_path.")
      .Input("X", kAnyKind | kTakesAll)
      .Output("kLookupTablePath", kOptional);
  op.Attr("file_path", "").Attr("overwrite", true).Attr("save_as_fp16", false);
  op.Traits(kSideEffect).AnyKernel(Save);
}

HEDDLE_OP(save_combine) {
  op.Doc("Writes all of X to the file file_path, in their order.")
      .Input("X", kList | kAnyKind | kTakesAll);
  op.Output("Y", kOptional).Attr("file_path", "").Attr("overwrite", true);
  op.Attr("save_as_fp16", false).Attr("save_to_memory", false);
  op.Traits(kSideEffect).AnyKernel(SaveCombined);
}
