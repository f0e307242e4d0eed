// save, save_combine, load and load_combine: variables in Paddle's files, from within a program.
// The files are those of heddle/params.h; a path is taken as it is.
#include <filesystem>

#include "core/op_context.h"
#include "core/shapes.h"
#include "heddle/params.h"
#include "kernels/elementwise/convert.h"

namespace heddle {
namespace {

Tensor InHalves(const KernelContext& ctx, const Tensor& t) {
  if (t.dtype() != DType::kF32 && t.dtype() != DType::kF64) return t;
  Tensor half = ctx.Scratch(DType::kF16, t.shape());
  ConvertElements(ctx, t.raw(), t.dtype(), half.mutable_raw(), half.dtype(), t.numel());
  if (t.has_lod()) half.set_lod(t.lod());
  return half;
}

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
                         ctx.Bool("save_as_fp16") ? InHalves(ctx, t) : t);
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  return WriteTensors(path, tensors);
}

Status SaveCombined(KernelContext& ctx) {
  if (ctx.Bool("save_to_memory")) return Unimplemented("save_to_memory");
  return Save(ctx);
}

Status Load(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(auto tensors, ReadTensors(ctx.Str("file_path")));
  if (std::ssize(tensors) != ctx.OutCount("Out"))
    return InvalidArgument("'", ctx.Str("file_path"), "' holds ", tensors.size(), " tensors, not ",
                           ctx.OutCount("Out"));
  for (int i = 0; i < ctx.OutCount("Out"); ++i) {
    Value* out = ctx.OutVar("Out", i);
    if (out == nullptr) continue;
    Tensor& t = tensors[static_cast<size_t>(i)];
    out->MutableTensor() = ctx.Bool("load_as_fp16") ? InHalves(ctx, t) : std::move(t);
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

HEDDLE_OP(save) {
  op.Doc("Writes X to the file file_path.")
      .Input("X", kAnyKind)
      .Output("kLookupTablePath", kOptional);
  op.Attr("file_path", "").Attr("overwrite", true).Attr("save_as_fp16", false);
  op.Traits(kSideEffect).AnyKernel(Save);
}
HEDDLE_OP(save_combine) {
  op.Doc("Writes all of X to the file file_path, in their order.").Input("X", kList | kAnyKind);
  op.Output("Y", kOptional).Attr("file_path", "").Attr("overwrite", true);
  op.Attr("save_as_fp16", false).Attr("save_to_memory", false);
  op.Traits(kSideEffect).AnyKernel(SaveCombined);
}
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

HEDDLE_EXAMPLES(save, R"(
example kept as it is
in x float32 [2, 2] 1 -2 3.5 0
op save X=x ->
attr file_path STRING "heddle_example_1.tmp"
out x float32 [2, 2] 1 -2 3.5 0

example read back
in x float32 [2, 2] 1 -2 3.5 0
op save X=x ->
attr file_path STRING "heddle_example_save.tmp"
out x float32 [2, 2] 1 -2 3.5 0
)")

HEDDLE_EXAMPLES(save_combine, R"(
example kept as they are
in x float32 [2, 2] 1 -2 3.5 0
in y int64 [3] 1 2 3
op save_combine X=x,y ->
attr file_path STRING "heddle_example_3.tmp"
out x float32 [2, 2] 1 -2 3.5 0
out y int64 [3] 1 2 3
)")

HEDDLE_EXAMPLES(load, R"(
example what save wrote
in x float32 [2, 2] 1 -2 3.5 0
op save X=x ->
attr file_path STRING "heddle_example_2.tmp"
op load -> Out=y
attr file_path STRING "heddle_example_2.tmp"
out y float32 [2, 2] 1 -2 3.5 0
)")

HEDDLE_EXAMPLES(load_combine, R"(
example what save_combine wrote
in x float32 [2, 2] 1 -2 3.5 0
in y int64 [3] 1 2 3
op save_combine X=x,y ->
attr file_path STRING "heddle_example_4.tmp"
op load_combine -> Out=p,q
attr file_path STRING "heddle_example_4.tmp"
out p float32 [2, 2] 1 -2 3.5 0
out q int64 [3] 1 2 3
)")
