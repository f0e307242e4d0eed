#include "kernels/gemm/gemm.h"

#include <algorithm>
#include <complex>
#include <type_traits>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/gemm/gemm_backend.h"
#include "kernels/gemm/gemm_calls.h"
#include "kernels/simd/gemm_tile.h"

namespace heddle {
namespace {

// Products below this many multiplications stay in the tile kernel below: no packing, no set-up.
constexpr int64_t kTileWork = 24 * 24 * 24;
// The same limit for a transposed B with so few rows that packing does not pay.
constexpr int64_t kPackedTileWork = 1024;
// Grain: the least number of multiplications per thread.
constexpr int64_t kThreadWork = 64 * 1024;
constexpr int64_t kDepth = 256;  // of a packed strip of B

// kRows x (kVecs * kLanes) of C over `k` steps; `strip` is B's strip, row-major, as wide.
template <typename T, int kLanes, int kRows, int kVecs>
inline void Tile(int64_t k, const T* a, int64_t row_step, int64_t k_step, const T* strip,
                 int64_t strip_step, T (*out)[kLanes * kVecs]) {
  simd::ProductTile<simd::BaseVector<T, kLanes>, kRows, kVecs>(
      k, {a, row_step, k_step, strip, strip_step, kLanes}, out[0], kLanes * kVecs);
}

template <typename T>
inline void Store(const T* acc, int64_t n, T alpha, T beta, T* c) {
  if (beta == T(0)) {
    for (int64_t j = 0; j < n; ++j) c[j] = alpha * acc[j];
  } else {
    for (int64_t j = 0; j < n; ++j) c[j] = alpha * acc[j] + beta * c[j];
  }
}

template <typename T, int kLanes, int kVecs>
void TiledGemm(const GemmDims& d, T alpha, const T* a, const T* b, T beta, T* c) {
  constexpr int kWidth = kLanes * kVecs;
  constexpr int kRows = 4;
  const int64_t a_row = d.trans_a ? 1 : d.lda, a_col = d.trans_a ? d.lda : 1;
  T packed[kDepth * kWidth];
  T out[kRows][kWidth];
  for (int64_t p0 = 0; p0 == 0 || p0 < d.k; p0 += kDepth) {
    const int64_t depth = std::min(kDepth, d.k - p0);
    const T scale_c = p0 == 0 ? beta : T(1);
    for (int64_t j = 0; j < d.n; j += kWidth) {
      const int64_t width = std::min<int64_t>(kWidth, d.n - j);
      const T* strip = b + p0 * d.ldb + j;
      int64_t strip_step = d.ldb;
      if (d.trans_b || width < kWidth) {
        for (int64_t p = 0; p < depth; ++p)
          for (int64_t w = 0; w < kWidth; ++w)
            packed[p * kWidth + w] = w >= width  ? T(0)
                                     : d.trans_b ? b[(j + w) * d.ldb + p0 + p]
                                                 : b[(p0 + p) * d.ldb + j + w];
        strip = packed;
        strip_step = kWidth;
      }
      const T* a_at = a + p0 * a_col;
      int64_t i = 0;
      for (; i + kRows <= d.m; i += kRows) {
        Tile<T, kLanes, kRows, kVecs>(depth, a_at + i * a_row, a_row, a_col, strip, strip_step,
                                      out);
        for (int r = 0; r < kRows; ++r)
          Store(out[r], width, alpha, scale_c, c + (i + r) * d.ldc + j);
      }
      for (; i < d.m; ++i) {
        Tile<T, kLanes, 1, kVecs>(depth, a_at + i * a_row, a_row, a_col, strip, strip_step, out);
        Store(out[0], width, alpha, scale_c, c + i * d.ldc + j);
      }
    }
  }
}

// One row of A: strips of B wide enough that their sums do not wait for each other.
template <typename T, int kLanes>
void RowGemm(GemmDims d, T alpha, const T* a, const T* b, T beta, T* c) {
  constexpr int kVecs = 8, kWidth = kLanes * kVecs;
  T out[1][kWidth];
  int64_t j = 0;
  for (; j + kWidth <= d.n; j += kWidth)
    for (int64_t p = 0; p == 0 || p < d.k; p += kDepth) {
      Tile<T, kLanes, 1, kVecs>(std::min(kDepth, d.k - p), a + p, 0, 1, b + p * d.ldb + j, d.ldb,
                                out);
      Store(out[0], kWidth, alpha, p == 0 ? beta : T(1), c + j);
    }
  d.n -= j;
  if (d.n > 0) TiledGemm<T, kLanes, 2>(d, alpha, a, b + j, beta, c + j);
}

// Types without vector arithmetic worth having.
template <typename T>
void PlainGemm(const GemmDims& d, T alpha, const T* a, const T* b, T beta, T* c) {
  const int64_t a_row = d.trans_a ? 1 : d.lda, a_col = d.trans_a ? d.lda : 1;
  const int64_t b_row = d.trans_b ? 1 : d.ldb, b_col = d.trans_b ? d.ldb : 1;
  for (const int64_t i : Watched(d.m)) {
    T* row = c + i * d.ldc;
    for (int64_t j = 0; j < d.n; ++j) row[j] = beta == T(0) ? T(0) : beta * row[j];
    for (const int64_t p : Watched(d.k)) {
      const T av = alpha * a[i * a_row + p * a_col];
      const T* b_at = b + p * b_row;
      for (int64_t j = 0; j < d.n; ++j) row[j] += av * b_at[j * b_col];
    }
  }
}

// Calls fn(dims, a, b, beta, c) for blocks of the result, one after another, with a look for
// interrupts between them. Where a block is as small as may be, its sums are cut, too.
template <typename T, typename Fn>
void InCalls(const GemmDims& d, const T* a, const T* b, T beta, T* c, Fn&& fn) {
  if (CallCost(d) <= kCallCost) {
    LookForInterrupt();
    return fn(d, a, b, beta, c);
  }
  const GemmBlock block = BlockOf(d, true);
  for (int64_t row = 0; row < d.m; row += block.rows)
    for (int64_t column = 0; column < d.n; column += block.columns) {
      GemmDims part = d;
      part.m = std::min(block.rows, d.m - row);
      part.n = std::min(block.columns, d.n - column);
      const T* const rows = a + row * (d.trans_a ? 1 : d.lda);
      const T* const columns = b + column * (d.trans_b ? d.ldb : 1);
      const int64_t depth = DepthOf(part, SumStep<T>());
      int64_t k = 0;
      do {
        LookForInterrupt();
        part.k = d.k - k < 2 * depth ? d.k - k : depth;
        fn(part, rows + k * (d.trans_a ? d.lda : 1), columns + k * (d.trans_b ? 1 : d.ldb),
           k == 0 ? beta : T(1), c + row * d.ldc + column);
        k += part.k;
      } while (k < d.k);
    }
}

// The part of a product that makes rows or columns [begin, end) of C.
template <typename T>
void GemmPart(GemmDims d, bool rows, int64_t begin, int64_t end, T alpha, const T* a, const T* b,
              T beta, T* c) {
  if (rows) {
    d.m = end - begin;
    Gemm(d, alpha, a + begin * (d.trans_a ? 1 : d.lda), b, beta, c + begin * d.ldc);
  } else {
    d.n = end - begin;
    Gemm(d, alpha, a, b + begin * (d.trans_b ? d.ldb : 1), beta, c + begin);
  }
}

// A dimension of `size` steps of `step` continues the last one.
bool Mergeable(const Shape& stride, int64_t size, int64_t step) {
  return stride.dim(-1) == size * step;
}

// Stride of batch dimension `i` of `rank`, counted in matrices of `size` elements.
int64_t BatchStride(const Shape& batch, int rank, int i, int64_t size) {
  const int at = i - (rank - batch.rank());
  if (at < 0 || batch[at] == 1) return 0;
  return size * batch.Product(at + 1, batch.rank());
}

int64_t BatchDim(const Shape& batch, int rank, int i) {
  const int at = i - (rank - batch.rank());
  return at < 0 ? 1 : batch[at];
}

// Turns a batch that is one larger product into that product.
void Fold(BatchedGemm& g) {
  if (g.dims.rank() != 1) return;
  GemmDims& d = g.one;
  const int64_t sa = g.a_stride[0], sb = g.b_stride[0], sc = g.c_stride[0];
  if (!d.trans_a && sb == 0 && sa == d.m * d.lda && sc == d.m * d.ldc) {
    d.m *= g.batch;  // the same B for all: rows of A one after another
  } else if (g.sums && d.trans_a && !d.trans_b && sa == d.k * d.lda && sb == d.k * d.ldb) {
    d.k *= g.batch;  // a sum over batches is a longer inner dimension
    g.sums = false;
  } else {
    return;
  }
  g.batch = 1;
  g.dims = g.a_stride = g.b_stride = g.c_stride = Shape();
}

}  // namespace

bool IsLarge(const GemmDims& d) {
  return d.work() > (d.trans_b && d.m < 4 ? kPackedTileWork : kTileWork);
}

template <typename T>
void Gemm(const GemmDims& d, T alpha, const T* a, const T* b, T beta, T* c) {
  if constexpr (std::is_floating_point_v<T>) {
    if (IsLarge(d))
      return InCalls(d, a, b, beta, c,
                     [&](const GemmDims& part, const T* pa, const T* pb, T scale_c, T* pc) {
                       LargeGemm(part, alpha, pa, pb, scale_c, pc);
                     });
    constexpr int kLanes = simd::kBaseVectorBytes / sizeof(T);
    if (d.m == 1 && !d.trans_a && !d.trans_b && d.n >= 8 * kLanes)
      return RowGemm<T, kLanes>(d, alpha, a, b, beta, c);
    if (d.n <= kLanes) return TiledGemm<T, kLanes, 1>(d, alpha, a, b, beta, c);
    return TiledGemm<T, kLanes, 2>(d, alpha, a, b, beta, c);
  } else {
    PlainGemm(d, alpha, a, b, beta, c);
  }
}

template <typename T>
void ParallelGemm(const KernelContext& ctx, const GemmDims& d, T alpha, const T* a, const T* b,
                  T beta, T* c) {
  if (d.work() <= 2 * kThreadWork || ctx.threads() == 1) return Gemm(d, alpha, a, b, beta, c);
  if constexpr (std::is_same_v<T, float>) {
    ctx.services().intra->LendToLibrary();
    bool done = true;
    InCalls(d, a, b, beta, c,
            [&](const GemmDims& part, const T* pa, const T* pb, T scale_c, T* pc) {
              done = done && LibraryGemm(part, alpha, pa, pb, scale_c, pc);
            });
    if (done) return;
  }
  const bool rows = d.m >= d.n;
  const int64_t length = rows ? d.m : d.n;
  const int64_t grain = std::max<int64_t>(1, kThreadWork / std::max<int64_t>(1, d.work() / length));
  ctx.ParallelFor(length, grain, [&](int64_t begin, int64_t end) {
    GemmPart(d, rows, begin, end, alpha, a, b, beta, c);
  });
}

BatchedGemm PlanBatchedGemm(const Shape& a_batch, const Shape& b_batch, const Shape& c_batch,
                            const GemmDims& dense) {
  BatchedGemm g;
  g.one = dense;
  const int rank = std::max({a_batch.rank(), b_batch.rank(), c_batch.rank()});
  for (int i = 0; i < rank; ++i) {
    // The largest is the broadcast size, unless one is 0: then there is nothing to do at all.
    const int64_t da = BatchDim(a_batch, rank, i), db = BatchDim(b_batch, rank, i),
                  dc = BatchDim(c_batch, rank, i);
    const int64_t size = da == 0 || db == 0 || dc == 0 ? 0 : std::max({da, db, dc});
    if (size == 1) continue;
    const int64_t sa = BatchStride(a_batch, rank, i, dense.m * dense.k);
    const int64_t sb = BatchStride(b_batch, rank, i, dense.k * dense.n);
    const int64_t sc = BatchStride(c_batch, rank, i, dense.m * dense.n);
    g.batch *= size;
    g.sums |= sc == 0;
    if (g.dims.rank() > 0 && Mergeable(g.a_stride, size, sa) && Mergeable(g.b_stride, size, sb) &&
        Mergeable(g.c_stride, size, sc)) {
      const int last = g.dims.rank() - 1;
      g.dims[last] *= size;
      g.a_stride[last] = sa, g.b_stride[last] = sb, g.c_stride[last] = sc;
    } else {
      g.dims.push_back(size);
      g.a_stride.push_back(sa), g.b_stride.push_back(sb), g.c_stride.push_back(sc);
    }
  }
  Fold(g);
  return g;
}

BatchedGemm::Offsets BatchedGemm::OffsetsOf(int64_t at) const {
  Offsets o;
  for (int i = dims.rank() - 1; i >= 0; --i) {
    const int64_t step = at % dims[i];
    at /= dims[i];
    o.a += step * a_stride[i], o.b += step * b_stride[i], o.c += step * c_stride[i];
  }
  return o;
}

template <typename T>
void BatchedGemm::Run(const KernelContext& ctx, T alpha, const T* a, const T* b, T* c,
                      bool accumulate) const {
  const T beta = accumulate ? T(1) : T(0);
  if (batch == 1) return ParallelGemm(ctx, one, alpha, a, b, beta, c);
  const auto product = [&](int64_t at, T scale_c, bool parallel) {
    const Offsets o = OffsetsOf(at);
    if (parallel)
      ParallelGemm(ctx, one, alpha, a + o.a, b + o.b, scale_c, c + o.c);
    else
      Gemm(one, alpha, a + o.a, b + o.b, scale_c, c + o.c);
  };
  if (sums) {
    if (!accumulate) {
      int64_t places = 1;
      for (int i = 0; i < dims.rank(); ++i) places *= c_stride[i] == 0 ? 1 : dims[i];
      WatchedFill(c, places * one.m * one.n, T(0));
    }
    for (const int64_t i : Watched(batch)) product(i, T(1), true);
  } else if (batch < ctx.threads() && one.work() > kThreadWork) {
    for (const int64_t i : Watched(batch)) product(i, beta, true);
  } else {
    const int64_t grain = 1 + kThreadWork / std::max<int64_t>(1, one.work());
    ctx.ParallelFor(batch, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) product(i, beta, false);
    });
  }
}

#define HEDDLE_GEMM(T)                                                                           \
  template void Gemm<T>(const GemmDims&, T, const T*, const T*, T, T*);                          \
  template void ParallelGemm<T>(const KernelContext&, const GemmDims&, T, const T*, const T*, T, \
                                T*);                                                             \
  template void BatchedGemm::Run<T>(const KernelContext&, T, const T*, const T*, T*, bool) const;
HEDDLE_GEMM(float)
HEDDLE_GEMM(double)
HEDDLE_GEMM(int32_t)
HEDDLE_GEMM(int64_t)
HEDDLE_GEMM(std::complex<float>)
HEDDLE_GEMM(std::complex<double>)
#undef HEDDLE_GEMM

}  // namespace heddle
