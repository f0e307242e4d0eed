// coalesce_tensor, and the copies between a storage and the variables that share it, which
// passes/storage_aliases.cc puts in where such a variable is written.
#include <cstring>

#include "core/memory/watched_bytes.h"
#include "core/op_traits.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"

namespace heddle {
namespace {

// Paddle's unit of memory on a CPU, to which it aligns the parts where nothing else is asked for.
constexpr int64_t kAlignment = 4096;

// Elements from the start of one part to the start of the next.
Result<int64_t> Extent(const OpContext& ctx, int64_t numel, DType dtype) {
  if (!ctx.Bool("use_align")) return numel;
  const int64_t given = ctx.Int("user_defined_size_of_dtype");
  const int64_t size = given > 0 ? given : static_cast<int64_t>(SizeOf(dtype));
  const int64_t align = ctx.Int("align_size") > 0 ? ctx.Int("align_size") : kAlignment;
  int64_t bytes;
  if (__builtin_mul_overflow(numel, size, &bytes) ||
      __builtin_add_overflow(bytes, align - 1, &bytes))
    return InvalidArgument("there is no memory for elements of ", size, " bytes aligned to ",
                           align);
  return bytes / align * align / size;
}

Status Infer(ShapeContext& ctx) {
  if (ctx.InCount("Input") != ctx.OutCount("Output"))
    return InvalidArgument("Input and Output must be equally many");
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  int64_t whole = 0;
  for (int i = 0; i < ctx.InCount("Input"); ++i) {
    const Shape& part = ctx.InShape("Input", i);
    if (!part.is_static()) return ctx.Defer();
    if (ctx.InDType("Input", i) != dtype)
      return InvalidArgument("Input ", i, " is ", Name(ctx.InDType("Input", i)), ", not ",
                             Name(dtype));
    if (ctx.HasOut("Output", i)) ctx.SetOut("Output", part, dtype, i);
    HEDDLE_ASSIGN_OR_RETURN(const int64_t extent, Extent(ctx, part.numel(), dtype));
    if (__builtin_add_overflow(whole, extent, &whole))
      return InvalidArgument("Input has more elements than there is memory");
  }
  ctx.SetOut("FusedOutput", Shape{whole}, dtype);
  return Status::Ok();
}

Status Coalesce(KernelContext& ctx) {
  Tensor& fused = ctx.Out("FusedOutput");
  auto* to = static_cast<std::byte*>(fused.mutable_raw());
  const bool constant = !ctx.Bool("copy_data") && ctx.Bool("set_constant");
  if (constant)
    FillElements(ctx, fused, ctx.Float("constant"));
  else
    WatchedMemset(to, 0, fused.bytes());
  for (int i = 0; i < ctx.InCount("Input"); ++i) {
    const Tensor& part = ctx.In("Input", i);
    Tensor* out = ctx.OutOpt("Output", i);
    if (constant) {
      if (out) FillElements(ctx, *out, ctx.Float("constant"));
    } else if (part.bytes() > 0) {
      WatchedMemcpy(to, part.raw(), part.bytes());
      if (out && out->raw() != part.raw())
        WatchedMemcpy(out->mutable_raw(), part.raw(), part.bytes());
    }
    HEDDLE_ASSIGN_OR_RETURN(const int64_t extent, Extent(ctx, part.numel(), fused.dtype()));
    to += static_cast<size_t>(extent) * SizeOf(fused.dtype());
  }
  return Status::Ok();
}

Status InferLayout(ShapeContext& ctx) {
  ctx.SetOut("Out", Shape{2 * ctx.InCount("Like")}, DType::kI64);
  return Status::Ok();
}

Status MakeLayout(KernelContext& ctx) {
  auto* out = ctx.Out("Out").mutable_data<int64_t>();
  int64_t begin = 0;
  for (int i = 0; i < ctx.InCount("Like"); ++i) {
    const Tensor& like = ctx.In("Like", i);
    *out++ = begin;
    *out++ = static_cast<int64_t>(like.bytes());
    HEDDLE_ASSIGN_OR_RETURN(const int64_t extent, Extent(ctx, like.numel(), like.dtype()));
    begin += extent * static_cast<int64_t>(SizeOf(like.dtype()));
  }
  return Status::Ok();
}

struct ByteRange {
  size_t begin, bytes;
};

Result<ByteRange> RangeIn(const KernelContext& ctx, const Tensor& whole) {
  const int64_t part = ctx.Int("part");
  if (part < 0) return ByteRange{0, whole.bytes()};
  const Tensor* layout = ctx.InOpt("Layout");
  if (layout == nullptr || part >= layout->numel() / 2)
    return InvalidArgument("Layout has no part ", part);
  const int64_t* at = layout->data<int64_t>() + 2 * part;
  const auto begin = static_cast<size_t>(at[0]), bytes = static_cast<size_t>(at[1]);
  if (begin > whole.bytes() || bytes > whole.bytes() - begin)
    return InvalidArgument("part ", part, " lies at ", at[0], ", ", at[1],
                           " bytes, beyond the storage's ", whole.bytes());
  return ByteRange{begin, bytes};
}

Status InferRead(ShapeContext& ctx) {
  ctx.SetOut("Out", ctx.InShape("Old"), ctx.InDType("Old"));
  return Status::Ok();
}

Status ReadPart(KernelContext& ctx) {
  const Tensor& whole = ctx.In("Storage");
  HEDDLE_ASSIGN_OR_RETURN(const ByteRange range, RangeIn(ctx, whole));
  Tensor& out = ctx.Out("Out");
  if (out.bytes() > range.bytes)
    return InvalidArgument("the variable has outgrown the storage that it shares: it has ",
                           out.bytes(), " bytes there, its part has ", range.bytes);
  if (out.bytes() > 0)
    WatchedMemcpy(out.mutable_raw(), static_cast<const std::byte*>(whole.raw()) + range.begin,
                  out.bytes());
  return Status::Ok();
}

Status InferWrite(ShapeContext& ctx) {
  ctx.SetOut("Out", ctx.InShape("Storage"), ctx.InDType("Storage"));
  return Status::Ok();
}

Status WritePart(KernelContext& ctx) {
  const Tensor &whole = ctx.In("Storage"), &value = ctx.In("Value");
  HEDDLE_ASSIGN_OR_RETURN(const ByteRange range, RangeIn(ctx, whole));
  Tensor& out = ctx.Out("Out");
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  if (to != whole.raw()) CopyBytes(ctx, to, whole.raw(), static_cast<int64_t>(whole.bytes()));
  if (value.bytes() > 0 && value.bytes() <= range.bytes)
    WatchedMemcpy(to + range.begin, value.raw(), value.bytes());
  return Status::Ok();
}

OpDef& LayoutAttrs(OpDef& op) {
  op.Attr("use_align", true).Attr("align_size", -1).Attr("user_defined_size_of_dtype", -1);
  return op;
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(coalesce_tensor) {
  op.Doc(
      "All of Input, one after the other, in FusedOutput, and each in Output. The outputs share "
      "one storage: writing to one later changes the others.");
  op.Input("Input", kList).Output("Output", kList).Output("FusedOutput");
  op.Attr("dtype", 5).Attr("copy_data", false).Attr("set_constant", false);
  op.Attr("persist_output", false).Attr("constant", 0.0);
  LayoutAttrs(op).Attr("concated_shapes", Ints{}).Attr("concated_ranks", Ints{});
  op.Traits(kSharesParts).InferShape(Infer).AnyKernel(Coalesce);
}

HEDDLE_OP(storage_layout) {
  op.Doc(
      "Where variables of the shapes of Like begin in a storage that coalesce_tensor gives them, "
      "and how many bytes they have: two numbers each.");
  op.Input("Like", kList | kNoBuffer).Output("Out");
  LayoutAttrs(op).InferShape(InferLayout).AnyKernel(MakeLayout);
}

HEDDLE_OP(read_storage) {
  op.Doc(
      "The first bytes of a part of Storage (by its number in Layout, -1: all of it), with the "
      "shape and dtype of Old.");
  op.Input("Storage").Input("Old", kNoBuffer).Input("Layout", kOptional).Output("Out");
  op.Attr("part", -1).View("Storage", "Out").Inplace("Old", "Out");
  op.InferShape(InferRead).AnyKernel(ReadPart);
}

HEDDLE_OP(write_storage) {
  op.Doc(
      "Storage, of which the first bytes of a part (by its number in Layout, -1: all of it) are "
      "Value. A Value that is larger than the part has memory of its own, and changes nothing.");
  op.Input("Storage").Input("Value").Input("Layout", kOptional).Output("Out");
  op.Attr("part", -1).View("Value", "Out").Inplace("Storage", "Out");
  op.InferShape(InferWrite).AnyKernel(WritePart);
}
