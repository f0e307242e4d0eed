#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/onnx_values/string_operand.h"

namespace heddle {
namespace {

Status StringEqual(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "x"));
  HEDDLE_ASSIGN_OR_RETURN(const auto y, StringsOf(ctx, "y"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape all, BroadcastShape(x->shape, y->shape, -1));
  bool* to = ctx.Alloc("z", DType::kBool, all).mutable_data<bool>();
  const bool differ = ctx.Bool("differ");
  for (const auto part : Stretches(all.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      to[i] = (BroadcastElement(*x, all, i) == BroadcastElement(*y, all, i)) != differ;
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_string_equal) {
  op.Doc("whether texts are the same; with `differ`, whether they are not");
  op.Input("x", kAnyKind | kOtherOnly)
      .Input("y", kAnyKind | kOtherOnly)
      .Output("z")
      .Attr("differ", false);
  op.AnyKernel(StringEqual);
}

HEDDLE_EXAMPLES(tf_string_equal, R"(
example a row and a column
in a int64 [1, 3] 1 2 30
in b int64 [2, 1] 2 30
op onnx_cast_string input=a -> output=x
attr from INT 7
attr to INT 8
op onnx_cast_string input=b -> output=y
attr from INT 7
attr to INT 8
op tf_string_equal x=x y=y -> z=z
out z bool [2, 3] 0 1 0 0 0 1

example one that all are compared to
in a int64 [2] 1 2
in b int64 [] 2
op onnx_cast_string input=a -> output=x
attr from INT 7
attr to INT 8
op onnx_cast_string input=b -> output=y
attr from INT 7
attr to INT 8
op tf_string_equal x=x y=y -> z=z
attr differ BOOLEAN true
out z bool [2] 1 0
)")
