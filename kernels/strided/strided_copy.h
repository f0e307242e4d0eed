// Copies between two strided N-D views of the same shape: the engine behind transposes, slices,
// concatenation, broadcasting copies, flips and block rearrangements.
#pragma once

#include <array>
#include <span>

#include "core/kernel_context.h"
#include "kernels/simd/vector.h"

namespace heddle {

// One dimension of a copy; strides in elements, negative or zero allowed (zero only in the source).
struct CopyDim {
  int64_t n, src, dst;
};

// A copy with its dimensions collapsed and the way to run it chosen. Immutable once built; building
// one allocates nothing. Elements of the destination must not overlap.
class StridedCopy {
 public:
  static constexpr int kMaxDims = 2 * Shape::kMaxRank;

  StridedCopy() = default;
  // `dims` are outermost first, best in the order of the destination's memory. Offsets (elements)
  // say where the first element lies.
  StridedCopy(size_t element_size, std::span<const CopyDim> dims, int64_t src_offset = 0,
              int64_t dst_offset = 0);

  void Run(const KernelContext& ctx, const void* src, void* dst) const;

  struct Dim {
    int64_t n, src, dst;  // strides in bytes
  };
  // The collapsed form, for the routines that run it.
  int outer_rank = 0;              // dims[0, outer_rank) are looped over
  std::array<Dim, kMaxDims> dims;  // then: the row, or the two dimensions of a transpose
  int64_t outer = 0;               // product of the outer dimensions; 0: nothing to copy

 private:
  enum class Mode : uint8_t { kBytes, kElements, kTranspose };
  void Collapse(size_t element_size, std::span<const CopyDim> dims);
  void WidenElement();
  void ChooseMode();
  template <typename Fn>
  void ForEachOuter(int64_t begin, int64_t end, const std::byte* src, std::byte* dst,
                    Fn&& fn) const;
  void RunBytes(int64_t begin, int64_t end, const std::byte* src, std::byte* dst) const;
  void RunElements(int64_t begin, int64_t end, const std::byte* src, std::byte* dst) const;
  void RunTranspose(int64_t begin, int64_t end, const std::byte* src, std::byte* dst) const;

  Mode mode_ = Mode::kBytes;
  int rank_ = 0;
  int64_t element_ = 0;  // bytes moved as one
  int64_t src_offset_ = 0, dst_offset_ = 0;
  int64_t units_ = 0, unit_bytes_ = 0;  // what a parallel run is divided by
  int64_t stripes_ = 1;                 // units per outer item (transposes)
};

// Prepared state of an operator that is one copy.
struct CopyState : KernelState {
  explicit CopyState(const StridedCopy& c) : copy(c) {}
  StridedCopy copy;
};

// Row-major strides of `shape`.
inline std::array<int64_t, Shape::kMaxRank> RowMajorStrides(const Shape& shape) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

// out[i...] = in[permuted i...], axis `perm[k]` of `in` becoming axis k of `out`.
StridedCopy PermuteCopy(size_t element_size, const Shape& in, std::span<const int> perm);

// A copy of `bytes` bytes, over several threads when it is long.
void CopyBytes(const KernelContext& ctx, const void* src, void* dst, size_t bytes);
// Zeroes `bytes` bytes likewise.
void ZeroBytes(const KernelContext& ctx, void* dst, size_t bytes);
// Copies `rows` rows of `bytes` bytes each; steps are the bytes from one row to the next.
void CopyRows(const KernelContext& ctx, const void* src, int64_t src_step, void* dst,
              int64_t dst_step, int64_t rows, int64_t bytes);
// `t`, or a copy of it (kept in *copy) when it lies where `out` does: for operators that may work
// in place and read another operand after they began to write.
const Tensor& Apart(const KernelContext& ctx, const Tensor& t, const Tensor& out, Tensor* copy);
// The kernel of views: copies the first variable of the first input slot to the first output.
Status CopyFirst(KernelContext& ctx);

// memcpy for rows that are mostly short: saves the call.
inline void CopyRow(std::byte* dst, const std::byte* src, int64_t bytes) {
  using Vec = simd::UnalignedVectorOf<int64_t, 32>;
  if (bytes > 512 || bytes < 32) {
    std::memcpy(dst, src, static_cast<size_t>(bytes));
    return;
  }
  int64_t at = 0;
  for (; at + 32 <= bytes; at += 32)
    *reinterpret_cast<Vec*>(dst + at) = *reinterpret_cast<const Vec*>(src + at);
  if (at < bytes)  // the last 32 bytes once more: cheaper than a tail of odd length
    *reinterpret_cast<Vec*>(dst + bytes - 32) = *reinterpret_cast<const Vec*>(src + bytes - 32);
}

}  // namespace heddle
