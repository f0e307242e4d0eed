// Values that loops keep per step for their gradients, and sums of the gradients of steps.
#pragma once

#include "core/kernel_context.h"
#include "core/values/step_record.h"

namespace heddle {

// The variables of one slot, found once: control flow goes through them in every step.
class SlotVars {
 public:
  SlotVars(const uint32_t* slots, uint32_t count, Value* const* frame)
      : slots_(slots), count_(static_cast<int>(count)), frame_(frame) {}
  int size() const { return count_; }
  // nullptr: the slot names none there, or none at all.
  Value* operator[](int i) const {
    return i < count_ && slots_[i] != kNoSlot ? frame_[slots_[i]] : nullptr;
  }

 private:
  const uint32_t* slots_;
  int count_;
  Value* const* frame_;
};

class StepContext : public OpContext {
 public:
  explicit StepContext(const KernelContext& ctx) : OpContext(ctx.op(), ctx.frame()) {}
  SlotVars Ins(Key key) const {
    const int s = InSlot(key);
    return {op_.in.begin() + op_.in_begin[s], op_.in_begin[s + 1] - op_.in_begin[s], frame_};
  }
  SlotVars Outs(Key key) const {
    const int s = OutSlot(key);
    return {op_.out.begin() + op_.out_begin[s], op_.out_begin[s + 1] - op_.out_begin[s], frame_};
  }
};

// The record of steps that a variable (StepScopes) holds; an empty one when it holds none.
StepRecord& StepsIn(Value& scopes);
// Appends the present values of variables. A record of steps itself goes over instead of being
// shared: the loop that it is of makes the next one anew.
void TakeValues(const SlotVars& vars, StepValues* to);
// Moves values back into variables, from `at` on; returns the next place.
size_t PutValues(const SlotVars& vars, StepValues& from, size_t at);
// Empties those that are arrays.
void ClearArrays(const SlotVars& vars);

// `to` += `from`, for tensors and arrays; `to` becomes `from`, which then holds nothing, where it
// holds nothing itself.
Status Accumulate(const KernelContext& ctx, Value& from, Value* to);
// `to` becomes zeros of the shape of `like`, a tensor or an array; nothing where `like` holds
// nothing.
void ZeroLike(const KernelContext& ctx, const Value& like, Value* to);

// Item `at` of the first axis.
Tensor Row(const KernelContext& ctx, const Tensor& x, int64_t at);
// Writes item `at` of `rows` items of the first axis; `to` gets memory where it has not that shape.
void PutRow(const KernelContext& ctx, const Tensor& row, int64_t rows, int64_t at, Value* to);

}  // namespace heddle
