// Steps compute operators of single integers and truth values, without a call of their kernels.
// Counters and conditions of loops are such, and a loop's body may do so little else that the calls
// count. The operators are those with a line HEDDLE_SCALAR in kernels/.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "heddle/dtype.h"
#include "heddle/value.h"

namespace heddle {

class KernelContext;

// One operator on operands of one element each. A plain value, immutable once made.
struct ScalarStep {
  // Writes the element of frame[step.out]; the tensors have their memory.
  using Fn = void (*)(const ScalarStep& step, Value* const* frame);

  Fn fn = nullptr;
  std::array<uint32_t, 2> in{};  // slots; an operator of one operand uses the first
  uint32_t out = 0;
  int64_t number = 0;  // the operator's attribute
};

struct ScalarOp {
  // `attrs` has no operands. The function for operands of `dtype`; nullptr: with these attributes,
  // or for this dtype, there is none. Sets step->number where the function needs it.
  using MakeFn = ScalarStep::Fn (*)(const KernelContext& attrs, DType dtype, ScalarStep* step);

  int operands = 0;  // the first so many inputs; the result is the first output
  MakeFn make = nullptr;
};

// nullptr when `op` has none. Thread-safe.
const ScalarOp* FindScalarOp(std::string_view op);

// Says how an operator of the same file computes single elements; the build lists every
// HEDDLE_SCALAR line of kernels/*.cc by itself.
#define HEDDLE_SCALAR(name)               \
  namespace heddle {                      \
  extern const ScalarOp kScalarOp_##name; \
  }                                       \
  const heddle::ScalarOp heddle::kScalarOp_##name

}  // namespace heddle
