// Loops that convert 16-bit floats and integers to the type that element-wise loops compute in, and
// back: compiled once, so that a functor needs no loop of its own for such types.
#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle {

// Elements that are converted at a time.
inline constexpr int64_t kWidenChunk = 512;

// to[i] = from[i] for n elements.
using WidenFn = void (*)(const void* from, void* to, int64_t n);

// From `stored`, a 16-bit float or an integer, to float32; nullptr when both types are the same.
// Throws std::logic_error for other pairs.
WidenFn Widening(DType stored, DType compute);
// From float32 to `stored`, a 16-bit float; nullptr when both types are the same. Throws likewise.
WidenFn Narrowing(DType compute, DType stored);

}  // namespace heddle
