// Matrix products: matmul, matmul_v2, mul, bmm, their gradients, heddle's fused product and
// attention.
#include "core/shapes.h"
#include "device/cuda/grid/batched_gemm.h"
#include "device/cuda/grid/epilogue.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/reduce.h"

namespace heddle::HEDDLE_GRID {
namespace {

// How an operator sees its operands: matrices in batches. One-dimensional operands are rows and
// columns.
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
    // dX = dOut op(Y)', or its transpose.
    HEDDLE_RETURN_IF_ERROR(v.trans_x ? Multiply(queue, v, ym, Turned(dout), xm, dx)
                                     : Multiply(queue, v, dout, Turned(ym), xm, dx));
  }
  if (Tensor* t = ctx.OutOpt("Y@GRAD")) {
    float* const dy = t->mutable_data<float>();
    HEDDLE_RETURN_IF_ERROR(v.trans_y ? Multiply(queue, v, Turned(dout), xm, ym, dy)
                                     : Multiply(queue, v, Turned(xm), dout, ym, dy));
  }
  return Status::Ok();
}

// X may lie in pieces, side by side: the sum of their products with as many rows of Y each.
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
// Without the old operator's heads.
bool CoversV1(const CallView& call) {
  return BothFloat(call) &&
         (call.def().FindAttr("head_number") < 0 || call.Int("head_number") <= 1);
}

// --- attention ---

// An operand as a matrix for each batch and head.
struct Heads {
  int64_t batch = 1, heads = 1, rows = 0, depth = 0;
  int64_t at = 0, batch_step = 0, head_step = 0, row_step = 0;
};

// layout 0: [batch, heads, rows, depth], 1: [batch, rows, heads, depth], 2: [batch, rows, several,
// heads, depth], of which `part` is meant.
Heads HeadsOf(const Shape& s, int64_t layout, int64_t part) {
  const int heads = layout == 0 ? 1 : layout == 1 ? 2 : 3, rows = layout == 0 ? 2 : 1;
  const Steps steps = RowMajor(s);
  Heads h;
  h.batch = s[0], h.heads = s[heads], h.rows = s[rows], h.depth = s.dim(-1);
  h.batch_step = steps.at[0], h.head_step = steps.at[heads], h.row_step = steps.at[rows];
  if (layout == 2) h.at = part * steps.at[2];
  return h;
}
MatrixBatch Matrices(const Heads& h, const float* data, bool trans) {
  MatrixBatch m{data + h.at, h.rows, h.depth, h.row_step, trans, {}};
  m.steps.at[0] = h.batch == 1 ? 0 : h.batch_step;
  m.steps.at[1] = h.heads == 1 ? 0 : h.head_step;
  return m;
}

struct MaskedSoftmaxBody {  // rows of [batch, heads, queries]
  float* scores;
  const float* mask;  // may be null
  Strides<1> rows;    // where each row of the mask begins
  int64_t keys, column;
  HEDDLE_BODY float At(const float* x, const float* m, int64_t j) const {
    return m == nullptr ? x[j] : x[j] + m[j * column];
  }
  HEDDLE_BODY void operator()(Group& group, int64_t row) const {
    float* const x = scores + row * keys;
    const float* const m =
        mask == nullptr ? nullptr : mask + rows.At(static_cast<uint32_t>(row)).at[0];
    float top = -INFINITY, sum = 0;
    for (int64_t j = group.rank(); j < keys; j += group.size()) top = MaxOp()(top, At(x, m, j));
    top = group.Reduce(top, MaxOp());
    for (int64_t j = group.rank(); j < keys; j += group.size()) sum += expf(At(x, m, j) - top);
    sum = group.Reduce(sum, SumOp());
    for (int64_t j = group.rank(); j < keys; j += group.size())
      x[j] = expf(At(x, m, j) - top) / sum;
  }
};

Status Attention(Queue& queue, KernelContext& ctx) {
  const Tensor &q = ctx.In("Q"), &k = ctx.In("K"), &v = ctx.In("V");
  const Tensor* const mask = ctx.InOpt("Mask");
  Tensor& out = ctx.Out("Out");
  const Ints &layouts = ctx.IntList("layouts"), &parts = ctx.IntList("parts");
  const Heads qh = HeadsOf(q.shape(), layouts.at(0), parts.at(0));
  const Heads kh = HeadsOf(k.shape(), layouts.at(1), parts.at(1));
  const Heads vh = HeadsOf(v.shape(), layouts.at(2), parts.at(2));
  const Heads oh = HeadsOf(out.shape(), layouts.at(3), 0);
  const Shape scores{oh.batch, oh.heads, qh.rows, kh.rows}, batch{oh.batch, oh.heads};
  Scratch scratch(queue);
  HEDDLE_RETURN_IF_ERROR(scratch.Take(scores.numel()));
  const int64_t size = qh.rows * kh.rows;
  MatrixBatch s{scratch.data(), qh.rows, kh.rows, kh.rows, false, BatchSteps(batch, batch, size)};
  HEDDLE_RETURN_IF_ERROR(
      (BatchedProduct{batch, Matrices(qh, q.data<float>(), false),
                      Matrices(kh, k.data<float>(), true), scratch.data(), kh.rows, s.steps,
                      static_cast<float>(ctx.Float("scale")), 0})
          .Run(queue));
  MaskedSoftmaxBody softmax{scratch.data(), nullptr, {}, kh.rows, 0};
  if (mask != nullptr) {
    const Steps steps = Spread(mask->shape(), scores, 4 - mask->rank());
    softmax.mask = mask->data<float>();
    softmax.column = steps.at[3];
    softmax.rows = MakeStrides<1>(Shape{oh.batch, oh.heads, qh.rows}, {steps});
  }
  HEDDLE_RETURN_IF_ERROR(Groups(queue, scores.Product(0, 3), kh.rows, softmax));
  const MatrixBatch to = Matrices(oh, out.data<float>(), false);
  return BatchedProduct{batch,
                        s,
                        Matrices(vh, v.data<float>(), false),
                        out.mutable_data<float>() + oh.at,
                        oh.row_step,
                        to.steps,
                        1,
                        0}
      .Run(queue);
}

}  // namespace

void AddGemmKernels(KernelList* list) {
  list->insert(list->end(), {
                                {"matmul_v2", Product<ViewV2>, BothFloat},
                                {"matmul", Product<ViewV1>, CoversV1},
                                {"mul", Product<ViewMul>, BothFloat},
                                {"bmm", Product<ViewBmm>, BothFloat},
                                {"matmul_v2_grad", ProductGrad<ViewV2>, BothFloat},
                                {"matmul_grad", ProductGrad<ViewV1>, CoversV1},
                                {"mul_grad", ProductGrad<ViewMul>, BothFloat},
                                {"bmm_grad", ProductGrad<ViewBmm>, BothFloat},
                                {"fused_matmul", FusedProduct, BothFloat},
                                {"scaled_dot_attention", Attention},
                            });
}

}  // namespace heddle::HEDDLE_GRID
