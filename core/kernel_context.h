// What a kernel sees of a call, when it is prepared and when it runs: tensors, memory, threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/op_context.h"
#include "core/services.h"

namespace heddle {

// The context in which a kernel is prepared for known shapes.
class PrepareContext : public OpContext {
 public:
  PrepareContext(const BoundOp& op, Value* const* frame, Services& services,
                 const std::vector<bool>* constant)
      : OpContext(op, frame), services_(services), constant_(constant) {}
  // Whether the operand is present and will not be empty when the kernel runs.
  bool HasIn(Key key, int i = 0) const;
  const Shape& InShape(Key key, int i = 0) const { return Present(key, i).shape(); }
  DType InDType(Key key, int i = 0) const { return Present(key, i).dtype(); }
  const Shape& OutShape(Key key, int i = 0) const;
  // The operand if its contents never change while the plan lives, else nullptr. The contents need
  // not be in memory: PackOnce reads them nevertheless, see core/memory/lazy_buffer.h and
  // MarkPacked.
  const Tensor* ConstIn(Key key, int i = 0) const;
  PackCache& packs() const { return *services_.packs; }
  int threads() const { return services_.intra->threads(); }
  // Whether little memory and a quick start are preferred: no copy of a parameter that is larger
  // than the parameter, and no generated code if heddle has loops of its own.
  bool lean() const { return services_.lean; }
  const Machine* machine() const { return services_.machine; }              // see Services
  const ForcedImplementations* forced() const { return services_.forced; }  // see Services
  // Notes that `state` holds a copy of an input, whose original is not read in runs.
  void MarkPacked(Key input, KernelState* state) const;

 private:
  const Tensor& Present(Key input, int i) const;

  Services& services_;
  const std::vector<bool>* constant_;  // per frame slot; nullptr: none is constant
};

// The context of one call of a kernel.
class KernelContext : public OpContext {
 public:
  KernelContext(const BoundOp& op, Value* const* frame, Services& services,
                const KernelState* state)
      : OpContext(op, frame), services_(services), state_(state) {}

  // A required operand's tensor. Kernels get contiguous, initialised tensors.
  const Tensor& In(Key key, int i = 0) const {
    const Value* v = InVar(key, i);
    if (v == nullptr || !v->is_tensor()) [[unlikely]]
      Missing("input", key, i);
    return v->tensor();
  }
  // nullptr if the operand is absent or empty.
  const Tensor* InOpt(Key key, int i = 0) const {
    const Value* v = InVar(key, i);
    return v != nullptr && v->is_tensor() && v->tensor().initialized() ? &v->tensor() : nullptr;
  }
  // An output with its inferred shape, and with memory.
  Tensor& Out(Key key, int i = 0) const {
    Value* v = OutVar(key, i);
    if (v == nullptr) [[unlikely]]
      Missing("output", key, i);
    return v->tensor();
  }
  Tensor* OutOpt(Key key, int i = 0) const {
    Value* v = OutVar(key, i);
    return v ? &v->tensor() : nullptr;
  }
  // Gives an output new memory, for operators without a shape function. Throws std::bad_alloc.
  Tensor& Alloc(Key key, DType dtype, const Shape& shape, int i = 0) const;
  // Work space that lives as long as the returned tensor. Throws std::bad_alloc.
  Tensor Scratch(DType dtype, const Shape& shape) const;
  // The same for work space that is not used after the kernel returns: it is in the run's arena if
  // the plan has room there. One call does not reuse what it has taken. May be called by any thread
  // that works for the kernel.
  Tensor CallScratch(DType dtype, const Shape& shape) const;

  template <typename S>
  const S& State() const {
    return static_cast<const S&>(*state_);
  }
  bool has_state() const { return state_ != nullptr; }

  std::span<const std::byte> ahead() const { return op_.ahead; }  // see BoundOp
  int threads() const { return services_.intra->threads(); }
  // See IntraOp::ParallelFor; calls fn directly if n <= grain.
  template <typename Fn>
  void ParallelFor(int64_t n, int64_t grain, Fn&& fn) const {
    if (n <= 0) return;
    if (n <= grain)
      fn(int64_t{0}, n);
    else
      services_.intra->ParallelFor(n, grain, fn);
  }
  Services& services() const { return services_; }
  Status RunBlock(BlockRef block) const { return services_.blocks->RunBlock(block.id); }
  // kCancelled or kDeadlineExceeded if the run is to end. Kernels that may take long call this from
  // time to time and return its error.
  Status Interrupted() const {
    return services_.blocks != nullptr ? services_.blocks->Interrupted() : Status::Ok();
  }
  std::mt19937_64& random() const { return services_.random->engine; }

 private:
  Services& services_;
  const KernelState* state_;
  mutable std::atomic<uint32_t> spare_used_{0};  // units of op_.spare in use; orders nothing
};

}  // namespace heddle
