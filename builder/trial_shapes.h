// Infers shapes while a program is built, with the operators' own shape functions. Those need a
// size for every dimension, so each is called with two sizes for the open dimensions of the
// program's inputs. README.md explains how the two answers make one shape.
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
  bool sequences = false;         // carries sequence offsets, or depends on a variable that does
  std::array<Shape, 2> at;        // the shape at each of the two sizes
  const Tensor* value = nullptr;  // a constant's elements; nullptr: unknown before a run

  bool open() const { return ranked && !(at[0] == at[1]); }
  Shape shape() const;  // -1: the two differ
};

// Makes the Known of a variable that is declared with this shape; -1: an open dimension.
Known KnownOf(DType dtype, const Shape& shape);

// The facts that hold for both: dimensions that differ become open, ranks unknown.
Known Join(const Known& a, const Known& b);

// Infers the outputs of `op`. `inputs`: one entry per operand, slot by slot, nullptr if the operand
// is left out; the result has one entry per output. Error: the operator rejects its operands.
Result<std::vector<Known>> Infer(const ir::Op& op, const std::vector<const Known*>& inputs);

}  // namespace heddle::builder
