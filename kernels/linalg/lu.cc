// lu and lu_unpack: A = P L U by partial pivoting, L and U packed into one matrix.
#include <numeric>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/only_value.h"
#include "kernels/linalg/linalg_factor.h"

namespace heddle {
namespace {

Status InferLu(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", false));
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckOnlyValue(ctx, "pivots"));
  Shape pivots = LeadingAxes(x, 2);
  ctx.SetOut("Infos", pivots.rank() == 0 ? Shape{1} : pivots, DType::kI32);
  pivots.push_back(x.dim(-2) < 0 || x.dim(-1) < 0 ? -1 : std::min(x.dim(-2), x.dim(-1)));
  ctx.SetOut("Out", x, ctx.InDType("X"));
  ctx.SetOut("Pivots", pivots, DType::kI32);
  return Status::Ok();
}

template <typename T>
struct Lu {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    Tensor& out = ctx.Out("Out");
    const MatrixDims d = DimsOf(x.shape());
    const int64_t k = std::min(d.rows, d.cols);
    if (x.numel() > 0 && out.raw() != x.raw()) WatchedMemcpy(out.mutable_raw(), x.raw(), x.bytes());
    for (const int64_t i : Watched(d.batch)) {
      int32_t* pivots = ctx.Out("Pivots").template mutable_data<int32_t>() + i * k;
      ctx.Out("Infos").template mutable_data<int32_t>()[i] =
          FactorLu<T>(out.mutable_data<T>() + i * d.rows * d.cols, d.rows, d.cols, pivots);
    }
    return Status::Ok();
  }
};

// Row order of P from the row exchanges: P[order[i], i] = 1.
Result<std::vector<int64_t>> OrderOf(const int32_t* pivots, int64_t count, int64_t rows) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (const int64_t i : Watched(count)) {
    if (pivots[i] < 1 || pivots[i] > rows)
      return OutOfRange("pivot ", pivots[i], " is not in [1, ", rows, "]");
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(pivots[i] - 1)]);
  }
  return order;
}

Status CheckPivots(const ShapeContext& ctx, Key x_key) {
  const Shape &x = ctx.InShape(x_key), &pivots = ctx.InShape("Pivots");
  if (ctx.InDType("Pivots") != DType::kI32) return InvalidArgument("Pivots must be int32");
  if (x.is_static() && pivots.is_static() &&
      pivots.numel() != DimsOf(x).batch * std::min(x.dim(-2), x.dim(-1)))
    return InvalidArgument("Pivots ", pivots.ToString(), " do not fit ", x_key.name, " ",
                           x.ToString());
  return Status::Ok();
}

Status InferLuGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", false));
  HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "X", "Out"));
  HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "X", "Out@GRAD"));
  HEDDLE_RETURN_IF_ERROR(CheckPivots(ctx, "X"));
  SetOutsLike(ctx, {{"X", "X@GRAD"}});
  return Status::Ok();
}

template <typename T>
Matrix<T> PackedGrad(const Matrix<T>& packed, const Matrix<T>& slope) {
  const Eigen::Index m = packed.rows(), n = packed.cols(), k = std::min(m, n);
  Matrix<T> l = packed.topLeftCorner(k, k), u = l;
  KeepTriangle(l, false, true);
  l.diagonal().setOnes();
  KeepTriangle(u, true, false);
  const Matrix<T> g = slope.topLeftCorner(k, k);
  Matrix<T> lower = Product<T>(Turned<T>(l), g), upper = Product<T>(g, Turned<T>(u));
  KeepTriangle(lower, false, true);
  KeepTriangle(upper, true, false);
  Matrix<T> phi = lower + upper, psi = slope;
  const Matrix<T> lt = l.transpose();
  if (m <= n) {
    Matrix<T> rest = Product<T>(slope.rightCols(n - k), Turned<T>(packed.rightCols(n - k)));
    KeepTriangle(rest, false, true);
    phi -= rest;
    phi.transposeInPlace();
    SolveTriangle<T>(u, true, false, phi);
    psi.leftCols(k) = phi.transpose();
    SolveTriangle<T>(lt, true, true, psi);
    return psi;
  }
  Matrix<T> rest = Product<T>(Turned<T>(packed.bottomRows(m - k)), slope.bottomRows(m - k));
  KeepTriangle(rest, true, false);
  phi -= rest;
  SolveTriangle<T>(lt, true, true, phi);
  psi.topRows(k) = phi;
  psi.transposeInPlace();
  SolveTriangle<T>(u, true, false, psi);
  return psi.transpose();
}

template <typename T>
struct LuGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &out = ctx.In("Out"), &dout = ctx.In("Out@GRAD");
    Tensor& dx = ctx.Out("X@GRAD");
    const MatrixDims d = DimsOf(out.shape());
    const int64_t k = std::min(d.rows, d.cols);
    for (int64_t i = 0; i < d.batch && out.numel() > 0; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(
          const std::vector<int64_t> order,
          OrderOf(ctx.In("Pivots").template data<int32_t>() + i * k, k, d.rows));
      const Matrix<T> plain = PackedGrad<T>(MatrixAt<T>(out, i), MatrixAt<T>(dout, i));
      auto to = MutableMatrixAt<T>(dx, i);
      for (int64_t r = 0; r < d.rows; ++r) to.row(order[static_cast<size_t>(r)]) = plain.row(r);
    }
    return Status::Ok();
  }
};

Status InferUnpack(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", false));
  HEDDLE_RETURN_IF_ERROR(CheckPivots(ctx, "X"));
  const Shape& x = ctx.InShape("X");
  if (!x.is_static()) return ctx.Defer();
  const int64_t m = x.dim(-2), n = x.dim(-1), k = std::min(m, n);
  const auto shape = [&](int64_t rows, int64_t cols) {
    Shape s = LeadingAxes(x, 2);
    s.push_back(rows);
    s.push_back(cols);
    return s;
  };
  const bool pivots = ctx.Bool("unpack_pivots"), data = ctx.Bool("unpack_ludata");
  ctx.SetOut("Pmat", pivots ? shape(m, m) : Shape{0}, ctx.InDType("X"));
  ctx.SetOut("L", data ? shape(m, k) : Shape{0}, ctx.InDType("X"));
  ctx.SetOut("U", data ? shape(k, n) : Shape{0}, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct LuUnpack {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const MatrixDims d = DimsOf(x.shape());
    const int64_t k = std::min(d.rows, d.cols);
    const int32_t* pivots = ctx.In("Pivots").template data<int32_t>();
    for (const int64_t i : Watched(d.batch)) {
      if (ctx.Bool("unpack_pivots")) {
        HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> order,
                                OrderOf(pivots + i * k, k, d.rows));
        auto p = MutableMatrixAt<T>(ctx.Out("Pmat"), i);
        p.setZero();
        for (int64_t r = 0; r < d.rows; ++r) p(order[static_cast<size_t>(r)], r) = T(1);
      }
      if (!ctx.Bool("unpack_ludata")) continue;
      const auto packed = MatrixAt<T>(x, i);
      auto l = MutableMatrixAt<T>(ctx.Out("L"), i);
      auto u = MutableMatrixAt<T>(ctx.Out("U"), i);
      l = packed.leftCols(k);
      u = packed.topRows(k);
      KeepTriangle(l, false, true);
      for (int64_t r = 0; r < k; ++r) l(r, r) = T(1);
      KeepTriangle(u, true, false);
    }
    return Status::Ok();
  }
};

Status InferUnpackGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", false));
  const Shape& x = ctx.InShape("X");
  if (!x.is_static()) return GradLikeInputs(ctx);
  const int64_t m = x.dim(-2), n = x.dim(-1), k = std::min(m, n), batch = DimsOf(x).batch;
  if ((ctx.HasIn("L@GRAD") && ctx.InShape("L@GRAD").is_static() &&
       ctx.InShape("L@GRAD").numel() != batch * m * k) ||
      (ctx.HasIn("U@GRAD") && ctx.InShape("U@GRAD").is_static() &&
       ctx.InShape("U@GRAD").numel() != batch * k * n))
    return InvalidArgument("L@GRAD and U@GRAD must fit X ", x.ToString());
  return GradLikeInputs(ctx);
}

template <typename T>
struct LuUnpackGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor *dl = ctx.InOpt("L@GRAD"), *du = ctx.InOpt("U@GRAD");
    Tensor& dx = ctx.Out("X@GRAD");
    const MatrixDims d = DimsOf(dx.shape());
    const int64_t k = std::min(d.rows, d.cols);
    for (const int64_t i : Watched(d.batch)) {
      auto to = MutableMatrixAt<T>(dx, i);
      to.setZero();
      if (dl) {
        Matrix<T> part = ConstMatrixMap<T>(dl->data<T>() + i * d.rows * k, d.rows, k);
        KeepTriangle(part, false, true);
        to.leftCols(k) += part;
      }
      if (du) {
        Matrix<T> part = ConstMatrixMap<T>(du->data<T>() + i * k * d.cols, k, d.cols);
        KeepTriangle(part, true, false);
        to.topRows(k) += part;
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(lu) {
  op.Doc("LU decompositions with partial pivoting")
      .Input("X")
      .Output("Out")
      .Output("Pivots")
      .Output("Infos")
      .Attr("pivots", true)
      .Inplace("X", "Out")
      .InferShape(InferLu)
      .Kernels<Lu, float, double>();
}

HEDDLE_OP(lu_grad) {
  op.Input("X", kNoBuffer)
      .Input("Out")
      .Input("Pivots")
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("pivots", true)
      .InferShape(InferLuGrad)
      .Kernels<LuGrad, float, double>();
}

HEDDLE_OP(lu_unpack) {
  op.Doc("P, L and U of lu's packed result")
      .Input("X")
      .Input("Pivots")
      .Output("Pmat")
      .Output("L")
      .Output("U")
      .Attr("unpack_ludata", true)
      .Attr("unpack_pivots", true)
      .InferShape(InferUnpack)
      .Kernels<LuUnpack, float, double>();
}

HEDDLE_OP(lu_unpack_grad) {
  op.Input("X", kNoBuffer)
      .Input("Pivots", kOptional)
      .Input("L", kOptional)
      .Input("U", kOptional)
      .Input("Pmat", kOptional)
      .Input("L@GRAD", kOptional)
      .Input("U@GRAD", kOptional)
      .Output("X@GRAD")
      .Attr("unpack_ludata", true)
      .Attr("unpack_pivots", true)
      .InferShape(InferUnpackGrad)
      .Kernels<LuUnpackGrad, float, double>();
}
