// A tensor cut along an axis: into given lengths, or into parts that are as equal as possible.
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

template <typename Context>
Result<ShortInts> PartsOf(const Context& ctx, int* axis) {
  const Shape& x = ShapeIn(ctx, "input");
  if (x.rank() == 0) return InvalidArgument("input is a scalar, expected at least one dimension");
  HEDDLE_ASSIGN_OR_RETURN(*axis, NormalAxis(ctx.Int("axis"), x.rank()));
  const int64_t n = x[*axis], outputs = ctx.OutCount("outputs");
  if (outputs == 0) return InvalidArgument("has no outputs");
  if (Has(ctx, "split")) {
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts split, IntsIn(ctx, "split"));
    int64_t sum = 0;
    bool good = static_cast<int64_t>(split.size()) == outputs;
    for (const int64_t part : split) {
      good = good && part >= 0 && part <= n;
      sum += good ? part : 0;
    }
    if (good && sum == n) return split;
    return InvalidArgument("split ", Shape(std::span(split)).ToString(), " does not cut the ", n,
                           " elements of axis ", *axis, " into ", outputs, " outputs");
  }
  if (ctx.Int("num_outputs") != 0 && ctx.Int("num_outputs") != outputs)
    return InvalidArgument("num_outputs is ", ctx.Int("num_outputs"), ", but there are ", outputs,
                           " outputs");
  const int64_t part = n / outputs + (n % outputs != 0 ? 1 : 0);
  ShortInts parts;
  for (int64_t i = 0; i < outputs; ++i) parts.push_back(std::clamp<int64_t>(n - i * part, 0, part));
  return parts;
}

Status OnnxSplitShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.is_static() || !Known(ctx, "split")) return ctx.Defer();
  int axis = 0;
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts parts, PartsOf(ctx, &axis));
  Shape out = x;
  for (size_t i = 0; i < parts.size(); ++i) {
    out[axis] = parts[i];
    if (ctx.HasOut("outputs", static_cast<int>(i)))
      ctx.SetOut("outputs", out, ctx.InDType("input"), static_cast<int>(i));
  }
  return Status::Ok();
}

Status OnnxSplit(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  int axis = 0;
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts parts, PartsOf(ctx, &axis));
  const AxisLines lines = AxisLines::Of(x.shape(), axis);
  const int64_t size = lines.inner * static_cast<int64_t>(SizeOf(x.dtype()));
  const auto* from = static_cast<const std::byte*>(x.raw());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (Tensor* out = ctx.OutOpt("outputs", static_cast<int>(i)); out != nullptr && size > 0)
      CopyRows(ctx, from, lines.n * size, out->mutable_raw(), parts[i] * size, lines.outer,
               parts[i] * size);
    from += parts[i] * size;
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_split) {
  op.Doc("input cut along an axis into split lengths, or into equal parts, the last one shorter");
  op.Input("input").Input("split", kOptional | kShapeValue).Output("outputs", kList);
  op.Attr("axis", 0).Attr("num_outputs", 0).InferShape(OnnxSplitShape).AnyKernel(OnnxSplit);
}
