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

HEDDLE_OP(relu) { DefineUnary<Relu, int32_t, int64_t>(op, "max(x, 0)"); }
HEDDLE_OP(relu_grad) { DefineUnaryGrad<Relu, int32_t, int64_t>(op); }
HEDDLE_OP(relu_grad_grad) { DefineMap<ReluGradGrad>(op).Inplace("grad_x@GRAD", "grad_out@GRAD"); }

HEDDLE_TILE(relu) { return UnaryTile<Relu>(); }
HEDDLE_TILE(relu_grad) { return UnaryGradTile<Relu>(); }
