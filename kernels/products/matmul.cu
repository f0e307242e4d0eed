// Matrix products: matmul, matmul_v2, mul, bmm, their gradients, and heddle's fused product.
#include <vector>

#include "core/kernel_context.h"
#include "core/shapes.h"
#include "device/cuda/grid/addend.h"
#include "device/cuda/grid/batched_gemm.h"
#include "device/cuda/grid/epilogue.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/lt_product.h"
#include "device/cuda/grid/real.h"

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
  // vectors are transposed like matrices here
  const Shape row = x.rank() == 1 ? Shape{1, x[0]} : x, column = y.rank() == 1 ? Shape{y[0], 1} : y;
  return MatrixView(row, column, ctx.Bool("transpose_X"), ctx.Bool("transpose_Y"),
                    ctx.Float("alpha"));
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

MatrixBatch XOf(const View& v, const void* x) {
  return {x, v.x_rows, v.x_cols, v.x_cols, v.trans_x, BatchSteps(v.x, v.out, v.x_rows * v.x_cols)};
}
MatrixBatch YOf(const View& v, const void* y) {
  return {y, v.y_rows, v.y_cols, v.y_cols, v.trans_y, BatchSteps(v.y, v.out, v.y_rows * v.y_cols)};
}
MatrixBatch OutOf(const View& v, const void* out) {
  return {out, v.m(), v.n(), v.n(), false, BatchSteps(v.out, v.out, v.m() * v.n())};
}
MatrixBatch Turned(MatrixBatch m, bool turn = true) {
  m.trans = m.trans != turn;
  return m;
}

Status Multiply(Queue& queue, const View& v, const MatrixBatch& a, const MatrixBatch& b,
                const MatrixBatch& to, Tensor& c, float beta = 0) {
  const DType type = c.dtype();
  return BatchedProduct{v.out, a, b, c.mutable_raw(), to.ld, to.steps, v.alpha, beta, type, type}
      .Run(queue);
}

template <ViewFn kView>
Status Product(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const View v, kView(ctx, x.shape(), y.shape()));
  return Multiply(queue, v, XOf(v, x.raw()), YOf(v, y.raw()), OutOf(v, out.raw()), out);
}

template <ViewFn kView>
Status ProductGrad(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  HEDDLE_ASSIGN_OR_RETURN(const View v, kView(ctx, x.shape(), y.shape()));
  const MatrixBatch xm = XOf(v, x.raw()), ym = YOf(v, y.raw());
  const MatrixBatch dout = OutOf(v, ctx.In("Out@GRAD").raw());
  if (Tensor* dx = ctx.OutOpt("X@GRAD")) {
    HEDDLE_ASSIGN_OR_RETURN(const bool add, BeginWith(queue, ctx.InOpt("AddendOfX"), *dx));
    const float beta = add ? 1 : 0;
    // dX = dOut op(Y)', or its transpose.
    HEDDLE_RETURN_IF_ERROR(v.trans_x ? Multiply(queue, v, ym, Turned(dout), xm, *dx, beta)
                                     : Multiply(queue, v, dout, Turned(ym), xm, *dx, beta));
  }
  if (Tensor* dy = ctx.OutOpt("Y@GRAD")) {
    HEDDLE_ASSIGN_OR_RETURN(const bool add, BeginWith(queue, ctx.InOpt("AddendOfY"), *dy));
    const float beta = add ? 1 : 0;
    HEDDLE_RETURN_IF_ERROR(v.trans_y ? Multiply(queue, v, Turned(dout), xm, ym, *dy, beta)
                                     : Multiply(queue, v, Turned(xm), dout, ym, *dy, beta));
  }
  return Status::Ok();
}

// A fused product as products to be added up, one for each operand X, of which all lie side by side
// along the last dimension.
struct FusedProducts {
  std::vector<BatchedProduct> parts;
  int64_t columns = 1;  // of the result
};
// `x_of` and `out`: addresses; `x_shape`: shapes of the operands X.
template <typename ShapeFn, typename AddressFn>
Result<FusedProducts> FusedProductsOf(const OpContext& ctx, DType type, DType out_type,
                                      const Shape& y, const void* y_at, void* out, ShapeFn x_shape,
                                      AddressFn x_of) {
  const bool trans_x = ctx.Bool("trans_x"), matrix = y.rank() > 1,
             trans_y = matrix && ctx.Bool("trans_y");
  const int count = ctx.InCount("X");
  FusedProducts all;
  for (int64_t i = 0, k = 0; i < count; ++i) {
    const Shape x = x_shape(static_cast<int>(i));
    Shape rows = y;
    if (count > 1) rows[rows.rank() - (matrix && !trans_y ? 2 : 1)] = x.dim(-1);
    HEDDLE_ASSIGN_OR_RETURN(const View v,
                            MatrixView(x, rows, trans_x, trans_y, ctx.Float("alpha")));
    all.columns = v.n();
    if (i > 0 && v.x_cols == 0) continue;
    const int64_t skip = (trans_y ? k : k * all.columns) * static_cast<int64_t>(SizeOf(type));
    MatrixBatch b = YOf(v, static_cast<const std::byte*>(y_at) + skip);
    if (trans_y) b.ld = y.dim(-1);
    if (matrix) b.steps = BatchSteps(v.y, v.out, y.dim(-2) * y.dim(-1));
    const MatrixBatch to = OutOf(v, out);
    const MatrixBatch a = XOf(v, x_of(static_cast<int>(i)));
    all.parts.push_back(
        {v.out, a, b, out, to.ld, to.steps, v.alpha, i > 0 ? 1.0f : 0.0f, type, out_type});
    k += v.x_cols;
  }
  return all;
}

struct FusedOperands {
  const Tensor *bias, *residual;
  Activation activation;
};

// Results of float32: the sums stand in the result, which the epilogue works on.
Status RunFusedFloat(Queue& queue, FusedProducts& all, const FusedOperands& with, Tensor& out) {
  float* const c = out.mutable_data<float>();
  const Tensor* const residual = with.residual;
  const void* const bias = with.bias != nullptr ? with.bias->raw() : nullptr;
  BatchedProduct& last = all.parts.back();
  if (all.parts.size() > 1 && residual != nullptr) {
    if (residual->raw() != out.raw())
      HEDDLE_RETURN_IF_ERROR(queue.Copy(c, residual->raw(), out.bytes()));
    all.parts.front().beta = 1;
  }
  for (size_t i = 0; i + 1 < all.parts.size(); ++i) HEDDLE_RETURN_IF_ERROR(all.parts[i].Run(queue));
  const void* const rest = all.parts.size() == 1 && residual != nullptr ? residual->raw() : nullptr;
  if (const auto lt = LtProductOf(last, rest, bias, with.activation)) {
    HEDDLE_ASSIGN_OR_RETURN(const bool done, queue.Multiply(*lt));
    if (done) return Status::Ok();
  }
  if (rest != nullptr) {
    if (rest != out.raw()) HEDDLE_RETURN_IF_ERROR(queue.Copy(c, rest, out.bytes()));
    last.beta = 1;
  }
  HEDDLE_RETURN_IF_ERROR(last.Run(queue));
  return RunEpilogue(queue, c, out.numel(), static_cast<const float*>(bias), 1, all.columns,
                     with.activation);
}

// Results of 16 bits: one call of cuBLASLt, or sums in float32 that are rounded once.
Status RunFusedHalf(Queue& queue, FusedProducts& all, const FusedOperands& with, Tensor& out) {
  if (all.parts.size() == 1) {
    const auto lt =
        LtProductOf(all.parts[0], with.residual != nullptr ? with.residual->raw() : nullptr,
                    with.bias != nullptr ? with.bias->raw() : nullptr, with.activation);
    if (lt) {
      HEDDLE_ASSIGN_OR_RETURN(const bool done, queue.Multiply(*lt));
      if (done) return Status::Ok();
    }
  }
  Scratch scratch(queue);
  HEDDLE_RETURN_IF_ERROR(scratch.Take(out.numel()));
  for (BatchedProduct& part : all.parts) {
    part.c = scratch.data(), part.c_type = DType::kF32;
    HEDDLE_RETURN_IF_ERROR(part.Run(queue));
  }
  return RunEpilogue(queue, scratch.data(), with.residual, with.bias, all.columns, with.activation,
                     out);
}

Status FusedProduct(Queue& queue, KernelContext& ctx) {
  const Tensor& y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Activation activation, ActivationOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(FusedProducts all,
                          FusedProductsOf(
                              ctx, y.dtype(), out.dtype(), y.shape(), y.raw(), out.mutable_raw(),
                              [&](int i) { return ctx.In("X", i).shape(); },
                              [&](int i) { return ctx.In("X", i).raw(); }));
  const FusedOperands with{ctx.InOpt("Bias"), ctx.InOpt("ResidualData"), activation};
  return (out.dtype() == DType::kF32 ? RunFusedFloat : RunFusedHalf)(queue, all, with, out);
}

// The algorithm for operands that begin at multiples of 16 bytes, as those of a plan do.
void ChooseFused(LtChoices& lt, const CallView& call) {
  alignas(16) static const std::byte kPlace[16] = {};
  const void* const somewhere = kPlace;
  const Result<Activation> activation = ActivationOf(call);
  const Result<FusedProducts> all = FusedProductsOf(
      call, call.InDType("Y"), call.OutDType("Out"), call.InShape("Y"), somewhere, nullptr,
      [&](int i) { return call.InShape("X", i); }, [&](int) { return somewhere; });
  if (!activation.ok() || !all.ok()) return;
  const bool residual = call.HasIn("ResidualData") && all->parts.size() == 1;
  if (all->parts.size() > 1 && call.OutDType("Out") != DType::kF32) return;
  const auto product = LtProductOf(all->parts.back(), residual ? somewhere : nullptr,
                                   call.HasIn("Bias") ? somewhere : nullptr, *activation);
  if (product) (void)lt.Get(*product);
}

bool BothReal(const CallView& call) {
  return IsReal(call.InDType("X")) && call.InDType("Y") == call.InDType("X") &&
         call.InShape("X").rank() > 0 && call.InShape("Y").rank() > 0;
}
// All operands X have Y's type; bias and residual have the result's, which is that or float32.
bool FusedTypes(const CallView& call) {
  const DType type = call.InDType("Y"), out = call.OutDType("Out");
  for (int i = 0; i < call.InCount("X"); ++i)
    if (call.InDType("X", i) != type) return false;
  for (const Key key : {Key("Bias"), Key("ResidualData")})
    if (call.HasIn(key) && call.InDType(key) != out) return false;
  return out == type || out == DType::kF32;
}
// A batch of 1 that serves the whole batch of the residual, or the reverse, is not covered.
bool CoversFused(const CallView& call) {
  if (!BothReal(call) || !FusedTypes(call)) return false;
  if (!call.HasIn("ResidualData")) return true;
  const Shape &x = call.InShape("X"), &y = call.InShape("Y"), &out = call.OutShape("Out");
  const Result<Shape> batch = BroadcastShape(BatchOf(x), BatchOf(y), -1);
  if (!batch.ok()) return false;
  const int64_t m = x.rank() < 2 ? 1 : x.dim(call.Bool("trans_x") ? -1 : -2);
  const int64_t n = y.rank() < 2 ? 1 : y.dim(call.Bool("trans_y") ? -2 : -1);
  return call.InShape("ResidualData") == out && batch->numel() * m * n == out.numel();
}
// The attribute head_number of the old operator is not covered.
bool CoversV1(const CallView& call) {
  return BothReal(call) && (call.def().FindAttr("head_number") < 0 || call.Int("head_number") <= 1);
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(matmul_v2) { kernel = {Product<ViewV2>, BothReal, kReals}; }
HEDDLE_CUDA_KERNEL(matmul) { kernel = {Product<ViewV1>, CoversV1, kReals}; }
HEDDLE_CUDA_KERNEL(mul) { kernel = {Product<ViewMul>, BothReal, kReals}; }
HEDDLE_CUDA_KERNEL(bmm) { kernel = {Product<ViewBmm>, BothReal, kReals}; }
HEDDLE_CUDA_KERNEL(matmul_v2_grad) { kernel = {ProductGrad<ViewV2>, BothReal, kReals}; }
HEDDLE_CUDA_KERNEL(matmul_grad) { kernel = {ProductGrad<ViewV1>, CoversV1, kReals}; }
HEDDLE_CUDA_KERNEL(mul_grad) { kernel = {ProductGrad<ViewMul>, BothReal, kReals}; }
HEDDLE_CUDA_KERNEL(bmm_grad) { kernel = {ProductGrad<ViewBmm>, BothReal, kReals}; }
HEDDLE_CUDA_KERNEL(fused_matmul) {
  kernel = {FusedProduct, CoversFused, kReals};
  kernel.mixes = true;
  kernel.choose = ChooseFused;
}
