// Transposed convolution by patches: every pixel of the input gives a patch of the output, as large
// as the kernel, which is its channels times a matrix. Where the kernel is as large as its stride,
// a pixel has its patch to itself; else patches overlap and are added. Channels last.
#include <algorithm>
#include <cstring>

#include "core/interrupts.h"
#include "core/memory/lazy_buffer.h"
#include "kernels/conv/conv_backend.h"
#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

using simd::Microkernels;

// The filter as a matrix [channels in, (patch row, patch column, channel out)], cut into panels of
// columns.
struct PackedPatches {
  BufferRef memory;
  const float* data() const { return static_cast<const float*>(memory->data()); }
};

class PatchConv final : public ConvRunner {
 public:
  PatchConv(const PrepareContext& ctx, const ConvGeometry& g, const Tensor& filter,
            const Epilogue& epilogue, const Microkernels& kernels)
      : g_(g), epilogue_(epilogue), kernels_(kernels) {
    line_ = g.kernel[2] * g.in_c;
    apart_ = PatchesAreApart(g);
    panels_ = (g.kernel[1] * line_ + kernels.panel - 1) / kernels.panel;
    packed_ =
        ctx.packs().Get<PackedPatches>(filter, kernels.panel == 32 ? "patches 32" : "patches 16",
                                       [&] { return Pack(BorrowedContents(filter).tensor()); });
  }

  std::string name() const override { return StrCat("patches, ", IsaName(kernels_.isa)); }
  bool reads_filter() const override { return false; }

  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    apart_ ? RunApart(ctx, o) : RunOverlapping(ctx, o);
  }

  static constexpr int64_t kChunk = 56, kMostWidth = 256;

 private:
  void RunApart(const KernelContext& ctx, const ConvOperands& o) const {
    const int64_t rows = g_.batch * g_.out[1];
    const double work = static_cast<double>(g_.out[2] * g_.out_c * panels_ * kernels_.panel);
    ctx.ParallelFor(rows, 1 + static_cast<int64_t>(200000 / work), [&](int64_t begin, int64_t end) {
      const int64_t width = panels_ * kernels_.panel;
      alignas(64) float results[kChunk * kMostWidth];
      for (const int64_t row : Watched(begin, end)) {
        for (int64_t x = 0; x < g_.out[2]; x += kChunk) {
          const int64_t n = std::min<int64_t>(kChunk, g_.out[2] - x);
          Multiply(static_cast<const float*>(o.src) + (row * g_.out[2] + x) * g_.out_c, n, results);
          Scatter(results, width, n, static_cast<float*>(o.dst) + PatchAt(row, x));
        }
        for (int64_t i = 0; i < g_.kernel[1]; ++i)
          Finish(static_cast<const float*>(o.bias),
                 static_cast<float*>(o.dst) + PatchAt(row, 0) + i * OutRow());
      }
    });
  }

  // Each thread computes rows of the output, so input rows at the border of two threads' parts are
  // multiplied by both.
  void RunOverlapping(const KernelContext& ctx, const ConvOperands& o) const {
    const double work = static_cast<double>(g_.out[2] * g_.out_c * panels_ * kernels_.panel) *
                        static_cast<double>(g_.out[1]) / static_cast<double>(g_.in[1]);
    const int64_t grain = g_.kernel[1] + static_cast<int64_t>(200000 / work);
    ctx.ParallelFor(g_.batch * g_.in[1], grain, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t image = begin / g_.in[1], first = begin % g_.in[1];
        const int64_t rows = std::min(end - begin, g_.in[1] - first);
        Band(o, image, first, first + rows);
        begin += rows;
      }
    });
  }

  // Rows [first, last) of an image of the output.
  void Band(const ConvOperands& o, int64_t image, int64_t first, int64_t last) const {
    alignas(64) float results[kChunk * kMostWidth];
    const int64_t width = panels_ * kernels_.panel, stride = g_.stride[1], pad = g_.pad_lo[1];
    float* const to = static_cast<float*>(o.dst) + image * g_.in[1] * OutRow();
    std::fill(to + first * OutRow(), to + last * OutRow(), 0.f);
    const int64_t after = std::min(g_.out[1], (last - 1 + pad) / stride + 1);
    for (int64_t y = std::max<int64_t>(0, first + pad - g_.kernel[1] + stride) / stride; y < after;
         ++y)
      for (int64_t x = 0; x < g_.out[2]; x += kChunk) {
        const int64_t n = std::min<int64_t>(kChunk, g_.out[2] - x);
        const int64_t at = ((image * g_.out[1] + y) * g_.out[2] + x) * g_.out_c;
        Multiply(static_cast<const float*>(o.src) + at, n, results);
        for (int64_t i = 0; i < g_.kernel[1]; ++i)
          if (const int64_t row = y * stride + i - pad; row >= first && row < last)
            Add(results + i * line_, width, n, x * g_.stride[2] - g_.pad_lo[2],
                to + row * OutRow());
      }
    for (int64_t row = first; row < last; ++row)
      Finish(static_cast<const float*>(o.bias), to + row * OutRow());
  }

  // One row each of the patches of n pixels, the first of which begins at column x, which may lie
  // outside.
  void Add(const float* from, int64_t width, int64_t n, int64_t x, float* row) const {
    for (int64_t k = 0; k < n; ++k, from += width, x += g_.stride[2]) {
      const int64_t begin = std::max<int64_t>(0, -x) * g_.in_c;
      const int64_t end = std::min(g_.kernel[2], g_.in[2] - x) * g_.in_c;
      float* const to = row + x * g_.in_c;
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    }
  }

  void Multiply(const float* pixels, int64_t n, float* results) const {
    const int64_t width = panels_ * kernels_.panel;
    for (int64_t p = 0; p < panels_; ++p)
      kernels_.gemm_tile[1](n, g_.out_c, pixels, g_.out_c,
                            packed_->data() + p * g_.out_c * kernels_.panel,
                            results + p * kernels_.panel, width);
  }

  PackedPatches* Pack(const Tensor& filter) const {
    auto packed = std::make_unique<PackedPatches>();
    const auto size = static_cast<size_t>(panels_ * g_.out_c * kernels_.panel);
    packed->memory = BufferRef::Allocate(size * sizeof(float));
    if (!packed->memory) throw std::bad_alloc();
    float* to = static_cast<float*>(packed->memory->data());
    std::fill_n(to, size, 0.f);
    const float* w = filter.data<float>();
    const int64_t patch = g_.kernel[1] * g_.kernel[2];
    for (int64_t c = 0; c < g_.out_c; ++c)
      for (int64_t o = 0; o < g_.in_c; ++o)
        for (int64_t k = 0; k < patch; ++k) {
          const int64_t column = k * g_.in_c + o;
          to[(column / kernels_.panel * g_.out_c + c) * kernels_.panel + column % kernels_.panel] =
              *w++;
        }
    return packed.release();
  }

  int64_t OutRow() const { return g_.in[2] * g_.in_c; }
  // Offset of the patch of a pixel in the output.
  int64_t PatchAt(int64_t row, int64_t x) const {
    return row * g_.kernel[1] * OutRow() + x * line_;
  }

  // Adds or copies the patches of n pixels, one per row of results, to the output.
  void Scatter(const float* results, int64_t width, int64_t n, float* to) const {
    for (int64_t i = 0; i < g_.kernel[1]; ++i) {
      const float* from = results + i * line_;
      float* line = to + i * OutRow();
      if (line_ == 2) {
        for (int64_t x = 0; x < n; ++x) std::memcpy(line + 2 * x, from + x * width, 8);
        continue;
      }
      for (int64_t x = 0; x < n; ++x, from += width, line += line_)
        for (int64_t k = 0; k < line_; ++k) line[k] = from[k];
    }
  }

  void Finish(const float* bias, float* row) const {
    const bool single = g_.in_c == 1;  // the row is one channel's
    ApplyEpilogue(epilogue_, single ? 1 : g_.in[2], single ? g_.in[2] : g_.in_c,
                  single ? g_.in[2] : g_.in_c, bias, single, row);
  }

  const ConvGeometry g_;
  const Epilogue epilogue_;
  const Microkernels& kernels_;
  std::shared_ptr<const PackedPatches> packed_;
  int64_t line_, panels_;
  bool apart_;
};

}  // namespace

bool PatchesAreApart(const ConvGeometry& g) {
  return g.kernel == g.stride && g.pad_lo == std::array<int64_t, 3>{} &&
         g.in[1] == g.out[1] * g.stride[1] && g.in[2] == g.out[2] * g.stride[2];
}

bool PatchesCover(const ConvCase& c, const Machine& m) {
  const ConvGeometry& g = c.g;
  const Microkernels* const kernels = simd::MicrokernelsFor(m);
  return c.dtype == DType::kF32 && c.direction == ConvDirection::kBackwardData &&
         c.filter != nullptr && g.channels_last && g.spatial == 2 && g.groups == 1 &&
         g.dilation == std::array<int64_t, 3>{1, 1, 1} && !c.epilogue.residual && !c.empty() &&
         g.kernel[1] * g.kernel[2] * g.in_c + kernels->panel <= PatchConv::kMostWidth;
}

std::unique_ptr<ConvRunner> MakePatchConv(const PrepareContext& ctx, const ConvCase& c) {
  return std::make_unique<PatchConv>(ctx, c.g, *c.filter, c.epilogue, *simd::BestMicrokernels());
}

}  // namespace heddle
