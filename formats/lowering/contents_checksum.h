// The checksum of contents that arrive in ranges of bytes: in any order, from any thread, with
// repetitions.
//
// Threads: any may call any function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "core/thread_annotations.h"

namespace heddle::formats {

class ContentsChecksum {
 public:
  // `expected`: the CRC-32C of all `bytes` bytes, as Crc32c gives it.
  ContentsChecksum(size_t bytes, uint32_t expected) : bytes_(bytes), expected_(expected) {}

  // Adds the bytes [begin, end) of the contents, at `data`. False once all bytes have been added
  // and their checksum differs from the expected one.
  bool Add(const void* data, size_t begin, size_t end);

 private:
  struct Stretch {
    size_t end;
    uint32_t crc;
  };
  // Disjoint ranges that do not touch, by their beginnings. At most kMostStretches are kept: a
  // range beyond that is dropped, and the contents stay unchecked until they arrive in one piece.
  using Stretches = std::map<size_t, Stretch>;
  static constexpr size_t kMostStretches = 4096;

  Stretches NotSeen(size_t begin, size_t end) const HEDDLE_REQUIRES(mutex_);
  void Join(size_t begin, Stretch stretch) HEDDLE_REQUIRES(mutex_);

  const size_t bytes_;
  const uint32_t expected_;
  Mutex mutex_;
  enum class Found : uint8_t {
    kNotYet,
    kRight,
    kWrong
  } found_ HEDDLE_GUARDED_BY(mutex_) = Found::kNotYet;
  Stretches seen_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle::formats
