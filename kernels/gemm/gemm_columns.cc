#include "kernels/gemm/gemm_columns.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/base/ceil_div.h"
#include "kernels/gemm/pack_once.h"

namespace heddle {
namespace {

void PackFloats(const PrepareContext& ctx, const Tensor& b, const GemmDims& d, int64_t lanes,
                FloatColumns* packed) {
  const int64_t width = CeilDiv(d.n, lanes) * lanes;
  packed->memory = PackMemory(ctx, static_cast<size_t>(width * d.k) * sizeof(float));
  float* to = static_cast<float*>(packed->memory->data());
  // Rows in memory order, some at a time: columns of B if it is transposed.
  const int64_t rows = d.trans_b ? d.n : d.k, length = d.trans_b ? d.k : d.n;
  const int64_t part = std::max<int64_t>(1, kPackBytes / (4 * d.ldb));
  BorrowedStretches source(b);
  for (int64_t begin = 0; begin < rows; begin += part) {
    const int64_t end = std::min(begin + part, rows);
    const float* from =
        source.Read(begin * d.ldb, (end - begin - 1) * d.ldb + length).data<float>();
    for (int64_t first = 0; first < width; first += 2 * lanes) {
      const int64_t panel = std::min(2 * lanes, width - first);
      float* panel_to = to + first * d.k;
      if (d.trans_b) {
        for (int64_t n = std::max(first, begin); n < std::min(first + panel, end); ++n)
          for (int64_t k = 0; k < d.k; ++k)
            panel_to[k * panel + n - first] = from[(n - begin) * d.ldb + k];
      } else {
        for (int64_t k = begin; k < end; ++k)
          for (int64_t n = first; n < std::min(first + panel, d.n); ++n)
            panel_to[k * panel + n - first] = from[(k - begin) * d.ldb + n];
      }
    }
  }
  for (int64_t first = d.n / (2 * lanes) * 2 * lanes; first < width; first += 2 * lanes) {
    const int64_t panel = std::min(2 * lanes, width - first);
    for (int64_t k = 0; k < d.k; ++k)
      for (int64_t n = d.n; n < first + panel; ++n) to[first * d.k + k * panel + n - first] = 0.f;
  }
}

class Int8Packer {
 public:
  Int8Packer(const GemmDims& d, int64_t lanes, float alpha, std::byte* to)
      : d_(d), lanes_(lanes), alpha_(alpha), to_(to) {}

  void Pack(const Tensor& b) {
    // Reads whole groups: groups of rows of B, or whole columns if it is transposed.
    const int64_t rows = d_.trans_b ? d_.n : d_.k, length = d_.trans_b ? d_.k : d_.n;
    const int64_t unit = d_.trans_b ? 2 * lanes_ : Int8Columns::kGroup;
    const int64_t part = std::max<int64_t>(1, kPackBytes / (4 * d_.ldb * unit)) * unit;
    BorrowedStretches source(b);
    for (int64_t begin = 0; begin < rows; begin += part) {
      const int64_t end = std::min(begin + part, rows);
      const float* from =
          source.Read(begin * d_.ldb, (end - begin - 1) * d_.ldb + length).data<float>();
      const int64_t first = d_.trans_b ? begin : 0, last = d_.trans_b ? end : d_.n;
      const int64_t top = d_.trans_b ? 0 : begin, bottom = d_.trans_b ? d_.k : end;
      for (int64_t column = first; column < last; column += 2 * lanes_)
        for (int64_t k = top; k < bottom; k += Int8Columns::kGroup)
          Group(from, column, k, std::min(Int8Columns::kGroup, bottom - k), column - first,
                k - top);
    }
  }

 private:
  // Rows [k, k + rows) of a panel; they start at (x, y) of the part in memory.
  void Group(const float* from, int64_t column, int64_t k, int64_t rows, int64_t x, int64_t y) {
    const int64_t width = PanelWidth(d_, lanes_, column), used = std::min(width, d_.n - column);
    values_.assign(static_cast<size_t>(rows * width), 0.f);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < used; ++c)
        values_[static_cast<size_t>(r * width + c)] =
            d_.trans_b ? from[(x + c) * d_.ldb + y + r] : from[(y + r) * d_.ldb + x + c];
    std::byte* to = to_ + column / (2 * lanes_) * Int8Columns::PanelBytes(d_.k, 2 * lanes_) +
                    k / Int8Columns::kGroup * Int8Columns::GroupBytes(Int8Columns::kGroup, width);
    auto* q = reinterpret_cast<int8_t*>(to) + width * static_cast<int64_t>(sizeof(float));
    for (int64_t c = 0; c < width; ++c) {
      float largest = 0;
      bool numbers = true;
      for (int64_t r = 0; r < rows; ++r) {
        const float v = std::fabs(values_[static_cast<size_t>(r * width + c)]);
        numbers &= v <= std::numeric_limits<float>::max();
        largest = std::max(largest, v);
      }
      const float step = numbers ? largest / 127 : std::numeric_limits<float>::quiet_NaN();
      const float per_step = step > 0 ? 1 / step : 0;
      for (int64_t r = 0; r < rows; ++r) {
        const float v = values_[static_cast<size_t>(r * width + c)] * per_step;
        q[r * width + c] =
            numbers ? static_cast<int8_t>(std::clamp(v, -127.f, 127.f) + (v < 0 ? -.5f : .5f))
                    : int8_t{1};
      }
      const float factor = step * alpha_;
      std::memcpy(to + c * static_cast<int64_t>(sizeof(float)), &factor, sizeof(float));
    }
  }

  const GemmDims& d_;
  const int64_t lanes_;
  const float alpha_;
  std::byte* to_;
  std::vector<float> values_;  // of a group
};

std::string KeyOf(const char* kind, const GemmDims& d, int64_t lanes) {
  return StrCat(kind, lanes, d.trans_b ? " of rows" : "", " ", d.k, "x", d.n, " ", d.ldb);
}

}  // namespace

const float* Int8Columns::Block(const simd::Microkernels& kernels, const GemmDims& d,
                                const float* /*b*/, int64_t column, int64_t begin,
                                float* room) const {
  const int64_t width = PanelWidth(d, kernels.lanes, column);
  const auto* from = static_cast<const std::byte*>(memory->data()) +
                     column / (2 * kernels.lanes) * PanelBytes(d.k, 2 * kernels.lanes) +
                     begin / kGroup * GroupBytes(kGroup, width);
  const auto* factors = reinterpret_cast<const float*>(from);
  kernels.widen_int8(std::min(kGroup, d.k - begin), static_cast<int>(width / kernels.lanes),
                     reinterpret_cast<const int8_t*>(factors + width), factors, room);
  return room;
}

const float* FreshColumns::Block(const simd::Microkernels& kernels, const GemmDims& d,
                                 const float* b, int64_t column, int64_t begin, float* room) const {
  const int64_t width = PanelWidth(d, kernels.lanes, column), used = std::min(width, d.n - column);
  const int64_t rows = std::min(kGroup, d.k - begin);
  if (d.trans_b) {
    for (int64_t c = 0; c < used; ++c) {
      const float* from = b + (column + c) * d.ldb + begin;
      for (int64_t r = 0; r < rows; ++r) room[r * width + c] = alpha * from[r];
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = b + (begin + r) * d.ldb + column;
      for (int64_t c = 0; c < used; ++c) room[r * width + c] = alpha * from[c];
    }
  }
  for (int64_t r = 0; r < rows && used < width; ++r)
    std::fill_n(room + r * width + used, width - used, 0.f);
  return room;
}

std::shared_ptr<const FloatColumns> PackFloatColumns(const PrepareContext& ctx, const Tensor& b,
                                                     const GemmDims& d, int64_t lanes) {
  return PackOnceInParts<FloatColumns>(
      ctx, b, KeyOf("columns ", d, lanes),
      [&](FloatColumns* packed) { PackFloats(ctx, b, d, lanes, packed); });
}

std::shared_ptr<const Int8Columns> PackInt8Columns(const PrepareContext& ctx, const Tensor& b,
                                                   const GemmDims& d, int64_t lanes, float alpha) {
  uint32_t bits;
  std::memcpy(&bits, &alpha, sizeof(bits));
  const std::string key = StrCat(KeyOf("int8 columns ", d, lanes), " times ", bits);
  return PackOnceInParts<Int8Columns>(ctx, b, key, [&](Int8Columns* packed) {
    const int64_t full = (d.n - 1) / (2 * lanes);  // panels before the last
    const int64_t bytes = full * Int8Columns::PanelBytes(d.k, 2 * lanes) +
                          Int8Columns::PanelBytes(d.k, PanelWidth(d, lanes, full * 2 * lanes));
    packed->memory = PackMemory(ctx, static_cast<size_t>(bytes));
    Int8Packer(d, lanes, alpha, static_cast<std::byte*>(packed->memory->data())).Pack(b);
  });
}

}  // namespace heddle
