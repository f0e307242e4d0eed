#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/gemm/gemm_ops.h"

namespace heddle {
namespace {

// A vector X is a row and a vector Y a column, and both are transposed like matrices. The result
// loses the row and the column of 1 that a vector makes.
Result<MatmulShapes> View(const OpContext& ctx, const Shape& x, const Shape& y) {
  const Shape row = x.rank() == 1 ? Shape{1, x[0]} : x;
  const Shape column = y.rank() == 1 ? Shape{y[0], 1} : y;
  HEDDLE_ASSIGN_OR_RETURN(MatmulShapes s, MatmulShapesOf(row, column, ctx.Bool("transpose_X"),
                                                         ctx.Bool("transpose_Y")));
  if (x.rank() == 1 && s.result.dim(-2) == 1) s.result.erase(s.result.rank() - 2);
  if (y.rank() == 1 && s.result.dim(-1) == 1) s.result.erase(s.result.rank() - 1);
  return s;
}
struct Factor {
  double operator()(const OpContext& ctx) const { return ctx.Float("alpha"); }
};
using Family = MatmulFamily<View, Factor>;

// With head_number > 1, X's columns are split into heads. Y is split likewise: by rows when it has
// as many as X has columns (each head's product then takes columns of its own), else by columns.
struct Heads {
  int64_t count = 1, batch = 1, m = 0, k = 0, n = 0;  // of one head
  int64_t x_cols = 0, y_rows = 0, y_cols = 0;
  bool by_rows = false, y_shared = false;
};

Result<Heads> HeadsOf(const OpContext& ctx, const Shape& x, const Shape& y) {
  const bool tx = ctx.Bool("transpose_X"), ty = ctx.Bool("transpose_Y");
  Heads h;
  h.count = ctx.Int("head_number");
  const bool ranks = x.rank() >= 2 && (y.rank() == x.rank() || y.rank() == 2);
  if (!ranks) return InvalidArgument("X ", x.ToString(), " and Y ", y.ToString(), " have no heads");
  h.y_shared = y.rank() == 2;
  for (int i = 0; i < x.rank() - 2; ++i) {
    if (!h.y_shared && x[i] != y[i])
      return InvalidArgument("X ", x.ToString(), " and Y ", y.ToString(), " differ in batches");
    h.batch *= x[i];
  }
  h.m = x.dim(tx ? -1 : -2);
  h.x_cols = x.dim(tx ? -2 : -1);
  h.y_rows = y.dim(ty ? -1 : -2);
  h.y_cols = y.dim(ty ? -2 : -1);
  h.by_rows = h.x_cols == h.y_rows;
  h.k = h.x_cols / h.count;
  h.n = h.by_rows ? h.y_cols : h.y_cols / h.count;
  if (h.k * h.count != h.x_cols || (!h.by_rows && (h.y_rows != h.k || h.n * h.count != h.y_cols)))
    return InvalidArgument("X ", x.ToString(), " and Y ", y.ToString(), " do not split into ",
                           h.count, " heads");
  return h;
}

template <typename T>
struct HeadedMatmul {
  static Status Run(KernelContext& ctx) {
    if (ctx.Int("head_number") <= 1) return MatmulForward<T>::Run(ctx);
    HEDDLE_ASSIGN_OR_RETURN(const Heads h, HeadsOf(ctx, ctx.In("X").shape(), ctx.In("Y").shape()));
    const bool tx = ctx.Bool("transpose_X"), ty = ctx.Bool("transpose_Y");
    const T alpha = static_cast<T>(ctx.Float("alpha"));
    const T* x = ctx.In("X").data<T>();
    const T* y = ctx.In("Y").data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    const GemmDims dims{
        h.m, h.n, h.k, tx, ty, tx ? h.m : h.x_cols, ty ? h.y_rows : h.y_cols, h.n * h.count};
    for (const int64_t b : Watched(h.batch))
      for (int64_t i = 0; i < h.count; ++i) {
        const int64_t row = h.by_rows ? i * h.k : 0, col = h.by_rows ? 0 : i * h.n;
        const T* y_at = y + (h.y_shared ? 0 : b * h.y_rows * h.y_cols);
        Gemm(dims, alpha, x + b * h.m * h.x_cols + i * h.k * (tx ? h.m : 1),
             y_at + (ty ? col * h.y_rows + row : row * h.y_cols + col), T(0),
             out + b * h.m * dims.ldc + i * h.n);
      }
    return Status::Ok();
  }
};

Result<std::unique_ptr<KernelState>> PrepareMatmul(PrepareContext& ctx) {
  if (ctx.Int("head_number") > 1)
    return std::unique_ptr<KernelState>(std::make_unique<KernelState>());
  return Family::PrepareForward(ctx);
}

Status MatmulShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& y = ctx.InShape("Y");
  if (!x.known_rank() || !y.known_rank()) return ctx.Defer();
  if (ctx.Int("head_number") > 1) {
    if (!x.is_static() || !y.is_static()) return ctx.Defer();
    const DType dtype = ctx.InDType("X");
    if (dtype != DType::kF32 && dtype != DType::kF64)
      return Unimplemented("head_number above 1 takes float32 and float64, not ", Name(dtype));
    if (ctx.InDType("Y") != dtype)
      return InvalidArgument("X is ", Name(dtype), ", but Y is ", Name(ctx.InDType("Y")));
    HEDDLE_ASSIGN_OR_RETURN(const Heads h, HeadsOf(ctx, x, y));
    Shape out = x;
    out[x.rank() - 2] = h.m;
    out[x.rank() - 1] = h.n * h.count;
    ctx.SetOut("Out", out, dtype);
    return Status::Ok();
  }
  if (ctx.InDType("X") != ctx.InDType("Y"))
    return InvalidArgument("X is ", Name(ctx.InDType("X")), ", but Y is ", Name(ctx.InDType("Y")));
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, View(ctx, x, y));
  ctx.SetOut("Out", s.result, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

void Attrs(OpDef& op) {
  op.Attr("transpose_X", false).Attr("transpose_Y", false).Attr("alpha", 1.0);
  op.Attr("head_number", 1);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(matmul) {
  op.Doc("alpha times the product of matrices with broadcast batch dimensions");
  Family::Define(op);
  Attrs(op);
  op.InferShape(MatmulShape).Prepare(PrepareMatmul).Kernels<HeadedMatmul, float, double>();
}
HEDDLE_OP(matmul_grad) {
  Family::DefineGrad(op);
  Attrs(op);
}

HEDDLE_EXAMPLES(matmul, R"(
example float32 1x2x4x2, transpose_Y
attr transpose_Y BOOLEAN true
in X float32 [1, 2, 4, 2] -0.3 -0.65 0.64 0.17 -0.18 0.88 -0.41 0.29 0.06 0.52 -0.76 0.41 -0.88 0.76
  -0.06 -0.53
in Y float32 [1, 2, 1, 2] -0.29 -0.09 0.32 0.11
out Out float32 [1, 2, 4, 1] 0.1455 -0.2009 -0.026999999 0.09279999 0.0764 -0.19809999 -0.198
  -0.07749999

example float32 2x2x3, head_number 2, transpose_X
attr head_number INT 2
attr transpose_X BOOLEAN true
in X float32 [2, 2, 3] 0.155 0.614 0.766 0.461 0.079 0.919 0.843 0.69 0.308 0.384 0.232 0.537
in Y float32 [2, 2, 2] 0.665 0.555 0.886 0.114 0.334 0.224 0.776 0.445
out Out float32 [2, 3, 4] 0.103075005 0.086025 0.40844598 0.052554 0.40831003 0.34077 0.069994
  0.009006 0.50939 0.42512998 0.814234 0.104766004 0.281562 0.188832 0.297984 0.17088 0.23045999
  0.15456 0.180032 0.10324 0.102872 0.068992004 0.41671202 0.23896499

example float32 2x2
in X float32 [1, 2] -0.8789 -0.8809
in Y float32 [2, 2] 0.133 -0.267 -0.134 -0.001
out Out float32 [1, 2] 0.0011469051 0.23554718

example float32 2x4x4, alpha 0.5, transpose_X
attr alpha FLOAT 0.5
attr transpose_X BOOLEAN true
in X float32 [2, 4, 4] -0.16 0.19 -0.1 -0.63 -0.75 0.02 0.37 0.85 -0.28 0.14 0.08 -0.52 0.9 0.25
  -0.69 0.61 0.79 0.73 -0.81 -0.58 0.55 -0.04 0.67 -0.46 -0.22 -0.87 -0.93 0.31 -0.34 -0.4 0.43 0.49
in Y float32 [2, 4, 3] -0.82 0.55 -0.51 0.32 -0.89 -0.66 -0.44 -0.14 0.02 -0.29 0.17 0.62 -0.36
  -0.74 -0.59 0.85 0.77 -0.21 0.39 -0.06 0.09 0.24 0.47 0.7
out Out float32 [2, 4, 3] -0.123299986 0.38585 0.5645 -0.14175 0.054800004 0.023850005 0.18265
  -0.2564 -0.3097 0.42025 -0.46325 0.06404999 0.00785001 -0.15385002 -0.41969997 -0.36605 -0.3534
  -0.39030004 0.30080006 0.68659997 0.27725 0.028149985 0.14335 0.40485

example float64 2x2
in X float64 [1, 2] -0.8789 -0.8809
in Y float64 [2, 2] 0.133 -0.267 -0.134 -0.001
out Out float64 [1, 2] 0.0011469000000000062 0.2355472

example float32, two vectors
in X float32 [3] 0.3 -0.65 0.64
in Y float32 [3] 0.17 -0.18 0.88
out Out float32 [] 0.7312

example float64, two vectors as a column and a row
attr transpose_X BOOLEAN true
attr transpose_Y BOOLEAN true
in X float64 [2] 0.3 -0.65
in Y float64 [3] 0.17 -0.18 0.88
out Out float64 [2, 3] 0.051000000000000004 -0.054 0.264 -0.11050000000000001 0.11699999999999999
  -0.5720000000000001

example float32, a vector as a column
attr transpose_X BOOLEAN true
in X float32 [2] 0.3 -0.65
in Y float32 [1, 3] 0.17 -0.18 0.88
out Out float32 [2, 3] 0.051000003 -0.054000005 0.264 -0.1105 0.117 -0.57199997
)")

HEDDLE_EXAMPLES(matmul_grad, R"(
example float64 2x2
in Out@GRAD float64 [1, 2] 0 0.1
in X float64 [1, 2] -0.8712 -0.8805
in Y float64 [2, 2] -0.134 -0.267 -0.001 0.133
out X@GRAD float64 [1, 2] -0.0267 0.013300000000000001
out Y@GRAD float64 [2, 2] -0 -0.08712 -0 -0.08805

example float64 4x4, transpose_X, transpose_Y
attr transpose_X BOOLEAN true
attr transpose_Y BOOLEAN true
in Out@GRAD float64 [4, 3] -0.2 -0.7 -0.8 -0.7 -0.1 0.5 -0.6 -0.4 0.1 0.8 -0.3 0.9
in X float64 [4, 4] 0.05 -0.41 -0.53 -0.76 0.4 -0.18 0.75 -0.88 0.87 0.17 0.52 -0.29 0.64 -0.06
  -0.64 0.29
in Y float64 [3, 4] -0.83 0.16 0.02 0.45 0.73 -0.41 0.59 -0.12 -0.69 -0.55 0.3 -0.26
out X@GRAD float64 [4, 4] 0.20699999999999996 0.16300000000000003 0.13699999999999996 -1.504
  0.6950000000000001 -0.346 0.012999999999999998 -0.24400000000000005 -0.657 0.077 -0.218
  0.10900000000000004 0.202 -0.433 -0.24800000000000003 0.162
out Y@GRAD float64 [3, 4] -0.013000000000000123 -1.108 -0.837 0.53 0.446 -0.29800000000000004
  -0.7470000000000001 -0.2729999999999999 -0.982 -1.127 -0.8200000000000001 -0.3450000000000001

example float32 2x2
in Out@GRAD float32 [1, 2] 0 0.1
in X float32 [1, 2] -0.8712 -0.8805
in Y float32 [2, 2] -0.134 -0.267 -0.001 0.133
out X@GRAD float32 [1, 2] -0.0267 0.013300001
out Y@GRAD float32 [2, 2] -0 -0.087120004 -0 -0.08805

example float64, two vectors as a column and a row
attr transpose_X BOOLEAN true
attr transpose_Y BOOLEAN true
in X float64 [2] 0.3 -0.65
in Y float64 [3] 0.17 -0.18 0.88
in Out@GRAD float64 [2, 3] 0.1 0.2 -0.3 0.4 0.5 -0.6
out X@GRAD float64 [2] -0.28300000000000003 -0.55
out Y@GRAD float64 [3] -0.23 -0.265 0.30000000000000004
)")
