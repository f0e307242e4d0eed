// Scalar steps: operators on single integers and bools, computed without calling kernels. Counters
// and conditions of loops are such, and a loop's body may do so little else that the calls matter.
// The operators are those with a line HEDDLE_SCALAR in kernels/.
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
  // Writes the element of frame[step.out]; all tensors have memory.
  using Fn = void (*)(const ScalarStep& step, Value* const* frame);

  Fn fn = nullptr;
  std::array<uint32_t, 2> in{};  // slots; an operator of one operand uses the first
  uint32_t out = 0;
  int64_t number = 0;  // the operator's attribute
};

struct ScalarOp {
  // Returns the function for operands of `dtype`; nullptr: there is none for these attributes or
  // this dtype. `attrs` has no operands. Sets step->number if the function needs it.
  using MakeFn = ScalarStep::Fn (*)(const KernelContext& attrs, DType dtype, ScalarStep* step);

  int operands = 0;  // number of inputs used, from the first on; the first output is the result
  MakeFn make = nullptr;
};

// nullptr: `op` has no scalar step. Thread-safe.
const ScalarOp* FindScalarOp(std::string_view op);

// Declares how an operator of the same file computes single elements; the build finds every
// HEDDLE_SCALAR line of kernels/*.cc.
#define HEDDLE_SCALAR(name)               \
  namespace heddle {                      \
  extern const ScalarOp kScalarOp_##name; \
  }                                       \
  const heddle::ScalarOp heddle::kScalarOp_##name

}  // namespace heddle
