// Integer arguments that a program may give as a list of one-element tensors, as one tensor or as
// an attribute, in that order of precedence.
#pragma once

#include <array>
#include <span>

#include "core/op_context.h"

namespace heddle {

struct IntArgs {
  static constexpr int kMax = 2 * Shape::kMaxRank;
  std::array<int64_t, kMax> values{};
  int n = 0;             // -1: not even their number is known
  bool known = true;     // every value is known
  bool tensors = false;  // they came from tensors: they may differ from run to run

  int64_t operator[](int i) const { return values[i]; }
  int64_t& operator[](int i) { return values[i]; }
  std::span<const int64_t> span() const {
    return {values.data(), static_cast<size_t>(n < 0 ? 0 : n)};
  }
};

// The operand exists and holds (or, while planning, will hold) something.
bool Holds(const Value* v);

// Reads from `list`, else `tensor`, else attribute `attr`. Values that are not known yet are -1
// with known = false.
Status ReadInts(const OpContext& ctx, Key list, Key tensor, Key attr, IntArgs* out);
// The same without a list slot.
Status ReadInts(const OpContext& ctx, Key tensor, Key attr, IntArgs* out);
// One integer: from `tensor`'s first element when present, else attribute `attr`.
struct IntArg {
  int64_t value = 0;
  bool known = true;
  bool tensor = false;
};
Status ReadInt(const OpContext& ctx, Key tensor, Key attr, IntArg* out);

// An axis from `tensor` or `attr` for a tensor of rank `rank`, made non-negative. known = false
// while the tensor's value is not.
Status ReadAxis(const OpContext& ctx, Key tensor, Key attr, int rank, IntArg* out);

// Element `i` of an int32 or int64 tensor.
inline int64_t IntAt(const Tensor& t, int64_t i) {
  return t.dtype() == DType::kI64 ? t.data<int64_t>()[i] : t.data<int32_t>()[i];
}
// Error unless `t` (slot `name`) holds int32 or int64.
Status CheckIntDType(DType dtype, const char* name);

// The attribute "axis", which the first versions called "dims".
inline const Ints& AxisOrDims(const OpContext& ctx) {
  const Ints& axes = ctx.IntList("axis");
  return axes.empty() ? ctx.IntList("dims") : axes;
}

}  // namespace heddle
