// Errors of heddle as Python exceptions.
#pragma once

#include <utility>

#include "heddle/status.h"

namespace heddle::python {

// Raises the heddle.Error that belongs to the status. Precondition: !status.ok(); with the GIL.
[[noreturn]] void Raise(const Status& status);

inline void Check(const Status& status) {
  if (!status.ok()) Raise(status);
}
template <typename T>
T Check(Result<T> result) {
  if (!result.ok()) Raise(result.status());
  return *std::move(result);
}

}  // namespace heddle::python
