#include "kernels/gemm/nbit_columns.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/interrupts.h"
#include "core/machine.h"
#include "core/memory/lazy_buffer.h"
#include "kernels/base/ceil_div.h"
#include "kernels/gemm/pack_once.h"

namespace heddle {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kWidest = 2 * 16;  // columns of a panel

int64_t BytesOfFields(int64_t count, int bits) { return (count * bits + 7) / 8; }
// Of a column.
int64_t StoredBytes(const NbitMatrix& m) {
  return m.form == NbitForm::kFields ? m.blocks() * BytesOfFields(m.block, m.bits) : m.k;
}

// Scales and zero points by block and column.
class Scales {
 public:
  Scales(const NbitMatrix& m, const Tensor& scale, const Tensor* zero)
      : m_(m),
        blocks_(m.blocks()),
        one_(scale.numel() == 1),
        scale_(scale.data<float>()),
        zero_(zero != nullptr ? static_cast<const uint8_t*>(zero->raw()) : nullptr) {}

  float ScaleOf(int64_t b, int64_t c) const { return scale_[At(b, c)]; }
  // Relative to what is stored as 0.
  float ZeroOf(int64_t b, int64_t c) const {
    const bool fields = m_.form == NbitForm::kFields;
    const int half = m_.is_signed ? 0 : 1 << (m_.bits - 1);
    if (zero_ == nullptr) return fields ? 0 : static_cast<float>(-half);
    const int64_t at = At(b, c);
    if (m_.zero_type == DType::kF32) {
      float value;
      std::memcpy(&value, zero_ + at * kFloat, sizeof(value));
      return value - static_cast<float>(half);
    }
    if (!fields)
      return static_cast<float>(m_.is_signed ? int{static_cast<int8_t>(zero_[at])}
                                             : zero_[at] - half);
    const int64_t bit = b * m_.bits;
    const int byte = zero_[c * BytesOfFields(blocks_, m_.bits) + bit / 8];
    return static_cast<float>((byte >> bit % 8 & ((1 << m_.bits) - 1)) - half);
  }

 private:
  int64_t At(int64_t b, int64_t c) const {
    if (one_) return 0;
    return m_.form == NbitForm::kRows ? b * m_.n + c : c * blocks_ + b;
  }
  const NbitMatrix& m_;
  const int64_t blocks_;
  const bool one_;
  const float* const scale_;
  const uint8_t* const zero_;
};

class Packer {
 public:
  Packer(const NbitMatrix& m, const NbitColumns& to, const Scales& scales, std::byte* memory)
      : m_(m), to_(to), scales_(scales), memory_(memory) {}

  // read(first, count) gives bytes of the tensor, valid until the next call.
  template <typename Read>
  void Pack(const Read& read) {
    if (m_.form == NbitForm::kRows) {
      for (int64_t b = 0; b < m_.blocks(); ++b) {
        LookForInterrupt();
        const int64_t first = b * m_.block, rows = std::min(m_.block, m_.k - first);
        const uint8_t* const from = read(first * m_.n, rows * m_.n);
        for (int64_t p = 0; p < to_.panels(); ++p)
          Block(p, b, [&](int64_t r, int64_t c) { return from[r * m_.n + p * to_.width() + c]; });
      }
      return;
    }
    const int64_t step = StoredBytes(m_);
    for (int64_t p = 0; p < to_.panels(); ++p) {
      LookForInterrupt();
      const int64_t first = p * to_.width(), columns = std::min(to_.width(), m_.n - first);
      const uint8_t* const from = read(first * step, columns * step);
      for (int64_t b = 0; b < m_.blocks(); ++b) {
        if (m_.form == NbitForm::kColumns) {
          Block(p, b, [&](int64_t r, int64_t c) { return from[c * step + b * m_.block + r]; });
          continue;
        }
        const uint8_t* const fields = from + b * BytesOfFields(m_.block, m_.bits);
        const int mask = (1 << m_.bits) - 1;
        Block(p, b, [&](int64_t r, int64_t c) {
          const int64_t bit = r * m_.bits;
          return fields[c * step + bit / 8] >> bit % 8 & mask;
        });
      }
    }
  }

 private:
  // value(row of the block, column of the panel) is a byte as it is stored.
  template <typename Value>
  void Block(int64_t p, int64_t b, const Value& value) {
    const int64_t width = to_.width(), columns = std::min(width, m_.n - p * width);
    const int64_t rows = std::min(m_.block, m_.k - b * m_.block);
    std::byte* at = memory_ + p * to_.PanelBytes() + b * to_.BlockBytes(m_.block);
    float scale[kWidest] = {}, zero[kWidest] = {};
    for (int64_t c = 0; c < columns; ++c) {
      scale[c] = scales_.ScaleOf(b, p * width + c);
      zero[c] = scales_.ZeroOf(b, p * width + c);
    }
    std::memcpy(at, scale, static_cast<size_t>(width * kFloat));
    at += width * kFloat;
    if (to_.zeros == NbitColumns::Zeros::kFloats) {
      std::memcpy(at, zero, static_cast<size_t>(width * kFloat));
      at += width * kFloat;
    } else if (to_.zeros == NbitColumns::Zeros::kBytes) {
      for (int64_t c = 0; c < width; ++c)
        at[c] = static_cast<std::byte>(static_cast<int8_t>(zero[c]));
      at += width;
    }
    Rows(rows, columns, value, reinterpret_cast<uint8_t*>(at));
  }
  // The fields of kernels/simd/integers/nbits.h.
  template <typename Value>
  void Rows(int64_t rows, int64_t columns, const Value& value, uint8_t* to) {
    const int64_t lanes = to_.kernels->lanes;
    const int half = 1 << (m_.bits - 1), mask = 2 * half - 1;
    // Of an element that is stored as a byte, the number that the packed field holds.
    const int add = m_.is_signed ? half : 0;
    const auto field = [&](int64_t r, int64_t c) {
      if (c >= columns || r >= rows) return half;
      const int byte = value(r, c);
      return ((m_.is_signed ? int{static_cast<int8_t>(byte)} : byte) + add) & mask;
    };
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < lanes; ++i) {
        if (m_.bits == 8) {
          to[r * 2 * lanes + i] = static_cast<uint8_t>(field(r, i) ^ 0x80);
          to[(r * 2 + 1) * lanes + i] = static_cast<uint8_t>(field(r, lanes + i) ^ 0x80);
        } else if (m_.bits == 4) {
          to[r * lanes + i] = static_cast<uint8_t>(field(r, i) | field(r, lanes + i) << 4);
        } else if (r % 2 == 0) {
          to[r / 2 * lanes + i] =
              static_cast<uint8_t>(field(r, i) | field(r, lanes + i) << 2 | field(r + 1, i) << 4 |
                                   field(r + 1, lanes + i) << 6);
        }
      }
  }

  const NbitMatrix& m_;
  const NbitColumns& to_;
  const Scales& scales_;
  std::byte* const memory_;
};

// Products of a few rows, straight from the fields.
void Multiply(const KernelContext& ctx, const NbitColumns& b, int64_t m, const float* a,
              const float* bias, float* c) {
  const int64_t blocks = CeilDiv(b.k, b.block), width = b.width();
  Tensor hold;
  const float* totals = nullptr;
  if (b.zeros != NbitColumns::Zeros::kNone) {
    hold = ctx.CallScratch(DType::kF32, {m * blocks});
    float* const to = hold.mutable_data<float>();
    for (const int64_t i : Watched(m * blocks)) {
      const float* const x = a + i / blocks * b.k + i % blocks * b.block;
      float total = 0;
      for (int64_t r = 0; r < std::min(b.block, b.k - i % blocks * b.block); ++r) total += x[r];
      to[i] = total;
    }
    totals = to;
  }
  constexpr int64_t kUnitBytes = 1 << 17;  // less ends before another thread wakes up
  const int64_t passes = CeilDiv(m, simd::kNbitProducts);
  ctx.ParallelFor(
      b.panels(), 1 + kUnitBytes / (b.PanelBytes() * passes), [&](int64_t begin, int64_t end) {
        alignas(64) float sums[simd::kNbitProducts * kWidest], room[kWidest];
        for (const int64_t p : Watched(begin, end))
          for (int64_t i = 0; i < m; i += simd::kNbitProducts) {
            const auto count = static_cast<int>(std::min<int64_t>(simd::kNbitProducts, m - i));
            std::fill_n(sums, count * width, 0.f);
            for (int64_t at = 0; at < blocks; ++at)
              b.kernels->multiply(
                  b.bits, b.RowsOf(p, at, room),
                  {a + i * b.k + at * b.block, b.k,
                   totals != nullptr ? totals + i * blocks + at : nullptr, blocks, count},
                  sums);
            const int64_t first = p * width, columns = std::min(width, b.n - first);
            for (int64_t r = 0; r < count; ++r)
              for (int64_t j = 0; j < columns; ++j)
                c[(i + r) * b.n + first + j] =
                    sums[r * width + j] + (bias != nullptr ? bias[first + j] : 0.f);
          }
      });
}

class NbitGemm final : public GemmRunner {
 public:
  // With more rows, converting a block to floats once costs less than to unpack it for four rows at
  // a time.
  static constexpr int64_t kFewRows = 16;

  NbitGemm(int64_t m, std::shared_ptr<const NbitColumns> packed, bool bias)
      : m_(m), packed_(std::move(packed)) {
    if (m <= kFewRows) return;
    BatchedGemm g;
    g.one = GemmDims::Dense(m, packed_->n, packed_->k);
    Epilogue epilogue;
    epilogue.bias = bias;
    panels_ = MakeNbitPanels(g, packed_, epilogue);
  }
  std::string name() const override {
    return StrCat(
        panels_ ? panels_->name() : StrCat("vectors_nbits, ", simd::VectorsOf(ThisMachine())), ", ",
        packed_->bits, " bits");
  }
  bool reads_b() const override { return false; }
  void Run(const KernelContext& ctx, const float* a, const float* b, const float* bias,
           const float* residual, float* c) const override {
    if (panels_)
      panels_->Run(ctx, a, b, bias, residual, c);
    else
      Multiply(ctx, *packed_, m_, a, bias, c);
  }

 private:
  const int64_t m_;
  const std::shared_ptr<const NbitColumns> packed_;
  std::unique_ptr<GemmRunner> panels_;  // null: few rows
};

const simd::NbitKernels& BestNbitKernels() {
  return *simd::NbitKernelsOf(simd::BestMicrokernels()->isa);
}

struct PackedNbits {
  static constexpr int kPackingVersion = 1;  // see PackOnce
  BufferRef memory;
};

}  // namespace

Status NbitMatrix::Check(const Shape& w, const Shape& scale, const Shape* zero) const {
  if (bits != 2 && bits != 4 && bits != 8)
    return InvalidArgument("bits is ", bits, ", expected 2, 4 or 8");
  if (block < 1) return InvalidArgument("block_size is ", block, ", expected at least 1");
  if (w.numel() != n * StoredBytes(*this))
    return InvalidArgument("W has shape ", w.ToString(), ", expected ", n * StoredBytes(*this),
                           " elements for ", n, " columns of ", k, " terms");
  if (scale.numel() != 1 && scale.numel() != n * blocks())
    return InvalidArgument("Scale has shape ", scale.ToString(), ", expected 1 or ", n * blocks(),
                           " elements");
  if (zero == nullptr) return Status::Ok();
  const int64_t zeros = form == NbitForm::kFields && zero_type != DType::kF32
                            ? n * BytesOfFields(blocks(), bits)
                            : scale.numel();
  if (zero->numel() != zeros)
    return InvalidArgument("Zero has shape ", zero->ToString(), ", expected ", zeros, " elements");
  return Status::Ok();
}

NbitColumns::NbitColumns(const NbitMatrix& matrix, const simd::NbitKernels& kernels)
    : k(matrix.k), n(matrix.n), block(matrix.block), bits(matrix.bits), kernels(&kernels) {
  const bool centred = matrix.form == NbitForm::kFields || matrix.is_signed;
  zeros = matrix.has_zero && matrix.zero_type == DType::kF32 ? Zeros::kFloats
          : matrix.has_zero || !centred                      ? Zeros::kBytes
                                                             : Zeros::kNone;
}

int64_t NbitColumns::BlockBytes(int64_t rows) const {
  const int64_t of_zeros = zeros == Zeros::kNone ? 0 : zeros == Zeros::kBytes ? 1 : kFloat;
  return width() * (kFloat + of_zeros) + simd::NbitBytes(bits, rows, kernels->lanes);
}
int64_t NbitColumns::PanelBytes() const {
  const int64_t whole = k / block, rest = k % block;
  return whole * BlockBytes(block) + (rest > 0 ? BlockBytes(rest) : 0);
}

simd::NbitRows NbitColumns::RowsOf(int64_t panel, int64_t b, float* room) const {
  const std::byte* at = data + panel * PanelBytes() + b * BlockBytes(block);
  simd::NbitRows rows{};
  rows.rows = std::min(block, k - b * block);
  rows.scale = reinterpret_cast<const float*>(at);
  at += width() * kFloat;
  rows.zero = room;
  if (zeros == Zeros::kFloats) {
    rows.zero = reinterpret_cast<const float*>(at);
    at += width() * kFloat;
  } else if (zeros == Zeros::kBytes) {
    const auto* const bytes = reinterpret_cast<const int8_t*>(at);
    for (int64_t c = 0; c < width(); ++c) room[c] = bytes[c];
    at += width();
  } else {
    std::fill_n(room, width(), 0.f);
  }
  rows.values = reinterpret_cast<const uint8_t*>(at);
  return rows;
}

const float* NbitColumns::Block(const simd::Microkernels& micro, const GemmDims& d,
                                const float* /*b*/, int64_t column, int64_t begin,
                                float* room) const {
  const int vectors = d.n - column > micro.lanes ? 2 : 1;
  const int64_t end = std::min(begin + kGroup, k);
  alignas(64) float zero[kWidest];
  float* to = room;
  for (int64_t row = begin; row < end;) {
    const int64_t b = row / block;
    simd::NbitRows rows = RowsOf(column / width(), b, zero);
    rows.first = row - b * block;
    rows.rows = std::min(end, std::min((b + 1) * block, k)) - row;
    kernels->widen(bits, rows, vectors, to);
    to += rows.rows * vectors * kernels->lanes;
    row += rows.rows;
  }
  return room;
}

Result<std::unique_ptr<GemmRunner>> MakeNbitGemm(const PrepareContext& ctx, int64_t m,
                                                 const NbitMatrix& matrix, const Tensor& w,
                                                 const Tensor& scale, const Tensor* zero,
                                                 bool bias) {
  HEDDLE_RETURN_IF_ERROR(
      matrix.Check(w.shape(), scale.shape(), zero != nullptr ? &zero->shape() : nullptr));
  const BorrowedContents scales(scale);
  std::optional<BorrowedContents> zeros;
  if (zero != nullptr) zeros.emplace(*zero);
  auto columns = std::make_shared<NbitColumns>(matrix, BestNbitKernels());
  const auto hash = [](const Tensor& t) { return XXH3_64bits(t.raw(), t.bytes()); };
  const std::string key = StrCat(
      "nbits ", columns->bits, " ", columns->k, "x", columns->n, " in ", columns->block, " form ",
      static_cast<int>(matrix.form), matrix.is_signed ? " signed " : " ", columns->width(), " by ",
      hash(scales.tensor()), " ", zeros ? hash(zeros->tensor()) : 0, Name(matrix.zero_type));
  const auto packed = PackOnceInParts<PackedNbits>(ctx, w, key, [&](PackedNbits* to) {
    to->memory = PackMemory(ctx, static_cast<size_t>(columns->bytes()));
    BorrowedStretches source(w);
    const Scales of(matrix, scales.tensor(), zeros ? &zeros->tensor() : nullptr);
    Packer(matrix, *columns, of, static_cast<std::byte*>(to->memory->data()))
        .Pack([&](int64_t first, int64_t count) {
          return static_cast<const uint8_t*>(source.Read(first, count).raw());
        });
  });
  columns->memory = packed->memory;
  columns->data = static_cast<const std::byte*>(packed->memory->data());
  return std::unique_ptr<GemmRunner>(std::make_unique<NbitGemm>(m, std::move(columns), bias));
}

Status RunNbitGemm(const KernelContext& ctx, int64_t m, const NbitMatrix& matrix, const Tensor& w,
                   const Tensor& scale, const Tensor* zero, const float* a, const float* bias,
                   float* c) {
  HEDDLE_RETURN_IF_ERROR(
      matrix.Check(w.shape(), scale.shape(), zero != nullptr ? &zero->shape() : nullptr));
  NbitColumns columns(matrix, BestNbitKernels());
  Tensor hold = ctx.CallScratch(DType::kU8, {columns.bytes()});
  auto* const memory = static_cast<std::byte*>(hold.mutable_raw());
  const auto* const bytes = static_cast<const uint8_t*>(w.raw());
  Packer(matrix, columns, Scales(matrix, scale, zero), memory).Pack([&](int64_t first, int64_t) {
    return bytes + first;
  });
  columns.data = memory;
  Multiply(ctx, columns, m, a, bias, c);
  return Status::Ok();
}

}  // namespace heddle
