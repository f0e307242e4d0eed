#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

struct Relu : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  template <typename T>
  T Forward(T x) const {
    return x > T(0) ? x : T(0);  // NaN gives 0, as in Paddle
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return y > T(0) ? dy : T(0);
  }
};

// x where it is not below 0: NaN stays.
struct ReluKeepingNan : UnaryOp {
  template <typename T>
  T Forward(T x) const {
    return x < T(0) ? T(0) : x;
  }
};

struct KeepNan {
  static constexpr Key kAttr = "keep_nan";
};
using EitherRelu = EitherMap<KeepNan, ForwardMap<ReluKeepingNan>, ForwardMap<Relu>>;
template <typename T>
struct RunReluOfIntegers {
  static Status Run(KernelContext& ctx) { return RunMap<ForwardMap<Relu>, T>(ctx); }
};

// Times 1 or 0: a gradient that is NaN or infinite is NaN where x is not positive.
struct ReluGradKeepingNan : UnaryOp {
  static constexpr Key kIns[] = {"Out", "Out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD"};
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * (y > T(0) ? T(1) : T(0));
  }
};

struct ReluGradGrad : UnaryOp {
  static constexpr Key kIns[] = {"Out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"grad_out@GRAD"};
  template <typename T>
  T operator()(T y, T ddx) const {
    return y > T(0) ? ddx : T(0);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(relu) {
  op.Doc("max(x, 0); NaN gives 0, or with keep_nan stays").Input("X").Output("Out");
  op.Attr("keep_nan", false).Inplace("X", "Out").Traits(kElementwise).InferShape(SameShape);
  op.Kernels<EitherRelu::Kernel, float, double, float16, bfloat16>();
  op.Kernels<RunReluOfIntegers, uint8_t, int8_t, int16_t, int32_t, int64_t>();
}
HEDDLE_OP(relu_grad) { DefineGradOr<KeepNan, ReluGradKeepingNan, Relu, int32_t, int64_t>(op); }
HEDDLE_OP(relu_grad_grad) { DefineMap<ReluGradGrad>(op).Inplace("grad_x@GRAD", "grad_out@GRAD"); }

HEDDLE_TILE(relu) { return EitherRelu::Tile(); }
HEDDLE_TILE(relu_grad) { return EitherMap<KeepNan, ReluGradKeepingNan, GradMap<Relu>>::Tile(); }
