// Checks that kernels share.
#pragma once

#include <initializer_list>

#include "core/kernel_context.h"

namespace heddle {

Status DTypeMismatch(DType expected, const Tensor& got);

// All tensors (nullptr: absent) are of one dtype: a kernel is chosen by one operand, and reads or
// writes the others as the same type.
inline Status CheckDType(DType expected, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors)
    if (t != nullptr && t->dtype() != expected) [[unlikely]]
      return DTypeMismatch(expected, *t);
  return Status::Ok();
}

// Runs the operator's kernel for `to` on converted copies of its operands, and converts what it
// gives to the outputs' own dtypes. Complex results for real outputs lose their imaginary part.
Status RunConverted(const KernelContext& ctx, DType to);

}  // namespace heddle
