// Sequences of several lengths run step by step: the longest first, so that the sequences still
// running at a step are always a prefix.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/linalg/linalg.h"
#include "kernels/sequence/sequence.h"

namespace heddle {

struct SequenceBatch {
  std::vector<int64_t> order;  // sequences by falling length
  std::vector<int64_t> start;  // first batch row of each step, + end
  std::vector<int64_t> row;    // row in sequence order of each batch row

  SequenceBatch(const Offsets& offsets, bool reverse) : order(offsets.size() - 1) {
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return Length(offsets, a) > Length(offsets, b); });
    const int64_t longest = order.empty() ? 0 : Length(offsets, order[0]);
    start.push_back(0);
    for (int64_t t = 0; t < longest; ++t) {
      for (int64_t s : order) {
        const int64_t length = Length(offsets, s);
        if (length <= t) break;
        row.push_back(Begin(offsets, s) + (reverse ? length - 1 - t : t));
      }
      start.push_back(static_cast<int64_t>(row.size()));
    }
  }
  int64_t steps() const { return static_cast<int64_t>(start.size()) - 1; }
  int64_t Start(int64_t t) const { return start[static_cast<size_t>(t)]; }
  int64_t Size(int64_t t) const { return Start(t + 1) - Start(t); }
};

// kBoundedSigmoid cuts its argument to [-40, 13], as Paddle's recurrent operators do.
enum class GateActivation { kIdentity, kSigmoid, kTanh, kRelu, kBoundedSigmoid };

inline Result<GateActivation> GateActivationOf(const std::string& name) {
  if (name == "identity" || name == "linear" || name.empty()) return GateActivation::kIdentity;
  if (name == "sigmoid") return GateActivation::kSigmoid;
  if (name == "tanh") return GateActivation::kTanh;
  if (name == "relu") return GateActivation::kRelu;
  return InvalidArgument("unknown activation '", name, "'");
}

template <typename T>
T Activate(GateActivation a, T x) {
  switch (a) {
    case GateActivation::kSigmoid:
      return SigmoidOf(x);
    case GateActivation::kBoundedSigmoid:
      return SigmoidOf(std::min(std::max(x, T(-40)), T(13)));
    case GateActivation::kTanh:
      return std::tanh(x);
    case GateActivation::kRelu:
      return std::max(x, T(0));
    default:
      return x;
  }
}
// The derivative of an activation, given its result.
template <typename T>
T Slope(GateActivation a, T y) {
  switch (a) {
    case GateActivation::kSigmoid:
    case GateActivation::kBoundedSigmoid:
      return y * (T(1) - y);
    case GateActivation::kTanh:
      return T(1) - y * y;
    case GateActivation::kRelu:
      return y > T(0) ? T(1) : T(0);
    default:
      return T(1);
  }
}

// One step of a gated recurrent unit for n sequences. Gates are [n, 3 size]: update, reset,
// candidate; the weight holds [size, 2 size] for the first two, then [size, size] for the
// candidate.
template <typename T>
struct GruStep {
  int64_t size;
  GateActivation act, gate_act;
  bool origin_mode;  // h = u p + (1 - u) c instead of (1 - u) p + u c
  const T* weight;

  // `gate` holds the projected input and is activated in place. `prev` may be null, for zeros.
  void Forward(int64_t n, T* gate, const T* prev, T* reset_prev, T* hidden) const {
    using Strided = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;
    const int64_t d = size;
    if (prev)
      AddProduct(Strided(gate, n, 2 * d, Eigen::OuterStride<>(3 * d)),
                 ConstMatrixMap<T>(prev, n, d), ConstMatrixMap<T>(weight, d, 2 * d));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < d; ++k) {
        T* g = gate + i * 3 * d;
        g[k] = Activate(gate_act, g[k]);
        g[d + k] = Activate(gate_act, g[d + k]);
        reset_prev[i * d + k] = prev ? g[d + k] * prev[i * d + k] : T(0);
      }
    if (prev)
      AddProduct(Strided(gate + 2 * d, n, d, Eigen::OuterStride<>(3 * d)),
                 ConstMatrixMap<T>(reset_prev, n, d), ConstMatrixMap<T>(weight + 2 * d * d, d, d));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < d; ++k) {
        T* g = gate + i * 3 * d;
        const T c = g[2 * d + k] = Activate(act, g[2 * d + k]);
        const T p = prev ? prev[i * d + k] : T(0), u = origin_mode ? T(1) - g[k] : g[k];
        hidden[i * d + k] = p + u * (c - p);
      }
  }

  // Adds to dprev and dweight (both may be null); dgate is written.
  void Backward(int64_t n, const T* gate, const T* prev, const T* reset_prev, const T* dhidden,
                T* dgate, T* dprev, T* dweight) const {
    const int64_t d = size;
    Matrix<T> dc(n, d), gates(n, 2 * d);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < d; ++k) {
        const T *g = gate + i * 3 * d, dh = dhidden[i * d + k];
        const T p = prev ? prev[i * d + k] : T(0), c = g[2 * d + k];
        const T u = origin_mode ? T(1) - g[k] : g[k], du = dh * (c - p);
        dc(i, k) = dh * u * Slope(act, c);
        gates(i, k) = (origin_mode ? -du : du) * Slope(gate_act, g[k]);
        if (dprev) dprev[i * d + k] += dh * (T(1) - u);
      }
    const ConstMatrixMap<T> wg(weight, d, 2 * d), wc(weight + 2 * d * d, d, d);
    const Matrix<T> dreset = Product<T>(dc, Turned<T>(wc));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < d; ++k) {
        const T r = gate[i * 3 * d + d + k], p = prev ? prev[i * d + k] : T(0);
        gates(i, d + k) = dreset(i, k) * p * Slope(gate_act, r);
        if (dprev && prev) dprev[i * d + k] += dreset(i, k) * r;
      }
    if (dprev && prev) AddProduct(MatrixMap<T>(dprev, n, d), gates, Turned<T>(wg));
    if (dweight && prev) {
      AddProduct(MatrixMap<T>(dweight, d, 2 * d), Turned<T>(ConstMatrixMap<T>(prev, n, d)), gates);
      AddProduct(MatrixMap<T>(dweight + 2 * d * d, d, d),
                 Turned<T>(ConstMatrixMap<T>(reset_prev, n, d)), dc);
    }
    MatrixMap<T> all(dgate, n, 3 * d);
    all.leftCols(2 * d) = gates;
    all.rightCols(d) = dc;
  }
};

}  // namespace heddle
