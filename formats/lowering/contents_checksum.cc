#include "formats/lowering/contents_checksum.h"

#include <algorithm>
#include <iterator>

#include "core/memory/crc32c.h"

namespace heddle::formats {

bool ContentsChecksum::Add(const void* data, size_t begin, size_t end) {
  Stretches fresh;
  {
    MutexLock lock(mutex_);
    if (found_ != Found::kNotYet) return found_ == Found::kRight;
    fresh = NotSeen(begin, end);
  }
  for (auto& [from, stretch] : fresh)
    stretch.crc = Crc32c(static_cast<const std::byte*>(data) + (from - begin), stretch.end - from);
  MutexLock lock(mutex_);
  for (const auto& [from, stretch] : fresh) Join(from, stretch);
  return found_ != Found::kWrong;
}

ContentsChecksum::Stretches ContentsChecksum::NotSeen(size_t begin, size_t end) const {
  Stretches fresh;
  if (begin == 0 && end == bytes_) {
    fresh[0] = {end, 0};
    return fresh;
  }
  auto next = seen_.upper_bound(begin);
  if (next != seen_.begin()) begin = std::max(begin, std::prev(next)->second.end);
  for (; begin < end && next != seen_.end() && next->first < end; ++next) {
    fresh[begin] = {next->first, 0};
    begin = next->second.end;
  }
  if (begin < end) fresh[begin] = {end, 0};
  return fresh;
}

void ContentsChecksum::Join(size_t begin, Stretch stretch) {
  if (found_ != Found::kNotYet) return;
  if (begin > 0 || stretch.end < bytes_) {
    auto next = seen_.upper_bound(begin);
    const auto before = next == seen_.begin() ? seen_.end() : std::prev(next);
    // Another thread has added some of these bytes meanwhile.
    if ((before != seen_.end() && before->second.end > begin) ||
        (next != seen_.end() && next->first < stretch.end))
      return;
    if (before != seen_.end() && before->second.end == begin) {
      stretch.crc = JoinedCrc32c(before->second.crc, stretch.crc, stretch.end - begin);
      begin = before->first;
      seen_.erase(before);
    }
    if (next != seen_.end() && next->first == stretch.end) {
      stretch.crc = JoinedCrc32c(stretch.crc, next->second.crc, next->second.end - next->first);
      stretch.end = next->second.end;
      seen_.erase(next);
    }
  }
  if (begin == 0 && stretch.end == bytes_) {
    found_ = stretch.crc == expected_ ? Found::kRight : Found::kWrong;
    seen_.clear();
  } else if (seen_.size() < kMostStretches) {
    seen_[begin] = stretch;
  }
}

}  // namespace heddle::formats
