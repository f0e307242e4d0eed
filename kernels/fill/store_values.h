// Lists of attributes stored as tensors.
#pragma once

#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"

namespace heddle {

template <typename T, typename V>
void StoreValues(const std::vector<V>& values, Tensor& out) {
  T* y = out.mutable_data<T>();
  for (size_t i = 0; i < values.size(); ++i) y[i] = ConvertTo<T>(values[i]);
}

}  // namespace heddle
