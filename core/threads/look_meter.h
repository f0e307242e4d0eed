// Looks for interrupts by the work that was done, for loops whose steps take very different times:
//
//   LookMeter meter;
//   for (…) {
//     … n elements …
//     meter.Did(n);
//   }
//
// One thread's; made where it is used.
#pragma once

#include <cstdint>

#include "core/interrupts.h"

namespace heddle {

class LookMeter {
 public:
  // Elements that take a nanosecond or few each; what takes longer counts as more.
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
