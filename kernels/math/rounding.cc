// floor, ceil, round, trunc, and sign: constant between their steps, so the gradients are zero.
#include <cmath>

#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

struct StepOp : UnaryOp {
  static constexpr GradReads kReads = kReadsNothing;
  template <typename T>
  T Grad(T) const {
    return T(0);
  }
};

struct Floor : StepOp {
  template <typename T>
  T Forward(T x) const {
    return std::floor(x);
  }
};
struct Ceil : StepOp {
  template <typename T>
  T Forward(T x) const {
    return std::ceil(x);
  }
};
struct Trunc : StepOp {
  template <typename T>
  T Forward(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return std::trunc(x);
  }
};
struct Round : StepOp {  // halves away from zero
  template <typename T>
  T Forward(T x) const {
    const T whole = std::trunc(x);
    return whole + std::copysign(std::fabs(x - whole) >= T(0.5) ? T(1) : T(0), x);
  }
};
// Halves go to the even neighbour, which is the processor's mode of rounding.
struct RoundToEven : StepOp {
  template <typename T>
  T Forward(T x) const {
    return std::nearbyint(x);
  }
};
struct HalfToEven {
  static constexpr Key kAttr = "half_to_even";
};
using EitherRound = EitherMap<HalfToEven, ForwardMap<RoundToEven>, ForwardMap<Round>>;
struct Sign : StepOp {
  template <typename T>
  T Forward(T x) const {
    return x != x ? x : T((x > T(0)) - (x < T(0)));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(floor) { DefineUnary<Floor>(op, "Greatest integer not above x."); }
HEDDLE_OP(floor_grad) { DefineUnaryGrad<Floor>(op); }
HEDDLE_OP(ceil) { DefineUnary<Ceil>(op, "Least integer not below x."); }
HEDDLE_OP(ceil_grad) { DefineUnaryGrad<Ceil>(op); }
HEDDLE_OP(round) {
  DefineUnary<Round>(op, "Nearest integer, halves away from zero or to the even one.");
  op.Attr("half_to_even", false).Kernels<EitherRound::Kernel, float, double, float16, bfloat16>();
}
HEDDLE_OP(round_grad) { DefineUnaryGrad<Round>(op); }
HEDDLE_OP(trunc) { DefineUnary<Trunc, int32_t, int64_t>(op, "x without its fraction."); }
HEDDLE_OP(trunc_grad) { DefineUnaryGrad<Trunc, int32_t, int64_t>(op); }
HEDDLE_OP(sign) {
  DefineUnary<Sign, uint8_t, int8_t, int16_t, int32_t, int64_t>(op, "-1, 0 or 1.");
}

HEDDLE_TILE(floor) { return UnaryTile<Floor>(); }
HEDDLE_TILE(ceil) { return UnaryTile<Ceil>(); }
HEDDLE_TILE(round) { return EitherRound::Tile(); }
