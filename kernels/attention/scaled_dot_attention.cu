// heddle's fused attention: two batched products and a masked softmax between them.
#include <cmath>

#include "core/kernel_context.h"
#include "device/cuda/grid/batched_gemm.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/reduce.h"

namespace heddle::HEDDLE_GRID {
namespace {

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
  bool selects;
  HEDDLE_BODY float At(const float* x, const float* m, int64_t j) const {
    if (m == nullptr) return x[j];
    if (!selects) return x[j] + m[j * column];
    return m[j * column] == INFINITY ? x[j] : m[j * column];
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
  MaskedSoftmaxBody softmax{scratch.data(), nullptr, {}, kh.rows, 0, ctx.Bool("mask_selects")};
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
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(scaled_dot_attention) { kernel = {Attention}; }
