// Examples with operands of another dtype.
#pragma once

#include "core/op_def.h"
#include "tests/ops/example.h"

namespace heddle::testing {

// The dtype that chooses the operator's kernel; kUnknown when no operand has one.
DType KeyDType(const Example& example, const OpDef& def);

// `tensor` in another dtype, values cut or rounded to what that holds. Its LoD is kept.
Tensor CastTensor(const Tensor& tensor, DType to);

// Every operand of dtype `from` in dtype `to`. Expected outputs stay as they are.
Example CastInputs(const Example& example, DType from, DType to);

// The casts to and from `to` leave the operands of dtype `from` as they are.
bool Holds(const Example& example, DType from, DType to);

}  // namespace heddle::testing
