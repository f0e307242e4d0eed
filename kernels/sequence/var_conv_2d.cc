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
  op.Input("Col").Input("Out", kOptional | kNoBuffer).Input("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("W@GRAD", kOptional).Kernel(DType::kF32, VarConvGrad);
}

HEDDLE_EXAMPLES(var_conv_2d, R"(
example float32 3x9, KernelH 3, KernelW 3, OutputChannel 3
attr KernelH INT 3
attr KernelW INT 3
attr OutputChannel INT 3
in COLUMN float32 [2, 10] lod [[0, 1, 2]] 0.402 0.191 0.275 0.445 0.868 0.529 0.487 0.826 0.233
  0.784 0.148 0.318 0.614 0.657 0.36 0.953 0.741 0.572 0.911 0.699
in ROW float32 [2, 10] lod [[0, 1, 2]] 0.276 0.362 0.189 0.319 0.839 0.882 0.146 0.752 0.665 0.709
  0.795 0.492 0.233 0.536 0.579 0.449 0.406 0.622 0.059 0.103
in W float32 [3, 9] 0.179 0.918 0.848 0.812 0.143 0.742 0.39 0.108 0.355 0.32 0.284 0.601 0.46 0.777
  0.883 0.249 0.214 0.953 0.707 0.566 0.531 0.425 0.073 0.672 0.496 0.038 0.636
in X float32 [2, 1] lod [[0, 1, 2]] 0.407 0.151
out Col float32 [18, 1] lod [[0, 9, 18]] 0*4 0.407 0*8 0.151 0*4
out Out float32 [6, 1] lod [[0, 3, 6]] 0.058201004 0.316239 0.029711 0.021593 0.117327 0.011022999

example two images
in x float32 [8, 1] lod [[0, 4, 8]] 0.62 -0.97 0.59 -0.05 0.99 -0.92 0.24 -0.46
in r float32 [4, 1] lod [[0, 2, 4]] -0.14 0.54 0.15 0.4
in c float32 [4, 1] lod [[0, 2, 4]] -0.12 -0.54 -0.06 0.2
in w float32 [2, 4] -0.62 0.55 0.66 -0.54 0.27 0.78 0.07 -0.37
op var_conv_2d X=x ROW=r COLUMN=c W=w -> Out=o Col=l
attr InputChannel INT 1
attr OutputChannel INT 2
attr StrideH INT 1
attr StrideW INT 1
attr KernelH INT 2
attr KernelW INT 2
out o float32 [16, 1] lod [[0, 8, 16]] -0.3348 0.933 0.022400022 -0.5015 -0.22940001 0.4023
  0.26529998 -0.5294 -0.5346 1.1502 0.4149 -0.71300006 -0.36630002 0.4097 0.6834 -0.2633
)")

HEDDLE_EXAMPLES(var_conv_2d_grad, R"(
example two images
in x float32 [8, 1] lod [[0, 4, 8]] 0.62 -0.97 0.59 -0.05 0.99 -0.92 0.24 -0.46
in r float32 [4, 1] lod [[0, 2, 4]] -0.14 0.54 0.15 0.4
in c float32 [4, 1] lod [[0, 2, 4]] -0.12 -0.54 -0.06 0.2
in w float32 [2, 4] -0.62 0.55 0.66 -0.54 0.27 0.78 0.07 -0.37
in g float32 [16, 1] lod [[0, 8, 16]] -0.54 -0.08 -0.01 -0.94 -0.04 0.1 0.83 -0.24 0.93 -0.95 0.81
  0.84 -0.11 0.81 0.8 -0.67
op var_conv_2d X=x ROW=r COLUMN=c W=w -> Out=o Col=l
attr InputChannel INT 1
attr OutputChannel INT 2
attr StrideH INT 1
attr StrideW INT 1
attr KernelH INT 2
attr KernelW INT 2
op var_conv_2d_grad X=x ROW=r COLUMN=c W=w Col=l Out=o Out@GRAD=g -> X@GRAD=dx W@GRAD=dw
attr InputChannel INT 1
attr OutputChannel INT 2
attr StrideH INT 1
attr StrideW INT 1
attr KernelH INT 2
attr KernelW INT 2
out dx float32 [8, 1] lod [[0, 4, 8]] 1.4205 -0.698 -0.9389 0.5964 -0.66400003 0.1527 -0.22589993
  -0.20569998
out dw float32 [2, 4] 0.24879998 0.9347001 -1.3431001 1.3866 -0.81210005 2.1558 0.5615001
  0.025999904
)")
