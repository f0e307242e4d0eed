// Values that loops keep per step for their gradients, and sums of the gradients of steps.
#pragma once

#include "core/op_context.h"
#include "core/step_record.h"

namespace heddle {

// The record of steps that a variable (StepScopes) holds; an empty one when it holds none.
StepRecord& StepsIn(Value& scopes);
// Appends the present values of the variables of an input slot. A record of steps itself goes over
// instead of being shared: the loop that it is of makes the next one anew.
void TakeValues(const KernelContext& ctx, Key slot, StepValues* to);
// Moves values back into the variables of an input slot, from `at` on; returns the next place.
size_t PutValues(const KernelContext& ctx, Key slot, StepValues& from, size_t at);
// Empties the arrays named by an input slot.
void ClearArrays(const KernelContext& ctx, Key slot);

// `to` += `from`, for tensors and arrays; `to` becomes a copy where it holds nothing.
Status Accumulate(const KernelContext& ctx, const Value& from, Value* to);
// `to` becomes zeros of the shape of `like`, a tensor or an array; nothing where `like` holds
// nothing.
void ZeroLike(const KernelContext& ctx, const Value& like, Value* to);

// Item `at` of the first axis.
Tensor Row(const KernelContext& ctx, const Tensor& x, int64_t at);
// Writes item `at` of `rows` items of the first axis; `to` gets memory where it has not that shape.
void PutRow(const KernelContext& ctx, const Tensor& row, int64_t rows, int64_t at, Value* to);

}  // namespace heddle
