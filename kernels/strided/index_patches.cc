#include "kernels/strided/index_patches.h"

#include <algorithm>
#include <complex>

#include "core/threads/look_meter.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

int64_t Count(int64_t size, int64_t pads, int64_t kernel, int64_t dilation, int64_t stride) {
  const int64_t room = size + pads - (dilation * (kernel - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

// Calls fn(image, patch) for the elements of one image channel that lie inside it, and
// outside(patch) for the others; offsets in elements.
template <typename Fn, typename Outside>
inline void ForEachElement(const Patches& p, Fn&& fn, Outside&& outside) {
  LookMeter meter;
  for (int64_t i = 0; i < p.k_h; ++i)
    for (int64_t j = 0; j < p.k_w; ++j)
      for (int64_t y = 0; y < p.out_h; ++y) {
        const int64_t iy = y * p.stride_h - p.top + i * p.dilation_h;
        int64_t at = i * p.i_step + j * p.j_step + y * p.y_step;
        int64_t ix = j * p.dilation_w - p.left;
        const bool row = iy >= 0 && iy < p.h;
        for (int64_t x = 0; x < p.out_w;) {
          const int64_t end = std::min(p.out_w, x + LookMeter::kBetweenLooks);
          meter.Did(end - x);
          for (; x < end; ++x, ix += p.stride_w, at += p.x_step) {
            if (row && ix >= 0 && ix < p.w)
              fn(iy * p.w + ix, at);
            else
              outside(at);
          }
        }
      }
}

int64_t ChannelGrain(const Patches& p) {
  const int64_t work = p.k_h * p.k_w * p.out_h * p.out_w;
  return std::max<int64_t>(1, 65536 / std::max<int64_t>(1, work));
}

Status CheckSizes(const Patches& p, const Tensor& image, const Tensor& patches) {
  if (image.numel() == p.n * p.c * p.h * p.w && image.dtype() == patches.dtype() &&
      patches.numel() == p.n * p.c * p.k_h * p.k_w * p.out_h * p.out_w)
    return Status::Ok();
  return InvalidArgument("patches of shape ", patches.shape().ToString(),
                         " do not fit an image of shape ", image.shape().ToString());
}

}  // namespace

Status CountWindows(Patches* p) {
  if (p->k_h < 1 || p->k_w < 1 || p->stride_h < 1 || p->stride_w < 1 || p->dilation_h < 1 ||
      p->dilation_w < 1)
    return InvalidArgument("kernel sizes, strides and dilations must be positive");
  constexpr int64_t kMost = int64_t{1} << 30;  // so that products of two do not overflow
  for (const int64_t v : {p->k_h, p->k_w, p->stride_h, p->stride_w, p->dilation_h, p->dilation_w,
                          p->top, p->bottom, p->left, p->right})
    if (v > kMost || v < -kMost)
      return InvalidArgument("a kernel size, stride, dilation or padding is ", v,
                             ", beyond the limit of ", kMost);
  p->out_h = p->h < 0 ? -1 : Count(p->h, p->top + p->bottom, p->k_h, p->dilation_h, p->stride_h);
  p->out_w = p->w < 0 ? -1 : Count(p->w, p->left + p->right, p->k_w, p->dilation_w, p->stride_w);
  if (p->out_h == 0 || p->out_w == 0)
    return InvalidArgument("a window of ", p->k_h, " by ", p->k_w, " does not fit an image of ",
                           p->h, " by ", p->w);
  return Status::Ok();
}

Status TakePatches(const KernelContext& ctx, const Patches& p, const Tensor& image,
                   Tensor& patches) {
  HEDDLE_RETURN_IF_ERROR(CheckSizes(p, image, patches));
  VisitElementSize(image.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ctx.ParallelFor(p.n * p.c, ChannelGrain(p), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const T* from = image.data<T>() + k * p.h * p.w;
        T* to = patches.mutable_data<T>() + k / p.c * p.n_step + k % p.c * p.c_step;
        ForEachElement(
            p, [=](int64_t i, int64_t at) { to[at] = from[i]; }, [=](int64_t at) { to[at] = T{}; });
      }
    });
  });
  return Status::Ok();
}

Status AddPatches(const KernelContext& ctx, const Patches& p, const Tensor& patches,
                  Tensor& image) {
  HEDDLE_RETURN_IF_ERROR(CheckSizes(p, image, patches));
  ZeroBytes(ctx, image.mutable_raw(), image.bytes());
  const bool known =
      VisitDType<float, double, float16, bfloat16, std::complex<float>, std::complex<double>>(
          image.dtype(), [&](auto tag) {
            using T = typename decltype(tag)::type;
            using C = ComputeType<T>;
            ctx.ParallelFor(p.n * p.c, ChannelGrain(p), [&](int64_t begin, int64_t end) {
              for (int64_t k = begin; k < end; ++k) {
                T* to = image.mutable_data<T>() + k * p.h * p.w;
                const T* from = patches.data<T>() + k / p.c * p.n_step + k % p.c * p.c_step;
                ForEachElement(
                    p,
                    [=](int64_t i, int64_t at) {
                      to[i] = static_cast<T>(static_cast<C>(to[i]) + static_cast<C>(from[at]));
                    },
                    [](int64_t) {});
              }
            });
          });
  return known ? Status::Ok() : Unimplemented("no sums of ", Name(image.dtype()), " tensors");
}

}  // namespace heddle
