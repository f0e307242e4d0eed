// var_conv_2d: a convolution over images of different sizes, packed into one column.
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/packed_pairs.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// --- var_conv_2d ---

struct Images {
  const Offsets *rows, *cols, *in;
  int64_t in_channels, out_channels, kernel_h, kernel_w, stride_h, stride_w;
  Offsets patches{0}, out{0};

  int64_t h(int64_t i) const { return Length(*rows, i); }
  int64_t w(int64_t i) const { return Length(*cols, i); }
  int64_t out_h(int64_t i) const { return h(i) == 0 ? 0 : (h(i) - 1) / stride_h + 1; }
  int64_t out_w(int64_t i) const { return w(i) == 0 ? 0 : (w(i) - 1) / stride_w + 1; }
  int64_t patch() const { return in_channels * kernel_h * kernel_w; }
};

Result<Images> ImagesOf(const KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &w = ctx.In("W");
  Images m{nullptr,
           nullptr,
           nullptr,
           ctx.Int("InputChannel"),
           ctx.Int("OutputChannel"),
           ctx.Int("KernelH"),
           ctx.Int("KernelW"),
           ctx.Int("StrideH"),
           ctx.Int("StrideW"),
           {0},
           {0}};
  HEDDLE_ASSIGN_OR_RETURN(m.in, OffsetsOf(x, "X", 0));
  HEDDLE_ASSIGN_OR_RETURN(m.rows, OffsetsOf(ctx.In("ROW"), "ROW", 0));
  HEDDLE_ASSIGN_OR_RETURN(m.cols, OffsetsOf(ctx.In("COLUMN"), "COLUMN", 0));
  if (m.stride_h < 1 || m.stride_w < 1 || m.patch() < 1 ||
      w.numel() != m.out_channels * m.patch() || m.rows->size() != m.in->size() ||
      m.cols->size() != m.in->size() || x.numel() != static_cast<int64_t>(m.in->back()))
    return InvalidArgument("W ", w.shape().ToString(),
                           " or the sequences of ROW and COLUMN do not "
                           "fit X");
  for (const int64_t i : Watched(SequenceCount(*m.in))) {
    if (Length(*m.in, i) != m.in_channels * m.h(i) * m.w(i) && m.h(i) * m.w(i) != 0)
      return InvalidArgument("sequence ", i, " of X has ", Length(*m.in, i), " elements, ",
                             m.in_channels * m.h(i) * m.w(i), " are expected");
    const int64_t size = m.out_h(i) * m.out_w(i);
    m.patches.push_back(m.patches.back() + static_cast<size_t>(m.patch() * size));
    m.out.push_back(m.out.back() + static_cast<size_t>(m.out_channels * size));
  }
  return m;
}

// fn(place in the patches, place in X or -1 outside the image) for one image.
template <typename Fn>
void ForEachPatch(const Images& m, int64_t i, Fn fn) {
  const int64_t size = m.out_h(i) * m.out_w(i);
  for (const int64_t k : Watched(m.patch())) {
    const int64_t z = k / (m.kernel_h * m.kernel_w), ky = k / m.kernel_w % m.kernel_h;
    const int64_t kx = k % m.kernel_w;
    for (int64_t o = 0; o < size; ++o) {
      const int64_t y = o / m.out_w(i) * m.stride_h + ky - m.kernel_h / 2;
      const int64_t x = o % m.out_w(i) * m.stride_w + kx - m.kernel_w / 2;
      const bool inside = x >= 0 && x < m.w(i) && y >= 0 && y < m.h(i);
      fn(Begin(m.patches, i) + k * size + o,
         inside ? Begin(*m.in, i) + (z * m.h(i) + y) * m.w(i) + x : -1);
    }
  }
}

Status VarConv(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Images m, ImagesOf(ctx));
  const float *x = ctx.In("X").data<float>(), *w = ctx.In("W").data<float>();
  Tensor& col = ctx.Alloc("Col", DType::kF32, Shape{static_cast<int64_t>(m.patches.back()), 1});
  Tensor& out = ctx.Alloc("Out", DType::kF32, Shape{static_cast<int64_t>(m.out.back()), 1});
  ZeroAll(out);
  float* patches = col.mutable_data<float>();
  for (const int64_t i : Watched(SequenceCount(*m.in))) {
    const int64_t size = m.out_h(i) * m.out_w(i);
    ForEachPatch(m, i, [&](int64_t to, int64_t from) { patches[to] = from < 0 ? 0.f : x[from]; });
    AddProduct(m.out_channels, size, m.patch(), w, {m.patch(), 1}, patches + Begin(m.patches, i),
               {size, 1}, out.mutable_data<float>() + Begin(m.out, i));
  }
  col.set_lod({m.patches});
  out.set_lod({m.out});
  return Status::Ok();
}

Status VarConvGrad(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Images m, ImagesOf(ctx));
  const Tensor &col = ctx.In("Col"), &d_out = ctx.In("Out@GRAD");
  if (col.numel() != static_cast<int64_t>(m.patches.back()) ||
      d_out.numel() != static_cast<int64_t>(m.out.back()))
    return InvalidArgument("Col or Out@GRAD does not fit X");
  Tensor dx = ZeroedLike(ctx, "X@GRAD", ctx.In("X")), dw = ZeroedLike(ctx, "W@GRAD", ctx.In("W"));
  Tensor d_col = ctx.Scratch(DType::kF32, col.shape());
  ZeroAll(d_col);
  float* back = d_col.mutable_data<float>();
  for (const int64_t i : Watched(SequenceCount(*m.in))) {
    const int64_t size = m.out_h(i) * m.out_w(i);
    const float* from = d_out.data<float>() + Begin(m.out, i);
    AddProduct(m.patch(), size, m.out_channels, ctx.In("W").data<float>(), {1, m.patch()}, from,
               {size, 1}, back + Begin(m.patches, i));
    AddProduct(m.out_channels, m.patch(), size, from, {size, 1},
               col.data<float>() + Begin(m.patches, i), {1, size}, dw.mutable_data<float>());
    float* to = dx.mutable_data<float>();
    ForEachPatch(m, i, [&](int64_t at, int64_t x) {
      if (x >= 0) to[x] += back[at];
    });
  }
  return Status::Ok();
}

void DefineConv(OpDef& op) {
  op.Input("X").Input("ROW").Input("COLUMN").Input("W");
  op.Attr("InputChannel", 1).Attr("OutputChannel", 1).Attr("StrideH", 1).Attr("StrideW", 1);
  op.Attr("KernelH", 1).Attr("KernelW", 1);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(var_conv_2d) {
  op.Doc("a convolution over images of different sizes");
  DefineConv(op);
  op.Output("Out").Output("Col").Kernel(DType::kF32, VarConv);
}

HEDDLE_OP(var_conv_2d_grad) {
  DefineConv(op);
  op.Input("Col").Input("Out", kNoBuffer).Input("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("W@GRAD", kOptional).Kernel(DType::kF32, VarConvGrad);
}
