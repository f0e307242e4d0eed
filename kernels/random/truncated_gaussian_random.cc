// truncated_gaussian_random: normal numbers within two standard deviations.
#include <cmath>
#include <limits>

#include "kernels/base/shape_arg.h"
#include "kernels/random/random.h"

namespace heddle {
namespace {

// Inverse of the error function after Giles, in single precision as the values are.
template <typename C>
C InverseErf(C x) {
  C w = -std::log((C(1) - x) * (C(1) + x));
  C p;
  if (w < C(5)) {
    w -= C(2.5);
    p = C(2.81022636e-08);
    for (double k : {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
                     -0.00417768164, 0.246640727, 1.50140941})
      p = C(k) + p * w;
  } else {
    w = std::sqrt(w) - C(3);
    p = C(-0.000200214257);
    for (double k : {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
                     0.00943887047, 1.00167406, 2.83297682})
      p = C(k) + p * w;
  }
  return p * x;
}

// Normal numbers within two deviations: an even number mapped through the inverse distribution.
Status RunTruncated(KernelContext& ctx) {
  const double cut = std::erf(2.0 / std::sqrt(2.0));
  return FillRandom(ctx, ctx.Out("Out"), ctx.Int("seed"), [&](auto c) {
    using C = decltype(c);
    std::uniform_real_distribution<C> even(std::numeric_limits<C>::min(), C(1));
    const C mean = static_cast<C>(ctx.Float("mean")), std = static_cast<C>(ctx.Float("std"));
    return [=](std::mt19937_64& engine) mutable {
      const C p = static_cast<C>((1.0 - cut) / 2 + cut * even(engine));
      return static_cast<C>(std::sqrt(2.0) * InverseErf(C(2) * p - C(1)) * std + mean);
    };
  });
}

Status TruncatedShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(ctx.IntList("shape"), "attribute shape"));
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

void DeclareTruncated(OpDef& op) {
  op.Traits(kRandom).Attr("mean", 0.0).Attr("std", 1.0).Attr("seed", 0);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(truncated_gaussian_random) {
  op.Doc("Normal numbers within two standard deviations.").Output("Out").Attr("shape", Ints{});
  DeclareTruncated(op);
  op.Attr("dtype", 5).InferShape(TruncatedShape).AnyKernel(RunTruncated);
}
