// Positions of extremes.
#include <limits>

#include "kernels/base/along_line.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status ArgShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  const DType dtype = DTypeFromProto(ctx.Int("output_type"));
  if (dtype != DType::kI32 && dtype != DType::kI64 && dtype != DType::kI16)
    return InvalidArgument("output_type is ", Name(dtype), ", expected int16, int32 or int64");
  if (!x.known_rank()) return ctx.Defer();
  Shape out = x;
  if (x.rank() < 1) return InvalidArgument("input is a scalar, expected at least one dimension");
  if (!Known(ctx, "dimension")) {
    out.erase(0);
    for (int i = 0; i < out.rank(); ++i) out[i] = -1;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t given, IntIn(ctx, "dimension", 0));
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(given, x.rank()));
    if (x[axis] == 0)
      return InvalidArgument("input ", x.ToString(), " is empty along dimension ", axis);
    out.erase(axis);
  }
  ctx.SetOut("output", out, dtype);
  return Status::Ok();
}

// NaN is passed over: it is no greater and no less than what came before.
template <bool kMax>
struct Arg {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      const Tensor& x = ctx.In("input");
      HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, IntIn(ctx, "dimension", 0));
      HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x.shape(), axis));
      Tensor& out = ctx.Out("output");
      const T* from = x.data<T>();
      lines.ForEach(ctx, 2, [&](int64_t line) {
        int64_t best = 0;
        T most = kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
        AlongLine(lines, line, [&](int64_t k, int64_t at) {
          const T v = from[at];
          if (kMax ? v > most : v < most) {
            most = v;
            best = k;
          }
        });
        if (out.dtype() == DType::kI64)
          out.mutable_data<int64_t>()[line] = best;
        else if (out.dtype() == DType::kI32)
          out.mutable_data<int32_t>()[line] = static_cast<int32_t>(best);
        else
          out.mutable_data<int16_t>()[line] = static_cast<int16_t>(best);
      });
      return Status::Ok();
    }
  };
};

template <bool kMax>
void DefineArg(OpDef& op, const char* doc) {
  op.Doc(doc).Input("input").Input("dimension", kShapeValue).Output("output");
  op.Attr("output_type", 3).InferShape(ArgShape).KernelKey("input");
  op.Kernels<Arg<kMax>::template Kernel, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t,
             bool>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_arg_max) { DefineArg<true>(op, "the position of the first of the greatest elements"); }
HEDDLE_OP(tf_arg_min) { DefineArg<false>(op, "the position of the first of the least elements"); }
