// When a chain of convolutions (fused_conv_chain) is made by stripes of rows: what the pass that
// forms chains and the kernel that knows the shapes agree on.
#pragma once

#include <cstdint>

namespace heddle {

// A pointwise convolution, a depthwise one and perhaps another pointwise one.
struct ConvStripes {
  int64_t rows = 0;      // of the depthwise one's results
  int64_t between = 0;   // bytes of what the first one gives for an image
  int64_t largest = 0;   // bytes of the larger pointwise filter
  bool project = false;  // there is a second pointwise one
};

// Fewer bytes stay in a core's own cache on their way from one convolution to the next, and larger
// filters do not stay there along with the rows. Of few rows, too many are computed twice by
// threads that share them.
inline bool StripesPay(const ConvStripes& s) {
  constexpr int64_t kLeast = 32 << 10, kLeastAlone = 1 << 20, kLargestFilter = 64 << 10;
  constexpr int64_t kLeastRows = 10;
  return s.between >= (s.project ? kLeast : kLeastAlone) && s.largest <= kLargestFilter &&
         s.rows >= kLeastRows;
}

}  // namespace heddle
