#include <complex>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status OneHotShape(ShapeContext& ctx, bool drops_last) {
  Shape out = ctx.InShape("X");
  IntArg depth;
  HEDDLE_RETURN_IF_ERROR(ReadInt(ctx, "depth_tensor", "depth", &depth));
  if (!out.known_rank()) return ctx.Defer();
  if (drops_last) {
    if (out.rank() == 0 || (out.dim(-1) != 1 && out.dim(-1) >= 0))
      return InvalidArgument("the last dimension of 'X' must be 1, not ", out.ToString());
    out.erase(out.rank() - 1);
  } else if (out.rank() == Shape::kMaxRank) {
    return InvalidArgument("'X' has too many dimensions");
  }
  if (depth.known && depth.value <= 0)
    return InvalidArgument("the depth is ", depth.value, "; expected a positive number");
  out.push_back(depth.known ? depth.value : -1);
  const DType dtype = DTypeFromProto(ctx.Int("dtype"));
  if (dtype == DType::kUnknown)
    return InvalidArgument("'dtype' is ", ctx.Int("dtype"), ", which is no element type");
  ctx.SetOut("Out", out, dtype);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}
Status OneHotV1Shape(ShapeContext& ctx) { return OneHotShape(ctx, true); }
Status OneHotV2Shape(ShapeContext& ctx) { return OneHotShape(ctx, false); }

// Only the old operator knows rows without a one.
Status OneHotRows(KernelContext& ctx, bool allow_out_of_range) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(x.dtype(), "X"));
  const int64_t depth = out.dim(-1), n = x.numel();
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  Status status;
  const bool known = VisitDType<float, double, int32_t, int64_t, bool, uint8_t, int8_t, int16_t,
                                float16, bfloat16>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.mutable_data<T>();
    for (const int64_t i : Watched(n)) {
      const int64_t v = IntAt(x, i);
      if (v >= 0 && v < depth) {
        to[i * depth + v] = static_cast<T>(ComputeType<T>(1));
      } else if (!allow_out_of_range) {
        status = OutOfRange("'X' holds ", v, " at position ", i, "; expected 0 to ", depth - 1);
        return;
      }
    }
  });
  return known ? status : Unimplemented("no one-hot vectors of ", Name(out.dtype()));
}

Status OneHotV1(KernelContext& ctx) { return OneHotRows(ctx, ctx.Bool("allow_out_of_range")); }
Status OneHotV2(KernelContext& ctx) { return OneHotRows(ctx, false); }

}  // namespace
}  // namespace heddle

HEDDLE_OP(one_hot_v2) {
  op.Doc("A row of `depth` zeros with a one at X, for every element of X.")
      .Input("X")
      .Input("depth_tensor", kOptional | kShapeValue)
      .Output("Out")
      .Attr("depth", -1)
      .Attr("dtype", 5)
      .Attr("allow_out_of_range", false)
      .InferShape(OneHotV2Shape)
      .AnyKernel(OneHotV2);
}
HEDDLE_OP(one_hot) {
  op.Doc("one_hot_v2 whose X has a last dimension of 1.")
      .Input("X")
      .Input("depth_tensor", kOptional | kShapeValue)
      .Output("Out")
      .Attr("depth", -1)
      .Attr("dtype", 5)
      .Attr("allow_out_of_range", false)
      .InferShape(OneHotV1Shape)
      .AnyKernel(OneHotV1);
}
