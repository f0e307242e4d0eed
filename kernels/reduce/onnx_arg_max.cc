// Positions of the greatest or smallest elements along an axis, the first or the last of equal
// ones.
#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxArgShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("data");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  Shape out = x;
  if (x.rank() > 0) {
    if (x[axis] == 0) return InvalidArgument("axis ", axis, " of data ", x.ToString(), " is empty");
    out[axis] = 1;
    if (ctx.Int("keepdims") == 0) out.erase(axis);
  }
  ctx.SetOut("reduced", out, DType::kI64);
  return Status::Ok();
}

// NaN counts as the extreme value.
template <bool kMax, typename T>
Status RunOnnxArg(KernelContext& ctx) {
  const Tensor& x = ctx.In("data");
  HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x.shape(), ctx.Int("axis")));
  const bool last = ctx.Int("select_last_index") != 0;
  const T* from = x.data<T>();
  int64_t* to = ctx.Out("reduced").mutable_data<int64_t>();
  lines.ForEach(ctx, 2, [&](int64_t line) {
    const T* v = from + lines.Begin(line);
    int64_t best = 0;
    for (const int64_t i : Watched(1, lines.n)) {
      const T a = v[i * lines.inner], b = v[best * lines.inner];
      const bool better = IsNan(a) != IsNan(b) ? IsNan(a) : kMax ? a > b : a < b;
      const bool equal = IsNan(a) ? IsNan(b) : a == b;
      if (better || (last && equal)) best = i;
    }
    to[line] = best;
  });
  return Status::Ok();
}

template <bool kMax, typename... Ts>
void DefineOnnxArg(OpDef& op, const char* doc) {
  op.Doc(doc).Input("data").Output("reduced");
  op.Attr("axis", 0).Attr("keepdims", 1).Attr("select_last_index", 0).InferShape(OnnxArgShape);
  (op.Kernel(kDTypeOf<Ts>, &RunOnnxArg<kMax, Ts>), ...);
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_arg_max) {
  DefineOnnxArg<true, float, double, int8_t, uint8_t, int16_t, int32_t, int64_t>(
      op, "the position of the greatest element along an axis");
}
HEDDLE_OP(onnx_arg_min) {
  DefineOnnxArg<false, float, double, int8_t, uint8_t, int16_t, int32_t, int64_t>(
      op, "the position of the smallest element along an axis");
}
