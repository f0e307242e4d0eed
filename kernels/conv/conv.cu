// Two-dimensional convolutions: by a library where there is one (conv_dnn.cuh), else patches and a
// product, in both directions; depthwise ones have a kernel of their own.
#include <algorithm>

#include "core/kernel_context.h"
#include "device/cuda/grid/addend.h"
#include "device/cuda/grid/batched_gemm.h"
#include "device/cuda/grid/conv_geometry.h"
#include "device/cuda/grid/epilogue.h"
#include "device/cuda/grid/in_float.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/real.h"
#include "kernels/conv/conv_dnn.cuh"

namespace heddle::HEDDLE_GRID {
namespace {

constexpr int64_t kMostPatches = int64_t{1} << 26;  // floats of work space

// Patches of images: [n, channel, tap, pixel], or channels last [n, pixel, channel, tap].
struct PatchPlace {
  int64_t n, c, y, x;  // in the input
  bool inside;
};
HEDDLE_BODY inline PatchPlace PlaceOf(const ConvShape& g, int64_t i) {
  int64_t pixel, tap, c, n;
  if (g.channels_last) {
    tap = i % g.taps(), i /= g.taps();
    c = i % g.in_c, i /= g.in_c;
    pixel = i % g.out_size(), n = i / g.out_size();
  } else {
    pixel = i % g.out_size(), i /= g.out_size();
    tap = i % g.taps(), i /= g.taps();
    c = i % g.in_c, n = i / g.in_c;
  }
  const int64_t y = pixel / g.w.out * g.h.stride - g.h.pad + tap / g.w.kernel * g.h.dilation;
  const int64_t x = pixel % g.w.out * g.w.stride - g.w.pad + tap % g.w.kernel * g.w.dilation;
  return {n, c, y, x, y >= 0 && y < g.h.in && x >= 0 && x < g.w.in};
}

struct ToPatchesBody {
  ConvShape g;
  const float* image;
  float* patches;
  HEDDLE_BODY void operator()(int64_t i) const {
    const PatchPlace p = PlaceOf(g, i);
    patches[i] = p.inside ? image[g.InAt(p.n, p.c, p.y, p.x)] : 0;
  }
};

// The output positions whose windows have input position `at` under tap `k`; -1: none.
HEDDLE_BODY inline int64_t OutputOf(const ConvAxis& a, int64_t at, int64_t k) {
  const int64_t shifted = at + a.pad - k * a.dilation;
  if (shifted < 0 || shifted % a.stride != 0 || shifted / a.stride >= a.out) return -1;
  return shifted / a.stride;
}

// The reverse: each element of the image adds up its copies, so that the order is fixed.
struct FromPatchesBody {
  ConvShape g;
  const float* patches;
  float* image;
  bool add;
  HEDDLE_BODY void operator()(int64_t i) const {
    int64_t c, pixel, n;
    if (g.channels_last) {
      c = i % g.in_c, pixel = i / g.in_c % g.in_size(), n = i / g.in_c / g.in_size();
    } else {
      pixel = i % g.in_size(), c = i / g.in_size() % g.in_c, n = i / g.in_size() / g.in_c;
    }
    const int64_t y = pixel / g.w.in, x = pixel % g.w.in;
    float sum = add ? image[i] : 0;
    for (int64_t ky = 0; ky < g.h.kernel; ++ky) {
      const int64_t oy = OutputOf(g.h, y, ky);
      if (oy < 0) continue;
      for (int64_t kx = 0; kx < g.w.kernel; ++kx) {
        const int64_t ox = OutputOf(g.w, x, kx);
        if (ox < 0) continue;
        const int64_t tap = ky * g.w.kernel + kx, at = oy * g.w.out + ox;
        sum += g.channels_last ? patches[((n * g.out_size() + at) * g.in_c + c) * g.taps() + tap]
                               : patches[((n * g.in_c + c) * g.taps() + tap) * g.out_size() + at];
      }
    }
    image[i] = sum;
  }
};

// One input channel for each group.
struct DepthwiseBody {
  ConvShape g;
  const float* in;
  const float* filter;
  float* out;
  bool add;
  HEDDLE_BODY void operator()(int64_t i) const {
    int64_t c, pixel, n;
    if (g.channels_last) {
      c = i % g.out_c, pixel = i / g.out_c % g.out_size(), n = i / g.out_c / g.out_size();
    } else {
      pixel = i % g.out_size(), c = i / g.out_size() % g.out_c, n = i / g.out_size() / g.out_c;
    }
    const int64_t from = c / (g.out_c / g.groups);
    const int64_t top = pixel / g.w.out * g.h.stride - g.h.pad;
    const int64_t left = pixel % g.w.out * g.w.stride - g.w.pad;
    float sum = add ? out[i] : 0;
    for (int64_t ky = 0; ky < g.h.kernel; ++ky) {
      const int64_t y = top + ky * g.h.dilation;
      if (y < 0 || y >= g.h.in) continue;
      for (int64_t kx = 0; kx < g.w.kernel; ++kx) {
        const int64_t x = left + kx * g.w.dilation;
        if (x >= 0 && x < g.w.in)
          sum += in[g.InAt(n, from, y, x)] * filter[(c * g.h.kernel + ky) * g.w.kernel + kx];
      }
    }
    out[i] = sum;
  }
};

// The operands of the products for images [0, g.batch), in batches [image, group].
struct Operands {
  Shape batch;
  MatrixBatch filter, patches, out;
};
Operands OperandsOf(const ConvShape& g, const float* filter, const float* patches,
                    const float* out) {
  const int64_t oc = g.out_c / g.groups, k = g.in_c / g.groups * g.taps(), p = g.out_size();
  Operands o;
  o.filter = {filter, oc, k, k, false, {}};
  o.filter.steps.at[1] = oc * k;
  if (g.channels_last) {  // all images are one tall matrix
    o.batch = Shape{1, g.groups};
    o.patches = {patches, g.batch * p, k, g.in_c * g.taps(), false, {}};
    o.out = {out, g.batch * p, oc, g.out_c, false, {}};
    o.patches.steps.at[1] = k, o.out.steps.at[1] = oc;
  } else {
    o.batch = Shape{g.batch, g.groups};
    o.patches = {patches, k, p, p, false, {}};
    o.out = {out, oc, p, p, false, {}};
    o.patches.steps.at[0] = g.in_c * g.taps() * p, o.patches.steps.at[1] = k * p;
    o.out.steps.at[0] = g.out_c * p, o.out.steps.at[1] = oc * p;
  }
  return o;
}
MatrixBatch Turned(MatrixBatch m) {
  m.trans = !m.trans;
  return m;
}
Status Multiply(Queue& queue, const Shape& batch, const MatrixBatch& a, const MatrixBatch& b,
                const MatrixBatch& to, float* c, float beta) {
  return BatchedProduct{batch, a, b, c, to.ld, to.steps, 1, beta}.Run(queue);
}

// Calls step(geometry of some images, first image, work space for their patches).
template <typename Step>
Status ForImages(Queue& queue, const ConvShape& g, Step step) {
  const int64_t each = g.in_c * g.taps() * g.out_size();
  if (g.batch == 0 || each == 0) return Status::Ok();
  const bool needs = !g.patches_are_image();
  const int64_t together = needs ? std::clamp<int64_t>(kMostPatches / each, 1, g.batch) : g.batch;
  Scratch scratch(queue);
  if (needs) HEDDLE_RETURN_IF_ERROR(scratch.Take(each * together));
  for (int64_t n = 0; n < g.batch; n += together) {
    ConvShape some = g;
    some.batch = std::min(together, g.batch - n);
    HEDDLE_RETURN_IF_ERROR(step(some, n, scratch.data()));
  }
  return Status::Ok();
}

// The patches of images from the n-th on, which may be the images.
Status Patches(Queue& queue, const ConvShape& some, const float* images, float* work,
               const float** patches) {
  *patches = images;
  if (some.patches_are_image()) return Status::Ok();
  *patches = work;
  return Each(queue, some.batch * some.in_c * some.taps() * some.out_size(),
              ToPatchesBody{some, images, work});
}

// out = in * filter, or added to out.
Status Forward(Queue& queue, const ConvShape& g, const float* in, const float* filter, float* out,
               bool add) {
  if (g.in_c == g.groups && g.groups > 1)
    return Each(queue, g.batch * g.out_c * g.out_size(), DepthwiseBody{g, in, filter, out, add});
  return ForImages(queue, g, [&](const ConvShape& some, int64_t n, float* work) {
    const float* patches = nullptr;
    float* const to = out + n * g.out_c * g.out_size();
    HEDDLE_RETURN_IF_ERROR(Patches(queue, some, in + n * g.in_c * g.in_size(), work, &patches));
    const Operands o = OperandsOf(some, filter, patches, to);
    return g.channels_last
               ? Multiply(queue, o.batch, o.patches, Turned(o.filter), o.out, to, add ? 1 : 0)
               : Multiply(queue, o.batch, o.filter, o.patches, o.out, to, add ? 1 : 0);
  });
}

// The gradient of the input from that of `out`, which is also the transposed convolution.
Status Backward(Queue& queue, const ConvShape& g, const float* out, const float* filter, float* in,
                bool add) {
  return ForImages(queue, g, [&](const ConvShape& some, int64_t n, float* work) {
    float* const to = in + n * g.in_c * g.in_size();
    const bool direct = g.patches_are_image();
    float* const patches = direct ? to : work;
    const Operands o = OperandsOf(some, filter, patches, out + n * g.out_c * g.out_size());
    const float beta = direct && add ? 1 : 0;
    HEDDLE_RETURN_IF_ERROR(
        g.channels_last
            ? Multiply(queue, o.batch, o.out, o.filter, o.patches, patches, beta)
            : Multiply(queue, o.batch, Turned(o.filter), o.out, o.patches, patches, beta));
    if (direct) return Status::Ok();
    return Each(queue, some.batch * g.in_c * g.in_size(), FromPatchesBody{some, patches, to, add});
  });
}

Status FilterGrad(Queue& queue, const ConvShape& g, const float* in, const float* dout,
                  float* dfilter, bool add) {
  const int64_t size = g.out_c * (g.in_c / g.groups) * g.taps();
  if (g.batch * g.out_size() == 0)
    return add ? Status::Ok() : queue.Zero(dfilter, static_cast<size_t>(size) * 4);
  return ForImages(queue, g, [&](const ConvShape& some, int64_t n, float* work) {
    const float* patches = nullptr;
    HEDDLE_RETURN_IF_ERROR(Patches(queue, some, in + n * g.in_c * g.in_size(), work, &patches));
    const Operands o = OperandsOf(some, dfilter, patches, dout + n * g.out_c * g.out_size());
    const float beta = add || n > 0 ? 1 : 0;
    return g.channels_last
               ? Multiply(queue, o.batch, Turned(o.out), o.patches, o.filter, dfilter, beta)
               : Multiply(queue, o.batch, o.out, Turned(o.patches), o.filter, dfilter, beta);
  });
}

Status Conv(Queue& queue, KernelContext& ctx) {
  const Tensor &in = ctx.In("Input"), &filter = ctx.In("Filter");
  Tensor& out = ctx.Out("Output");
  const ConvShape g = ConvShapeOf(ctx, in.shape(), filter.shape(), out.shape(), false);
  return Forward(queue, g, in.data<float>(), filter.data<float>(), out.mutable_data<float>(),
                 false);
}
Status ConvTranspose(Queue& queue, KernelContext& ctx) {
  const Tensor &in = ctx.In("Input"), &filter = ctx.In("Filter");
  Tensor& out = ctx.Out("Output");
  const ConvShape g = ConvShapeOf(ctx, out.shape(), filter.shape(), in.shape(), true);
  return Backward(queue, g, in.data<float>(), filter.data<float>(), out.mutable_data<float>(),
                  false);
}

Status ConvGrad(Queue& queue, KernelContext& ctx) {
  const Tensor &in = ctx.In("Input"), &filter = ctx.In("Filter"), &dout = ctx.In("Output@GRAD");
  const ConvShape g = ConvShapeOf(ctx, in.shape(), filter.shape(), dout.shape(), false);
  if (Tensor* t = ctx.OutOpt("Input@GRAD")) {
    HEDDLE_ASSIGN_OR_RETURN(const bool add, BeginWith(queue, ctx.InOpt("AddendOfInput"), *t));
    HEDDLE_RETURN_IF_ERROR(Backward(queue, g, dout.data<float>(), filter.data<float>(),
                                    t->mutable_data<float>(), add));
  }
  if (Tensor* t = ctx.OutOpt("Filter@GRAD")) {
    HEDDLE_ASSIGN_OR_RETURN(const bool add, BeginWith(queue, ctx.InOpt("AddendOfFilter"), *t));
    return FilterGrad(queue, g, in.data<float>(), dout.data<float>(), t->mutable_data<float>(),
                      add);
  }
  return Status::Ok();
}
Status ConvTransposeGrad(Queue& queue, KernelContext& ctx) {
  const Tensor &in = ctx.In("Input"), &filter = ctx.In("Filter"), &dout = ctx.In("Output@GRAD");
  const ConvShape g = ConvShapeOf(ctx, dout.shape(), filter.shape(), in.shape(), true);
  if (Tensor* t = ctx.OutOpt("Input@GRAD")) {
    HEDDLE_ASSIGN_OR_RETURN(const bool add, BeginWith(queue, ctx.InOpt("AddendOfInput"), *t));
    HEDDLE_RETURN_IF_ERROR(
        Forward(queue, g, dout.data<float>(), filter.data<float>(), t->mutable_data<float>(), add));
  }
  if (Tensor* t = ctx.OutOpt("Filter@GRAD")) {
    HEDDLE_ASSIGN_OR_RETURN(const bool add, BeginWith(queue, ctx.InOpt("AddendOfFilter"), *t));
    return FilterGrad(queue, g, dout.data<float>(), in.data<float>(), t->mutable_data<float>(),
                      add);
  }
  return Status::Ok();
}

template <bool kTransposed>
Status FusedConv(Queue& queue, KernelContext& ctx) {
  const Tensor &in = ctx.In("Input"), &filter = ctx.In("Filter");
  Tensor& out = ctx.Out("Output");
  const Tensor *bias = ctx.InOpt("Bias"), *residual = ctx.InOpt("ResidualData");
  float* const to = out.mutable_data<float>();
  HEDDLE_ASSIGN_OR_RETURN(const Activation activation, ActivationOf(ctx));
  if (residual != nullptr && residual->raw() != out.raw())
    HEDDLE_RETURN_IF_ERROR(queue.Copy(to, residual->raw(), out.bytes()));
  const bool add = residual != nullptr;
  const ConvShape g = kTransposed
                          ? ConvShapeOf(ctx, out.shape(), filter.shape(), in.shape(), true)
                          : ConvShapeOf(ctx, in.shape(), filter.shape(), out.shape(), false);
  HEDDLE_RETURN_IF_ERROR((kTransposed ? Backward : Forward)(queue, g, in.data<float>(),
                                                            filter.data<float>(), to, add));
  const int64_t channels = kTransposed ? g.in_c : g.out_c;
  const int64_t size = kTransposed ? g.in_size() : g.out_size();
  return RunEpilogue(queue, to, out.numel(), bias != nullptr ? bias->data<float>() : nullptr,
                     g.channels_last ? 1 : size, channels, activation,
                     static_cast<float>(ctx.Float("fuse_scale")),
                     static_cast<float>(ctx.Float("fuse_shift")));
}

bool Flat(const CallView& call) {
  return call.InShape("Input").rank() == 4 && IsReal(call.InDType("Filter"));
}
bool FlatWithoutBias(const CallView& call) {
  return Flat(call) && (call.def().FindInput("Bias") < 0 || !call.HasIn("Bias"));
}
// A batch of 1 that serves the whole batch of the residual, or the reverse, is not covered.
bool FlatOfOneBatch(const CallView& call) {
  if (!Flat(call) || !call.HasIn("ResidualData")) return Flat(call);
  const Shape& out = call.OutShape("Output");
  return call.InShape("ResidualData") == out && call.InShape("Input")[0] == out[0];
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

namespace heddle::HEDDLE_GRID {
namespace {

void SetConv(GridKernel& kernel) {
  kernel = {Planned<RunPlannedConv, InFloat<Conv>>, FlatWithoutBias, kReals};
  kernel.prepare = PrepareConv;
}
void SetConvTranspose(GridKernel& kernel) {
  kernel = {Planned<RunPlannedConvTranspose, InFloat<ConvTranspose>>, FlatWithoutBias, kReals};
  kernel.prepare = PrepareConvTranspose;
}
void SetConvGrad(GridKernel& kernel) {
  kernel = {Planned<RunPlannedConvGrad, InFloat<ConvGrad>>, FlatWithoutBias, kReals};
  kernel.prepare = PrepareConvGrad;
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(conv2d) { SetConv(kernel); }
HEDDLE_CUDA_KERNEL(depthwise_conv2d) { SetConv(kernel); }
HEDDLE_CUDA_KERNEL(conv2d_transpose) { SetConvTranspose(kernel); }
HEDDLE_CUDA_KERNEL(depthwise_conv2d_transpose) { SetConvTranspose(kernel); }
HEDDLE_CUDA_KERNEL(conv2d_grad) { SetConvGrad(kernel); }
HEDDLE_CUDA_KERNEL(depthwise_conv2d_grad) { SetConvGrad(kernel); }
HEDDLE_CUDA_KERNEL(conv2d_transpose_grad) {
  kernel = {Planned<RunPlannedConvTransposeGrad, InFloat<ConvTransposeGrad>>, FlatWithoutBias,
            kReals};
  kernel.prepare = PrepareConvTransposeGrad;
}
HEDDLE_CUDA_KERNEL(fused_conv2d) {
  kernel = {Planned<RunPlannedFusedConv, FusedConv<false>>, FlatOfOneBatch};
  kernel.prepare = PrepareFusedConv;
}
HEDDLE_CUDA_KERNEL(fused_conv2d_transpose) {
  kernel = {Planned<RunPlannedFusedConvTranspose, FusedConv<true>>, FlatOfOneBatch};
  kernel.prepare = PrepareFusedConvTranspose;
}
