#include "kernels/elementwise/arithmetic.h"

#include "core/dtype_of.h"
#include "core/error.h"
#include "core/interrupts.h"

namespace heddle {

Status NoZeroDivisor(const Tensor& y) {
  bool zero = false;
  VisitDType<int32_t, int64_t, int16_t, int8_t, uint8_t, bool>(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = y.data<T>();
    for (const auto part : Stretches(y.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) zero |= p[i] == 0;
  });
  return zero ? InvalidArgument("integer division by zero: input Y holds a 0") : Status::Ok();
}

}  // namespace heddle
