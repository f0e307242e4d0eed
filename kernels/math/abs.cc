// abs and angle: of complex numbers the modulus and the argument, which are real.
#include <cmath>
#include <numbers>

#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

template <typename T>
struct RealOf {
  using type = T;
};
template <typename R>
struct RealOf<std::complex<R>> {
  using type = R;
};

struct AbsFn {
  template <typename T>
  static typename RealOf<T>::type Forward(T x) {
    if constexpr (std::is_unsigned_v<T>)
      return x;
    else if constexpr (std::is_integral_v<T>)
      return x < 0 ? static_cast<T>(-x) : x;
    else
      return std::abs(x);
  }
  template <typename T, typename D>
  static T Grad(T x, D dy) {
    if constexpr (kIsComplex<T>)
      return x == T(0) ? T(0) : T(x / std::abs(x) * dy);
    else
      return static_cast<T>(dy * static_cast<T>((x > T(0)) - (x < T(0))));
  }
};

struct AngleFn {
  template <typename T>
  static typename RealOf<T>::type Forward(T x) {
    if constexpr (kIsComplex<T>)
      return std::arg(x);
    else
      return x < T(0) ? T(std::numbers::pi) : T(0);
  }
  template <typename T, typename D>
  static T Grad(T x, D dy) {
    if constexpr (kIsComplex<T>)
      return x == T(0) ? T(0) : T(-x.imag(), x.real()) * (dy / std::norm(x));
    else
      return T(0);
  }
};

template <typename Fn>
struct Ops {
  template <typename T>
  struct Forward {
    static Status Run(KernelContext& ctx) {
      using R = typename RealOf<T>::type;
      using C = ComputeType<T>;
      const Tensor& x = ctx.In("X");
      const T* a = x.data<T>();
      R* y = ctx.Out("Out").mutable_data<R>();
      ctx.ParallelFor(x.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) y[i] = R(Fn::Forward(static_cast<C>(a[i])));
      });
      return Status::Ok();
    }
  };
  template <typename T>
  struct Grad {
    static Status Run(KernelContext& ctx) {
      using R = typename RealOf<T>::type;
      using C = ComputeType<T>;
      const Tensor& x = ctx.In("X");
      const T* a = x.data<T>();
      const R* dy = ctx.In("Out@GRAD").data<R>();
      T* dx = ctx.Out("X@GRAD").mutable_data<T>();
      ctx.ParallelFor(x.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i)
          dx[i] = T(Fn::Grad(static_cast<C>(a[i]), static_cast<ComputeType<R>>(dy[i])));
      });
      return Status::Ok();
    }
  };
};

struct AbsDoubleGrad : UnaryOp {
  static constexpr Key kIns[] = {"x", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"grad_out@GRAD"};
  template <typename T>
  T operator()(T x, T ddx) const {
    if constexpr (kIsComplex<T>)
      return x == T(0) ? T(0) : ddx * x / std::abs(x);
    else
      return ddx * T((x > T(0)) - (x < T(0)));
  }
};

DType RealDType(DType t) {
  if (t == DType::kC64) return DType::kF32;
  return t == DType::kC128 ? DType::kF64 : t;
}

Status RealShape(ShapeContext& ctx) {
  ctx.SetOut("Out", ctx.InShape("X"), RealDType(ctx.InDType("X")));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Status RealGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& dy = ctx.InShape("Out@GRAD");
  const bool fits = !x.is_static() || !dy.is_static() || x == dy ||
                    (x.numel() == 1 && dy.numel() == 1);  // a scalar's, of Paddle 2.4
  if (!fits)
    return InvalidArgument("Out@GRAD must have the shape of X, ", x.ToString(), ", but has ",
                           dy.ToString());
  if (ctx.InDType("Out@GRAD") != RealDType(ctx.InDType("X")))
    return InvalidArgument("Out@GRAD must be ", Name(RealDType(ctx.InDType("X"))), ", but is ",
                           Name(ctx.InDType("Out@GRAD")));
  ctx.SetOut("X@GRAD", x, ctx.InDType("X"));
  ctx.ShareLoD("X", "X@GRAD");
  return Status::Ok();
}

struct AbsMap : UnaryOp {
  static constexpr Key kIns[] = {"X"};
  static constexpr Key kOuts[] = {"Out"};
  template <typename T>
  T operator()(T x) const {
    return AbsFn::Forward(x);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(abs) {
  op.Doc("Absolute value.").Input("X").Output("Out").Inplace("X", "Out").InferShape(RealShape);
  op.Kernels<Ops<AbsFn>::Forward, float, double, bool, uint8_t, int8_t, int16_t, int32_t, int64_t,
             float16, bfloat16, complex64, complex128>();
}
HEDDLE_OP(abs_grad) {
  op.Input("X").Input("Out@GRAD").Output("X@GRAD").InferShape(RealGradShape);
  op.Kernels<Ops<AbsFn>::Grad, float, double, int32_t, int64_t, float16, bfloat16, complex64,
             complex128>();
}
HEDDLE_OP(abs_double_grad) {
  DefineMap<AbsDoubleGrad, int32_t, int64_t, complex64, complex128>(op);
}
HEDDLE_OP(angle) {
  op.Doc("Argument of a complex number; pi for negative real ones.").Input("X").Output("Out");
  op.InferShape(RealShape);
  op.Kernels<Ops<AngleFn>::Forward, float, double, float16, bfloat16, complex64, complex128>();
}
HEDDLE_OP(angle_grad) {
  op.Input("X").Input("Out@GRAD").Output("X@GRAD").InferShape(RealGradShape);
  op.Kernels<Ops<AngleFn>::Grad, float, double, float16, bfloat16, complex64, complex128>();
}

HEDDLE_TILE(abs) { return MapTile<AbsMap>(); }

HEDDLE_EXAMPLES(abs, R"(
example float64 2x5x1
in X float64 [2, 5, 1] -2.32 -0.9 1.48 -0.42 -1.85 0.53 1.95 -1.37 1 0.05
out Out float64 [2, 5, 1] 2.32 0.9 1.48 0.42 1.85 0.53 1.95 1.37 1 0.05

example float32 3x4
in X float32 [3, 4] 1.97 -2.52 -0.07 1.56 1.16 -1.7 -0.89 -0.48 0.75 -1.29 -2.11 0.34
out Out float32 [3, 4] 1.97 2.52 0.07 1.56 1.16 1.7 0.89 0.48 0.75 1.29 2.11 0.34

example float64 scalar
in X float64 [] 0.295
out Out float64 [] 0.295

example float64 0x1
in X float64 [0, 1]
out Out float64 [0, 1]

example int32 2x5x1
in X int32 [2, 5, 1] 1 1 -2 -2 1 -1 -2 1 -2 -1
out Out int32 [2, 5, 1] 1 1 2 2 1 1 2 1 2 1

example int64 2x5x1
in X int64 [2, 5, 1] 1 1 -2 -2 1 -1 -2 1 -2 -1
out Out int64 [2, 5, 1] 1 1 2 2 1 1 2 1 2 1

example complex64 2x5x1
in X complex64 [2, 5, 1] -2.32+0.8j -0.9+0.3j 1.48+0.5j -0.42-0.7j -1.85-0.8j 0.53+0.6j 1.95-0.3j
  -1.37+0.1j 1-0.5j 0.05+0.1j
out Out float32 [2, 5, 1] 2.4540577 0.94868326 1.562178 0.81633323 2.0155644 0.8005623 1.972942
  1.3736448 1.118034 0.1118034
)")

HEDDLE_EXAMPLES(abs_grad, R"(
example float64 3x4
in Out@GRAD float64 [3, 4] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [3, 4] -1.7 1.16 0.75 -0.48 -2.11 -0.89 -0.07 1.97 -2.52 1.56 0.34 -1.29
out X@GRAD float64 [3, 4] 0.6 -0.6 -0.7 -0.5 0.5 -0.3 -0.2 -0.2 -0.7 -0 -0.5 -0.7

example float32 3x4
in Out@GRAD float32 [3, 4] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float32 [3, 4] -1.7 1.16 0.75 -0.48 -2.11 -0.89 -0.07 1.97 -2.52 1.56 0.34 -1.29
out X@GRAD float32 [3, 4] 0.6 -0.6 -0.7 -0.5 0.5 -0.3 -0.2 -0.2 -0.7 -0 -0.5 -0.7

example float32, the gradient of a scalar as a tensor of one element
in X float32 [] -2
in Out@GRAD float32 [1] 0.3
out X@GRAD float32 [] -0.3
)")

HEDDLE_EXAMPLES(abs_double_grad, R"(
example float64 2x3x4x3
in grad_x@GRAD float64 [2, 3, 4, 3] -0.1 -0 -0.9 0.2 0.8 0.2 -0.7 0.3 -0.1 -0.5 0.9 -0.1 -0.3 -0.5
  -1 -0.6 0.5 -0.4 0.4 0.1 -0.5 -0 0.3 -0.1 -0.5 -0.4 -0.1 -0.5 -0.3 0 0.3 -0.6 0.2 -0.5 -0 0.3 -0.1
  -0.9 0.6 -0.7 -0.6 0.7 0.2 -0.6 -0.6 -0.8 0.3 0.4 0.8 -0.6 0.9 -0.5 -0.7 -0.1 0.1 -0.3 0.8 0 0 0.6
  -0 0.3 0.9 -0.2 0.1 0.2 -0.9 0.7 -0.5 -0.2 -0.5 -1
in x float64 [2, 3, 4, 3] -0.86 -0.29 0.21 -0.37 -0.89 0.48 0.75 -0.92 -0.72 -0.75 -0.01 -0.12 0.07
  -0.04 0.45 -0.81 0.1 -0.07 -0.45 -0.56 0.81 -0.23 0.92 0.29 0.89 0.86 -0.51 0.59 0.73 -0.34 0.56
  -0.53 -0.78 -0.26 0.23 -0.1 0.04 -0.67 -0.64 -0.83 -0.59 0.34 -0.7 -0.18 -0.4 0.37 -0.48 -0.61
  0.97 -0.2 0.51 0.53 -0.31 0.64 -0.15 0.4 -0.42 0.94 0.15 0.62 0.18 0.32 0.83 0.67 0.01 0.12 0.26
  -0.97 0.7 -0.94 0.78 0.42
out grad_out@GRAD float64 [2, 3, 4, 3] 0.1 0 -0.9 -0.19999999999999998 -0.8 0.2 -0.6999999999999998
  -0.3 0.09999999999999999 0.5 -0.9000000000000001 0.1 -0.3 0.5 -1 0.6 0.5 0.4 -0.4 -0.1 -0.5 0 0.3
  -0.1 -0.5 -0.4 0.1 -0.5 -0.3 -0 0.3 0.6 -0.20000000000000004 0.5 -0 -0.3 -0.1 0.9000000000000001
  -0.6 0.7 0.6 0.7 -0.19999999999999998 0.6 0.6 -0.7999999999999999 -0.3 -0.4 0.8 0.6 0.9 -0.5 0.7
  -0.1 -0.1 -0.3 -0.8 0 0 0.6 -0 0.3 0.9 -0.2 0.1 0.2 -0.9 -0.7 -0.5 0.2 -0.5 -1

example float32 2x3x4x3
in grad_x@GRAD float32 [2, 3, 4, 3] -0.1 -0 -0.9 0.2 0.8 0.2 -0.7 0.3 -0.1 -0.5 0.9 -0.1 -0.3 -0.5
  -1 -0.6 0.5 -0.4 0.4 0.1 -0.5 -0 0.3 -0.1 -0.5 -0.4 -0.1 -0.5 -0.3 0 0.3 -0.6 0.2 -0.5 -0 0.3 -0.1
  -0.9 0.6 -0.7 -0.6 0.7 0.2 -0.6 -0.6 -0.8 0.3 0.4 0.8 -0.6 0.9 -0.5 -0.7 -0.1 0.1 -0.3 0.8 0 0 0.6
  -0 0.3 0.9 -0.2 0.1 0.2 -0.9 0.7 -0.5 -0.2 -0.5 -1
in x float32 [2, 3, 4, 3] -0.86 -0.29 0.21 -0.37 -0.89 0.48 0.75 -0.92 -0.72 -0.75 -0.01 -0.12 0.07
  -0.04 0.45 -0.81 0.1 -0.07 -0.45 -0.56 0.81 -0.23 0.92 0.29 0.89 0.86 -0.51 0.59 0.73 -0.34 0.56
  -0.53 -0.78 -0.26 0.23 -0.1 0.04 -0.67 -0.64 -0.83 -0.59 0.34 -0.7 -0.18 -0.4 0.37 -0.48 -0.61
  0.97 -0.2 0.51 0.53 -0.31 0.64 -0.15 0.4 -0.42 0.94 0.15 0.62 0.18 0.32 0.83 0.67 0.01 0.12 0.26
  -0.97 0.7 -0.94 0.78 0.42
out grad_out@GRAD float32 [2, 3, 4, 3] 0.1 0 -0.90000004 -0.2 -0.8 0.2 -0.7 -0.3 0.1 0.5 -0.9 0.1
  -0.3 0.5 -1 0.6 0.5 0.4 -0.4 -0.1 -0.5 0 0.3 -0.1 -0.5 -0.4 0.1 -0.5 -0.3 -0 0.3 0.6 -0.20000002
  0.5 -0 -0.3 -0.10000001 0.9 -0.6 0.7 0.6 0.7 -0.2 0.6 0.6 -0.8 -0.3 -0.4 0.8 0.6 0.9 -0.5 0.7
  -0.10000001 -0.1 -0.3 -0.8 0 0 0.6 -0 0.3 0.9 -0.2 0.10000001 0.2 -0.9 -0.7 -0.5 0.2 -0.5 -1
)")

HEDDLE_EXAMPLES(angle, R"(
example complex128 2x3
in X complex128 [2, 3] 0.6-1.8j -1.5-0.4j 1.8-1.1j -0.1+1.4j 1.5-1.2j -1.2+1j
out Out float64 [2, 3] -1.2490457723982544 -2.8809902618424523 -0.5485494024505281 1.642103791580187
  -0.6747409422235526 2.44685437739309

example float64 4
in X float64 [4] -3 -1 1 3
out Out float64 [4] 3.141592653589793 3.141592653589793 0 0
)")

HEDDLE_EXAMPLES(angle_grad, R"(
example float64 4
dtypes real: the argument of a real number is constant, that of a complex one is not
in Out@GRAD float64 [4] 0.9 0.7 0.2 0.8
in X float64 [4] -3 -1 1 3
out X@GRAD float64 [4] 0*4

example float32 4
dtypes real: the argument of a real number is constant, that of a complex one is not
in Out@GRAD float32 [4] 0.9 0.7 0.2 0.8
in X float32 [4] -3 -1 1 3
out X@GRAD float32 [4] 0*4

example complex64
gradient none: one of the numbers is 0, which has no argument
in Out@GRAD float32 [4] 0.9 0.7 0.2 0.8
in X complex64 [4] -3-1j -1+0.5j 1+2j 0+0j
out X@GRAD complex64 [4] 0.089999996-0.26999998j -0.28-0.56j -0.08+0.04j 0+0j

example complex128
in Out@GRAD float64 [3] 0.9 0.7 0.2
in X complex128 [3] -3-1j -1+0.5j 1+2j
out X@GRAD complex128 [3] 0.09-0.27j -0.27999999999999997-0.5599999999999999j -0.08+0.04j
)")
