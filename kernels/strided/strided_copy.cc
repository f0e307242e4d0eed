#include "kernels/strided/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/strided/strided_copy_transpose.h"

namespace heddle {
namespace {

constexpr int64_t kParallelBytes = 256 << 10;  // below it one thread is as fast
// A row that is longer is copied in pieces, with a look for interrupts between them.
constexpr int64_t kElementsBetweenLooks = 1 << 17;
constexpr int64_t kRowsBetweenLooks = 1 << 13;  // of a transpose's stripe, a multiple of its tiles

template <typename Fn>
void VisitSize(int64_t bytes, Fn&& fn) {
  switch (bytes) {
    case 1:
      return fn(TypeTag<uint8_t>{});
    case 2:
      return fn(TypeTag<uint16_t>{});
    case 4:
      return fn(TypeTag<uint32_t>{});
    case 8:
      return fn(TypeTag<uint64_t>{});
    default:
      return fn(TypeTag<Bytes16>{});
  }
}

template <typename T>
inline void CopyElements(const std::byte* src, int64_t src_step, std::byte* dst, int64_t dst_step,
                         int64_t n) {
  using Any = Unaligned<T>;
  constexpr int64_t kSize = static_cast<int64_t>(sizeof(T));
  Any* out = reinterpret_cast<Any*>(dst);
  if (dst_step == kSize && src_step == 0) {
    const Any value = *reinterpret_cast<const Any*>(src);
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  } else if (dst_step == kSize) {
    for (int64_t i = 0; i < n; ++i) out[i] = *reinterpret_cast<const Any*>(src + i * src_step);
  } else {
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<Any*>(dst + i * dst_step) =
          *reinterpret_cast<const Any*>(src + i * src_step);
  }
}

}  // namespace

StridedCopy::StridedCopy(size_t element_size, std::span<const CopyDim> in, int64_t src_offset,
                         int64_t dst_offset) {
  src_offset_ = src_offset * static_cast<int64_t>(element_size);
  dst_offset_ = dst_offset * static_cast<int64_t>(element_size);
  Collapse(element_size, in);
  if (outer == 0) return;
  WidenElement();
  ChooseMode();
}

// Drops dimensions of one element and joins neighbours that are one dimension on both sides.
void StridedCopy::Collapse(size_t element_size, std::span<const CopyDim> in) {
  const auto size = static_cast<int64_t>(element_size);
  element_ = size;
  outer = 1;
  for (const CopyDim& d : in) {
    if (d.n == 1) continue;
    if (d.n <= 0) {
      outer = 0;
      return;
    }
    const Dim now{d.n, d.src * size, d.dst * size};
    if (rank_ > 0) {
      Dim& before = dims[rank_ - 1];
      if (before.src == now.src * now.n && before.dst == now.dst * now.n) {
        before = {before.n * now.n, now.src, now.dst};
        continue;
      }
    }
    dims[rank_++] = now;
  }
}

// A contiguous run of 2, 4, 8 or 16 bytes is one element.
void StridedCopy::WidenElement() {
  if (rank_ == 0) return;
  const Dim& last = dims[rank_ - 1];
  const int64_t run = last.n * element_;
  if (last.src == element_ && last.dst == element_ && run <= 16 && (run & (run - 1)) == 0) {
    element_ = run;
    --rank_;
  }
}

void StridedCopy::ChooseMode() {
  if (rank_ == 0) dims[rank_++] = {1, element_, element_};
  const int row = rank_ - 1;
  const bool dst_dense = dims[row].dst == element_;
  if (dst_dense && dims[row].src == element_) {
    mode_ = Mode::kBytes;
  } else {
    mode_ = Mode::kElements;
    for (int i = 0; dst_dense && i < row; ++i)
      if (dims[i].src == element_) {
        mode_ = Mode::kTranspose;  // dims[rank-2]: dense in the source, dims[rank-1]: in the result
        std::rotate(dims.begin() + i, dims.begin() + i + 1, dims.begin() + row);
        break;
      }
  }
  outer_rank = mode_ == Mode::kTranspose ? row - 1 : row;
  for (int i = 0; i < outer_rank; ++i) outer *= dims[i].n;
  int64_t item = dims[row].n * element_;
  if (mode_ == Mode::kTranspose) {
    stripes_ = (dims[row - 1].n + 63) / 64;
    item *= std::min<int64_t>(64, dims[row - 1].n);
  }
  units_ = outer * stripes_;
  // One long row is cut as well.
  if (mode_ == Mode::kBytes && units_ == 1) {
    units_ = item;
    item = 1;
  }
  unit_bytes_ = item;
}

// fn(src, dst) for outer items [begin, end).
template <typename Fn>
void StridedCopy::ForEachOuter(int64_t begin, int64_t end, const std::byte* src, std::byte* dst,
                               Fn&& fn) const {
  std::array<int64_t, kMaxDims> at;
  int64_t rest = begin;
  for (int i = outer_rank - 1; i >= 0; --i) {
    at[i] = rest % dims[i].n;
    rest /= dims[i].n;
    src += at[i] * dims[i].src;
    dst += at[i] * dims[i].dst;
  }
  for (int64_t k = begin;;) {
    fn(src, dst);
    if (++k >= end) return;
    for (int i = outer_rank - 1; i >= 0; --i) {
      const Dim& d = dims[i];
      src += d.src;
      dst += d.dst;
      if (++at[i] < d.n) break;
      at[i] = 0;
      src -= d.src * d.n;
      dst -= d.dst * d.n;
    }
  }
}

void StridedCopy::RunBytes(int64_t begin, int64_t end, const std::byte* src, std::byte* dst) const {
  const int64_t bytes = dims[outer_rank].n * element_;
  ForEachOuter(begin, end, src, dst, [bytes](const std::byte* s, std::byte* d) {
    if (bytes > kWatchedBytes) [[unlikely]]
      return WatchedMemcpy(d, s, static_cast<size_t>(bytes));
    CopyRow(d, s, bytes);
  });
}

void StridedCopy::RunElements(int64_t begin, int64_t end, const std::byte* src,
                              std::byte* dst) const {
  const Dim row = dims[outer_rank];
  VisitSize(element_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ForEachOuter(begin, end, src, dst, [row](const std::byte* s, std::byte* d) {
      if (row.n <= kElementsBetweenLooks) [[likely]]
        return CopyElements<T>(s, row.src, d, row.dst, row.n);
      for (const auto [from, to] : Stretches(row.n, kElementsBetweenLooks))
        CopyElements<T>(s + from * row.src, row.src, d + from * row.dst, row.dst, to - from);
    });
  });
}

// Units are stripes of 64 destination rows, so that one large matrix can be shared out.
void StridedCopy::RunTranspose(int64_t begin, int64_t end, const std::byte* src,
                               std::byte* dst) const {
  const Dim& rows = dims[outer_rank + 1];  // dense in the destination
  const Dim& cols = dims[outer_rank];      // dense in the source
  VisitSize(element_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t unit = begin;
    ForEachOuter(begin / stripes_, (end + stripes_ - 1) / stripes_, src, dst,
                 [&](const std::byte* s, std::byte* d) {
                   const int64_t item = unit / stripes_ * stripes_;
                   const int64_t from = (unit - item) * 64;
                   const int64_t to =
                       std::min(cols.n, (std::min(end, item + stripes_) - item) * 64);
                   for (const auto [top, bottom] : Stretches(rows.n, kRowsBetweenLooks))
                     TransposeMatrix<T>(s + from * element_ + top * rows.src, rows.src,
                                        d + from * cols.dst + top * rows.dst, cols.dst,
                                        bottom - top, to - from);
                   unit = item + stripes_;
                 });
  });
}

void StridedCopy::Run(const KernelContext& ctx, const void* src_raw, void* dst_raw) const {
  if (outer == 0) return;
  const auto* src = static_cast<const std::byte*>(src_raw) + src_offset_;
  auto* dst = static_cast<std::byte*>(dst_raw) + dst_offset_;
  const bool parallel = units_ * unit_bytes_ > kParallelBytes;
  const int64_t grain = parallel ? std::max<int64_t>(1, kParallelBytes / 2 / unit_bytes_) : units_;
  const bool one_row = mode_ == Mode::kBytes && outer == 1;
  ctx.ParallelFor(units_, grain, [&](int64_t begin, int64_t end) {
    if (one_row)
      std::memcpy(dst + begin, src + begin, static_cast<size_t>(end - begin));
    else if (mode_ == Mode::kBytes)
      RunBytes(begin, end, src, dst);
    else if (mode_ == Mode::kElements)
      RunElements(begin, end, src, dst);
    else
      RunTranspose(begin, end, src, dst);
  });
}

StridedCopy PermuteCopy(size_t element_size, const Shape& in, std::span<const int> perm) {
  const auto strides = RowMajorStrides(in);
  std::array<CopyDim, Shape::kMaxRank> dims;
  const int rank = static_cast<int>(perm.size());
  int64_t dst = 1;
  for (int k = rank - 1; k >= 0; --k) {
    dims[k] = {in[perm[k]], strides[perm[k]], dst};
    dst *= in[perm[k]];
  }
  return StridedCopy(element_size, std::span(dims.data(), static_cast<size_t>(rank)));
}

namespace {

// Few pieces, none of them so large that an interrupt would be noticed late.
int64_t GrainOf(int64_t bytes) {
  constexpr int64_t kMostBytes = 1 << 20;
  return std::min(std::max(kParallelBytes / 2, bytes / 64), kMostBytes);
}

}  // namespace

void CopyBytes(const KernelContext& ctx, const void* src, void* dst, size_t bytes) {
  if (bytes == 0 || src == dst) return;
  const auto n = static_cast<int64_t>(bytes);
  ctx.ParallelFor(n, GrainOf(n), [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<std::byte*>(dst) + begin, static_cast<const std::byte*>(src) + begin,
                static_cast<size_t>(end - begin));
  });
}

void CopyRows(const KernelContext& ctx, const void* src_raw, int64_t src_step, void* dst_raw,
              int64_t dst_step, int64_t rows, int64_t bytes) {
  if (rows <= 0 || bytes <= 0) return;
  if (rows == 1 && src_raw == dst_raw) return;  // a piece computed in its place in the whole
  const auto* src = static_cast<const std::byte*>(src_raw);
  auto* dst = static_cast<std::byte*>(dst_raw);
  if (rows < 4 && bytes > kParallelBytes) {  // few long rows: each is shared out
    for (int64_t r = 0; r < rows; ++r)
      CopyBytes(ctx, src + r * src_step, dst + r * dst_step, static_cast<size_t>(bytes));
    return;
  }
  const int64_t grain =
      rows * bytes > kParallelBytes ? std::max<int64_t>(1, kParallelBytes / 2 / bytes) : rows;
  ctx.ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    if (bytes == 4) {
      for (int64_t r = begin; r < end; ++r) std::memcpy(dst + r * dst_step, src + r * src_step, 4);
    } else if (bytes == 8) {
      for (int64_t r = begin; r < end; ++r) std::memcpy(dst + r * dst_step, src + r * src_step, 8);
    } else {
      for (int64_t r = begin; r < end; ++r) {
        if (bytes > kWatchedBytes) [[unlikely]]
          WatchedMemcpy(dst + r * dst_step, src + r * src_step, static_cast<size_t>(bytes));
        else
          CopyRow(dst + r * dst_step, src + r * src_step, bytes);
      }
    }
  });
}

void ZeroBytes(const KernelContext& ctx, void* dst, size_t bytes) {
  if (bytes == 0) return;
  const auto n = static_cast<int64_t>(bytes);
  ctx.ParallelFor(n, GrainOf(n), [&](int64_t begin, int64_t end) {
    std::memset(static_cast<std::byte*>(dst) + begin, 0, static_cast<size_t>(end - begin));
  });
}

const Tensor& Apart(const KernelContext& ctx, const Tensor& t, const Tensor& out, Tensor* copy) {
  if (t.raw() != out.raw()) return t;
  *copy = ctx.Scratch(t.dtype(), t.shape());
  CopyBytes(ctx, t.raw(), copy->mutable_raw(), t.bytes());
  return *copy;
}

Status CopyFirst(KernelContext& ctx) {
  const BoundOp& op = ctx.op();
  const Value* in = op.in.empty() || op.in[0] == kNoSlot ? nullptr : ctx.frame()[op.in[0]];
  Value* out = op.out.empty() || op.out[0] == kNoSlot ? nullptr : ctx.frame()[op.out[0]];
  if (in == nullptr || out == nullptr || !in->is_tensor())
    return InvalidArgument("the operator needs an input and an output tensor");
  if (in->tensor().bytes() != out->tensor().bytes())
    return InvalidArgument("the input of shape ", in->tensor().shape().ToString(),
                           " has not as many elements as the output of shape ",
                           out->tensor().shape().ToString());
  CopyBytes(ctx, in->tensor().raw(), out->tensor().mutable_raw(), out->tensor().bytes());
  return Status::Ok();
}

}  // namespace heddle
