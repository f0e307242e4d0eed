// quantized_sum and quantized_product: element-wise operators on quantised tensors, computed in
// float as their parts would be. Operators of heddle, made by a pass.
#include <algorithm>
#include <limits>

#include "core/interrupts.h"
#include "kernels/base/broadcast.h"
#include "kernels/quantize/quantized.h"

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

struct Step8 {
  float scale;
  int32_t zero;
};
Result<Step8> StepIn(const OpContext& ctx, Key scale, Key zero) {
  const Step8 step{static_cast<float>(ctx.Float(scale)), static_cast<int32_t>(ctx.Int(zero))};
  if (ctx.Int(zero) < -128 || ctx.Int(zero) > 255)
    return InvalidArgument(zero.name, " is ", ctx.Int(zero), ", expected -128 to 255");
  return step;
}

struct PairOf8 {
  Step8 x, y, out;
  float least, most;
};

template <bool kSum, typename Z>
void CombineRow(const float* __restrict u, const float* __restrict v, int64_t n, PairOf8 p,
                Z* __restrict z) {
  for (int64_t i = 0; i < n; ++i) {
    float w = kSum ? u[i] + v[i] : u[i] * v[i];
    w = w < p.least ? p.least : w;
    w = w > p.most ? p.most : w;
    z[i] = RoundTo<Z>(w / p.out.scale, p.out.zero);
  }
}

// Numbers lie in memory before they are added: a compiler might make one instruction of a product
// and a sum, which rounds once.
template <bool kSum, bool kOneX, bool kOneY, typename X, typename Y, typename Z>
void PairRow(const X* x, const Y* y, int64_t n, const PairOf8& p, Z* z) {
  constexpr int64_t kBlock = 512;
  float u[kBlock], v[kBlock];
  const auto real = [](auto q, const Step8& step) {
    return static_cast<float>(q - step.zero) * step.scale;
  };
  if constexpr (kOneX) std::fill_n(u, kBlock, real(*x, p.x));
  if constexpr (kOneY) std::fill_n(v, kBlock, real(*y, p.y));
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    if constexpr (!kOneX) ScaleRow(x + at, count, p.x.scale, p.x.zero, u);
    if constexpr (!kOneY) ScaleRow(y + at, count, p.y.scale, p.y.zero, v);
    CombineRow<kSum>(u, v, count, p, z + at);
  }
}

template <bool kSum, typename X, typename Y, typename Z>
void RunPair(const KernelContext& ctx, const BroadcastPlan& plan, const PairOf8& p, const X* x,
             const Y* y, Z* z) {
  const bool x_one = plan.inner == InnerKind::kScalarVector;
  const bool y_one = plan.inner == InnerKind::kVectorScalar;
  ParallelRows(ctx, plan, 1 << 14, [&](int64_t xo, int64_t yo, int64_t zo, int64_t n) {
    for (const auto part : Stretches(n)) {
      const int64_t at = part.begin, count = part.end - part.begin;
      if (x_one)
        PairRow<kSum, true, false>(x + xo, y + yo + at, count, p, z + zo + at);
      else if (y_one)
        PairRow<kSum, false, true>(x + xo + at, y + yo, count, p, z + zo + at);
      else
        PairRow<kSum, false, false>(x + xo + at, y + yo + at, count, p, z + zo + at);
    }
  });
}

template <bool kSum>
Status QuantizedPair8(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  PairOf8 p;
  HEDDLE_ASSIGN_OR_RETURN(p.x, StepIn(ctx, "x_scale", "x_zero"));
  HEDDLE_ASSIGN_OR_RETURN(p.y, StepIn(ctx, "y_scale", "y_zero"));
  HEDDLE_ASSIGN_OR_RETURN(p.out, StepIn(ctx, "out_scale", "out_zero"));
  p.least = static_cast<float>(ctx.Float("least"));
  p.most = static_cast<float>(ctx.Float("most"));
  HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                          MakeBroadcastPlan(x.shape(), y.shape(), ctx.Int("axis")));
  VisitDType<uint8_t, int8_t>(x.dtype(), [&](auto x_tag) {
    using X = typename decltype(x_tag)::type;
    VisitDType<uint8_t, int8_t>(y.dtype(), [&](auto y_tag) {
      using Y = typename decltype(y_tag)::type;
      VisitDType<uint8_t, int8_t>(out.dtype(), [&](auto out_tag) {
        using Z = typename decltype(out_tag)::type;
        RunPair<kSum>(ctx, plan, p, x.data<X>(), y.data<Y>(), out.mutable_data<Z>());
      });
    });
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
