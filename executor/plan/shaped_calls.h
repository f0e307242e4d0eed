// ShapedCalls: the prepared calls of an instruction whose shapes are known only at run time, kept
// for later calls with the same shapes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/services.h"
#include "core/shape_context.h"
#include "core/thread_annotations.h"

namespace heddle {

// Whether all operands are non-empty tensors without sequence offsets.
bool ArePlain(const BoundOp& op, Value* const* frame);

// A prepared call for certain dtypes and shapes of the operands, and perhaps of the outputs.
// Constant once it is made.
struct ShapedCall {
  std::shared_ptr<const KernelState> state;  // nullptr: the operator has no Prepare step
  // The kernel and the shape function's answer, if they follow from the operands' dtypes and
  // shapes.
  KernelFn fn = nullptr;  // nullptr: they do not follow
  std::vector<ShapeContext::OutMeta> outs;
  std::vector<int64_t> signature;  // of the operands; without `fn`, also of the outputs
  struct Operand {
    DType dtype;
    Shape shape;
  };
  std::vector<Operand> operands;  // with `fn`: the operands that are present
  // Bytes of each of `outs`. Empty: not all of them are tensors of known size without sequence
  // offsets.
  std::vector<size_t> bytes;
};

// Prepares the operator for its present operands and outputs. `constant`, per frame slot: its
// contents never change; nullptr: none is constant.
Result<std::shared_ptr<const ShapedCall>> PrepareCall(const BoundOp& op, Value* const* frame,
                                                      Services& services,
                                                      const std::vector<bool>* constant);

// Threads: any.
class ShapedCalls {
 public:
  // `in_block`: the instruction is in a sub-block. In a loop's body values may grow: each iteration
  // has a signature of its own, and the next run has the same ones in the same order.
  explicit ShapedCalls(bool in_block) : in_block_(in_block) {}
  // The largest number of calls kept.
  size_t most() const { return in_block_ ? 128 : 8; }
  // The instruction's number among the plan's instructions that keep calls.
  uint32_t place = 0;
  // Whether the operator makes new tensors only: no output is an array, or also an operand.
  bool makes_tensors = false;

  // The kept call for plain operands, found without the shape function. nullptr: there is none, or
  // the outputs depend on more than the operands' dtypes and shapes.
  std::shared_ptr<const ShapedCall> Find(const BoundOp& op, Value* const* frame);
  // The call for operands and outputs with these shapes, from PrepareCall() if it is not kept.
  Result<std::shared_ptr<const ShapedCall>> FindOrPrepare(const BoundOp& op, Value* const* frame,
                                                          Services& services,
                                                          const std::vector<bool>* constant);
  // The same for plain operands, with the shape function's answer `outs` (nullptr: there is no such
  // function) and the kernel `fn`, so that Find() may find the call the next time.
  Result<std::shared_ptr<const ShapedCall>> FindOrPrepare(
      const BoundOp& op, Value* const* frame, Services& services, const std::vector<bool>* constant,
      const std::vector<ShapeContext::OutMeta>* outs, KernelFn fn);

 private:
  std::shared_ptr<const ShapedCall> Find(const BoundOp& op, Value* const* frame, bool with_outs);
  void Keep(std::shared_ptr<const ShapedCall> call);

  const bool in_block_;
  std::atomic<bool> depends_on_more_{false};  // for the outputs; orders nothing
  Mutex mutex_;
  // In the order in which they were made. `last_`: index of the call found or made last; the next
  // request is mostly for the same or for the one after it.
  std::vector<std::shared_ptr<const ShapedCall>> calls_ HEDDLE_GUARDED_BY(mutex_);
  size_t last_ HEDDLE_GUARDED_BY(mutex_) = 0;
  size_t misses_ HEDDLE_GUARDED_BY(mutex_) = 0;  // in a row
};

// CallMemo: the calls of one instruction in the latest run of one RunState, in order. They are
// found without a lock, since the iterations of the next run mostly make the same calls. Threads:
// those that execute the instruction, one after another.
class CallMemo {
 public:
  void Begin() { at_ = 0; }
  // The call made at this point last time, if it fits the present operands, which must be plain;
  // else nullptr.
  const ShapedCall* Next(const BoundOp& op, Value* const* frame);
  // Stores the call that was made because Next() had none. Only calls whose outputs follow from the
  // operands are kept, at most `most`.
  void Put(const std::shared_ptr<const ShapedCall>& call, size_t most);

 private:
  std::vector<std::shared_ptr<const ShapedCall>> calls_;
  size_t at_ = 0;
};

}  // namespace heddle
