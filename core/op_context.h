// One call of an operator, as its functions see it: bound operands, attributes, shapes, memory.
#pragma once

#include <atomic>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/id_list.h"
#include "core/op_def.h"
#include "core/services.h"
#include "heddle/value.h"

namespace heddle {

inline constexpr uint32_t kNoSlot = ~0u;

// BoundOp: an operator call with operands resolved to slots of a frame. Immutable; owned by a Plan.
struct BoundOp {
  const OpDef* def = nullptr;
  const AttrValue* attrs = nullptr;  // in the definition's order; those of the program's operator,
                                     // which outlives this, or a copy that the owner keeps
  IdList in_begin;                   // per input slot of the definition, + end
  IdList out_begin;                  // likewise
  IdList in;                         // frame slots, kNoSlot where empty
  IdList out;
  // A range of the run's arena that no value uses while the operator runs, in units of 64 bytes.
  struct Spare {
    uint32_t begin = 0, size = 0;
  };
  Spare spare = {};
  // Memory that the next instruction reads first (its KernelState::Facts::prefetch); the kernel may
  // prefetch it.
  std::span<const std::byte> ahead = {};
};

// Base of the contexts below. Positions of In() and Out() are those in the program's lists.
class OpContext {
 public:
  OpContext(const BoundOp& op, Value* const* frame) : op_(op), frame_(frame) {}

  const OpDef& def() const { return *op_.def; }
  template <typename T>
  const T& Attr(Key key) const {
    const auto& defs = op_.def->attrs();
    for (size_t i = 0; i < defs.size(); ++i)
      if (defs[i].key == key.hash) return std::get<T>(op_.attrs[i]);
    NoSuch("attribute", key);
  }
  int64_t Int(Key key) const { return Attr<int64_t>(key); }
  double Float(Key key) const { return Attr<double>(key); }
  bool Bool(Key key) const { return Attr<bool>(key); }
  const std::string& Str(Key key) const { return Attr<std::string>(key); }
  const Ints& IntList(Key key) const { return Attr<Ints>(key); }

  // The number of variables that the program names in an input slot (0: the slot is absent).
  int InCount(Key key) const {
    const int s = InSlot(key);
    return static_cast<int>(op_.in_begin[s + 1] - op_.in_begin[s]);
  }
  int OutCount(Key key) const {
    const int s = OutSlot(key);
    return static_cast<int>(op_.out_begin[s + 1] - op_.out_begin[s]);
  }
  // The value of an operand; nullptr if the slot is absent or names no variable.
  Value* InVar(Key key, int i = 0) const {
    const int s = InSlot(key);
    const uint32_t at = op_.in_begin[s] + static_cast<uint32_t>(i);
    return at < op_.in_begin[s + 1] && op_.in[at] != kNoSlot ? frame_[op_.in[at]] : nullptr;
  }
  Value* OutVar(Key key, int i = 0) const {
    const int s = OutSlot(key);
    const uint32_t at = op_.out_begin[s] + static_cast<uint32_t>(i);
    return at < op_.out_begin[s + 1] && op_.out[at] != kNoSlot ? frame_[op_.out[at]] : nullptr;
  }
  bool HasOut(Key key, int i = 0) const { return OutVar(key, i) != nullptr; }
  bool SameVar(Key in, Key out) const { return InVar(in) != nullptr && InVar(in) == OutVar(out); }

  const BoundOp& op() const { return op_; }
  Value* const* frame() const { return frame_; }

 protected:
  int InSlot(Key key) const {
    const auto& slots = op_.def->inputs();
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i].key == key.hash) return static_cast<int>(i);
    NoSuch("input", key);
  }
  int OutSlot(Key key) const {
    const auto& slots = op_.def->outputs();
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i].key == key.hash) return static_cast<int>(i);
    NoSuch("output", key);
  }
  [[noreturn]] void NoSuch(const char* what, Key key) const;
  [[noreturn]] void Missing(const char* what, Key key, int i) const;

  const BoundOp& op_;
  Value* const* frame_;
};

// The context of a shape function, at plan time (dimensions may be -1, contents are mostly unknown)
// and at run time (everything is known). A shape function sets every output's shape and dtype, or
// returns Defer().
class ShapeContext : public OpContext {
 public:
  using OpContext::OpContext;
  // Whether the operand is present; at run time also, whether it is not empty.
  bool HasIn(Key key, int i = 0) const;
  const Shape& InShape(Key key, int i = 0) const;
  DType InDType(Key key, int i = 0) const;
  const LoD& InLoD(Key key, int i = 0) const;
  // The operand's contents; nullptr while they are not known, at plan time.
  const Tensor* InValue(Key key, int i = 0) const;

  void SetOut(Key key, const Shape& shape, DType dtype, int i = 0);
  // By position in op().out, for shape functions that serve several operators.
  void SetOutAt(size_t at, const Shape& shape, DType dtype);
  void SetOutLoDAt(size_t at, LoD lod);
  void SetOutLoD(Key key, LoD lod, int i = 0);
  void ShareLoD(Key in, Key out);
  // The shapes depend on something not known yet: the function is called again at run time.
  Status Defer() {
    deferred_ = true;
    return Status::Ok();
  }
  bool deferred() const { return deferred_; }

  struct OutMeta {
    bool set = false;
    DType dtype = DType::kUnknown;
    Shape shape;
    bool has_lod = false;
    LoD lod;
  };
  // Parallel to op().out; empty until the first SetOut.
  std::vector<OutMeta>& outs() { return outs_; }

 private:
  OutMeta& Meta(size_t at);
  std::vector<OutMeta> outs_;
  bool deferred_ = false;
};

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
