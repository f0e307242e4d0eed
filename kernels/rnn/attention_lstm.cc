// attention_lstm: each step reads the whole sequence, weighted by the cell's attention; gates in
// the order forget, input, output, candidate.
#include "core/interrupts.h"
#include "kernels/sequence/sequence_batch.h"

namespace heddle {
namespace {

template <typename T>
struct Layer {
  int64_t width, size;
  GateActivation gate, cell, candidate;
  const T *attention, *attention_bias, *scalar, *scalar_bias;  // may be null but the first
  const T *weight, *bias;  // [size + width, 4 size], hidden rows first

  static Result<Layer> Of(const KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &w = ctx.In("LSTMWeight"), &b = ctx.In("LSTMBias");
    const Tensor& attention = ctx.In("AttentionWeight");
    Layer l;
    l.width = x.rank() == 2 ? x.dim(1) : -1;
    l.size = w.rank() == 2 ? w.dim(1) / 4 : -1;
    if (l.width < 0 || l.size < 1 || w.dim(1) != 4 * l.size || w.dim(0) != l.size + l.width ||
        b.numel() != 4 * l.size || attention.numel() != l.size + l.width)
      return InvalidArgument("X ", x.shape().ToString(), ", AttentionWeight ",
                             attention.shape().ToString(), ", LSTMWeight ", w.shape().ToString(),
                             " and LSTMBias ", b.shape().ToString(), " do not fit each other");
    HEDDLE_ASSIGN_OR_RETURN(l.gate, GateActivationOf(ctx.Str("gate_activation")));
    HEDDLE_ASSIGN_OR_RETURN(l.cell, GateActivationOf(ctx.Str("cell_activation")));
    HEDDLE_ASSIGN_OR_RETURN(l.candidate, GateActivationOf(ctx.Str("candidate_activation")));
    const auto number = [&](Key key) {
      const Tensor* t = ctx.InOpt(key);
      return t != nullptr && t->numel() > 0 ? t->data<T>() : nullptr;
    };
    l.attention = attention.data<T>();
    l.attention_bias = number("AttentionBias");
    l.scalar = number("AttentionScalar");
    l.scalar_bias = number("AttentionScalarBias");
    l.weight = w.data<T>();
    l.bias = b.data<T>();
    return l;
  }

  // The mean of the sequence, weighted by the softmax of its scores against the cell's state.
  // `score` [n] holds the part of the scores that depends on the sequence alone.
  void Attend(const T* x, int64_t n, const std::vector<T>& fixed, const T* state, T* to) const {
    T from_state = 0;
    for (int64_t k = 0; k < size; ++k) from_state += state[k] * attention[width + k];
    std::vector<T> score(static_cast<size_t>(n));
    T max = 0, sum = 0;
    for (size_t i = 0; i < score.size(); ++i) {
      score[i] = std::max(fixed[i] + from_state, T(0));
      if (scalar != nullptr) {
        score[i] *= *scalar;
        score[i] = std::max(score[i] + (scalar_bias != nullptr ? *scalar_bias : T(0)), T(0));
      }
      max = i == 0 ? score[i] : std::max(max, score[i]);
    }
    for (T& s : score) sum += s = std::exp(s - max);
    std::fill_n(to, width, T(0));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < width; ++k)
        to[k] += score[static_cast<size_t>(i)] / sum * x[i * width + k];
  }

  void Step(const T* x, T* h, T* c) const {
    const int64_t d = size;
    std::vector<T> g(bias, bias + 4 * d);
    MatrixMap<T> gates(g.data(), 1, 4 * d);
    AddProduct(gates, ConstMatrixMap<T>(x, 1, width),
               ConstMatrixMap<T>(weight + d * 4 * d, width, 4 * d));
    AddProduct(gates, ConstMatrixMap<T>(h, 1, d), ConstMatrixMap<T>(weight, d, 4 * d));
    for (int64_t k = 0; k < d; ++k) {
      const auto at = [&](int64_t part) { return g[static_cast<size_t>(part * d + k)]; };
      c[k] = Activate(gate, at(0)) * c[k] + Activate(gate, at(1)) * Activate(candidate, at(3));
      h[k] = Activate(gate, at(2)) * Activate(cell, c[k]);
    }
  }
};

Status InferAttentionLstm(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &w = ctx.InShape("LSTMWeight");
  if (!x.known_rank() || !w.is_static()) return ctx.Defer();
  if (x.rank() != 2 || w.rank() != 2)
    return InvalidArgument("X ", x.ToString(), " and LSTMWeight ", w.ToString(),
                           " must be matrices");
  ctx.SetOut("Hidden", Shape{x[0], w[1] / 4}, ctx.InDType("X"));
  ctx.SetOut("Cell", Shape{x[0], w[1] / 4}, ctx.InDType("X"));
  ctx.ShareLoD("X", "Hidden");
  ctx.ShareLoD("X", "Cell");
  return Status::Ok();
}

template <typename T>
struct AttentionLstm {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &c0 = ctx.In("C0"), *h0 = ctx.InOpt("H0");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    HEDDLE_ASSIGN_OR_RETURN(const Layer<T> layer, Layer<T>::Of(ctx));
    const int64_t d = layer.size, count = SequenceCount(*offsets);
    if (c0.numel() != count * d || (h0 != nullptr && h0->numel() != count * d))
      return InvalidArgument("C0 and H0 must be [", count, ", ", d, "]");
    T* hidden = ctx.Out("Hidden").template mutable_data<T>();
    T* cells = ctx.Out("Cell").template mutable_data<T>();
    std::vector<T> input(static_cast<size_t>(layer.width));
    for (int64_t s = 0; s < count; ++s) {
      const int64_t first = Begin(*offsets, s), n = Length(*offsets, s);
      const T* sequence = x.data<T>() + first * layer.width;
      std::vector<T> c(c0.data<T>() + s * d, c0.data<T>() + (s + 1) * d);
      std::vector<T> h(static_cast<size_t>(d), T(0)), fixed(static_cast<size_t>(n));
      if (h0 != nullptr) std::copy_n(h0->data<T>() + s * d, d, h.data());
      for (int64_t i = 0; i < n; ++i) {
        T& sum = fixed[static_cast<size_t>(i)];
        sum = layer.attention_bias != nullptr ? *layer.attention_bias : T(0);
        for (int64_t k = 0; k < layer.width; ++k)
          sum += sequence[i * layer.width + k] * layer.attention[k];
      }
      for (int64_t t = first; t < first + n; ++t) {
        LookForInterrupt();
        layer.Attend(sequence, n, fixed, c.data(), input.data());
        layer.Step(input.data(), h.data(), c.data());
        std::copy_n(h.data(), d, hidden + t * d);
        std::copy_n(c.data(), d, cells + t * d);
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(attention_lstm) {
  op.Doc("long short-term memory whose input is an attended sequence").Input("X").Input("C0");
  op.Input("H0", kOptional).Input("AttentionWeight").Input("AttentionBias", kOptional);
  op.Input("AttentionScalar", kOptional).Input("AttentionScalarBias", kOptional);
  op.Input("LSTMWeight").Input("LSTMBias").Output("Hidden").Output("Cell");
  op.Attr("gate_activation", "sigmoid").Attr("cell_activation", "tanh");
  op.Attr("candidate_activation", "tanh");
  op.InferShape(InferAttentionLstm).Kernels<AttentionLstm, float, double>();
}
