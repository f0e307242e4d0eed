#include "kernels/index/gather_rows.h"

#include <algorithm>
#include <complex>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/threads/look_meter.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

constexpr int64_t kParallelBytes = 256 << 10;

template <typename Fn>
void VisitIndex(const Tensor& index, Fn&& fn) {
  if (index.dtype() == DType::kI64)
    fn(index.data<int64_t>());
  else
    fn(index.data<int32_t>());
}

template <typename I>
Status Check(const I* index, int64_t n, const IndexRange& r, const char* slot) {
  const int64_t low = r.wrap ? -r.size : 0;
  int64_t least = 0, most = -1;
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) {
      least = std::min<int64_t>(least, index[i]);
      most = std::max<int64_t>(most, index[i]);
    }
  if (least >= low && most < r.size) return Status::Ok();
  for (int64_t i = 0; i < n; ++i)
    if ((index[i] < low || index[i] >= r.size) && (r.padding < 0 || index[i] != r.padding))
      return OutOfRange("'", slot, "' holds ", index[i], " at position ", i, "; expected ", low,
                        " to ", r.size - 1);
  return Status::Ok();
}

// Bytes of a row copied or zeroed; `kBytes` > 0 fixes the size for short rows.
template <int64_t kBytes>
inline void MoveRow(std::byte* dst, const std::byte* src, int64_t bytes) {
  if constexpr (kBytes > 0)
    std::memcpy(dst, src, static_cast<size_t>(kBytes));
  else if (bytes > kWatchedBytes) [[unlikely]]
    WatchedMemcpy(dst, src, static_cast<size_t>(bytes));
  else
    CopyRow(dst, src, bytes);
}

template <int64_t kBytes, typename I>
void GatherRange(const std::byte* src, const I* index, int64_t n, const IndexRange& r,
                 int64_t inner, std::byte* dst, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end;) {
    const int64_t o = k / n;
    const std::byte* from = src + o * r.size * inner;
    const int64_t stop = std::min(end, (o + 1) * n);
    const I* at = index + (k - o * n);
    std::byte* to = dst + k * inner;
    for (; k < stop; ++k, ++at, to += inner) {
      int64_t row = *at;
      if ((row == r.padding && r.padding >= 0) || (r.allow_any && (row < 0 || row >= r.size))) {
        WatchedMemset(to, 0, static_cast<size_t>(inner));
        continue;
      }
      if (row < 0) row += r.size;
      MoveRow<kBytes>(to, from + row * inner, inner);
    }
  }
}

template <typename T, typename I>
void AddRange(const T* src, const I* index, int64_t n, const IndexRange& r, int64_t inner, T* dst,
              int64_t from, int64_t to) {
  LookMeter meter;
  for (int64_t i = 0; i < n; ++i) {
    meter.Did(8 + to - from);
    int64_t row = index[i];
    if (row == r.padding && r.padding >= 0) continue;
    if (row < 0) row += r.size;
    const T* s = src + i * inner;
    T* d = dst + row * inner;
    for (int64_t j = from; j < to; ++j)
      d[j] = static_cast<T>(static_cast<ComputeType<T>>(d[j]) + static_cast<ComputeType<T>>(s[j]));
  }
}

template <typename T, typename I>
void Add(const KernelContext& ctx, const T* src, const I* index, int64_t n, const IndexRange& r,
         int64_t outer, int64_t inner, T* dst) {
  const int64_t size = static_cast<int64_t>(sizeof(T));
  if (outer == 0 || n == 0) return;
  if (outer > 1) {  // whole slabs are independent
    const int64_t slab = std::max<int64_t>(1, n * inner * size);
    ctx.ParallelFor(
        outer, std::max<int64_t>(1, kParallelBytes / slab), [&](int64_t begin, int64_t end) {
          for (int64_t o = begin; o < end; ++o)
            AddRange(src + o * n * inner, index, n, r, inner, dst + o * r.size * inner, 0, inner);
        });
    return;
  }
  // One slab: its columns are independent, in pieces of whole cache lines.
  const int64_t piece = 64 / size;
  const int64_t pieces = (inner + piece - 1) / piece;
  const int64_t grain = std::max<int64_t>(4, kParallelBytes / std::max<int64_t>(1, n * 64));
  ctx.ParallelFor(pieces, grain, [&](int64_t begin, int64_t end) {
    AddRange(src, index, n, r, inner, dst, begin * piece, std::min(inner, end * piece));
  });
}

}  // namespace

Status CheckIndices(const Tensor& index, const IndexRange& range, const char* slot) {
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(index.dtype(), slot));
  if (range.allow_any) return Status::Ok();
  // One index is what the turn of a loop has.
  if (index.numel() == 1) {
    const int64_t at = IntAt(index, 0);
    if (at >= (range.wrap ? -range.size : 0) && at < range.size) return Status::Ok();
  }
  Status status;
  VisitIndex(index, [&](const auto* p) { status = Check(p, index.numel(), range, slot); });
  return status;
}

void GatherRows(const KernelContext& ctx, const void* src_raw, const Tensor& index,
                const IndexRange& range, int64_t outer, int64_t inner, void* dst_raw) {
  const int64_t n = index.numel(), total = outer * n;
  if (total == 0 || inner == 0) return;
  const auto* src = static_cast<const std::byte*>(src_raw);
  auto* dst = static_cast<std::byte*>(dst_raw);
  if (total == 1 && inner <= kParallelBytes) {
    VisitIndex(index, [&](const auto* p) { GatherRange<0>(src, p, n, range, inner, dst, 0, 1); });
    return;
  }
  const int64_t grain =
      total * inner > kParallelBytes ? std::max<int64_t>(1, kParallelBytes / 2 / inner) : total;
  VisitIndex(index, [&](const auto* p) {
    ctx.ParallelFor(total, grain, [&](int64_t begin, int64_t end) {
      if (inner == 4)
        GatherRange<4>(src, p, n, range, inner, dst, begin, end);
      else if (inner == 8)
        GatherRange<8>(src, p, n, range, inner, dst, begin, end);
      else
        GatherRange<0>(src, p, n, range, inner, dst, begin, end);
    });
  });
}

Status ScatterAddRows(const KernelContext& ctx, const void* src, const Tensor& index,
                      const IndexRange& range, int64_t outer, int64_t inner, DType dtype,
                      void* dst) {
  const bool known =
      VisitDType<float, double, int32_t, int64_t, float16, bfloat16, int16_t, int8_t, uint8_t, bool,
                 std::complex<float>, std::complex<double>>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        VisitIndex(index, [&](const auto* p) {
          Add(ctx, static_cast<const T*>(src), p, index.numel(), range, outer, inner,
              static_cast<T*>(dst));
        });
      });
  return known ? Status::Ok() : Unimplemented("no sum over ", Name(dtype), " tensors");
}

void ScatterRows(const KernelContext&, const void* src_raw, const Tensor& index,
                 const IndexRange& range, int64_t outer, int64_t inner, void* dst_raw) {
  const int64_t n = index.numel();
  const auto* src = static_cast<const std::byte*>(src_raw);
  auto* dst = static_cast<std::byte*>(dst_raw);
  LookMeter meter;
  VisitIndex(index, [&](const auto* p) {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < n; ++i) {
        meter.Did(8 + inner);
        const int64_t row = p[i] < 0 ? p[i] + range.size : p[i];
        CopyRow(dst + (o * range.size + row) * inner, src + (o * n + i) * inner, inner);
      }
  });
}

}  // namespace heddle
