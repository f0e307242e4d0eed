// A constant matrix B [k, n] of integers of 2, 4 or 8 bits with scales and zero points, packed into
// panels (kernels/simd/integers/nbits.h), and products with it: B is never held as floats.
//
// Ownership: packed copies are shared through the plans' cache. Threads: runners are immutable, Run
// is re-entrant. Errors: operands that do not fit, in one sentence each.
#pragma once

#include <memory>
#include <optional>

#include "kernels/gemm/gemm_matmul.h"
#include "kernels/simd/integers/nbits.h"
#include "kernels/simd/microkernels.h"

namespace heddle {

// How the integers lie in a tensor of uint8 or int8.
enum class NbitForm {
  kFields,   // several to a byte, the lowest bits first: columns, each in whole blocks
  kColumns,  // one to a byte, [n, k]
  kRows,     // one to a byte, [k, n]
};

// B as it is given. Each block of `block` rows has a scale, and a zero point, for each column:
// [n, blocks], of kRows [blocks, n]. There may be one scale for all.
struct NbitMatrix {
  int64_t k = 0, n = 0;
  int bits = 8;
  int64_t block = 0;  // at least 1
  NbitForm form = NbitForm::kFields;
  bool is_signed = false;        // elements of int8
  bool has_zero = false;         // else it is 0, of kFields half the range
  DType zero_type = DType::kU8;  // like the elements (of kFields in fields, whole bytes for each
                                 // column), or float32

  int64_t blocks() const { return (k + block - 1) / block; }
  Status Check(const Shape& w, const Shape& scale, const Shape* zero) const;
};

// The packed matrix: for each panel and each of its blocks the scales, the zero points if there are
// any, and the rows.
struct NbitColumns {
  static constexpr const char* kName = "panels_nbits";
  static constexpr int64_t kGroup = 128, kRoom = kGroup * 2 * 16;
  static constexpr int64_t kCacheBytes = 1 << 20;  // more rows, since each pass converts B again
  static constexpr bool kInBlocks = true, kReadsB = false;

  NbitColumns(const NbitMatrix& matrix, const simd::NbitKernels& kernels);
  int64_t bytes() const { return panels() * PanelBytes(); }
  int64_t panels() const { return (n + width() - 1) / width(); }
  int64_t width() const { return 2 * kernels->lanes; }

  // See gemm_columns.h.
  const float* Block(const simd::Microkernels& micro, const GemmDims& d, const float* b,
                     int64_t column, int64_t begin, float* room) const;

  enum class Zeros { kNone, kBytes, kFloats };
  int64_t BlockBytes(int64_t rows) const;
  int64_t PanelBytes() const;
  // The block that begins at row b * block of a panel. `room` has space for zero points.
  simd::NbitRows RowsOf(int64_t panel, int64_t b, float* room) const;

  int64_t k, n, block;
  int bits;
  Zeros zeros;
  const simd::NbitKernels* kernels;
  const std::byte* data = nullptr;
  BufferRef memory = {};  // of a constant
};

// A product with a constant B, whose bias is in the epilogue: the only part of it that may be used.
Result<std::unique_ptr<GemmRunner>> MakeNbitGemm(const PrepareContext& ctx, int64_t m,
                                                 const NbitMatrix& matrix, const Tensor& w,
                                                 const Tensor& scale, const Tensor* zero,
                                                 bool bias);
// The same for a B of this run. Takes no memory of the heap.
Status RunNbitGemm(const KernelContext& ctx, int64_t m, const NbitMatrix& matrix, const Tensor& w,
                   const Tensor& scale, const Tensor* zero, const float* a, const float* bias,
                   float* c);

// Panels converted to floats one block at a time (gemm_panels.cc), for many rows.
std::unique_ptr<GemmRunner> MakeNbitPanels(const BatchedGemm& g,
                                           std::shared_ptr<const NbitColumns> packed,
                                           const Epilogue& epilogue);

}  // namespace heddle
