// quantized_sum and quantized_product: element-wise operators on quantised tensors, computed in
// float as their parts would be. Operators of heddle, made by a pass.
#include <limits>

#include "core/interrupts.h"
#include "core/shape_context.h"
#include "core/shapes.h"
#include "kernels/base/broadcast.h"
#include "kernels/simd/integers/byte_steps.h"

namespace heddle {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

Result<DType> PairResultType(const OpContext& ctx) {
  const std::string& name = ctx.Str("out_dtype");
  for (const DType dtype : {DType::kU8, DType::kI8})
    if (name == Name(dtype)) return dtype;
  return InvalidArgument("out_dtype is '", name, "', expected uint8 or int8");
}

Status QuantizedPairShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, PairResultType(ctx));
  const DType y = ctx.InDType("Y");
  if (y != DType::kU8 && y != DType::kI8)
    return InvalidArgument("Y is ", Name(y), ", expected uint8 or int8");
  const Shape &a = ctx.InShape("X"), &b = ctx.InShape("Y");
  if (!a.known_rank() || !b.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(a, b, ctx.Int("axis")));
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

Result<simd::ByteSteps> StepsIn(const OpContext& ctx, Key scale, Key zero, DType dtype) {
  if (ctx.Int(zero) < -128 || ctx.Int(zero) > 255)
    return InvalidArgument(zero.name, " is ", ctx.Int(zero), ", expected -128 to 255");
  return simd::ByteSteps{static_cast<float>(ctx.Float(scale)), static_cast<int32_t>(ctx.Int(zero)),
                         dtype == DType::kI8};
}

template <bool kSum>
Status QuantizedPair8(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  simd::BytePair p{};
  HEDDLE_ASSIGN_OR_RETURN(p.x, StepsIn(ctx, "x_scale", "x_zero", x.dtype()));
  HEDDLE_ASSIGN_OR_RETURN(p.y, StepsIn(ctx, "y_scale", "y_zero", y.dtype()));
  HEDDLE_ASSIGN_OR_RETURN(p.out, StepsIn(ctx, "out_scale", "out_zero", out.dtype()));
  p.least = static_cast<float>(ctx.Float("least"));
  p.most = static_cast<float>(ctx.Float("most"));
  p.sum = kSum;
  HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                          MakeBroadcastPlan(x.shape(), y.shape(), ctx.Int("axis")));
  p.one_x = plan.inner == InnerKind::kScalarVector;
  p.one_y = plan.inner == InnerKind::kVectorScalar;
  const auto combine =
      (simd::TakesPair(p) ? simd::BestByteSteps() : *simd::PortableByteSteps()).combine;
  const auto *const from = static_cast<const uint8_t*>(x.raw()), *const with =
                                                                     static_cast<const uint8_t*>(
                                                                         y.raw());
  auto* const to = static_cast<uint8_t*>(out.mutable_raw());
  ParallelRows(ctx, plan, 1 << 14, [&](int64_t xo, int64_t yo, int64_t zo, int64_t n) {
    for (const auto part : Stretches(n))
      combine(p, from + xo + (p.one_x ? 0 : part.begin), with + yo + (p.one_y ? 0 : part.begin),
              part.end - part.begin, to + zo + part.begin);
  });
  return Status::Ok();
}

void DefineQuantizedPair8(OpDef& op) {
  op.Input("X").Input("Y").Output("Out").Attr("axis", -1).Attr("out_dtype", "uint8");
  op.Attr("x_scale", 1.0).Attr("x_zero", 0).Attr("y_scale", 1.0).Attr("y_zero", 0);
  op.Attr("out_scale", 1.0).Attr("out_zero", 0).Attr("least", -kUnlimited);
  op.Attr("most", kUnlimited).Traits(kBroadcasts).InferShape(QuantizedPairShape);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(quantized_sum) {
  op.Doc(
      "clip((X - x_zero) x_scale + (Y - y_zero) y_scale, least, most) / out_scale, rounded half to "
      "even, + out_zero, as out_dtype (uint8 or int8)");
  DefineQuantizedPair8(op);
  op.Kernel({DType::kU8, DType::kI8}, QuantizedPair8<true>);
}
HEDDLE_OP(quantized_product) {
  op.Doc(
      "clip((X - x_zero) x_scale (Y - y_zero) y_scale, least, most) / out_scale, rounded half to "
      "even, + out_zero, as out_dtype (uint8 or int8)");
  DefineQuantizedPair8(op);
  op.Kernel({DType::kU8, DType::kI8}, QuantizedPair8<false>);
}
