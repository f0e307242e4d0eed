#include <cstring>

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
    std::memset(to, 0, fused.bytes());
  for (int i = 0; i < ctx.InCount("Input"); ++i) {
    const Tensor& part = ctx.In("Input", i);
    Tensor* out = ctx.OutOpt("Output", i);
    if (constant) {
      if (out) FillElements(ctx, *out, ctx.Float("constant"));
    } else if (part.bytes() > 0) {
      std::memcpy(to, part.raw(), part.bytes());
      if (out && out->raw() != part.raw())
        std::memcpy(out->mutable_raw(), part.raw(), part.bytes());
    }
    HEDDLE_ASSIGN_OR_RETURN(const int64_t extent, Extent(ctx, part.numel(), fused.dtype()));
    to += static_cast<size_t>(extent) * SizeOf(fused.dtype());
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(coalesce_tensor) {
  op.Doc(
      "All of Input, one after the other, in FusedOutput, and each in Output. The outputs have "
      "memory of their own: writing to one later leaves the others as they are.");
  op.Input("Input", kList).Output("Output", kList).Output("FusedOutput");
  op.Attr("dtype", 5).Attr("copy_data", false).Attr("set_constant", false);
  op.Attr("persist_output", false).Attr("constant", 0.0).Attr("use_align", true);
  op.Attr("align_size", -1).Attr("user_defined_size_of_dtype", -1);
  op.Attr("concated_shapes", Ints{}).Attr("concated_ranks", Ints{});
  op.InferShape(Infer).AnyKernel(Coalesce);
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
