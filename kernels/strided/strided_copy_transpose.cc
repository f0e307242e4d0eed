#include "kernels/strided/strided_copy_transpose.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/simd/vector.h"

namespace heddle {
namespace {

using V8 = simd::VectorOf<uint32_t, 32>;
using V8u = simd::UnalignedVectorOf<uint32_t, 32>;
using V4 = simd::VectorOf<uint64_t, 32>;
using V4u = simd::UnalignedVectorOf<uint64_t, 32>;

// Eight rows of eight 32-bit elements.
inline void Block8x8(const std::byte* src, int64_t src_row, std::byte* dst, int64_t dst_row) {
  V8 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = *reinterpret_cast<const V8u*>(src + i * src_row);
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    t[2 * i + 1] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int h = 0; h < 2; ++h) {
    const int b = 4 * h;
    r[b] = __builtin_shufflevector(t[b], t[b + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    r[b + 1] = __builtin_shufflevector(t[b], t[b + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    r[b + 2] = __builtin_shufflevector(t[b + 1], t[b + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    r[b + 3] = __builtin_shufflevector(t[b + 1], t[b + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < 4; ++i) {
    *reinterpret_cast<V8u*>(dst + i * dst_row) =
        __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    *reinterpret_cast<V8u*>(dst + (i + 4) * dst_row) =
        __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// Four rows of four 64-bit elements.
inline void Block4x4(const std::byte* src, int64_t src_row, std::byte* dst, int64_t dst_row) {
  V4 r[4], t[4];
  for (int i = 0; i < 4; ++i) r[i] = *reinterpret_cast<const V4u*>(src + i * src_row);
  t[0] = __builtin_shufflevector(r[0], r[1], 0, 4, 2, 6);
  t[1] = __builtin_shufflevector(r[0], r[1], 1, 5, 3, 7);
  t[2] = __builtin_shufflevector(r[2], r[3], 0, 4, 2, 6);
  t[3] = __builtin_shufflevector(r[2], r[3], 1, 5, 3, 7);
  for (int i = 0; i < 2; ++i) {
    *reinterpret_cast<V4u*>(dst + i * dst_row) =
        __builtin_shufflevector(t[i], t[i + 2], 0, 1, 4, 5);
    *reinterpret_cast<V4u*>(dst + (i + 2) * dst_row) =
        __builtin_shufflevector(t[i], t[i + 2], 2, 3, 6, 7);
  }
}

template <typename T>
inline void Scalars(const std::byte* src, int64_t src_row, std::byte* dst, int64_t dst_row,
                    int64_t rows, int64_t cols) {
  using Any = Unaligned<T>;
  constexpr int64_t kSize = static_cast<int64_t>(sizeof(T));
  if (rows < 8) {
    for (int64_t i = 0; i < rows; ++i) {
      const Any* in = reinterpret_cast<const Any*>(src + i * src_row);
      std::byte* out = dst + i * kSize;
      for (int64_t j = 0; j < cols; ++j) *reinterpret_cast<Any*>(out + j * dst_row) = in[j];
    }
    return;
  }
  for (int64_t j = 0; j < cols; ++j) {
    Any* out = reinterpret_cast<Any*>(dst + j * dst_row);
    const std::byte* in = src + j * kSize;
    for (int64_t i = 0; i < rows; ++i) out[i] = *reinterpret_cast<const Any*>(in + i * src_row);
  }
}

// A tile of at most kTile × kTile elements: rows of one cache line where blocks are fast, so that
// large powers of two as strides do not throw lines out before they are full.
template <typename T>
inline void Tile(const std::byte* src, int64_t src_row, std::byte* dst, int64_t dst_row,
                 int64_t rows, int64_t cols) {
  constexpr int64_t kBlock = sizeof(T) == 4 ? 8 : 4;
  constexpr int64_t kSize = static_cast<int64_t>(sizeof(T));
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    const int64_t full_rows = rows - rows % kBlock, full_cols = cols - cols % kBlock;
    for (int64_t j = 0; j < full_cols; j += kBlock)
      for (int64_t i = 0; i < full_rows; i += kBlock) {
        const std::byte* s = src + i * src_row + j * kSize;
        std::byte* d = dst + j * dst_row + i * kSize;
        if constexpr (sizeof(T) == 4)
          Block8x8(s, src_row, d, dst_row);
        else
          Block4x4(s, src_row, d, dst_row);
      }
    if (full_rows < rows)
      Scalars<T>(src + full_rows * src_row, src_row, dst + full_rows * kSize, dst_row,
                 rows - full_rows, full_cols);
    if (full_cols < cols)
      Scalars<T>(src + full_cols * kSize, src_row, dst + full_cols * dst_row, dst_row, rows,
                 cols - full_cols);
  } else {
    Scalars<T>(src, src_row, dst, dst_row, rows, cols);
  }
}

// Two rows of 32-bit elements to pairs.
inline void Pairs(const std::byte* src, int64_t src_row, std::byte* dst, int64_t cols) {
  const std::byte *a = src, *b = src + src_row;
  int64_t j = 0;
  for (; j + 8 <= cols; j += 8, a += 32, b += 32, dst += 64) {
    const V8 x = *reinterpret_cast<const V8u*>(a), y = *reinterpret_cast<const V8u*>(b);
    const V8 low = __builtin_shufflevector(x, y, 0, 8, 1, 9, 4, 12, 5, 13);
    const V8 high = __builtin_shufflevector(x, y, 2, 10, 3, 11, 6, 14, 7, 15);
    V8u* to = reinterpret_cast<V8u*>(dst);
    to[0] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11);
    to[1] = __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (; j < cols; ++j, a += 4, b += 4, dst += 8) {
    std::memcpy(dst, a, 4);
    std::memcpy(dst + 4, b, 4);
  }
}

// Three rows of 32-bit elements to triples, as of an image with three channels.
inline void Triples(const std::byte* src, int64_t src_row, std::byte* dst, int64_t cols) {
  const std::byte *a = src, *b = src + src_row, *c = src + 2 * src_row;
  int64_t j = 0;
  for (; j + 8 <= cols; j += 8, a += 32, b += 32, c += 32, dst += 96) {
    const V8 x = *reinterpret_cast<const V8u*>(a), y = *reinterpret_cast<const V8u*>(b),
             z = *reinterpret_cast<const V8u*>(c);
    // Each element where it belongs in one of the three results, then those of two rows, of three.
    const V8 x0 = __builtin_shufflevector(x, x, 0, 0, 0, 1, 1, 1, 2, 2);
    const V8 y0 = __builtin_shufflevector(y, y, 0, 0, 0, 1, 1, 1, 2, 2);
    const V8 z0 = __builtin_shufflevector(z, z, 0, 0, 0, 1, 1, 1, 2, 2);
    const V8 x1 = __builtin_shufflevector(x, x, 2, 3, 3, 3, 4, 4, 4, 5);
    const V8 y1 = __builtin_shufflevector(y, y, 2, 3, 3, 3, 4, 4, 4, 5);
    const V8 z1 = __builtin_shufflevector(z, z, 2, 2, 3, 3, 3, 4, 4, 4);
    const V8 x2 = __builtin_shufflevector(x, x, 5, 5, 6, 6, 6, 7, 7, 7);
    const V8 y2 = __builtin_shufflevector(y, y, 5, 5, 5, 6, 6, 6, 7, 7);
    const V8 z2 = __builtin_shufflevector(z, z, 5, 5, 5, 6, 6, 6, 7, 7);
    const V8 xy0 = __builtin_shufflevector(x0, y0, 0, 9, 2, 3, 12, 5, 6, 15);
    const V8 xy1 = __builtin_shufflevector(x1, y1, 0, 1, 10, 3, 4, 13, 6, 7);
    const V8 xy2 = __builtin_shufflevector(x2, y2, 8, 1, 2, 11, 4, 5, 14, 7);
    V8u* to = reinterpret_cast<V8u*>(dst);
    to[0] = __builtin_shufflevector(xy0, z0, 0, 1, 10, 3, 4, 13, 6, 7);
    to[1] = __builtin_shufflevector(xy1, z1, 8, 1, 2, 11, 4, 5, 14, 7);
    to[2] = __builtin_shufflevector(xy2, z2, 0, 9, 2, 3, 12, 5, 6, 15);
  }
  for (; j < cols; ++j, a += 4, b += 4, c += 4, dst += 12) {
    std::memcpy(dst, a, 4);
    std::memcpy(dst + 4, b, 4);
    std::memcpy(dst + 8, c, 4);
  }
}

}  // namespace

template <typename T>
void TransposeMatrix(const std::byte* src, int64_t src_row, std::byte* dst, int64_t dst_row,
                     int64_t rows, int64_t cols) {
  constexpr int64_t kTile = sizeof(T) >= 8 ? 8 : sizeof(T) == 4 ? 16 : 64;
  constexpr int64_t kSize = static_cast<int64_t>(sizeof(T));
  if (sizeof(T) == 4 && rows == 2 && dst_row == 8) return Pairs(src, src_row, dst, cols);
  if (sizeof(T) == 4 && rows == 3 && dst_row == 12) return Triples(src, src_row, dst, cols);
  for (int64_t j = 0; j < cols; j += kTile)
    for (int64_t i = 0; i < rows; i += kTile)
      Tile<T>(src + i * src_row + j * kSize, src_row, dst + j * dst_row + i * kSize, dst_row,
              std::min(kTile, rows - i), std::min(kTile, cols - j));
}

template void TransposeMatrix<uint8_t>(const std::byte*, int64_t, std::byte*, int64_t, int64_t,
                                       int64_t);
template void TransposeMatrix<uint16_t>(const std::byte*, int64_t, std::byte*, int64_t, int64_t,
                                        int64_t);
template void TransposeMatrix<uint32_t>(const std::byte*, int64_t, std::byte*, int64_t, int64_t,
                                        int64_t);
template void TransposeMatrix<uint64_t>(const std::byte*, int64_t, std::byte*, int64_t, int64_t,
                                        int64_t);
template void TransposeMatrix<Bytes16>(const std::byte*, int64_t, std::byte*, int64_t, int64_t,
                                       int64_t);

}  // namespace heddle
