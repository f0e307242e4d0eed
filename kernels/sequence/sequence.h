// Sequences packed along the first axis, as their offsets (LoD) say.
#pragma once

#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"

namespace heddle {

using Offsets = std::vector<size_t>;

// One level of `t`'s sequence offsets (negative: counted from the innermost), checked: they start
// with 0, never fall, and end with the number of rows where the level is the innermost.
Result<const Offsets*> OffsetsOf(const Tensor& t, const char* slot, int level = -1);

inline int64_t SequenceCount(const Offsets& o) { return static_cast<int64_t>(o.size()) - 1; }
inline int64_t Begin(const Offsets& o, int64_t i) {
  return static_cast<int64_t>(o[static_cast<size_t>(i)]);
}
inline int64_t Length(const Offsets& o, int64_t i) { return Begin(o, i + 1) - Begin(o, i); }

// Elements and bytes of one row (everything but the first axis).
inline int64_t RowSize(const Tensor& t) { return t.shape().Product(1, t.rank()); }
inline size_t RowBytes(const Tensor& t) {
  return static_cast<size_t>(RowSize(t)) * SizeOf(t.dtype());
}
inline const std::byte* RowOf(const Tensor& t, int64_t row) {
  return t.data<std::byte>() + static_cast<size_t>(row) * RowBytes(t);
}
inline std::byte* MutableRow(Tensor& t, int64_t row) {
  return t.mutable_data<std::byte>() + static_cast<size_t>(row) * RowBytes(t);
}
// Copies `count` rows; both have rows of equal size.
inline void CopyRows(const Tensor& from, int64_t at, int64_t count, Tensor& to, int64_t to_at) {
  if (count > 0 && RowBytes(from) > 0)
    WatchedMemcpy(MutableRow(to, to_at), RowOf(from, at),
                  static_cast<size_t>(count) * RowBytes(from));
}
template <typename T>
void AddRows(const Tensor& from, int64_t at, int64_t count, Tensor& to, int64_t to_at) {
  const int64_t width = RowSize(from);
  const T* a = from.data<T>() + at * width;
  T* b = to.mutable_data<T>() + to_at * width;
  for (const auto part : Stretches(count * width))
    for (int64_t i = part.begin; i < part.end; ++i) b[i] += a[i];
}
inline void ZeroAll(Tensor& t) {
  if (t.numel() > 0) WatchedMemset(t.mutable_raw(), 0, t.bytes());
}

// The gradient of a sequence operator: X@GRAD is like X.
Status SequenceGradLikeX(ShapeContext& ctx);

}  // namespace heddle
