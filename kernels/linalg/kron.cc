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

HEDDLE_EXAMPLES(kron, R"(
example float32 4x1x1
in X float32 [4, 1, 1] -0 -0.31 -0.61 0.3
in Y float32 [2, 1] -0.586 -0.379
out Out float32 [4, 2, 1] 0 0 0.18166001 0.11749 0.35746002 0.23119001 -0.17580001 -0.11370001

example float64 4x1x1
in X float64 [4, 1, 1] -0 -0.31 -0.61 0.3
in Y float64 [2, 1] -0.586 -0.379
out Out float64 [4, 2, 1] 0 0 0.18166 0.11749 0.35745999999999994 0.23119 -0.17579999999999998
  -0.1137

example int32 4x1x1
in X int32 [4, 1, 1] 0*4
in Y int32 [2, 1] 0 0
out Out int32 [4, 2, 1] 0*8

example int64 4x1x1
in X int64 [4, 1, 1] 0*4
in Y int64 [2, 1] 0 0
out Out int64 [4, 2, 1] 0*8

example complex64 4x1x1
in X complex64 [4, 1, 1] 0+0.8j -0.31+0.3j -0.61+0.5j 0.3-0.7j
in Y complex64 [2, 1] -0.586-0.8j -0.379+0.6j
out Out complex64 [4, 2, 1] 0.64000005-0.46880004j -0.48000002-0.3032j 0.42166+0.0722j
  -0.062510006-0.29970002j 0.75746+0.195j -0.06881-0.55550003j -0.7358+0.17019999j 0.3063+0.4453j

example float16 4x1x1
in X float16 [4, 1, 1] -0 -0.31 -0.61 0.3
in Y float16 [2, 1] -0.586 -0.379
out Out float16 [4, 2, 1] 0 0 0.1816 0.11743 0.3572 0.2311 -0.1758 -0.11365
)")

HEDDLE_EXAMPLES(kron_grad, R"(
example float64 12x12
in Out@GRAD float64 [12, 12] -0.2 0.4 0.1 0.5 0.9 -0.5 -0.9 -0.6 0.6 -0.7 -0.1 -0.1 -0.2 -0.3 0.6 1
  0.9 -0.2 0.6 0.2 0.9 -0.5 -0.8 0.4 -0.1 0.2 -0.9 -0.8 -0.9 0.7 -0.6 -0.8 0.4 0.9 0.1 0.6 -0.8 -0.2
  0.7 0.4 0 0.9 -0.8 -0.1 -0.8 -0.5 0.3 -0.5 -0.3 1 0.9 0.9 -0.3 -0.5 0.7 1 0.4 -0.9 1 0.4 0.4 -0.2
  -0 0.9 0.3 -0.9 0.1 -0.2 -0.1 -0.5 0.2 -0.3 0.6 1 -0 0.8 -0.6 0.4 -0.3 0.5 -0.6 0.2 0.1 0.6 -0.8
  0.8 0.4 0.6 -0.6 -1 -0.5 0.3 0.5 0.1 -0.6 0.8 0.8 -0 -0.2 -0.7 -0.1 0.1 1 -0.4 -0.3 0.9 -0.7 -0.8
  -0.7 -0.5 0.7 0.7 0.7 -0.1 0.2 0.4 -0.2 0.7 0 0.2 0.3 -0.2 0.7 -0.7 -0.4 -0 -0.7 0.8 -0.1 -0.8 0.6
  -0.8 0.1 0.6 0.4 -0.9 0 -0 -0.5 -0.6 0.4 -0.5 0.8 0.5
in X float64 [4, 4] 0.48 -0.66 0.02 0.71 0.37 -0.54 -0.88 -0.43 -0.77 0.59 0.14 -0.2 0.82 0.25 -0.09
  -0.32
in Y float64 [3, 3] -0.27 0.64 -0.64 0.27 -0.82 -0.09 0.09 0.45 -0.45
out X@GRAD float64 [4, 4] 0.87 -0.48099999999999987 -1.202 0.5299999999999999 -1.396 0.471
  -0.03899999999999997 -0.27199999999999985 -0.268 -0.2650000000000001 0.404 0.199
  -0.29799999999999993 0.38099999999999995 -1.0010000000000001 -0.8629999999999999
out Y@GRAD float64 [3, 3] -1.247 -1.945 1.546 -0.6549999999999998 -3.416000000000001
  0.6519999999999997 -0.11100000000000018 0.9139999999999999 0.7060000000000003

example float32 12x12
in Out@GRAD float32 [12, 12] -0.2 0.4 0.1 0.5 0.9 -0.5 -0.9 -0.6 0.6 -0.7 -0.1 -0.1 -0.2 -0.3 0.6 1
  0.9 -0.2 0.6 0.2 0.9 -0.5 -0.8 0.4 -0.1 0.2 -0.9 -0.8 -0.9 0.7 -0.6 -0.8 0.4 0.9 0.1 0.6 -0.8 -0.2
  0.7 0.4 0 0.9 -0.8 -0.1 -0.8 -0.5 0.3 -0.5 -0.3 1 0.9 0.9 -0.3 -0.5 0.7 1 0.4 -0.9 1 0.4 0.4 -0.2
  -0 0.9 0.3 -0.9 0.1 -0.2 -0.1 -0.5 0.2 -0.3 0.6 1 -0 0.8 -0.6 0.4 -0.3 0.5 -0.6 0.2 0.1 0.6 -0.8
  0.8 0.4 0.6 -0.6 -1 -0.5 0.3 0.5 0.1 -0.6 0.8 0.8 -0 -0.2 -0.7 -0.1 0.1 1 -0.4 -0.3 0.9 -0.7 -0.8
  -0.7 -0.5 0.7 0.7 0.7 -0.1 0.2 0.4 -0.2 0.7 0 0.2 0.3 -0.2 0.7 -0.7 -0.4 -0 -0.7 0.8 -0.1 -0.8 0.6
  -0.8 0.1 0.6 0.4 -0.9 0 -0 -0.5 -0.6 0.4 -0.5 0.8 0.5
in X float32 [4, 4] 0.48 -0.66 0.02 0.71 0.37 -0.54 -0.88 -0.43 -0.77 0.59 0.14 -0.2 0.82 0.25 -0.09
  -0.32
in Y float32 [3, 3] -0.27 0.64 -0.64 0.27 -0.82 -0.09 0.09 0.45 -0.45
out X@GRAD float32 [4, 4] 0.87 -0.48099992 -1.2019999 0.53 -1.3959999 0.47100002 -0.03899995
  -0.27199996 -0.26800007 -0.26500005 0.40399998 0.199 -0.29799998 0.38099998 -1.0009999 -0.86300015
out Y@GRAD float32 [3, 3] -1.247 -1.9449999 1.546 -0.6550001 -3.416 0.65200007 -0.11099991 0.9139999
  0.706

example float16 2x2
in X float16 [2] 0.5 -1.5
in Y float16 [2, 1] 0.25 0.75
in Out@GRAD float16 [2, 2] 1 -0.5 0.25 0.125
out X@GRAD float16 [2] 0.4375 -0.03125
out Y@GRAD float16 [2, 1] 1.25 -0.0625
)")
