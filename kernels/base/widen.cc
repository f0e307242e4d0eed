#include "kernels/base/widen.h"

#include <stdexcept>

#include "core/dtype_of.h"
#include "core/error.h"

namespace heddle {
namespace {

template <typename From, typename To>
void WidenLoop(const void* from, void* to, int64_t n) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i]);
}

}  // namespace

WidenFn Widening(DType stored, DType compute) {
  if (stored == compute) return nullptr;
  if (compute == DType::kF32) {
    if (stored == DType::kF16) return &WidenLoop<float16, float>;
    if (stored == DType::kBF16) return &WidenLoop<bfloat16, float>;
    if (stored == DType::kI32) return &WidenLoop<int32_t, float>;
    if (stored == DType::kI64) return &WidenLoop<int64_t, float>;
  }
  throw std::logic_error(StrCat("no element-wise loop reads ", Name(stored)));
}

WidenFn Narrowing(DType compute, DType stored) {
  if (stored == compute) return nullptr;
  if (compute == DType::kF32) {
    if (stored == DType::kF16) return &WidenLoop<float, float16>;
    if (stored == DType::kBF16) return &WidenLoop<float, bfloat16>;
  }
  throw std::logic_error(StrCat("no element-wise loop writes ", Name(stored)));
}

}  // namespace heddle
