// Matrix products: matmul, matmul_v2, mul, bmm, their gradients, and heddle's fused product.
#include "core/shapes.h"
#include "device/cuda/grid/addend.h"
#include "device/cuda/grid/batched_gemm.h"
#include "device/cuda/grid/epilogue.h"
#include "device/cuda/grid/kernel_table.h"

namespace heddle::HEDDLE_GRID {
namespace {

// The operands of a product as batches of matrices. One-dimensional operands are rows or columns.
struct View {
  Shape x, y;  // batches
  Shape out;
  int64_t x_rows = 1, x_cols = 1, y_rows = 1, y_cols = 1;
  bool trans_x = false, trans_y = false;
  float alpha = 1;

  int64_t m() const { return trans_x ? x_cols : x_rows; }
  int64_t n() const { return trans_y ? y_rows : y_cols; }
};

Shape BatchOf(const Shape& s) {
  Shape batch;
  for (int d = 0; d + 2 < s.rank(); ++d) batch.push_back(s[d]);
  return batch;
}

Result<View> MatrixView(const Shape& x, const Shape& y, bool trans_x, bool trans_y, double alpha) {
  View v;
  v.x = BatchOf(x), v.y = BatchOf(y);
  if (x.rank() > 1) v.x_rows = x.dim(-2), v.trans_x = trans_x;
  v.x_cols = x.dim(-1);
  if (y.rank() > 1)
    v.y_rows = y.dim(-2), v.y_cols = y.dim(-1), v.trans_y = trans_y;
  else
    v.y_rows = y.dim(-1);
  v.alpha = static_cast<float>(alpha);
  if ((v.trans_x ? v.x_rows : v.x_cols) != (v.trans_y ? v.y_cols : v.y_rows))
    return InvalidArgument("X ", x.ToString(), " and Y ", y.ToString(), " cannot be multiplied");
  HEDDLE_ASSIGN_OR_RETURN(v.out, BroadcastShape(v.x, v.y, -1));
  return v;
}

using ViewFn = Result<View> (*)(const OpContext& ctx, const Shape& x, const Shape& y);

Result<View> ViewV2(const OpContext& ctx, const Shape& x, const Shape& y) {
  return MatrixView(x, y, ctx.Bool("trans_x"), ctx.Bool("trans_y"), 1);
}
Result<View> ViewV1(const OpContext& ctx, const Shape& x, const Shape& y) {
  return MatrixView(x, y, ctx.Bool("transpose_X"), ctx.Bool("transpose_Y"), ctx.Float("alpha"));
}
Result<View> ViewBmm(const OpContext&, const Shape& x, const Shape& y) {
  return MatrixView(x, y, false, false, 1);
}
Result<View> ViewMul(const OpContext& ctx, const Shape& x, const Shape& y) {
  const int xs = static_cast<int>(ctx.Int("x_num_col_dims"));
  const int ys = static_cast<int>(ctx.Int("y_num_col_dims"));
  return MatrixView(Shape{x.Product(0, xs), x.Product(xs, x.rank())},
                    Shape{y.Product(0, ys), y.Product(ys, y.rank())}, false, false, 1);
}

MatrixBatch XOf(const View& v, const float* x) {
  return {x, v.x_rows, v.x_cols, v.x_cols, v.trans_x, BatchSteps(v.x, v.out, v.x_rows * v.x_cols)};
}
MatrixBatch YOf(const View& v, const float* y) {
  return {y, v.y_rows, v.y_cols, v.y_cols, v.trans_y, BatchSteps(v.y, v.out, v.y_rows * v.y_cols)};
}
MatrixBatch OutOf(const View& v, const float* out) {
  return {out, v.m(), v.n(), v.n(), false, BatchSteps(v.out, v.out, v.m() * v.n())};
}
MatrixBatch Turned(MatrixBatch m, bool turn = true) {
  m.trans = m.trans != turn;
  return m;
}

Status Multiply(Queue& queue, const View& v, const MatrixBatch& a, const MatrixBatch& b,
                const MatrixBatch& to, float* c, float beta = 0) {
  return BatchedProduct{v.out, a, b, c, to.ld, to.steps, v.alpha, beta}.Run(queue);
}

template <ViewFn kView>
Status Product(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  float* const out = ctx.Out("Out").mutable_data<float>();
  HEDDLE_ASSIGN_OR_RETURN(const View v, kView(ctx, x.shape(), y.shape()));
  return Multiply(queue, v, XOf(v, x.data<float>()), YOf(v, y.data<float>()), OutOf(v, out), out);
}

template <ViewFn kView>
Status ProductGrad(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  HEDDLE_ASSIGN_OR_RETURN(const View v, kView(ctx, x.shape(), y.shape()));
  const MatrixBatch xm = XOf(v, x.data<float>()), ym = YOf(v, y.data<float>());
  const MatrixBatch dout = OutOf(v, ctx.In("Out@GRAD").data<float>());
  if (Tensor* t = ctx.OutOpt("X@GRAD")) {
    float* const dx = t->mutable_data<float>();
    HEDDLE_ASSIGN_OR_RETURN(const bool add, BeginWith(queue, ctx.InOpt("AddendOfX"), *t));
    const float beta = add ? 1 : 0;
    // dX = dOut op(Y)', or its transpose.
    HEDDLE_RETURN_IF_ERROR(v.trans_x ? Multiply(queue, v, ym, Turned(dout), xm, dx, beta)
                                     : Multiply(queue, v, dout, Turned(ym), xm, dx, beta));
  }
  if (Tensor* t = ctx.OutOpt("Y@GRAD")) {
    float* const dy = t->mutable_data<float>();
    HEDDLE_ASSIGN_OR_RETURN(const bool add, BeginWith(queue, ctx.InOpt("AddendOfY"), *t));
    const float beta = add ? 1 : 0;
    HEDDLE_RETURN_IF_ERROR(v.trans_y ? Multiply(queue, v, Turned(dout), xm, ym, dy, beta)
                                     : Multiply(queue, v, Turned(xm), dout, ym, dy, beta));
  }
  return Status::Ok();
}

// X may be several operands along the last dimension: the products with their rows of Y are added
// up.
Status FusedProduct(Queue& queue, KernelContext& ctx) {
  const Tensor& y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  const Tensor *bias = ctx.InOpt("Bias"), *residual = ctx.InOpt("ResidualData");
  float* const c = out.mutable_data<float>();
  const bool trans_x = ctx.Bool("trans_x"), matrix = y.rank() > 1,
             trans_y = matrix && ctx.Bool("trans_y");
  const int pieces = ctx.InCount("X");
  HEDDLE_ASSIGN_OR_RETURN(const Activation activation, ActivationOf(ctx));
  if (residual != nullptr && residual->raw() != out.raw())
    HEDDLE_RETURN_IF_ERROR(queue.Copy(c, residual->raw(), out.bytes()));
  int64_t columns = 1;
  for (int64_t i = 0, k = 0; i < pieces; ++i) {
    const Tensor& x = ctx.In("X", static_cast<int>(i));
    Shape rows = y.shape();
    if (pieces > 1) rows[rows.rank() - (matrix && !trans_y ? 2 : 1)] = x.dim(-1);
    HEDDLE_ASSIGN_OR_RETURN(const View v,
                            MatrixView(x.shape(), rows, trans_x, trans_y, ctx.Float("alpha")));
    columns = v.n();
    if (i > 0 && v.x_cols == 0) continue;
    MatrixBatch b = YOf(v, y.data<float>() + (trans_y ? k : k * columns));
    if (trans_y) b.ld = y.dim(-1);
    if (matrix) b.steps = BatchSteps(v.y, v.out, y.dim(-2) * y.dim(-1));
    HEDDLE_RETURN_IF_ERROR(Multiply(queue, v, XOf(v, x.data<float>()), b, OutOf(v, c), c,
                                    i > 0 || residual != nullptr ? 1.0f : 0.0f));
    k += v.x_cols;
  }
  return RunEpilogue(queue, c, out.numel(), bias != nullptr ? bias->data<float>() : nullptr, 1,
                     columns, activation);
}

bool BothFloat(const CallView& call) {
  return call.InDType("X") == DType::kF32 && call.InDType("Y") == DType::kF32 &&
         call.InShape("X").rank() > 0 && call.InShape("Y").rank() > 0;
}
// A batch of 1 that serves the whole batch of the residual, or the reverse, is not covered.
bool CoversFused(const CallView& call) {
  if (!BothFloat(call) || !call.HasIn("ResidualData")) return BothFloat(call);
  const Shape &x = call.InShape("X"), &y = call.InShape("Y"), &out = call.OutShape("Out");
  const Result<Shape> batch = BroadcastShape(BatchOf(x), BatchOf(y), -1);
  if (!batch.ok()) return false;
  const int64_t m = x.rank() < 2 ? 1 : x.dim(call.Bool("trans_x") ? -1 : -2);
  const int64_t n = y.rank() < 2 ? 1 : y.dim(call.Bool("trans_y") ? -2 : -1);
  return call.InShape("ResidualData") == out && batch->numel() * m * n == out.numel();
}
// The attribute head_number of the old operator is not covered.
bool CoversV1(const CallView& call) {
  return BothFloat(call) &&
         (call.def().FindAttr("head_number") < 0 || call.Int("head_number") <= 1);
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(matmul_v2) { kernel = {Product<ViewV2>, BothFloat}; }
HEDDLE_CUDA_KERNEL(matmul) { kernel = {Product<ViewV1>, CoversV1}; }
HEDDLE_CUDA_KERNEL(mul) { kernel = {Product<ViewMul>, BothFloat}; }
HEDDLE_CUDA_KERNEL(bmm) { kernel = {Product<ViewBmm>, BothFloat}; }
HEDDLE_CUDA_KERNEL(matmul_v2_grad) { kernel = {ProductGrad<ViewV2>, BothFloat}; }
HEDDLE_CUDA_KERNEL(matmul_grad) { kernel = {ProductGrad<ViewV1>, CoversV1}; }
HEDDLE_CUDA_KERNEL(mul_grad) { kernel = {ProductGrad<ViewMul>, BothFloat}; }
HEDDLE_CUDA_KERNEL(bmm_grad) { kernel = {ProductGrad<ViewBmm>, BothFloat}; }
HEDDLE_CUDA_KERNEL(fused_matmul) { kernel = {FusedProduct, CoversFused}; }
