// Transposes of one matrix with strided rows, by blocks that fit registers and cache lines.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle {

struct Bytes16 {
  uint64_t lo, hi;
};
// A T that may lie at any address: runs of small elements are moved as one larger element.
template <typename T>
struct __attribute__((packed, may_alias)) Unaligned {
  T value;
};

// dst[j][i] = src[i][j] for i < rows, j < cols. `src_row` and `dst_row` are the bytes from one row
// to the next; within a row elements lie side by side. T only gives the element's size.
template <typename T>
void TransposeMatrix(const std::byte* src, int64_t src_row, std::byte* dst, int64_t dst_row,
                     int64_t rows, int64_t cols);

extern template void TransposeMatrix<uint8_t>(const std::byte*, int64_t, std::byte*, int64_t,
                                              int64_t, int64_t);
extern template void TransposeMatrix<uint16_t>(const std::byte*, int64_t, std::byte*, int64_t,
                                               int64_t, int64_t);
extern template void TransposeMatrix<uint32_t>(const std::byte*, int64_t, std::byte*, int64_t,
                                               int64_t, int64_t);
extern template void TransposeMatrix<uint64_t>(const std::byte*, int64_t, std::byte*, int64_t,
                                               int64_t, int64_t);
extern template void TransposeMatrix<Bytes16>(const std::byte*, int64_t, std::byte*, int64_t,
                                              int64_t, int64_t);

}  // namespace heddle
