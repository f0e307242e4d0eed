#include <cmath>
#include <vector>

#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxDetShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.is_static()) return ctx.Defer();
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2))
    return InvalidArgument("X has shape ", x.ToString(), ", expected square matrices");
  ctx.SetOut("Y", Shape(x.dims().first(static_cast<size_t>(x.rank() - 2))), ctx.InDType("X"));
  return Status::Ok();
}

// Elimination with the greatest element of a column as its pivot.
double MatrixDeterminant(std::vector<double>* matrix, int64_t n) {
  auto& m = *matrix;
  double det = 1;
  for (const int64_t c : Watched(n)) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; ++r)
      if (std::fabs(m[static_cast<size_t>(r * n + c)]) >
          std::fabs(m[static_cast<size_t>(pivot * n + c)]))
        pivot = r;
    const double p = m[static_cast<size_t>(pivot * n + c)];
    if (p == 0) return 0;
    if (pivot != c) {
      det = -det;
      for (int64_t k = 0; k < n; ++k)
        std::swap(m[static_cast<size_t>(pivot * n + k)], m[static_cast<size_t>(c * n + k)]);
    }
    det *= p;
    for (int64_t r = c + 1; r < n; ++r) {
      const double f = m[static_cast<size_t>(r * n + c)] / p;
      for (int64_t k = c; k < n; ++k)
        m[static_cast<size_t>(r * n + k)] -= f * m[static_cast<size_t>(c * n + k)];
    }
  }
  return det;
}

template <typename T>
struct OnnxDet {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const int64_t n = x.dim(-1);
    const T* from = x.data<T>();
    Tensor& out = ctx.Out("Y");
    T* to = out.template mutable_data<T>();
    for (const int64_t i : Watched(out.numel())) {
      std::vector<double> matrix(from + i * n * n, from + (i + 1) * n * n);
      to[i] = static_cast<T>(MatrixDeterminant(&matrix, n));
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_det) {
  op.Doc("determinants of square matrices").Input("X").Output("Y").InferShape(OnnxDetShape);
  op.Kernels<OnnxDet, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
