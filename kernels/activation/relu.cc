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

template <typename T>
struct ReluKernel {
  static Status Run(KernelContext& ctx) {
    return ctx.Bool("keep_nan") ? RunMap<ForwardMap<ReluKeepingNan>, T>(ctx)
                                : RunMap<ForwardMap<Relu>, T>(ctx);
  }
};
template <typename T>
struct RunReluOfIntegers {
  static Status Run(KernelContext& ctx) { return RunMap<ForwardMap<Relu>, T>(ctx); }
};
template <typename T>
Status ReluTile(const KernelContext& attrs, TileStep* step) {
  return attrs.Bool("keep_nan") ? MakeMapTile<ForwardMap<ReluKeepingNan>, T>(attrs, step)
                                : MakeMapTile<ForwardMap<Relu>, T>(attrs, step);
}

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
  op.Kernels<ReluKernel, float, double, float16, bfloat16>();
  op.Kernels<RunReluOfIntegers, uint8_t, int8_t, int16_t, int32_t, int64_t>();
}
HEDDLE_OP(relu_grad) { DefineUnaryGrad<Relu, int32_t, int64_t>(op); }
HEDDLE_OP(relu_grad_grad) { DefineMap<ReluGradGrad>(op).Inplace("grad_x@GRAD", "grad_out@GRAD"); }

HEDDLE_TILE(relu) { return {1, &ReluTile<float>, &ReluTile<double>}; }
HEDDLE_TILE(relu_grad) { return UnaryGradTile<Relu>(); }

HEDDLE_EXAMPLES(relu, R"(
example float32 3x3
in X float32 [3, 3] 1.08 0.71999997 2.52 1.8000001 2.16 1.4399999 0.35999998 3.24 2.8799999
out Out float32 [3, 3] 1.08 0.71999997 2.52 1.8000001 2.16 1.4399999 0.35999998 3.24 2.8799999

example float32 7
in X float32 [7] -0.65 -0.32 -1.31 0.01 0.34 0.67 -0.98
out Out float32 [7] 0 0 0 0.01 0.34 0.67 0

example float32 1x2x3x2
in X float32 [1, 2, 3, 2] 0.17680001 0.19979998 -0.7986 -0.5299 0.34849998 -0.17380002 -0.37179998
  0.11000001 0.1557 -0.21180001 -0.11350001 -0.33839998
out Out float32 [1, 2, 3, 2] 0.17680001 0.19979998 0 0 0.34849998 0 0 0.11000001 0.1557 0 0 0

example float64 4x4
in X float64 [4, 4] -0.286 0.055999999999999994 0.05300000000000005 -0.413 -0.34600000000000003
  -0.528 0.22999999999999998 -0.123 0.587 -0.119 0.402 -0.753 -0.236 -0.28600000000000003
  0.29600000000000004 0.18000000000000005
out Out float64 [4, 4] 0 0.055999999999999994 0.05300000000000005 0 0 0 0.22999999999999998 0 0.587
  0 0.402 0 0 0 0.29600000000000004 0.18000000000000005

example NaN stays
# node Relu X -> Out
attr keep_nan BOOLEAN true
in X float32 [2, 4] nan -1 2 inf -inf 0 -0.5 nan
out Out float32 [2, 4] nan 0 2 inf 0 0 0 nan

example NaN gives 0
in X float32 [2, 4] nan -1 2 inf -inf 0 -0.5 nan
out Out float32 [2, 4] 0 0 2 inf 0 0 0 0
)")

HEDDLE_EXAMPLES(relu_grad, R"(
example float64 4
in Out float64 [4] 0 0 0 0.28
in Out@GRAD float64 [4] 0.9 0.7 0.2 0.8
out X@GRAD float64 [4] 0 0 0 0.8

example float64 4x3
in Out float64 [4, 3] 0 0 0.09612712163387246 0 0 0.24042974727677277 0 0 0.24555218213887806 0 0
  0.4056368509945236
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out X@GRAD float64 [4, 3] -0 -0 -0.7 0 -0 0.3 0 -0 0.7 -0 -0 0.7

example float64 scalar
in Out float64 [] 0.295
in Out@GRAD float64 [] -0.2
out X@GRAD float64 [] -0.2

example float32 4
in Out float32 [4] 0 0 0 0.28
in Out@GRAD float32 [4] 0.9 0.7 0.2 0.8
out X@GRAD float32 [4] 0 0 0 0.8
)")

HEDDLE_EXAMPLES(relu_grad_grad, R"(
example float64 4x3
in Out float64 [4, 3] 0.229 0.764 0.688 0.459 0.153 0.382 0.535 0.917 0.076 0.841 0.612 0.306
in grad_x@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out grad_out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7

example float32 4x3
in Out float32 [4, 3] 0.229 0.764 0.688 0.459 0.153 0.382 0.535 0.917 0.076 0.841 0.612 0.306
in grad_x@GRAD float32 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out grad_out@GRAD float32 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
)")
