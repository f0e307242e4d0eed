// Operands of operators on ONNX's sequences of tensors.
#pragma once

#include "kernels/index/index_value.h"

namespace heddle {

inline Result<const TensorArray*> SequenceIn(const KernelContext& ctx, Key key) {
  static const TensorArray empty;
  const Value* v = ctx.InVar(key);
  if (v != nullptr && v->is_array()) return v->initialized() ? &v->array() : &empty;
  if (v != nullptr && !v->initialized()) return &empty;  // nothing was written to it
  return InvalidArgument("'", key.name, "' must be a sequence of tensors");
}

// The item that slot "position" names, counted from the end where it is negative.
inline Result<int64_t> ItemIndex(const KernelContext& ctx, size_t items) {
  const auto n = static_cast<int64_t>(items);
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, ScalarIn(ctx, "position"));
  if (at < -n || at >= n)
    return OutOfRange("'position' is ", at, "; the sequence has ", n, " items");
  return at < 0 ? at + n : at;
}

}  // namespace heddle
