#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

// x^e with the low bits of what does not fit, as products of integers have them.
template <typename T>
T WholePower(T x, int64_t e) {
  if (e < 0) return ConvertTo<T>(std::pow(static_cast<double>(x), static_cast<double>(e)));
  using U = std::make_unsigned_t<T>;
  U square = static_cast<U>(x), power = 1;
  for (; e > 0; e >>= 1, square *= square)
    if (e & 1) power *= square;
  return static_cast<T>(power);
}

// c * x^e, which is 0 for c = 0 whatever x is. Integers see whole factors and exponents.
template <typename T>
T Monomial(double c, T x, double e) {
  if (c == 0) return T(0);
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const T power = WholePower(x, ConvertTo<int64_t>(e));
    return static_cast<T>(static_cast<U>(ConvertTo<T>(c)) * static_cast<U>(power));
  } else {
    if (e == 1) return T(c) * x;
    if (e == 2) return T(c) * (x * x);
    return T(c) * std::pow(x, T(e));
  }
}

double FactorOf(const KernelContext& ctx) {
  const Tensor* f = ctx.InOpt("FactorTensor");
  return f != nullptr ? ScalarOf(*f) : ctx.Float("factor");
}

struct FactorAttr : SlowUnaryOp {
  explicit FactorAttr(const KernelContext& ctx) : p(FactorOf(ctx)) {}
  double p;
};

struct PowMap : FactorAttr {
  static constexpr Key kIns[] = {"X"};
  static constexpr Key kOuts[] = {"Out"};
  using FactorAttr::FactorAttr;
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return WholePower(x, ConvertTo<int64_t>(p));
    else
      return std::pow(x, T(p));
  }
};

// The exponents people use, as loops the compiler vectorises.
struct OfX : UnaryOp {
  static constexpr Key kIns[] = {"X"};
  static constexpr Key kOuts[] = {"Out"};
};
struct SquareMap : OfX {
  template <typename T>
  T operator()(T x) const {
    return x * x;
  }
};
struct CubeMap : OfX {
  template <typename T>
  T operator()(T x) const {
    return x * x * x;
  }
};
// Unlike std::sqrt, std::pow says +0 of -0, and infinity of minus infinity.
template <typename T>
T Root(T x) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  return fast::Select(x == -kInf, kInf, std::sqrt(x + T(0)));
}
struct RootMap : OfX {
  template <typename T>
  T operator()(T x) const {
    return Root(x);
  }
};
struct InverseRootMap : OfX {
  template <typename T>
  T operator()(T x) const {
    return T(1) / Root(x);
  }
};
struct InverseMap : OfX {
  template <typename T>
  T operator()(T x) const {
    return T(1) / x;
  }
};

struct PowGradMap : FactorAttr {
  static constexpr Key kIns[] = {"X", "Out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD"};
  using FactorAttr::FactorAttr;
  template <typename T>
  T operator()(T x, T dy) const {
    return dy * Monomial(p, x, p - 1);
  }
};

struct PowDoubleGrad : FactorAttr {
  static constexpr Key kIns[] = {"X", "grad_out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD", "grad_out@GRAD"};
  using FactorAttr::FactorAttr;
  template <typename T>
  std::array<T, 2> operator()(T x, T dy, T ddx) const {
    return {ddx * dy * Monomial(p * (p - 1), x, p - 2), ddx * Monomial(p, x, p - 1)};
  }
};

// Gradient of PowDoubleGrad: dx_new and ddy belong to its two outputs.
struct PowTripleGrad : FactorAttr {
  static constexpr Key kIns[] = {"X", "grad_out", "grad_grad_x", "grad_x@GRAD",
                                 "grad_grad_out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD", "grad_out@GRAD", "grad_grad_x@GRAD"};
  using FactorAttr::FactorAttr;
  template <typename T>
  std::array<T, 3> operator()(T x, T dy, T ddx, T dx_new, T ddy) const {
    const T f1 = Monomial(p, x, p - 1);
    const T f2 = Monomial(p * (p - 1), x, p - 2);
    const T f3 = Monomial(p * (p - 1) * (p - 2), x, p - 3);
    return {ddx * (dx_new * dy * f3 + ddy * f2), dx_new * ddx * f2, dx_new * dy * f2 + ddy * f1};
  }
};

// fn(map) for the map that raises to the power p.
template <typename T, typename Fn>
Status ForFactor(double p, const Fn& fn) {
  if (p == 2.0) return fn(std::type_identity<SquareMap>());
  if constexpr (!std::is_integral_v<T>) {
    if (p == 3.0) return fn(std::type_identity<CubeMap>());
    if (p == 0.5) return fn(std::type_identity<RootMap>());
    if (p == -0.5) return fn(std::type_identity<InverseRootMap>());
    if (p == -1.0) return fn(std::type_identity<InverseMap>());
  }
  return fn(std::type_identity<PowMap>());
}

template <typename T>
struct Pow {
  static Status Run(KernelContext& ctx) {
    return ForFactor<T>(FactorOf(ctx),
                        [&]<typename Map>(std::type_identity<Map>) { return RunMap<Map, T>(ctx); });
  }
};

// The factor is no operand of the element-wise kind.
template <InferShapeFn kShape>
Status PowShape(ShapeContext& ctx) {
  if (ctx.HasIn("FactorTensor")) {
    const Shape& f = ctx.InShape("FactorTensor");
    if (f.is_static() && f.numel() != 1)
      return InvalidArgument("FactorTensor must hold one element, but has shape ", f.ToString());
  }
  return kShape(ctx);
}

void DefineFactor(OpDef& op) { op.Input("FactorTensor", kOptional).Attr("factor", 1.0); }

template <typename T>
Status PowTile(const KernelContext& attrs, TileStep* step) {
  return ForFactor<T>(FactorOf(attrs), [&]<typename Map>(std::type_identity<Map>) {
    return MakeMapTile<Map, T>(attrs, step);
  });
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(pow) {
  op.Doc("x to the power `factor`.").Input("X").Output("Out").Inplace("X", "Out");
  DefineFactor(op);
  op.Traits(kElementwise).InferShape(PowShape<SameShape>);
  op.Kernels<Pow, float, double, int32_t, int64_t, float16, bfloat16>();
}
HEDDLE_OP(pow_grad) {
  DefineMap<PowGradMap, int32_t, int64_t>(op).Inplace("Out@GRAD", "X@GRAD");
  DefineFactor(op);
  op.InferShape(PowShape<MapShape<PowGradMap>>);
}
HEDDLE_OP(pow_double_grad) {
  DefineMap<PowDoubleGrad, int32_t, int64_t>(op).InferShape(PowShape<MapShape<PowDoubleGrad>>);
  DefineFactor(op);
}
HEDDLE_OP(pow_triple_grad) {
  DefineMap<PowTripleGrad, int32_t, int64_t>(op).InferShape(PowShape<MapShape<PowTripleGrad>>);
  DefineFactor(op);
}

HEDDLE_TILE(pow) { return {1, &PowTile<float>, &PowTile<double>}; }

HEDDLE_EXAMPLES(pow, R"(
example float32 6, factor 2
attr factor FLOAT 2.0
in X float32 [6] 0 0 1 3 3 5
out Out float32 [6] 0 0 1 9 9 25

example float64 4, factor 3
attr factor FLOAT 3.0
in X float64 [4] 2.03 8 6.01 4.02
out Out float64 [4] 8.365426999999997 512 217.08180099999998 64.96480799999998

example int64 4, factor 6
attr factor FLOAT 6.0
in X int64 [4] 1*4
out Out int64 [4] 1*4

example float32 scalar, factor 2
attr factor FLOAT 2.0
in X float32 [] 1.92
out Out float32 [] 3.6864

example int32 6, factor 2
attr factor FLOAT 2.0
in X int32 [6] 4 4 3 5 0 0
out Out int32 [6] 16 16 9 25 0 0

example int32, more than fits
dtypes none: what fits depends on the dtype
attr factor FLOAT 20.0
in X int32 [3] 3 -3 10
out Out int32 [3] -808182895 -808182895 1661992960

example int64, more than a double holds
attr factor FLOAT 39.0
in X int64 [3] 3 -3 2
out Out int64 [3] 4052555153018976267 -4052555153018976267 549755813888
)")

HEDDLE_EXAMPLES(pow_grad, R"(
example float64 1, factor -1.5
attr factor FLOAT -1.5
in Out@GRAD float64 [1] -0.2
in X float64 [1] 2.12
out X@GRAD float64 [1] 0.045843904842255596

example float64 scalar, factor 3
attr factor FLOAT 3.0
in Out@GRAD float64 [] -0.2
in X float64 [] 1.65
out X@GRAD float64 [] -1.6335

example float64 4x3, factor 3
attr factor FLOAT 3.0
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] 1.844 1.768 1.31 1.233 1.386 1.921 1.462 1.615 1.691 1.157 1.08 1.539
out X@GRAD float64 [4, 3] -6.1206048 -5.6264832 -3.6038099999999997 2.2804335000000004
  -2.8814939999999996 3.3212169 1.2824664000000001 -1.5649350000000002 6.004910099999999 -0 -1.7496
  4.973894099999999

example float32 1, factor -1.5
attr factor FLOAT -1.5
in Out@GRAD float32 [1] -0.2
in X float32 [1] 2.12
out X@GRAD float32 [1] 0.04584391

example int32, a factor that is not whole
attr factor FLOAT 2.5
in X int32 [3] 3 -3 10
in Out@GRAD int32 [3] 1 2 1
out X@GRAD int32 [3] 6 -12 20

example int32, more than fits
dtypes none: what fits depends on the dtype
gradient none: differences of what does not fit
attr factor FLOAT 21.0
in X int32 [3] 3 -3 10
in Out@GRAD int32 [3] 1 1 1
out X@GRAD int32 [3] 208028389 208028389 542113792
)")

HEDDLE_EXAMPLES(pow_double_grad, R"(
example float64 4x3, factor 3
attr factor FLOAT 3.0
in X float64 [4, 3] 1.233 1.768 1.691 1.462 1.157 1.386 1.539 1.921 1.08 1.844 1.615 1.31
in grad_out float64 [4, 3] 4.22 5.29 3.15 4.76 1.55 2.08 2.62 7.43 6.89 3.69 6.36 5.82
in grad_x@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out X@GRAD float64 [4, 3] 3.1219560000000004 -28.05816 6.39198 -33.403776 9.68409 0 19.354464
  -68.510544 -35.717760000000006 -40.82616 36.97704 -45.745200000000004
out grad_out@GRAD float64 [4, 3] 0.45608670000000007 -4.6887360000000005 1.7156886000000002
  -5.1298656000000005 3.6143522999999997 0 5.6844504 -8.856578400000002 -2.7993600000000005
  -10.201008000000002 4.694805 -5.148300000000001

example float32 4x3, factor 3
attr factor FLOAT 3.0
in X float32 [4, 3] 1.233 1.768 1.691 1.462 1.157 1.386 1.539 1.921 1.08 1.844 1.615 1.31
in grad_out float32 [4, 3] 4.22 5.29 3.15 4.76 1.55 2.08 2.62 7.43 6.89 3.69 6.36 5.82
in grad_x@GRAD float32 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out X@GRAD float32 [4, 3] 3.121956 -28.05816 6.39198 -33.403778 9.684089 0 19.354464 -68.510544
  -35.717762 -40.82616 36.977043 -45.7452
out grad_out@GRAD float32 [4, 3] 0.4560867 -4.688736 1.7156886 -5.1298656 3.6143522 0 5.684451
  -8.856579 -2.7993603 -10.201008 4.694805 -5.1482997

example int32 4x3, factor 3
attr factor FLOAT 3.0
in X int32 [4, 3] 8 12 11 10 8 9 10 13 7 12 11 9
in grad_out int32 [4, 3] 29 37 22 33 10 14 18 52 48 25 44 40
in grad_x@GRAD int32 [4, 3] 1 -3 1 -5 6 1 5 -5 -5 -7 4 -7
out X@GRAD int32 [4, 3] 1392 -7992 1452 -9900 2880 756 5400 -20280 -10080 -12600 11616 -15120
out grad_out@GRAD int32 [4, 3] 192 -1296 363 -1500 1152 243 1500 -2535 -735 -3024 1452 -1701
)")

HEDDLE_EXAMPLES(pow_triple_grad, R"(
example float32
attr factor FLOAT 3.0
in X float32 [4] 0.88 1.8 0.52 1.33
in grad_out float32 [4] 0.06 0.85 -0.51 -0.87
in grad_grad_x float32 [4] 0.8 0.75 -0.67 1
in grad_x@GRAD float32 [4] -0.31 -0.37 0.69 0.76
in grad_grad_out@GRAD float32 [4] 0.35 -0.89 0.12 0.39
out X@GRAD float32 [4] 1.3891199 -8.624249 1.16379 -0.8549998
out grad_out@GRAD float32 [4] -1.30944 -2.9969997 -1.4423759 6.0648003
out grad_grad_x@GRAD float32 [4] 0.714912 -12.047399 -1.0005839 -3.206763

example float64
attr factor FLOAT 3.0
in X float64 [4] 0.93 0.82 1.01 1.6
in grad_out float64 [4] -0.11 -0.36 0.95 -0.12
in grad_grad_x float64 [4] -0.63 0.45 0.68 0.06
in grad_x@GRAD float64 [4] -0.6 0.83 -0.57 0.23
in grad_grad_out@GRAD float64 [4] -0.09 -0.26 0.41 -0.35
out X@GRAD float64 [4] 0.06690600000000002 -1.3824 -0.5197919999999998 -0.211536
out grad_out@GRAD float64 [4] 2.1092400000000002 1.83762 -2.348856 0.13248000000000001
out grad_grad_x@GRAD float64 [4] 0.13475699999999996 -1.9945679999999997 -2.0267670000000004
  -2.95296

example int32
attr factor FLOAT 3.0
in X int32 [4] 6 12 3 9
in grad_out int32 [4] 1 5 -3 -6
in grad_grad_x int32 [4] 5 5 -4 7
in grad_x@GRAD int32 [4] -2 -2 4 5
in grad_grad_out@GRAD int32 [4] 2 -6 1 2
out X@GRAD int32 [4] 300 -2460 216 -504
out grad_out@GRAD int32 [4] -360 -720 -288 1890
out grad_grad_x@GRAD int32 [4] 144 -3312 -189 -1134
)")
