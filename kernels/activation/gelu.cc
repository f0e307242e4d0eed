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
