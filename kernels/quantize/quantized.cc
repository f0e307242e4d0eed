#include "kernels/quantize/quantized.h"

#include "core/interrupts.h"
#include "kernels/base/visit_one_of.h"

namespace heddle {

Status Centered(const Tensor& from, const Tensor* zero, int64_t parts, const char* slot,
                int32_t* to) {
  if (from.dtype() != DType::kU8 && from.dtype() != DType::kI8)
    return InvalidArgument("an operand is ", Name(from.dtype()), ", expected uint8 or int8");
  if (zero != nullptr &&
      (zero->dtype() != from.dtype() || (zero->numel() != 1 && zero->numel() != parts)))
    return InvalidArgument(slot, " is ", Name(zero->dtype()), " ", zero->shape().ToString(),
                           ", expected one or ", parts, " of ", Name(from.dtype()));
  VisitOneOf<uint8_t, int8_t>("an operand", from.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* v = from.data<T>();
    const bool each = zero != nullptr && zero->numel() > 1;
    const int64_t size = parts == 0 ? 0 : from.numel() / parts;
    for (const int64_t p : Watched(parts)) {
      const int32_t z = zero == nullptr ? 0 : zero->data<T>()[each ? p : 0];
      for (int64_t i = p * size; i < (p + 1) * size; ++i) to[i] = int32_t{v[i]} - z;
    }
  });
  return Status::Ok();
}

Result<float> OneScale(const Tensor& t, const char* slot) {
  if (t.numel() == 1 && t.dtype() == DType::kF32) return *t.data<float>();
  return InvalidArgument(slot, " is ", Name(t.dtype()), " ", t.shape().ToString(),
                         ", expected one float32");
}

Result<int32_t> OneZero(const Tensor& t, const char* slot) {
  if (t.numel() == 1 && IsInteger(t.dtype()) && t.dtype() != DType::kI64)
    return static_cast<int32_t>(ScalarOf(t));
  return InvalidArgument(slot, " is ", Name(t.dtype()), " ", t.shape().ToString(),
                         ", expected one integer");
}

}  // namespace heddle
