// Depthwise convolution: some pixels of a row, one vector of channels after another.
#pragma once

#include "kernels/simd/activation.h"
#include "kernels/simd/microkernels.h"

namespace heddle::simd {
namespace {

template <typename V>
struct DepthwiseTiles {
  using T = typename V::T;
  static constexpr int kLanes = V::kLanes;

  template <Activation kActivation, int kPixels>
  static HEDDLE_SIMD_INLINE void ActivateAll(T* sum, const Epilogue& e) {
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) sum[i] = ActivateSum<V, kActivation>(sum[i], e);
  }

  template <int kPixels>
  static HEDDLE_SIMD_INLINE void Finish(T* sum, const Epilogue& e) {
    switch (e.activation) {
      case Activation::kRelu:
        ActivateAll<Activation::kRelu, kPixels>(sum, e);
        break;
      case Activation::kReluKeepsNan:
        ActivateAll<Activation::kReluKeepsNan, kPixels>(sum, e);
        break;
      case Activation::kLeakyRelu:
        ActivateAll<Activation::kLeakyRelu, kPixels>(sum, e);
        break;
      case Activation::kClip:
        ActivateAll<Activation::kClip, kPixels>(sum, e);
        break;
      case Activation::kHardSwish:
        ActivateAll<Activation::kHardSwish, kPixels>(sum, e);
        break;
      case Activation::kHardSigmoid:
        ActivateAll<Activation::kHardSigmoid, kPixels>(sum, e);
        break;
      case Activation::kSwish:
        ActivateAll<Activation::kSwish, kPixels>(sum, e);
        break;
      case Activation::kSigmoid:
        ActivateAll<Activation::kSigmoid, kPixels>(sum, e);
        break;
      case Activation::kTanh:
        ActivateAll<Activation::kTanh, kPixels>(sum, e);
        break;
      case Activation::kMish:
        ActivateAll<Activation::kMish, kPixels>(sum, e);
        break;
      default:
        break;
    }
    if (e.scale == 1.f && e.shift == 0.f) return;
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) sum[i] = V::Fma(V::Set(e.scale), sum[i], V::Set(e.shift));
  }

  // Computes channels [c, c + n). kWhole: n is a full vector.
  template <int kKernel, int kStride, int kPixels, bool kWhole>
  static HEDDLE_SIMD_INLINE void Channels(const DepthwiseTile& row, int64_t c, int n,
                                          const Epilogue& epilogue) {
    constexpr int kColumns = (kPixels - 1) * kStride + kKernel;
    T sum[kPixels];
    const T bias = row.bias != nullptr ? V::LoadSome(row.bias + c, n) : V::Zero();
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) sum[i] = bias;
    const float* const* pixels = row.pixels;
    const float* filter = row.filter + c;
    for (int y = 0; y < row.rows; ++y, pixels += kColumns) {
      T tap[kKernel];
#pragma GCC unroll 5
      for (int k = 0; k < kKernel; ++k, filter += row.filter_step) tap[k] = V::Load(filter);
#pragma GCC unroll 32
      for (int x = 0; x < kColumns; ++x) {
        const T in = kWhole ? V::Load(pixels[x] + c) : V::LoadSome(pixels[x] + c, n);
#pragma GCC unroll 5
        for (int k = 0; k < kKernel; ++k)
          if (x >= k && (x - k) % kStride == 0 && (x - k) / kStride < kPixels)
            sum[(x - k) / kStride] = V::Fma(in, tap[k], sum[(x - k) / kStride]);
      }
    }
    Finish<kPixels>(sum, epilogue);
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) {
      if constexpr (kWhole)
        V::Store(row.out + i * row.channels + c, sum[i]);
      else
        V::StoreSome(row.out + i * row.channels + c, sum[i], n);
    }
  }

  template <int kKernel, int kStride, int kPixels>
  static void Row(const DepthwiseTile& row, const Epilogue& epilogue) {
    int64_t c = 0;
    for (; c + kLanes <= row.channels; c += kLanes)
      Channels<kKernel, kStride, kPixels, true>(row, c, kLanes, epilogue);
    if (c < row.channels)
      Channels<kKernel, kStride, kPixels, false>(row, c, static_cast<int>(row.channels - c),
                                                 epilogue);
  }
};

}  // namespace
}  // namespace heddle::simd
