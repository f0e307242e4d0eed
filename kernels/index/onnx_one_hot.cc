// Each index becomes a row that holds the value "off", and the value "on" at the index.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxOneHotShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("indices");
  if (!x.known_rank() || !Known(ctx, "depth")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const double depth, NumberIn(ctx, "depth", 0));
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank() + 1));
  if (x.rank() == Shape::kMaxRank || !(depth >= 0) || depth > 1e15)
    return InvalidArgument("cannot spread indices ", x.ToString(), " over depth ", depth);
  if (ctx.InShape("values").is_static() && ctx.InShape("values").numel() != 2)
    return InvalidArgument("values has shape ", ctx.InShape("values").ToString(),
                           ", expected the two values off and on");
  Shape out = x;
  out.insert(axis, static_cast<int64_t>(depth));
  if (out.is_static()) HEDDLE_RETURN_IF_ERROR(MakeShape(out, "the result").status());
  ctx.SetOut("output", out, ctx.InDType("values"));
  return Status::Ok();
}

Status OnnxOneHot(KernelContext& ctx) {
  const Tensor& index = ctx.In("indices");
  const Tensor& values = ctx.In("values");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(out.shape(), ctx.Int("axis")));
  VisitElementSize(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T pair[2];
    std::memcpy(pair, values.raw(), sizeof(pair));
    WatchedFill(static_cast<T*>(out.mutable_raw()), out.numel(), pair[0]);
  });
  const size_t size = SizeOf(out.dtype());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  const auto* on = static_cast<const std::byte*>(values.raw()) + size;
  const bool known =
      VisitDType<uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16, float, double>(
          index.dtype(), [&](auto tag) {
            using T = typename decltype(tag)::type;
            const T* v = index.data<T>();
            for (const int64_t line : Watched(lines.lines())) {
              const auto given = ConvertTo<int64_t>(v[line]);
              const int64_t at = given < 0 ? given + lines.n : given;
              if (at >= 0 && at < lines.n)
                WatchedMemcpy(to + static_cast<size_t>(lines.Begin(line) + at * lines.inner) * size,
                              on, size);
            }
          });
  return known ? Status::Ok() : Unimplemented("indices of dtype ", Name(index.dtype()));
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_one_hot) {
  op.Doc(
      "each index becomes a row of depth elements along a new axis: values[1] at the index, "
      "values[0] "
      "elsewhere; a row whose index is out of range holds values[0] alone");
  op.Input("indices").Input("depth", kShapeValue).Input("values").Output("output");
  op.Attr("axis", -1).InferShape(OnnxOneHotShape).KernelKey("values").AnyKernel(OnnxOneHot);
}
