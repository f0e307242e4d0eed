// std::fill_n, std::copy_n, std::memcpy and std::memset that look for interrupts between pieces of
// about a megabyte. Short ones cost one more comparison.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/interrupts.h"

namespace heddle {

template <typename Out, typename N, typename V>
Out WatchedFill(Out to, N n, const V& value) {
  constexpr int64_t kPiece = 1 << 18;
  const auto count = static_cast<int64_t>(n);
  if (count <= kPiece) [[likely]]
    return std::fill_n(to, count, value);
  for (const auto part : Stretches(count, kPiece))
    to = std::fill_n(to, part.end - part.begin, value);
  return to;
}

template <typename In, typename N, typename Out>
Out WatchedCopy(In from, N n, Out to) {
  constexpr int64_t kPiece = 1 << 18;
  const auto count = static_cast<int64_t>(n);
  if (count <= kPiece) [[likely]]
    return std::copy_n(from, count, to);
  for (const auto part : Stretches(count, kPiece))
    to = std::copy_n(from + part.begin, part.end - part.begin, to);
  return to;
}

inline constexpr int64_t kWatchedBytes = 1 << 20;

inline void WatchedMemcpy(void* to, const void* from, size_t bytes) {
  const auto n = static_cast<int64_t>(bytes);
  if (n <= kWatchedBytes) [[likely]] {
    std::memcpy(to, from, bytes);
    return;
  }
  for (const auto [begin, end] : Stretches(n, kWatchedBytes))
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                static_cast<size_t>(end - begin));
}

inline void WatchedMemset(void* to, int byte, size_t bytes) {
  const auto n = static_cast<int64_t>(bytes);
  if (n <= kWatchedBytes) [[likely]] {
    std::memset(to, byte, bytes);
    return;
  }
  for (const auto [begin, end] : Stretches(n, kWatchedBytes))
    std::memset(static_cast<std::byte*>(to) + begin, byte, static_cast<size_t>(end - begin));
}

}  // namespace heddle
