// What is known of variables' shapes while a program is built. The operators' rules want every
// dimension known: each is asked twice, with one size and another for all open dimensions of the
// program's inputs. See README.md.
#pragma once

#include <array>
#include <vector>

#include "core/ir.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle::builder {

struct Known {
  ir::VarKind kind = ir::VarKind::kTensor;
  DType dtype = DType::kUnknown;
  bool ranked = false;
  bool sequences = false;         // carries offsets, or depends on something that does
  std::array<Shape, 2> at;        // at each of the two sizes
  const Tensor* value = nullptr;  // that never changes; null: not known

  bool open() const { return ranked && !(at[0] == at[1]); }
  Shape shape() const;  // -1 where the two differ
};

// Of a variable with this shape, in which -1 is open.
Known KnownOf(DType dtype, const Shape& shape);

// What holds for both. Dimensions that differ are open, ranks that differ are unknown.
Known Join(const Known& a, const Known& b);

// What `op` writes: an entry for each of its outputs, slot by slot. `inputs`: an entry for each of
// its operands, slot by slot; null where it is empty. Errors: the operator takes no such operands.
Result<std::vector<Known>> Infer(const ir::Op& op, const std::vector<const Known*>& inputs);

}  // namespace heddle::builder
