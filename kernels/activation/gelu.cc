#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/gemm/gemm_epilogue.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kInvSqrt2Pi = 0.39894228040143267794;

struct GeluErf : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  static bool Many(const float* x, int64_t n, float* y) {
    ActivateMany(Activation::kGeluErf, 0, x, n, y);
    return true;
  }
  template <typename T>
  T Forward(T x) const {
    return T(0.5) * x * (T(1) + fast::Erf(x * T(kSqrtHalf)));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T cdf = T(0.5) * (T(1) + fast::Erf(x * T(kSqrtHalf)));
    return dy * (cdf + x * T(kInvSqrt2Pi) * fast::Exp(T(-0.5) * x * x));
  }
};

struct GeluTanh : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  static constexpr double kScale = 2 * kInvSqrt2Pi;  // sqrt(2 / pi)
  static constexpr double kCube = 0.044715;
  static bool Many(const float* x, int64_t n, float* y) {
    ActivateMany(Activation::kGeluTanh, 0, x, n, y);
    return true;
  }
  template <typename T>
  T Forward(T x) const {
    return T(0.5) * x * (T(1) + fast::Tanh(T(kScale) * (x + T(kCube) * x * x * x)));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T t = fast::Tanh(T(kScale) * (x + T(kCube) * x * x * x));
    const T slope = T(kScale) * (T(1) + T(3 * kCube) * x * x);
    return dy * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope);
  }
};

template <typename T>
struct Gelu {
  static Status Run(KernelContext& ctx) {
    return ctx.Bool("approximate") ? RunMap<ForwardMap<GeluTanh>, T>(ctx)
                                   : RunMap<ForwardMap<GeluErf>, T>(ctx);
  }
};
template <typename T>
struct GeluGrad {
  static Status Run(KernelContext& ctx) {
    return ctx.Bool("approximate") ? RunMap<GradMap<GeluTanh>, T>(ctx)
                                   : RunMap<GradMap<GeluErf>, T>(ctx);
  }
};

template <typename T>
Status GeluTile(const KernelContext& attrs, TileStep* step) {
  return attrs.Bool("approximate") ? MakeMapTile<ForwardMap<GeluTanh>, T>(attrs, step)
                                   : MakeMapTile<ForwardMap<GeluErf>, T>(attrs, step);
}
template <typename T>
Status GeluGradTile(const KernelContext& attrs, TileStep* step) {
  return attrs.Bool("approximate") ? MakeMapTile<GradMap<GeluTanh>, T>(attrs, step)
                                   : MakeMapTile<GradMap<GeluErf>, T>(attrs, step);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(gelu) {
  op.Doc("x * P(normal variable <= x), exactly or by tanh.").Input("X").Output("Out");
  op.Traits(kElementwise).Attr("approximate", false).Inplace("X", "Out").InferShape(SameShape);
  op.Kernels<Gelu, float, double, float16, bfloat16>();
}
HEDDLE_OP(gelu_grad) {
  op.Input("X").Input("Out@GRAD").Output("X@GRAD").Attr("approximate", false);
  op.Inplace("Out@GRAD", "X@GRAD").InferShape(MapShape<GradMap<GeluErf>>);
  op.Kernels<GeluGrad, float, double, float16, bfloat16>();
}

HEDDLE_TILE(gelu) { return {1, &GeluTile<float>, &GeluTile<double>}; }
HEDDLE_TILE(gelu_grad) { return {2, &GeluGradTile<float>, &GeluGradTile<double>}; }

HEDDLE_EXAMPLES(gelu, R"(
example float64 4x3, approximate
attr approximate BOOLEAN true
in X float64 [4, 3] -0.08 0.69 -0.53 0.38 -0.69 0.54 0.08 0.23 0.84 -0.23 -0.38 -0.84
out Out float64 [4, 3] -0.03744950365902323 0.5208302332727041 -0.1579909171303835
  0.24624417144356345 -0.16916976672729586 0.3808940747459568 0.042550496340976775
  0.13591855885104054 0.6715215618298394 -0.09408144114895949 -0.13375582855643656
  -0.16847843817016064

example float32 4x2
in X float32 [4, 2] -0.014107838 -0.0847095 -0.031981755 -0.115902066 0.019021256 -0.027107932
  -0.044284586 -0.14021248
out Out float32 [4, 2] -0.00697452 -0.03949548 -0.015582896 -0.0526039 0.00965496 -0.013260843
  -0.021360174 -0.06228884

example float32 2, approximate
attr approximate BOOLEAN true
in X float32 [2] 0.997 1.055
out Out float32 [2] 0.8379442 0.9011014

example float64 scalar
in X float64 [] 0.179
out Out float64 [] 0.10221457569843315
)")

HEDDLE_EXAMPLES(gelu_grad, R"(
example float64 2, approximate
attr approximate BOOLEAN true
in Out@GRAD float64 [2] -0.7 -0.7
in X float64 [2] 1.022 0.897
out X@GRAD float64 [2] -0.7616823030943851 -0.7378801265851805

example float64 4x2
in Out@GRAD float64 [4, 2] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5
in X float64 [4, 2] 0.1990631321196497 0.45499843005590346 0.22477565369061112 0.4979168951295784
  0.21351240521201498 0.45693913482256443 0.2077403972179464 0.47619648125159253
out X@GRAD float64 [4, 2] -0.591075050444916 0.3356453662075256 0.4058152025447807 0.519726157738183
  0.6010162879493529 -0.08403639144020238 0.46437400566782017 -0.42632214334542984

example float64 scalar
in Out@GRAD float64 [] -0.2
in X float64 [] 0.179
out X@GRAD float64 [] -0.12826137959932973

example float32 4x2
in Out@GRAD float32 [4, 2] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5
in X float32 [4, 2] 0.19906314 0.45499843 0.22477566 0.4979169 0.2135124 0.45693913 0.2077404
  0.47619647
out X@GRAD float32 [4, 2] -0.591075 0.3356454 0.40581524 0.51972616 0.6010162 -0.08403639 0.46437398
  -0.42632216
)")
