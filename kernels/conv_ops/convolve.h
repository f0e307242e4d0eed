// Convolutions of [N, C, …] with [M, C / group, …] as products of matrices with columns.
#pragma once

#include "core/interrupts.h"
#include "kernels/gemm/gemm.h"
#include "kernels/pool/windows.h"

namespace heddle {

struct Convolution {
  int64_t batch = 0, groups = 1, in_channels = 0, out_channels = 0;
  Windows windows;

  Shape OutShape() const {
    Shape out{batch, out_channels};
    for (const int64_t d : windows.out) out.push_back(d);
    return out;
  }
  // Rows of a group's columns.
  int64_t depth() const { return in_channels / groups * windows.kernel.numel(); }
};

// From the attributes of windows and `group`; the shapes are checked against each other.
Result<Convolution> ConvolutionOf(const OpContext& ctx, const Shape& x, const Shape& w);

inline Status CheckBias(const Shape& bias, int64_t channels) {
  if (bias.rank() == 1 && bias[0] == channels) return Status::Ok();
  return InvalidArgument("input B has shape ", bias.ToString(), ", expected [", channels, "]");
}

// y, [N, M, …], is overwritten. T: float, double or int32_t.
template <typename T>
void Convolve(const KernelContext& ctx, const Convolution& c, const T* x, const T* w, T* y);

template <typename T>
void AddBias(const T* bias, int64_t batch, int64_t channels, int64_t size, T* y) {
  for (const int64_t i : Watched(batch * channels))
    for (int64_t j = 0; j < size; ++j) y[i * size + j] += bias[i % channels];
}

}  // namespace heddle
