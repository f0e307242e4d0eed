#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/products/gemm_ops.h"

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
