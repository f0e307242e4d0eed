#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/base/convert.h"
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
