// Copies of whole values, whatever they hold, for control flow and tensor arrays.
#pragma once

#include "core/kernel_context.h"

namespace heddle {

// `to` becomes a copy of `from` with memory of its own (sequence offsets included). Memory that
// `to` alone owns is used again when it fits.
void CopyTensor(const KernelContext& ctx, const Tensor& from, Tensor* to);
// The same for item i of an array; small items lie side by side.
void CopyItem(const KernelContext& ctx, const Tensor& from, size_t i, TensorArray* array);
// The same as CopyTensor for tensors, tensor arrays and selected rows.
void CopyValue(const KernelContext& ctx, const Value& from, Value* to);
// The same for an output whose shape function tells the shape of what is copied, if it is a tensor:
// so the output has its memory.
void CopyToOutput(const KernelContext& ctx, const Value& from, Value* to);
// The one integer (or bool) that slot `key`, or a tensor of that name, holds.
Result<int64_t> ScalarIn(const KernelContext& ctx, Key key);
Result<int64_t> ScalarOf(const Tensor& t, const char* name);

}  // namespace heddle
