// squared_l2_norm and l1_norm: one number for a whole tensor.

#include "core/error.h"
#include "kernels/base/check.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

template <typename R>
struct Whole {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      const Tensor& x = ctx.In("X");
      RunReduce(ctx, MakeReducePlan(std::array{x.numel()}, 1), ReduceLoop<R, T, T>::kLoops, x.raw(),
                ctx.Out("Out").mutable_raw());
      return Status::Ok();
    }
  };
};

struct TwiceX {
  template <typename T>
  static T Apply(T x, T dout) {
    return T(2) * x * dout;
  }
};
struct SignOfX {
  template <typename T>
  static T Apply(T x, T dout) {
    return static_cast<T>((x > 0) - (x < 0)) * dout;
  }
};

template <typename F>
struct WholeGrad {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      const Tensor& xt = ctx.In("X");
      const Tensor& dout = ctx.In("Out@GRAD");
      HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&dout}));
      if (dout.numel() != 1)
        return InvalidArgument("input Out@GRAD has shape ", dout.shape().ToString(),
                               ", expected one element");
      const T* x = xt.data<T>();
      const T g = dout.data<T>()[0];
      T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
      ctx.ParallelFor(xt.numel(), kElementGrain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) dx[i] = F::Apply(x[i], g);
      });
      return Status::Ok();
    }
  };
};

Status InferOne(ShapeContext& ctx) {
  ctx.SetOut("Out", Shape{1}, ctx.InDType("X"));
  return Status::Ok();
}
Status InferScalar(ShapeContext& ctx) {
  ctx.SetOut("Out", Shape{}, ctx.InDType("X"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(squared_l2_norm) {
  op.Doc("sum of squares").Input("X").Output("Out").InferShape(&InferOne);
  op.Kernels<Whole<SumOfSquares>::Kernel, float, double>();
}
HEDDLE_OP(squared_l2_norm_grad) {
  op.Doc("gradient of squared_l2_norm").Input("X").Input("Out@GRAD").Output("X@GRAD");
  op.InferShape(&GradLikeInputs).Kernels<WholeGrad<TwiceX>::Kernel, float, double>();
}
HEDDLE_OP(l1_norm) {
  op.Doc("sum of absolute values").Input("X").Output("Out").InferShape(&InferScalar);
  op.Kernels<Whole<SumOfAbs>::Kernel, float, double>();
}
HEDDLE_OP(l1_norm_grad) {
  op.Doc("gradient of l1_norm").Input("X").Input("Out@GRAD").Output("X@GRAD");
  op.InferShape(&GradLikeInputs).Kernels<WholeGrad<SignOfX>::Kernel, float, double>();
}

HEDDLE_EXAMPLES(squared_l2_norm_grad, R"(
example float64 4x3
in Out@GRAD float64 [1] 0.1
in X float64 [4, 3] 0.08 0.38 -0.38 -0.23 0.84 -0.84 -0.69 -0.08 0.53 0.23 -0.54 0.69
out X@GRAD float64 [4, 3] 0.016 0.07600000000000001 -0.07600000000000001 -0.046000000000000006 0.168
  -0.168 -0.13799999999999998 -0.016 0.10600000000000001 0.046000000000000006 -0.10800000000000001
  0.13799999999999998

example float64 3x4x2
in Out@GRAD float64 [1] 0.3
in X float64 [3, 4, 2] -0.46 0.72 -0.6 -0.39 0.79 0.58 -0.67 0.37 0.44 0.3 0.17 -0.11 0.24 -0.53
  -0.04 0.03 -0.18 -0.25 0.1 0.65 -0.74 -0.81 -0.32 0.51
out X@GRAD float64 [3, 4, 2] -0.276 0.432 -0.36 -0.23399999999999999 0.474 0.348 -0.402 0.222 0.264
  0.18 0.10200000000000001 -0.066 0.144 -0.318 -0.024 0.018 -0.108 -0.15 0.06 0.39 -0.444 -0.486
  -0.192 0.306

example float32 4x3
in Out@GRAD float32 [1] 0.1
in X float32 [4, 3] 0.08 0.38 -0.38 -0.23 0.84 -0.84 -0.69 -0.08 0.53 0.23 -0.54 0.69
out X@GRAD float32 [4, 3] 0.016 0.076 -0.076 -0.046 0.168 -0.168 -0.138 -0.016 0.106 0.046 -0.108
  0.138
)")

HEDDLE_EXAMPLES(l1_norm, R"(
example float32 4x3
in X float32 [4, 3] -0.54 0.53 0.38 -0.08 -0.69 -0.23 0.08 0.84 -0.84 0.69 0.23 -0.38
out Out float32 [] 5.5099998
)")

HEDDLE_EXAMPLES(l1_norm_grad, R"(
example float32 4x3
in Out@GRAD float32 [] 0.1
in X float32 [4, 3] -0.54 0.53 0.38 -0.08 -0.69 -0.23 0.08 0.84 -0.84 0.69 0.23 -0.38
out X@GRAD float32 [4, 3] -0.1 0.1 0.1 -0.1 -0.1 -0.1 0.1 0.1 -0.1 0.1 0.1 -0.1
)")

HEDDLE_EXAMPLES(squared_l2_norm, R"(
example float32
in X float32 [2, 3] 0.32 -0.17 -0.49 0.75 -0.2 0.12
out Out float32 [1] 0.9883

example float64
in X float64 [2, 3] -0.98 0.62 0.65 -0.19 -0.78 0.62
out Out float64 [1] 2.7962000000000002
)")
