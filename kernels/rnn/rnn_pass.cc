#include "kernels/rnn/rnn_pass.h"

#include <Eigen/Core>
#include <algorithm>

#include "kernels/gemm/gemm.h"

namespace heddle {
namespace {

template <typename T>
using Row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <typename T>
using ConstRow = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

template <typename T>
void Sigmoid(Row<T> x) {
  x = T(1) / (T(1) + (-x).exp());
}

// Activates the gates' sums of one sequence and computes the new state. `recurrent` is the product
// of state and weights for GRU, which keeps it apart from the input's.
template <typename T>
void Step(RnnMode mode, int64_t n, T* gates, const T* recurrent, const T* h_prev, const T* c_prev,
          T* cell, T* h) {
  Row<T> out(h, n);
  switch (mode) {
    case RnnMode::kTanh:
      Row<T>(gates, n) = Row<T>(gates, n).tanh();
      out = Row<T>(gates, n);
      return;
    case RnnMode::kRelu:
      Row<T>(gates, n) = Row<T>(gates, n).max(T(0));
      out = Row<T>(gates, n);
      return;
    case RnnMode::kLstm: {
      Sigmoid(Row<T>(gates, 2 * n));
      Row<T> g(gates + 2 * n, n), c(cell, n);
      g = g.tanh();
      Sigmoid(Row<T>(gates + 3 * n, n));
      c = Row<T>(gates + n, n) * ConstRow<T>(c_prev, n) + Row<T>(gates, n) * g;
      out = Row<T>(gates + 3 * n, n) * c.tanh();
      return;
    }
    case RnnMode::kGru: {
      Row<T>(gates, 2 * n) += ConstRow<T>(recurrent, 2 * n);
      Sigmoid(Row<T>(gates, 2 * n));
      Row<T> candidate(gates + 2 * n, n), z(gates + n, n);
      Row<T>(cell, n) = ConstRow<T>(recurrent + 2 * n, n);
      candidate = (candidate + Row<T>(gates, n) * Row<T>(cell, n)).tanh();
      out = (T(1) - z) * candidate + z * ConstRow<T>(h_prev, n);
      return;
    }
  }
}

// The gradients of one sequence at one step. `dh` and `dc` hold the gradients of the new state and
// are replaced by those of the old one, without the part through the recurrent product. `dx` and
// `dr` become the gradients of the input's and the recurrent part of the gates.
template <typename T>
void StepBackward(RnnMode mode, int64_t n, const T* gates, const T* cell, const T* h_prev,
                  const T* c_prev, T* dh, T* dc, T* dx, T* dr) {
  Row<T> g_h(dh, n);
  const auto gate = [&](int64_t i) { return ConstRow<T>(gates + i * n, n); };
  const auto to = [&](int64_t i) { return Row<T>(dx + i * n, n); };
  switch (mode) {
    case RnnMode::kTanh:
      to(0) = g_h * (T(1) - gate(0).square());
      g_h.setZero();
      break;
    case RnnMode::kRelu:
      to(0) = (gate(0) > T(0)).select(g_h, T(0));
      g_h.setZero();
      break;
    case RnnMode::kLstm: {
      Row<T> g_c(dc, n);
      to(1) = ConstRow<T>(cell, n).tanh();  // kept there until the gate is written
      to(3) = g_h * to(1) * gate(3) * (T(1) - gate(3));
      g_c += g_h * gate(3) * (T(1) - to(1).square());
      to(0) = g_c * gate(2) * gate(0) * (T(1) - gate(0));
      to(1) = g_c * ConstRow<T>(c_prev, n) * gate(1) * (T(1) - gate(1));
      to(2) = g_c * gate(0) * (T(1) - gate(2).square());
      g_c *= gate(1);
      g_h.setZero();
      break;
    }
    case RnnMode::kGru: {
      to(2) = g_h * (T(1) - gate(1)) * (T(1) - gate(2).square());
      to(1) = g_h * (ConstRow<T>(h_prev, n) - gate(2)) * gate(1) * (T(1) - gate(1));
      to(0) = to(2) * ConstRow<T>(cell, n) * gate(0) * (T(1) - gate(0));
      Row<T>(dr, 2 * n) = Row<T>(dx, 2 * n);
      Row<T>(dr + 2 * n, n) = to(2) * gate(0);
      g_h *= gate(1);
      return;
    }
  }
  const int64_t all = RnnGates(mode) * n;
  Row<T>(dr, all) = Row<T>(dx, all);
}

}  // namespace

template <typename T>
void RnnForward(const KernelContext& ctx, const RnnSizes& s, const RnnWeights<T>& w, const T* x,
                const T* h0, const T* c0, const RnnTrace<T>& trace, T* out, int64_t out_step) {
  const int64_t gates = s.gates(), n = s.hidden, rows = s.steps * s.batch;
  const bool gru = s.mode == RnnMode::kGru;
  ParallelGemm(ctx, GemmDims::Dense(rows, gates, s.in, false, true), T(1), x, w.ih, T(0),
               trace.gates);
  for (int64_t r = 0; r < rows; ++r) {
    Row<T> gate(trace.gates + r * gates, gates);
    if (w.bias_ih) gate += ConstRow<T>(w.bias_ih, gates);
    if (w.bias_hh && !gru) gate += ConstRow<T>(w.bias_hh, gates);
  }
  Tensor hold =
      ctx.Scratch(sizeof(T) == 4 ? DType::kF32 : DType::kF64, {gru ? s.batch * gates : 0});
  T* recurrent = hold.mutable_data<T>();
  const T *h = h0, *c = c0;
  const int64_t longest = LongestOf(s.lengths, s.batch, s.steps);
  for (int64_t i = 0; i < s.steps; ++i) {
    const int64_t t = s.At(i);
    T* gate = trace.gates + t * s.batch * gates;
    T* to = trace.states + t * s.batch * n;
    T* cell = trace.cells + t * s.batch * n;
    if (gru)
      for (int64_t b = 0; b < s.batch; ++b) {
        if (w.bias_hh)
          std::copy_n(w.bias_hh, gates, recurrent + b * gates);
        else
          std::fill_n(recurrent + b * gates, gates, T(0));
      }
    if (t < longest)
      ParallelGemm(ctx, GemmDims::Dense(s.batch, gates, n), T(1), h, w.hh_transposed, T(1),
                   gru ? recurrent : gate);
    for (int64_t b = 0; b < s.batch; ++b) {
      T* y = out + (t * s.batch + b) * out_step;
      if (!s.Active(t, b)) {
        std::copy_n(h + b * n, n, to + b * n);
        if (s.mode == RnnMode::kLstm) std::copy_n(c + b * n, n, cell + b * n);
        std::fill_n(y, n, T(0));
        continue;
      }
      Step(s.mode, n, gate + b * gates, recurrent + b * gates, h + b * n, c ? c + b * n : nullptr,
           cell + b * n, to + b * n);
      std::copy_n(to + b * n, n, y);
    }
    h = to;
    if (s.mode == RnnMode::kLstm) c = cell;
  }
}

namespace {

// Adds the sum of `rows` rows of `n` elements to `to`.
template <typename T>
void SumRows(const T* from, int64_t rows, int64_t n, T* to) {
  Row<T> sum(to, n);
  for (int64_t r = 0; r < rows; ++r) sum += ConstRow<T>(from + r * n, n);
}

}  // namespace

template <typename T>
void RnnBackward(const KernelContext& ctx, const RnnSizes& s, const RnnWeights<T>& w, const T* x,
                 const T* h0, const T* c0, const RnnTrace<T>& trace, const RnnGrads<T>& grads,
                 T* work) {
  const int64_t gates = s.gates(), n = s.hidden, rows = s.steps * s.batch;
  T* dx = work;
  T* dr = work + rows * gates;
  for (int64_t i = s.steps; i-- > 0;) {
    const int64_t t = s.At(i);
    const T* h = i == 0 ? h0 : trace.states + s.At(i - 1) * s.batch * n;
    const T* c = s.mode != RnnMode::kLstm ? nullptr
                 : i == 0                 ? c0
                                          : trace.cells + s.At(i - 1) * s.batch * n;
    for (int64_t b = 0; b < s.batch; ++b) {
      const int64_t row = t * s.batch + b;
      if (!s.Active(t, b)) {
        std::fill_n(dx + row * gates, gates, T(0));
        std::fill_n(dr + row * gates, gates, T(0));
        continue;
      }
      Row<T>(grads.h + b * n, n) += ConstRow<T>(grads.out + row * grads.out_step, n);
      StepBackward(s.mode, n, trace.gates + row * gates, trace.cells + row * n, h + b * n,
                   c ? c + b * n : nullptr, grads.h + b * n, grads.c ? grads.c + b * n : nullptr,
                   dx + row * gates, dr + row * gates);
    }
    const T* step = dr + t * s.batch * gates;
    ParallelGemm(ctx, GemmDims::Dense(s.batch, n, gates), T(1), step, w.hh, T(1), grads.h);
    if (grads.hh)
      ParallelGemm(ctx, GemmDims::Dense(gates, n, s.batch, true), T(1), step, h, T(1), grads.hh);
  }
  if (grads.ih)
    ParallelGemm(ctx, GemmDims::Dense(gates, s.in, rows, true), T(1), dx, x, T(1), grads.ih);
  if (grads.x) ParallelGemm(ctx, GemmDims::Dense(rows, s.in, gates), T(1), dx, w.ih, T(1), grads.x);
  if (grads.bias_ih) SumRows(dx, rows, gates, grads.bias_ih);
  if (grads.bias_hh) SumRows(dr, rows, gates, grads.bias_hh);
}

#define HEDDLE_RNN(T)                                                                         \
  template void RnnForward<T>(const KernelContext&, const RnnSizes&, const RnnWeights<T>&,    \
                              const T*, const T*, const T*, const RnnTrace<T>&, T*, int64_t); \
  template void RnnBackward<T>(const KernelContext&, const RnnSizes&, const RnnWeights<T>&,   \
                               const T*, const T*, const T*, const RnnTrace<T>&,              \
                               const RnnGrads<T>&, T*);
HEDDLE_RNN(float)
HEDDLE_RNN(double)
#undef HEDDLE_RNN

}  // namespace heddle
