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
