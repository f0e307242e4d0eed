// kron: Kronecker product.
#include <algorithm>
#include <complex>
#include <vector>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/operands/promoted.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"

namespace heddle {
namespace {

struct KronShape {
  Shape x, y, out;  // of one rank
};

Result<KronShape> Align(const Shape& x, const Shape& y) {
  const int rank = std::max(x.rank(), y.rank());
  KronShape s;
  for (int i = 0; i < rank; ++i) {
    const int xi = i - (rank - x.rank()), yi = i - (rank - y.rank());
    s.x.push_back(xi < 0 ? 1 : x[xi]);
    s.y.push_back(yi < 0 ? 1 : y[yi]);
    s.out.push_back(s.x[i] < 0 || s.y[i] < 0 ? -1 : s.x[i] * s.y[i]);
  }
  return s;
}

// fn(x offset, y offset, out offset) for every element of the product.
template <typename Fn>
void ForEach(const KronShape& s, Fn fn) {
  const int rank = s.out.rank();
  const int64_t n = s.out.numel();
  int64_t index[Shape::kMaxRank] = {};
  for (const int64_t o : Watched(n)) {
    int64_t x = 0, y = 0;
    for (int i = 0; i < rank; ++i) {
      x = x * s.x[i] + index[i] / s.y[i];
      y = y * s.y[i] + index[i] % s.y[i];
    }
    fn(x, y, o);
    for (int i = rank - 1; i >= 0 && ++index[i] == s.out[i]; --i) index[i] = 0;
  }
}

template <typename T>
struct Kron {
  using C = ComputeType<T>;
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    HEDDLE_RETURN_IF_ERROR(CheckSameDType(ctx, x, y));
    HEDDLE_ASSIGN_OR_RETURN(const KronShape s, Align(x.shape(), y.shape()));
    T* out = ctx.Out("Out").template mutable_data<T>();
    ForEach(s, [&](int64_t i, int64_t j, int64_t o) {
      out[o] = static_cast<T>(
          MulFn::Apply(static_cast<C>(x.data<T>()[i]), static_cast<C>(y.data<T>()[j])));
    });
    return Status::Ok();
  }
};

template <typename T>
struct KronGrad {
  using C = ComputeType<T>;

  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    const Tensor& dout = ctx.In("Out@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&x, &y}));
    HEDDLE_ASSIGN_OR_RETURN(const KronShape s, Align(x.shape(), y.shape()));
    if (dout.numel() != s.out.numel())
      return InvalidArgument("Out@GRAD has shape ", dout.shape().ToString(), ", expected ",
                             s.out.ToString());
    const T* g = dout.data<T>();
    if (Tensor* dx = ctx.OutOpt("X@GRAD")) {
      std::vector<C> sum(static_cast<size_t>(dx->numel()), C(0));
      ForEach(s, [&](int64_t i, int64_t j, int64_t o) {
        sum[static_cast<size_t>(i)] +=
            MulFn::Apply(static_cast<C>(g[o]), Conj(static_cast<C>(y.data<T>()[j])));
      });
      Store(sum, dx);
    }
    if (Tensor* dy = ctx.OutOpt("Y@GRAD")) {
      std::vector<C> sum(static_cast<size_t>(dy->numel()), C(0));
      ForEach(s, [&](int64_t i, int64_t j, int64_t o) {
        sum[static_cast<size_t>(j)] +=
            MulFn::Apply(static_cast<C>(g[o]), Conj(static_cast<C>(x.data<T>()[i])));
      });
      Store(sum, dy);
    }
    return Status::Ok();
  }

  static void Store(const std::vector<C>& from, Tensor* to) {
    T* d = to->mutable_data<T>();
    for (size_t i = 0; i < from.size(); ++i) d[i] = static_cast<T>(from[i]);
  }
};

Status InferKron(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& y = ctx.InShape("Y");
  Shape out = Shape::Unknown();
  if (x.known_rank() && y.known_rank()) {
    HEDDLE_ASSIGN_OR_RETURN(const KronShape s, Align(x, y));
    out = s.out;
  }
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(kron) {
  op.Doc("Kronecker product")
      .Input("X", kPromoted)
      .Input("Y", kPromoted)
      .Output("Out")
      .InferShape(&InferKron);
  op.Kernels<Kron, float, double, int32_t, int64_t, float16, std::complex<float>,
             std::complex<double>>();
}

HEDDLE_OP(kron_grad) {
  op.Doc("gradient of kron").Input("X").Input("Y").Input("Out@GRAD").KernelKey("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional).InferShape(&GradLikeInputs);
  op.Kernels<KronGrad, float, double, int32_t, int64_t, float16, std::complex<float>,
             std::complex<double>>();
}
