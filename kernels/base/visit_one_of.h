// Dispatch from a DType of which a kernel knows some: any other is an error.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/dtype_of.h"
#include "core/error.h"

namespace heddle {

// Calls fn(TypeTag<T>{}) for the T of `dtype` among Ts. Throws std::invalid_argument, which becomes
// the operator's error, when it is none of them; `what`: whose dtype it is. Where an unknown dtype
// has a meaning of its own, VisitDType tells.
template <typename... Ts, typename Fn>
void VisitOneOf(std::string_view what, DType dtype, Fn&& fn) {
  if (VisitDType<Ts...>(dtype, fn)) return;
  std::string known;
  ((known += (known.empty() ? "" : ", ") + std::string(Name(kDTypeOf<Ts>))), ...);
  throw std::invalid_argument(StrCat(what, " is ", Name(dtype), "; expected one of ", known));
}

}  // namespace heddle
