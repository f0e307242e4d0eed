// Work space of a thread while it computes a part of a kernel's result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace heddle {

// Calls fn with `bytes` bytes at the begin of a cache line: on the stack if kOnStack are enough.
template <size_t kOnStack, typename Fn>
void WithWorkSpace(size_t bytes, const Fn& fn) {
  constexpr size_t kLine = 64;
  if (bytes <= kOnStack) {
    alignas(kLine) std::byte work[kOnStack];
    fn(work);
  } else {
    const auto work = std::make_unique<std::byte[]>(bytes + kLine);
    const auto misplaced = reinterpret_cast<uintptr_t>(work.get()) % kLine;
    fn(work.get() + (kLine - misplaced));
  }
}

}  // namespace heddle
