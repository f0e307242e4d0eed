// lu and lu_unpack: A = P L U by partial pivoting, L and U packed into one matrix.
#include <numeric>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/linalg/linalg_factor.h"

namespace heddle {
namespace {

Status InferLu(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", false));
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (!ctx.Bool("pivots")) return Unimplemented("lu without pivoting");
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

HEDDLE_EXAMPLES(lu, R"(
example float32 3x5
in X float32 [3, 5] 0.408 0.237 0.807 0.636 0.465 0.921 0.351 0.693 0.579 0.75 0.18 0.123 0.864
  0.522 0.294
out Infos int32 [1] 0
out Out float32 [3, 5] 0.921 0.351 0.693 0.579 0.75 0.44299674 0.081508145 0.5000032 0.37950486
  0.13275245 0.19543974 0.667426 0.39484513 0.15554902 0.058817767
out Pivots int32 [3] 2 2 3

example float32 2x3x4
in X float32 [2, 3, 4] 0.486 0.41 0.071 0.825 0.448 0.561 0.674 0.937 0.297 0.184 0.523 0.26 0.109
  0.712 0.373 0.222 0.636 0.147 0.787 0.599 0.9 0.862 0.335 0.749
out Infos int32 [2] 0 0
out Out float32 [2, 3, 4] 0.486 0.41 0.071 0.825 0.9218107 0.1830576 0.60855144 0.17650616 0.6111111
  -0.36357707 0.70086646 -0.17999308 0.9 0.862 0.335 0.749 0.12111112 0.60760224 0.33242777
  0.13128778 0.70666665 -0.76060724 0.80311364 0.16956505
out Pivots int32 [2, 3] 1 2 3*4

example float64 2x3x4
in X float64 [2, 3, 4] 0.717 0.678 0.638 0.284 0.481 0.756 0.599 0.244 0.323 0.126 0.52 0.048 0.166
  0.363 0.205 0.087 0.796 0.914 0.835 0.402 0.953 0.559 0.441 0.874
out Infos int32 [2] 0 0
out Out float64 [2, 3, 4] 0.717 0.678 0.638 0.284 0.6708507670850767 0.30116317991631797
  0.170997210599721 0.053478382147838205 0.45048814504881457 -0.5957931590208122 0.33446753174581123
  -0.04807657895468061 0.953 0.559 0.441 0.874 0.8352570828961177 0.44709129066107023
  0.46665162644281205 -0.3280146904512068 0.174186778593914 0.5941283051460062 -0.14906730927201123
  0.1296435676096865
out Pivots int32 [2, 3] 1 2 3 3 2 3
)")

HEDDLE_EXAMPLES(lu_grad, R"(
example float64 2x2x2
in Out float64 [2, 2, 2] -0.18 0.86 0.6 -0.44 0.34 1.12 -0.7 0.08
in Out@GRAD float64 [2, 2, 2] 0.9 0.5 -0.9 -0.3 -0.4 -0.2 -0.9 -0.3
in Pivots int32 [2, 2] 2*4
in X float64 [2, 2, 2] 0.557 0.888 0.446 0.114 0.225 0.778 0.335 0.667
out X@GRAD float64 [2, 2, 2] 3.5666666666666664 -0.30000000000000004 -1.2399999999999998 0.68
  -1.6588235294117648 -0.3 -1.5611764705882352 -0.41000000000000003

example float32 2x2x2
in Out float32 [2, 2, 2] -0.18 0.86 0.6 -0.44 0.34 1.12 -0.7 0.08
in Out@GRAD float32 [2, 2, 2] 0.9 0.5 -0.9 -0.3 -0.4 -0.2 -0.9 -0.3
in Pivots int32 [2, 2] 2*4
in X float32 [2, 2, 2] 0.557 0.888 0.446 0.114 0.225 0.778 0.335 0.667
out X@GRAD float32 [2, 2, 2] 3.5666664 -0.29999998 -1.2399999 0.68 -1.6588234 -0.3 -1.5611763
  -0.41000003
)")

HEDDLE_EXAMPLES(lu_unpack, R"(
example float64 2x3x4
in Pivots int32 [2, 3] 3 2 3*4
in X float64 [2, 3, 4] 0.512 0.629 0.121 0.16 0.54296875 -0.29852734375 0.52430078125
  0.38612499999999994 0.84765625 0.46285804011881226 0.32275676170786294 0.5096539392591236 0.863
  0.902 0.082 0.707 0.2305909617612978 0.5770069524913094 0.33709154113557355 0.7789721900347624
  0.8644264194669756 -0.3963775988689785 0.3007325692780701 0.014617647708537018
out L float64 [2, 3, 3] 1 0 0 0.54296875 1 0 0.84765625 0.46285804011881226 1 1 0 0
  0.2305909617612978 1 0 0.8644264194669756 -0.3963775988689785 1
out Pmat float64 [2, 3, 3] 0 0 1 0 1 0 1 0 0 0 1 0 0 0 1 1 0 0
out U float64 [2, 3, 4] 0.512 0.629 0.121 0.16 0 -0.29852734375 0.52430078125 0.38612499999999994 0
  0 0.32275676170786294 0.5096539392591236 0.863 0.902 0.082 0.707 0 0.5770069524913094
  0.33709154113557355 0.7789721900347624 0 0 0.3007325692780701 0.014617647708537018
)")

HEDDLE_EXAMPLES(lu_unpack_grad, R"(
example float64 4x4
in L float64 [4, 3] 1 0 0 0.02 1 0 0.17 0.94 1 0.79 0.33 -0.29
in L@GRAD float64 [4, 3] -0.8 0.3 0.3 -0.2 0.5 -0.3 0.3 1 1 -0.3 -0.7 0.3
in Pivots int32 [4] 4*4
in Pmat float64 [4, 4] 0 1 0*4 1 0*4 1 1 0 0 0
in U float64 [3, 3] -0.44 0.64 0.48 0 -0.6 -0.14 0 0 -0.75
in U@GRAD float64 [3, 3] -0.3 0.3 0.7 -0.6 -0 -0.3 0.3 -0.5 0.6
in X float64 [4, 3] -0.44 0.64 0.48 0.02 -0.6 -0.14 0.17 0.94 -0.75 0.79 0.33 -0.29
out X@GRAD float64 [4, 3] -0.3 0.3 0.7 -0.2 0 -0.3 0.3 1 0.6 -0.3 -0.7 0.3

example float32 4x4
in L float32 [4, 3] 1 0 0 0.02 1 0 0.17 0.94 1 0.79 0.33 -0.29
in L@GRAD float32 [4, 3] -0.8 0.3 0.3 -0.2 0.5 -0.3 0.3 1 1 -0.3 -0.7 0.3
in Pivots int32 [4] 4*4
in Pmat float32 [4, 4] 0 1 0*4 1 0*4 1 1 0 0 0
in U float32 [3, 3] -0.44 0.64 0.48 0 -0.6 -0.14 0 0 -0.75
in U@GRAD float32 [3, 3] -0.3 0.3 0.7 -0.6 -0 -0.3 0.3 -0.5 0.6
in X float32 [4, 3] -0.44 0.64 0.48 0.02 -0.6 -0.14 0.17 0.94 -0.75 0.79 0.33 -0.29
out X@GRAD float32 [4, 3] -0.3 0.3 0.7 -0.2 0 -0.3 0.3 1 0.6 -0.3 -0.7 0.3
)")
