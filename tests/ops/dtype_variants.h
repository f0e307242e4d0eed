// Examples with operands of another dtype.
#pragma once

#include "core/op_def.h"
#include "tests/ops/example.h"

namespace heddle::testing {

// The slot whose operand chooses the operator's kernel; empty when the example has none.
std::string KeySlot(const Example& example, const OpDef& def);
// The dtype of that operand; kUnknown when there is none.
DType KeyDType(const Example& example, const OpDef& def);

// `tensor` in another dtype, values cut or rounded to what that holds. Its LoD is kept.
Tensor CastTensor(const Tensor& tensor, DType to);

// The casts to and from `to` leave the operands of dtype `from` as they are.
bool Holds(const Example& example, DType from, DType to);

}  // namespace heddle::testing
