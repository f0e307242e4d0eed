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
