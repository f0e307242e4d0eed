// When a chain of convolutions (fused_conv_chain) is computed by stripes of rows. The pass that
// forms chains and the kernel use the same rule.
#pragma once

#include <cstdint>

namespace heddle {

// A pointwise convolution, a depthwise one and perhaps another pointwise one.
struct ConvStripes {
  int64_t rows = 0;      // of the depthwise result
  int64_t between = 0;   // bytes of the first result, per image
  int64_t largest = 0;   // bytes of the larger pointwise filter
  bool project = false;  // there is a second pointwise convolution
};

// Smaller intermediate results stay in L2 anyway; larger filters do not fit L2 together with the
// rows; with few rows, threads compute too many border rows twice.
inline bool StripesPay(const ConvStripes& s) {
  constexpr int64_t kLeast = 32 << 10, kLeastAlone = 1 << 20, kLargestFilter = 64 << 10;
  constexpr int64_t kLeastRows = 10;
  return s.between >= (s.project ? kLeast : kLeastAlone) && s.largest <= kLargestFilter &&
         s.rows >= kLeastRows;
}

}  // namespace heddle
