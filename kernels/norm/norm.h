// Normalisation to mean 0 and variance 1 over groups of elements, with its gradients: what
// batch_norm and instance_norm share.
#pragma once

#include "core/kernel_context.h"

namespace heddle {

// A group is `pieces` runs of `length` contiguous elements, `step` apart. Groups follow each other
// `group_step` apart; the parameters of group g are those of channel g % channels.
struct NormLayout {
  int64_t groups = 0, channels = 1, group_step = 1;
  int64_t pieces = 1, piece_step = 0, length = 0, step = 1;
  int64_t count() const { return pieces * length; }
};

// One group per channel, over everything else.
NormLayout BatchLayout(const Shape& x, bool channels_last);
// One group per channel of each image (channels first).
NormLayout InstanceLayout(const Shape& x);

// Arrays with one element per channel; null: scale 1, bias 0.
template <typename T>
struct NormParams {
  const T* scale = nullptr;
  const T* bias = nullptr;
};
// Arrays with one element per group. `inverse` is 1 / sqrt(variance + epsilon). `fixed`: they do
// not depend on x (running statistics).
template <typename T>
struct NormStats {
  const T* mean = nullptr;
  const T* inverse = nullptr;
  bool fixed = false;
};

// Biased variance.
template <typename T>
void NormMoments(const KernelContext& ctx, const NormLayout& layout, const T* x, T* mean,
                 T* variance);
// y may be x.
template <typename T>
void NormForward(const KernelContext& ctx, const NormLayout& layout, const T* x,
                 const NormStats<T>& stats, const NormParams<T>& params, T* y);
// Per group: the sum of dy and of dy times the normalised x. dx may be null, or dy.
template <typename T>
void NormBackward(const KernelContext& ctx, const NormLayout& layout, const T* x, const T* dy,
                  const NormStats<T>& stats, const T* scale, T* dx, T* sum_dy, T* sum_dy_x);

template <typename T>
struct NormSecond {
  const T *x = nullptr, *dy = nullptr;  // of the first gradient
  const T* ddx = nullptr;               // may be null, as all below
  const T *ddscale = nullptr, *ddbias = nullptr;
  T *dx = nullptr, *ddy = nullptr;
  T* dscale = nullptr;  // per group
};
template <typename T>
void NormDoubleBackward(const KernelContext& ctx, const NormLayout& layout,
                        const NormStats<T>& stats, const T* scale, const NormSecond<T>& io);
// Adds up the groups of each channel.
template <typename T>
void SumGroups(const NormLayout& layout, const T* per_group, T* per_channel);

}  // namespace heddle
