// Dispatch from a DType to a C++ type. (For the other direction: kDTypeOf in heddle/dtype.h.)
#pragma once

#include <complex>
#include <cstdint>

#include "core/half.h"
#include "heddle/dtype.h"

namespace heddle {

// The type in which arithmetic on T is done.
template <typename T>
struct ComputeTypeOf {
  using type = T;
};
template <>
struct ComputeTypeOf<float16> {
  using type = float;
};
template <>
struct ComputeTypeOf<bfloat16> {
  using type = float;
};
template <typename T>
using ComputeType = typename ComputeTypeOf<T>::type;

template <typename T>
struct TypeTag {
  using type = T;
};

// Calls fn(TypeTag<T>{}) for the T of `dtype` among Ts; false when it is none of them.
template <typename... Ts, typename Fn>
bool VisitDType(DType dtype, Fn&& fn) {
  return ((dtype == kDTypeOf<Ts> ? (fn(TypeTag<Ts>{}), true) : false) || ...);
}
// Calls fn with an unsigned integer type of the element's size, for code that only moves elements.
template <typename Fn>
void VisitElementSize(DType dtype, Fn&& fn) {
  switch (SizeOf(dtype)) {
    case 1:
      return fn(TypeTag<uint8_t>{});
    case 2:
      return fn(TypeTag<uint16_t>{});
    case 4:
      return fn(TypeTag<uint32_t>{});
    case 8:
      return fn(TypeTag<uint64_t>{});
    default:
      return fn(TypeTag<std::complex<double>>{});
  }
}

}  // namespace heddle
