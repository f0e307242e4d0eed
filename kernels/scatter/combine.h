// Elements combined with updates, as scatter_nd and put_along_axis name it.
#pragma once

#include <string>

#include "core/interrupts.h"
#include "core/op_context.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"

namespace heddle {

enum class Update : uint8_t { kAssign, kAdd, kSub, kMul, kDiv, kMin, kMax };
// From "assign", "add", "sub", "mul", "div", "min" and "max".
Result<Update> UpdateOf(const std::string& reduce);

// Combines `n` elements at `to` with those at `from`, or with the first of them where `step` is 0.
using CombineFn = void (*)(void* to, const void* from, int64_t n, int64_t step);
// `new_stays`: of two elements of which neither is greater, the minimum and the maximum are the new
// one. An error for combinations that the dtype does not have.
Result<CombineFn> CombineOf(Update how, bool new_stays, DType dtype);
// The attribute `undecided`, "old" or "new", as new_stays.
Result<bool> NewStays(const OpContext& ctx);

}  // namespace heddle
