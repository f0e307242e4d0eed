// What every function of an operator sees of a call: bound operands and attributes.
#pragma once

#include <string>
#include <variant>

#include "core/bound_op.h"
#include "core/op_def.h"
#include "heddle/value.h"

namespace heddle {

// Base of ShapeContext, PrepareContext and KernelContext. Positions of In() and Out() are those in
// the program's lists.
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

}  // namespace heddle
