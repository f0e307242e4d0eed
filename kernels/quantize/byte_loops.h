// Loops over bytes by the threads of a run.
#pragma once

#include "core/interrupts.h"
#include "core/kernel_context.h"
#include "kernels/simd/bytes.h"

namespace heddle {

// to[i] = table[from[i]], of n bytes and a table of 256.
template <typename Byte, typename To>
void LookUpBytes(const KernelContext& ctx, const Byte* from, int64_t n, const To* table, To* to) {
  static_assert(sizeof(Byte) == 1 && sizeof(To) == 1);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(from);
  const auto* const values = reinterpret_cast<const uint8_t*>(table);
  auto* const out = reinterpret_cast<uint8_t*>(to);
  ctx.ParallelFor(n, 1 << 16, [&](int64_t begin, int64_t end) {
    for (const auto part : Stretches(Stretches::Range{begin, end}))
      simd::LookUpBytes(bytes + part.begin, part.end - part.begin, values, out + part.begin);
  });
}

}  // namespace heddle
