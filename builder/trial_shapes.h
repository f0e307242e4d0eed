// Infers shapes while a program is built, by the operators' own rules. Those rules need a size for
// every dimension, so each rule is tried with two sizes for the open dimensions of the program's
// inputs. README.md explains how the two answers make one shape.
#pragma once

#include <array>
#include <vector>

#include "core/programs/ir.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle::builder {

// Everything that is inferred about a variable.
struct Known {
  ir::VarKind kind = ir::VarKind::kTensor;
  DType dtype = DType::kUnknown;
  bool ranked = false;
  bool sequences = false;         // carries offsets, or depends on something that does
  std::array<Shape, 2> at;        // at each of the two sizes
  const Tensor* value = nullptr;  // a constant's elements; null: not known before a run

  bool open() const { return ranked && !(at[0] == at[1]); }
  Shape shape() const;  // -1 where the two differ
};

// Makes the Known of a variable that is declared with this shape; -1 is open.
Known KnownOf(DType dtype, const Shape& shape);

// Keeps the facts that hold for both. Dimensions that differ become open, ranks unknown.
Known Join(const Known& a, const Known& b);

// Infers the outputs of `op`. `inputs` has an entry for each operand, slot by slot, null where the
// operand is left out; the result has one for each output. Errors: the operator takes no such
// operands.
Result<std::vector<Known>> Infer(const ir::Op& op, const std::vector<const Known*>& inputs);

}  // namespace heddle::builder
