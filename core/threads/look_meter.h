// LookMeter: looks for interrupts after a given amount of work, for loops whose steps take very
// different times:
//
//   LookMeter meter;
//   for (…) {
//     … n elements …
//     meter.Did(n);
//   }
//
// For one thread; made where it is used.
#pragma once

#include <cstdint>

#include "core/interrupts.h"

namespace heddle {

class LookMeter {
 public:
  // The number of elements between looks, for elements of a nanosecond or a few; longer ones count
  // as more.
  static constexpr int64_t kBetweenLooks = 1 << 18;

  void Did(int64_t work) {
    left_ -= work;
    if (left_ > 0) [[likely]]
      return;
    left_ = kBetweenLooks;
    LookForInterrupt();
  }

 private:
  int64_t left_ = kBetweenLooks;
};

}  // namespace heddle
