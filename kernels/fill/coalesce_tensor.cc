// coalesce_tensor, and the copies between a storage and the variables that share it, which
// passes/storage_aliases.cc puts in where such a variable is written.
#include <cstring>

#include "core/memory/watched_bytes.h"
#include "core/op_traits.h"
#include "core/shapes.h"
#include "kernels/base/shape_arg.h"
#include "kernels/elementwise/convert.h"

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

HEDDLE_EXAMPLES(coalesce_tensor, R"(
example copies data, float32
attr copy_data BOOLEAN true
attr dtype INT 5
attr use_align BOOLEAN false
in Input float32 [2, 3] -0.25 -0.27 0 -0.86 0.67 -0.59
in Input float32 [4] -0.79 -0.67 -0.08 0
out Output float32 [2, 3] -0.25 -0.27 0 -0.86 0.67 -0.59
out Output float32 [4] -0.79 -0.67 -0.08 0
out FusedOutput float32 [10] -0.25 -0.27 0 -0.86 0.67 -0.59 -0.79 -0.67 -0.08 0

example a constant
attr set_constant BOOLEAN true
attr constant FLOAT 2.5
attr dtype INT 5
attr use_align BOOLEAN false
in Input float32 [2] 0.43 -0.98
in Input float32 [3] 0.36 -0.56 0.16
out Output float32 [2] 2.5 2.5
out Output float32 [3] 2.5 2.5 2.5
out FusedOutput float32 [5] 2.5*5
)")

HEDDLE_EXAMPLES(storage_layout, R"(
example without gaps
dtypes none: the numbers are bytes
attr use_align BOOLEAN false
in Like float32 [2, 3] 0*6
in Like float32 [2] 0*2
from size Input=Like.0 -> Out=n
from size Input=Like.1 -> Out=m
from scale X=n -> Out=none
attr scale FLOAT 0
from scale X=n -> Out=first
attr scale FLOAT 4
from scale X=m -> Out=second
attr scale FLOAT 4
from stack X=none,first,first,second -> Y=Out
out Out int64 [4] 0 24 24 8

example aligned to 32 bytes
dtypes none: the numbers are bytes
attr align_size INT 32
in Like float32 [4] 0*4
in Like float32 [2] 0*2
from size Input=Like.0 -> Out=n
from size Input=Like.1 -> Out=m
from scale X=n -> Out=none
attr scale FLOAT 0
from scale X=n -> Out=first
attr scale FLOAT 4
from scale X=first -> Out=aligned
attr scale FLOAT 2
from scale X=m -> Out=second
attr scale FLOAT 4
from stack X=none,first,aligned,second -> Y=Out
out Out int64 [4] 0 16 32 8
)")

HEDDLE_EXAMPLES(read_storage, R"(
example all of it, in another shape
in Storage float32 [4] 1 2 3 4
in Old float32 [2, 2] 0*4
from reshape2 X=Storage -> Out=Out
attr shape INTS [2, 2]
out Out float32 [2, 2] 1 2 3 4

example a part
dtypes none: Layout counts bytes
attr part INT 1
in Storage float32 [6] 1 2 3 4 5 6
in Old float32 [2] 0*2
in Layout int64 [4] 0 16 16 8
from slice Input=Storage -> Out=Out
attr axes INTS [0]
attr starts INTS [4]
attr ends INTS [6]
out Out float32 [2] 5 6
)")

HEDDLE_EXAMPLES(write_storage, R"(
example a part
dtypes none: Layout counts bytes
attr part INT 1
in Storage float32 [6] 1 2 3 4 5 6
in Value float32 [2] 8 9
in Layout int64 [4] 0 16 16 8
from slice Input=Storage -> Out=head
attr axes INTS [0]
attr starts INTS [0]
attr ends INTS [4]
from concat X=head,Value -> Out=Out
attr axis INT 0
out Out float32 [6] 1 2 3 4 8 9

example less than all of it
in Storage float32 [4] 1 2 3 4
in Value float32 [2] 8 9
from slice Input=Storage -> Out=tail
attr axes INTS [0]
attr starts INTS [2]
attr ends INTS [4]
from concat X=Value,tail -> Out=Out
attr axis INT 0
out Out float32 [4] 8 9 3 4

example too much for it
in Storage float32 [2] 1 2
in Value float32 [4] 6 7 8 9
from assign X=Storage -> Out=Out
out Out float32 [2] 1 2
)")
