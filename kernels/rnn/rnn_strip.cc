#include "kernels/rnn/rnn_strip.h"

#include <algorithm>
#include <cstring>

#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

#if defined(__x86_64__)
#define HEDDLE_WIDE [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#else
#define HEDDLE_WIDE
#endif

bool WideVectors() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

constexpr int kMaxRows = 3;  // of a step's tile: with all columns of a strip they stay in registers
constexpr int kMaxProjected = 6;  // of a projection's, which takes half of the columns

constexpr int kPrefetch = 8;  // rows of weights ahead

// Vectors of units in a strip: enough sums to hide the latency of a multiply-add.
template <int kLanes, RnnMode kMode>
constexpr int kVecs = kMode == RnnMode::kTanh || kMode == RnnMode::kRelu ? 4
                      : kLanes == 16                                     ? 2
                                                                         : 1;
template <RnnMode kMode>
constexpr int kGates = kMode == RnnMode::kLstm  ? 4
                       : kMode == RnnMode::kGru ? 3
                                                : 1;

// out[r] = from[r] + a[r] * w, for kRows rows of kCols vectors; w's rows are of kWidth vectors.
// kBack: from the last row of w to the first.
template <int kLanes, int kCols, int kRows, int kWidth, bool kBack>
[[gnu::always_inline]] inline void Tile(int64_t k, const float* a, int64_t a_step, const float* w,
                                        const float* from, int64_t from_step, float* out,
                                        int64_t out_step) {
  typedef float V __attribute__((vector_size(sizeof(float) * kLanes)));
  V acc[kRows][kCols];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kCols; ++v)
      std::memcpy(&acc[r][v], from + r * from_step + v * kLanes, sizeof(V));
  constexpr int64_t kStep = (kBack ? -1 : 1) * kWidth * kLanes;
  if constexpr (kBack) w += (k - 1) * kWidth * kLanes;
  for (int64_t i = 0; i < k; ++i, w += kStep) {
    const int64_t p = kBack ? k - 1 - i : i;
    // A lone row reads weights faster than they come without being asked for.
    if constexpr (kRows == 1)
#pragma GCC unroll 8
      for (int v = 0; v < kCols; ++v) __builtin_prefetch(w + kPrefetch * kStep + v * kLanes);
#pragma GCC unroll 8
    for (int v = 0; v < kCols; ++v) {
      V b;
      std::memcpy(&b, w + v * kLanes, sizeof(V));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) acc[r][v] += a[r * a_step + p] * b;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kCols; ++v)
      std::memcpy(out + r * out_step + v * kLanes, &acc[r][v], sizeof(V));
}

// At most kMost rows at a time.
template <int kLanes, int kCols, int kMost, int kWidth, bool kBack>
[[gnu::always_inline]] inline void Rows(int64_t rows, int64_t k, const float* a, int64_t a_step,
                                        const float* w, const float* from, int64_t from_step,
                                        float* out, int64_t out_step) {
  for (; rows >= kMost; rows -= kMost) {
    Tile<kLanes, kCols, kMost, kWidth, kBack>(k, a, a_step, w, from, from_step, out, out_step);
    a += kMost * a_step, from += kMost * from_step, out += kMost * out_step;
  }
  if constexpr (kMost > 1) {
    constexpr int kNext = kMost > 3 ? 3 : kMost - 1;
    if (rows > 0)
      Rows<kLanes, kCols, kNext, kWidth, kBack>(rows, k, a, a_step, w, from, from_step, out,
                                                out_step);
  }
}

// The new state of one sequence from the gates' sums `z`; `x` is GRU's input part of the candidate.
template <RnnMode kMode, int kUnits>
[[gnu::always_inline]] inline void Activate(const float* __restrict z, const float* __restrict x,
                                            const float* __restrict h_prev, float* __restrict c,
                                            float* __restrict h) {
  for (int i = 0; i < kUnits; ++i) {
    if constexpr (kMode == RnnMode::kTanh) {
      h[i] = fast::Tanh(z[i]);
    } else if constexpr (kMode == RnnMode::kRelu) {
      h[i] = fast::Select(z[i] < 0.f, 0.f, z[i]);
    } else if constexpr (kMode == RnnMode::kLstm) {
      const float in = fast::Gate(z[i]), forget = fast::Gate(z[kUnits + i]);
      const float cell = forget * c[i] + in * fast::Tanh(z[2 * kUnits + i]);
      c[i] = cell;
      h[i] = fast::Gate(z[3 * kUnits + i]) * fast::Tanh(cell);
    } else {
      const float reset = fast::Gate(z[i]), update = fast::Gate(z[kUnits + i]);
      const float candidate = fast::Tanh(x[i] + reset * z[2 * kUnits + i]);
      h[i] = (1.f - update) * candidate + update * h_prev[i];
    }
  }
}

template <int kLanes, RnnMode kMode>
[[gnu::always_inline]] inline void StepOf(const StripStep& s) {
  constexpr int kUnits = kVecs<kLanes, kMode> * kLanes,
                kCols = kVecs<kLanes, kMode> * kGates<kMode>;
  constexpr int kWidth = kCols * kLanes;
  alignas(64) float sums[kMaxRows][kWidth];
  alignas(64) float next[kUnits];
  const int64_t units = std::min<int64_t>(kUnits, s.hidden - s.unit);
  for (int64_t b0 = 0; b0 < s.batch; b0 += kMaxRows) {
    const int64_t rows = std::min<int64_t>(kMaxRows, s.batch - b0);
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(sums[r], s.gates + (b0 + r) * s.gates_step, sizeof(sums[r]));
      if constexpr (kMode == RnnMode::kGru)
        std::memcpy(sums[r] + 2 * kUnits, s.recurrent_bias, sizeof(float) * kUnits);
    }
    const float* h = s.h + b0 * s.padded;
    if (s.back)
      Rows<kLanes, kCols, kMaxRows, kCols, true>(rows, s.hidden, h, s.padded, s.weights, sums[0],
                                                 kWidth, sums[0], kWidth);
    else
      Rows<kLanes, kCols, kMaxRows, kCols, false>(rows, s.hidden, h, s.padded, s.weights, sums[0],
                                                  kWidth, sums[0], kWidth);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t b = b0 + r, at = b * s.padded;
      float* out = s.out + b * s.out_step;
      if (s.lengths != nullptr && s.t >= s.lengths[b]) {
        std::memcpy(s.h_next + at, s.h_prev + at, sizeof(float) * kUnits);
        std::fill_n(out, units, 0.f);
        continue;
      }
      Activate<kMode, kUnits>(sums[r], s.gates + b * s.gates_step + 2 * kUnits, s.h_prev + at,
                              s.c + at, next);
      std::memcpy(s.h_next + at, next, sizeof(next));
      std::memcpy(out, next, sizeof(float) * static_cast<size_t>(units));
    }
  }
}

template <int kLanes, RnnMode kMode>
[[gnu::always_inline]] inline void ProjectOf(int64_t rows, int64_t k, const float* a,
                                             int64_t a_step, const float* w, const float* bias,
                                             float* out, int64_t out_step) {
  constexpr int kCols = kVecs<kLanes, kMode> * kGates<kMode>, kHalf = kCols / 2;
  if constexpr (kCols % 2 == 0) {
    Rows<kLanes, kHalf, kMaxProjected, kCols, false>(rows, k, a, a_step, w, bias, 0, out, out_step);
    w += kHalf * kLanes, bias += kHalf * kLanes, out += kHalf * kLanes;
    Rows<kLanes, kHalf, kMaxProjected, kCols, false>(rows, k, a, a_step, w, bias, 0, out, out_step);
  } else {
    Rows<kLanes, kCols, kMaxRows, kCols, false>(rows, k, a, a_step, w, bias, 0, out, out_step);
  }
}

template <RnnMode kMode>
void Step(const StripStep& s) {
  StepOf<8, kMode>(s);
}
template <RnnMode kMode>
void Project(int64_t rows, int64_t k, const float* a, int64_t a_step, const float* w,
             const float* bias, float* out, int64_t out_step) {
  ProjectOf<8, kMode>(rows, k, a, a_step, w, bias, out, out_step);
}
template <RnnMode kMode>
HEDDLE_WIDE void StepWide(const StripStep& s) {
  StepOf<16, kMode>(s);
}
template <RnnMode kMode>
HEDDLE_WIDE void ProjectWide(int64_t rows, int64_t k, const float* a, int64_t a_step,
                             const float* w, const float* bias, float* out, int64_t out_step) {
  ProjectOf<16, kMode>(rows, k, a, a_step, w, bias, out, out_step);
}

template <RnnMode kMode>
StripKernel KernelOf() {
  if (WideVectors()) return {kVecs<16, kMode> * 16, ProjectWide<kMode>, StepWide<kMode>};
  return {kVecs<8, kMode> * 8, Project<kMode>, Step<kMode>};
}

}  // namespace

StripKernel StripKernelOf(RnnMode mode) {
  switch (mode) {
    case RnnMode::kTanh:
      return KernelOf<RnnMode::kTanh>();
    case RnnMode::kRelu:
      return KernelOf<RnnMode::kRelu>();
    case RnnMode::kLstm:
      return KernelOf<RnnMode::kLstm>();
    case RnnMode::kGru:
      return KernelOf<RnnMode::kGru>();
  }
  return {};
}

}  // namespace heddle
