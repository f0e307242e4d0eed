// Examples with more to do: the same operator with larger operands.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/ops/example.h"

namespace heddle::testing {

// A number of an example that stands for a size: the length of axes of its operands, or a value
// that an operand or an attribute says sizes with.
struct Size {
  enum class Of { kAxes, kValues, kAttributes, kAll };
  Of of;
  int64_t value;
};

// The sizes of an example, each once. kAll: wherever the number stands.
std::vector<Size> SizesOf(const Example& example);

// The example with the size `factor` times as large. Operands repeat their values along an axis
// that grows, so that indices stay what they were. What the outputs must hold is not known any
// more. It is not said that the operator takes such operands.
Example Grown(const Example& example, const Size& size, int64_t factor);

// Bytes of the operands' tensors; with a size and a factor, of those of the grown example. At most
// about 2^62.
int64_t OperandBytes(const Example& example);
int64_t GrownBytes(const Example& example, const Size& size, int64_t factor);

}  // namespace heddle::testing
