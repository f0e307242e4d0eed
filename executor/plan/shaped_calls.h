// ShapedCalls: what was found out about calls of an instruction whose shapes are known only when it
// runs, kept for the next calls with the same ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/op_context.h"
#include "core/thread_annotations.h"

namespace heddle {

// Whether all operands are tensors that hold something and have no sequence offsets.
bool ArePlain(const BoundOp& op, Value* const* frame);

// The prepared state of calls whose operands, and perhaps outputs, have certain dtypes and shapes.
// Constant once it is made.
struct ShapedCall {
  std::shared_ptr<const KernelState> state;  // nullptr: the operator has no Prepare step
  // The kernel and the shape function's answer, if they follow from the operands' dtypes and
  // shapes.
  KernelFn fn = nullptr;  // nullptr: they do not follow
  std::vector<ShapeContext::OutMeta> outs;
  std::vector<int64_t> signature;  // of the operands; without `fn`, of the outputs, too
  struct Operand {
    DType dtype;
    Shape shape;
  };
  std::vector<Operand> operands;  // with `fn`: those that there are
};

// Prepares the operator for its present operands and outputs. `constant`, per frame slot: the
// contents never change; nullptr: none are constant.
Result<std::shared_ptr<const ShapedCall>> PrepareCall(const BoundOp& op, Value* const* frame,
                                                      Services& services,
                                                      const std::vector<bool>* constant);

// Threads: any.
class ShapedCalls {
 public:
  // In a loop's body values may grow: each turn has a signature of its own, and the turns of the
  // next run have the same ones in the same order.
  explicit ShapedCalls(bool in_block) : in_block_(in_block) {}
  // The most calls that are kept.
  size_t most() const { return in_block_ ? 128 : 8; }
  // The instruction's place among the plan's instructions that keep calls.
  uint32_t place = 0;

  // The call for plain operands, before the shape function is asked. nullptr: it is not kept, or
  // the outputs depend on more than the operands' dtypes and shapes.
  std::shared_ptr<const ShapedCall> Find(const BoundOp& op, Value* const* frame);
  // The call for operands and outputs that have their shapes, as PrepareCall() makes it.
  Result<std::shared_ptr<const ShapedCall>> FindOrPrepare(const BoundOp& op, Value* const* frame,
                                                          Services& services,
                                                          const std::vector<bool>* constant);
  // The same where the operands are plain, the shape function has given `outs` (nullptr: there is
  // none) and `fn` is the kernel: Find() may find it the next time.
  Result<std::shared_ptr<const ShapedCall>> FindOrPrepare(
      const BoundOp& op, Value* const* frame, Services& services, const std::vector<bool>* constant,
      const std::vector<ShapeContext::OutMeta>* outs, KernelFn fn);

 private:
  std::shared_ptr<const ShapedCall> Find(const BoundOp& op, Value* const* frame, bool with_outs);
  void Keep(std::shared_ptr<const ShapedCall> call);

  const bool in_block_;
  std::atomic<bool> depends_on_more_{false};  // the outputs; orders nothing
  Mutex mutex_;
  // In the order in which they were made. `last_` is the one that was found or made last: the next
  // one to be asked for is mostly the same, or the one behind it.
  std::vector<std::shared_ptr<const ShapedCall>> calls_ HEDDLE_GUARDED_BY(mutex_);
  size_t last_ HEDDLE_GUARDED_BY(mutex_) = 0;
  size_t misses_ HEDDLE_GUARDED_BY(mutex_) = 0;  // in a row
};

// The calls of one instruction in the latest run of one run state, in their order: no lock is taken
// for them, since the turns of the next run mostly have the same ones. Threads: those that execute
// the instruction, one after another.
class CallMemo {
 public:
  void Begin() { at_ = 0; }
  // The call, if its operands are plain and it is the one that was made here last time; else
  // nullptr.
  const ShapedCall* Next(const BoundOp& op, Value* const* frame);
  // Instead of the one that Next() was asked for. Only calls of which the outputs follow from the
  // operands are kept, and no more than `most`.
  void Put(const std::shared_ptr<const ShapedCall>& call, size_t most);

 private:
  std::vector<std::shared_ptr<const ShapedCall>> calls_;
  size_t at_ = 0;
};

}  // namespace heddle
