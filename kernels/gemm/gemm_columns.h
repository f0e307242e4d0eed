// Matrix B [k, n] packed for gemm_panels.cc: panels two vectors wide; the last one is one or two
// vectors wide.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/gemm/gemm.h"
#include "kernels/simd/microkernels.h"

namespace heddle {

// Width of the panel that starts at `column`.
inline int64_t PanelWidth(const GemmDims& d, int64_t lanes, int64_t column) {
  return d.n - column > lanes ? 2 * lanes : lanes;
}

// B as floats: [panel][k][column]. Immutable once packed.
struct FloatColumns {
  static constexpr const char* kName = "panels";
  static constexpr int kPackingVersion = 1;  // see PackOnce
  static constexpr int64_t kRoom = 1;        // floats that Block needs
  // Bytes of A that are multiplied with one panel after another.
  static constexpr int64_t kCacheBytes = 256 << 10;
  static constexpr bool kInBlocks = false;  // of kGroup rows
  static constexpr int64_t kGroup = 0;
  static constexpr bool kReadsB = false;  // whether the B of a run is read
  // The columns of a panel from row `begin` on, [row][column].
  const float* Block(const simd::Microkernels& kernels, const GemmDims& d, const float* /*b*/,
                     int64_t column, int64_t begin, float* /*room*/) const {
    return static_cast<const float*>(memory->data()) + column * d.k +
           begin * PanelWidth(d, kernels.lanes, column);
  }
  BufferRef memory;
};

// B as integers in [-127, 127] times a factor that 128 consecutive elements of a column share:
// [panel][group of rows]([factor of a column], [row][column]). The error of an element is at most
// 1/254 of the largest of its group. A group with a NaN gives NaN.
struct Int8Columns {
  static constexpr const char* kName = "panels_int8";
  static constexpr int kPackingVersion = 1;  // see PackOnce
  static constexpr int64_t kGroup = 128, kRoom = kGroup * 2 * 16;
  static constexpr int64_t kCacheBytes = 1 << 20;  // more rows, since each pass converts B again
  static constexpr bool kInBlocks = true, kReadsB = false;
  static int64_t GroupBytes(int64_t rows, int64_t width) {
    return width * (static_cast<int64_t>(sizeof(float)) + rows);
  }
  static int64_t PanelBytes(int64_t k, int64_t width) {
    const int64_t groups = (k + kGroup - 1) / kGroup;
    return width * (groups * static_cast<int64_t>(sizeof(float)) + k);
  }
  // Writes the columns to `room` as floats.
  const float* Block(const simd::Microkernels& kernels, const GemmDims& d, const float* b,
                     int64_t column, int64_t begin, float* room) const;
  BufferRef memory;
};

// B that varies from run to run: packed on demand, multiplied by alpha.
struct FreshColumns {
  static constexpr const char* kName = "panels_variable";
  static constexpr int64_t kGroup = 128, kRoom = kGroup * 2 * 16;
  static constexpr int64_t kCacheBytes = 1 << 20;  // more rows, since each pass packs B again
  static constexpr bool kInBlocks = true, kReadsB = true;
  const float* Block(const simd::Microkernels& kernels, const GemmDims& d, const float* b,
                     int64_t column, int64_t begin, float* room) const;
  float alpha;
};

// Packs B; shared through the plans' cache, read part by part. Throws std::bad_alloc.
std::shared_ptr<const FloatColumns> PackFloatColumns(const PrepareContext& ctx, const Tensor& b,
                                                     const GemmDims& d, int64_t lanes);
// The same for alpha * B.
std::shared_ptr<const Int8Columns> PackInt8Columns(const PrepareContext& ctx, const Tensor& b,
                                                   const GemmDims& d, int64_t lanes, float alpha);

}  // namespace heddle
