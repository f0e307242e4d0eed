// Scalar steps (core/scalar_steps.h) of element-wise functors.
#pragma once

#include <cmath>
#include <limits>

#include "core/kernel_context.h"
#include "core/scalar_steps.h"

namespace heddle {

template <typename F, typename T>
void RunScalarBinary(const ScalarStep& step, Value* const* frame) {
  const T a = *frame[step.in[0]]->tensor().data<T>(), b = *frame[step.in[1]]->tensor().data<T>();
  using R = decltype(F::Apply(a, b));
  *frame[step.out]->tensor().mutable_data<R>() = F::Apply(a, b);
}

// F::Apply(x, y) of integers.
template <typename F>
ScalarStep::Fn MakeIntegerScalar(const KernelContext&, DType dtype, ScalarStep*) {
  if (dtype == DType::kI64) return RunScalarBinary<F, int64_t>;
  return dtype == DType::kI32 ? RunScalarBinary<F, int32_t> : nullptr;
}

// F::Apply(x, y) of truth values.
template <typename F>
ScalarStep::Fn MakeBoolScalar(const KernelContext&, DType dtype, ScalarStep*) {
  return dtype == DType::kBool ? RunScalarBinary<F, bool> : nullptr;
}

template <typename T>
void RunAddNumber(const ScalarStep& step, Value* const* frame) {
  using U = std::make_unsigned_t<T>;  // sums wrap around, as the kernels' do
  *frame[step.out]->tensor().mutable_data<T>() = static_cast<T>(
      static_cast<U>(*frame[step.in[0]]->tensor().data<T>()) + static_cast<U>(step.number));
}

// x + number, for integers and a number that is one of them.
inline ScalarStep::Fn MakeAddNumber(double number, DType dtype, ScalarStep* step) {
  if (number != std::trunc(number) || std::fabs(number) > std::numeric_limits<int32_t>::max())
    return nullptr;
  step->number = static_cast<int64_t>(number);
  if (dtype == DType::kI64) return RunAddNumber<int64_t>;
  return dtype == DType::kI32 ? RunAddNumber<int32_t> : nullptr;
}

}  // namespace heddle
