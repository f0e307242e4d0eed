#include "core/interrupts.h"
#include "kernels/linalg/linalg_factor.h"

namespace heddle {
namespace {

template <typename T>
struct Inverse {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Input");
    Tensor& out = ctx.Out("Output");
    const MatrixDims d = DimsOf(x.shape());
    if (d.rows == 0) return Status::Ok();
    ctx.ParallelFor(d.batch, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        MutableMatrixAt<T>(out, i) = LuFactors<T>(MatrixAt<T>(x, i)).Inverse();
    });
    return Status::Ok();
  }
};

// dX = -Y^T dY Y^T
template <typename T>
struct InverseGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &y = ctx.In("Output"), &dy = ctx.In("Output@GRAD");
    Tensor& dx = ctx.Out("Input@GRAD");
    const MatrixDims d = DimsOf(y.shape());
    for (const int64_t i : Watched(d.batch)) {
      const auto inverse = MatrixAt<T>(y, i);
      const Matrix<T> work = Product<T>(Turned<T>(inverse), MatrixAt<T>(dy, i));
      SetProduct(MutableMatrixAt<T>(dx, i), work, Turned<T>(inverse), T(-1));
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(inverse) {
  op.Doc("inverses of square matrices")
      .Input("Input")
      .Output("Output")
      .Contract("Input: [..., N, N]; Output: like Input")
      .Kernels<Inverse, float, double>();
}

HEDDLE_OP(inverse_grad) {
  op.Input("Output")
      .Input("Output@GRAD")
      .Output("Input@GRAD")
      .Contract("Output: [..., N, N]; Output@GRAD: like Output; Input@GRAD: like Output")
      .Kernels<InverseGrad, float, double>();
}
