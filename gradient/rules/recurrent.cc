// ONNX's RNN, GRU and LSTM, step by step (onnx.ai/onnx/operators, the equations there).
#include <algorithm>
#include <cctype>
#include <string>

#include "gradient/op_gradient.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::VarId;

class Cell {
 public:
  Cell(OpGradient& g, int64_t direction, int64_t directions)
      : g_(g), d_(direction), directions_(directions), kind_(g.Attr<std::string>("cell")) {
    std::transform(kind_.begin(), kind_.end(), kind_.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    gates_ = kind_ == "lstm" ? 4 : kind_ == "gru" ? 3 : 1;
  }

  // x: [steps, batch, size]. Gives the states of all steps, and the last ones.
  Status Run(VarId x, int64_t steps, VarId lengths) {
    const bool backward = g_.Attr<std::string>("direction") == "reverse" || d_ == 1;
    HEDDLE_RETURN_IF_ERROR(FindSizes());
    const VarId w = OfDirection(g_.In("W")), r = OfDirection(g_.In("R"));
    VarId wb = kNoVar, rb = kNoVar;
    if (g_.HasIn("B")) {
      const VarId b = OfDirection(g_.In("B"));
      wb = g_.Slice(b, {0}, {0}, {gates_ * h_});
      rb = g_.Slice(b, {0}, {gates_ * h_}, {2 * gates_ * h_});
    }
    const VarId p = g_.HasIn("P") ? OfDirection(g_.In("P")) : kNoVar;
    VarId hidden = Initial("initial_h"), memory = Initial("initial_c");
    VarId all = g_.Emit("matmul_v2", {{"X", x}, {"Y", w}}, {{"trans_y", true}});
    if (wb != kNoVar) all = g_.Plus(all, wb);
    outs_.resize(static_cast<size_t>(steps));
    for (int64_t k = 0; k < steps; ++k) {
      const int64_t t = backward ? steps - 1 - k : k;
      const VarId xw = g_.Squeeze(g_.Slice(all, {0}, {t}, {t + 1}), 0);
      VarId next = kNoVar, next_memory = kNoVar;
      if (kind_ == "lstm")
        HEDDLE_RETURN_IF_ERROR(Lstm(xw, r, rb, p, hidden, memory, &next, &next_memory));
      else if (kind_ == "gru")
        HEDDLE_RETURN_IF_ERROR(Gru(xw, r, rb, hidden, &next));
      else
        HEDDLE_RETURN_IF_ERROR(Apply(0, Clipped(WithHidden(xw, r, rb, hidden)), &next));
      VarId out = next;
      if (lengths != kNoVar) {
        // Beyond the end of its sequence a state stays, and the output is 0.
        const VarId bound = g_.Scale(lengths, 0, static_cast<double>(t));
        const VarId inside =
            g_.Unsqueeze(g_.Cast(g_.Compare("greater_than", lengths, bound), g_.Info(x).dtype), 1);
        const VarId outside = g_.Scale(inside, -1, 1);
        const auto kept = [&](VarId now, VarId before) {
          const VarId mine = g_.Mul(now, inside);
          return before == kNoVar ? mine : g_.Plus(mine, g_.Mul(before, outside));
        };
        out = g_.Mul(next, inside);
        next = kept(next, hidden);
        if (next_memory != kNoVar) next_memory = kept(next_memory, memory);
      }
      hidden = next;
      memory = next_memory;
      outs_[static_cast<size_t>(t)] = out;
    }
    hidden_ = hidden;
    memory_ = memory;
    return Status::Ok();
  }

  const std::vector<VarId>& outs() const { return outs_; }
  VarId hidden() const { return hidden_; }
  VarId memory() const { return memory_; }

 private:
  Status FindSizes() {
    const Shape& r = g_.Info(g_.InVar("R")).shape;
    h_ = g_.Attr<int64_t>("hidden_size");
    if (h_ <= 0 && r.known_rank()) h_ = r[2];
    if (h_ <= 0) return Unimplemented("a hidden size that is not known");
    return Status::Ok();
  }
  VarId OfDirection(VarId v) {
    return g_.Squeeze(directions_ == 1 ? v : g_.Slice(v, {0}, {d_}, {d_ + 1}), 0);
  }
  VarId Initial(std::string_view slot) {
    if (!g_.HasIn(slot)) return kNoVar;
    const int64_t axis = g_.Attr<int64_t>("layout") == 0 ? 0 : 1;
    const VarId v = g_.In(slot);
    return g_.Squeeze(directions_ == 1 ? v : g_.Slice(v, {axis}, {d_}, {d_ + 1}), axis);
  }
  VarId Gate(VarId v, int64_t k) { return g_.Slice(v, {1}, {k * h_}, {(k + 1) * h_}); }
  // xw + hidden R^T + rb
  VarId WithHidden(VarId xw, VarId r, VarId rb, VarId hidden) {
    VarId sum = xw;
    if (hidden != kNoVar)
      sum = g_.Plus(sum, g_.Emit("matmul_v2", {{"X", hidden}, {"Y", r}}, {{"trans_y", true}}));
    return rb == kNoVar ? sum : g_.Plus(sum, rb);
  }
  VarId Clipped(VarId v) {
    const double clip = g_.Attr<double>("clip");
    return clip <= 0 ? v : g_.Emit("clip", {{"X", v}}, {{"min", -clip}, {"max", clip}});
  }
  VarId Peephole(VarId sum, VarId p, int64_t k, VarId memory) {
    if (p == kNoVar || memory == kNoVar) return sum;
    return g_.Plus(sum, g_.Mul(memory, g_.Slice(p, {0}, {k * h_}, {(k + 1) * h_})));
  }

  // Activation k of the direction.
  Status Apply(int64_t k, VarId x, VarId* y) {
    const Strings& names = g_.Attr<Strings>("activations");
    const int64_t each = kind_ == "lstm" ? 3 : kind_ == "gru" ? 2 : 1;
    const auto at = static_cast<size_t>(d_ * each + k);
    std::string name = at < names.size() ? names[at] : each == 1 || k > 0 ? "tanh" : "sigmoid";
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto number = [&](std::string_view attr, double otherwise) {
      const Floats& given = g_.Attr<Floats>(attr);
      return at < given.size() ? given[at] : otherwise;
    };
    if (name == "tanh" || name == "sigmoid" || name == "relu" || name == "softsign" ||
        name == "softplus") {
      *y = g_.Unary(name, x);
    } else if (name == "leakyrelu") {
      *y = g_.Emit("leaky_relu", {{"X", x}}, {{"alpha", number("activation_alpha", 0.01)}});
    } else if (name == "elu") {
      *y = g_.Emit("elu", {{"X", x}}, {{"alpha", number("activation_alpha", 1)}});
    } else if (name == "thresholdedrelu") {
      *y = g_.Emit("thresholded_relu", {{"X", x}}, {{"threshold", number("activation_alpha", 1)}});
    } else if (name == "affine") {
      *y = g_.Scale(x, number("activation_alpha", 1), number("activation_beta", 0));
    } else if (name == "scaledtanh") {
      *y = g_.Scale(g_.Unary("tanh", g_.Scale(x, number("activation_beta", 1))),
                    number("activation_alpha", 1));
    } else if (name == "hardsigmoid") {
      *y = g_.Emit(
          "hard_sigmoid", {{"X", x}},
          {{"slope", number("activation_alpha", 0.2)}, {"offset", number("activation_beta", 0.5)}});
    } else {
      return Unimplemented("the gradient of the activation '", name, "'");
    }
    return Status::Ok();
  }

  Status Lstm(VarId xw, VarId r, VarId rb, VarId p, VarId hidden, VarId memory, VarId* next,
              VarId* next_memory) {
    const VarId sum = WithHidden(xw, r, rb, hidden);
    VarId i = kNoVar, f = kNoVar, c = kNoVar, o = kNoVar, m = kNoVar;
    HEDDLE_RETURN_IF_ERROR(Apply(0, Clipped(Peephole(Gate(sum, 0), p, 0, memory)), &i));
    if (g_.Attr<int64_t>("input_forget") != 0)
      f = g_.Scale(i, -1, 1);
    else
      HEDDLE_RETURN_IF_ERROR(Apply(0, Clipped(Peephole(Gate(sum, 2), p, 2, memory)), &f));
    HEDDLE_RETURN_IF_ERROR(Apply(1, Clipped(Gate(sum, 3)), &c));
    *next_memory = g_.Mul(i, c);
    if (memory != kNoVar) *next_memory = g_.Plus(g_.Mul(f, memory), *next_memory);
    HEDDLE_RETURN_IF_ERROR(Apply(0, Clipped(Peephole(Gate(sum, 1), p, 1, *next_memory)), &o));
    HEDDLE_RETURN_IF_ERROR(Apply(2, *next_memory, &m));
    *next = g_.Mul(o, m);
    return Status::Ok();
  }

  Status Gru(VarId xw, VarId r, VarId rb, VarId hidden, VarId* next) {
    const auto rows = [&](int64_t from, int64_t to) {
      return g_.Slice(r, {0}, {from * h_}, {to * h_});
    };
    const auto part = [&](int64_t from, int64_t to) {
      return rb == kNoVar ? kNoVar : g_.Slice(rb, {0}, {from * h_}, {to * h_});
    };
    const VarId gates =
        WithHidden(g_.Slice(xw, {1}, {0}, {2 * h_}), rows(0, 2), part(0, 2), hidden);
    VarId z = kNoVar, reset = kNoVar, fresh = kNoVar;
    HEDDLE_RETURN_IF_ERROR(Apply(0, Clipped(Gate(gates, 0)), &z));
    HEDDLE_RETURN_IF_ERROR(Apply(0, Clipped(Gate(gates, 1)), &reset));
    VarId sum = Gate(xw, 2);
    if (g_.Attr<int64_t>("linear_before_reset") != 0) {
      VarId inner = part(2, 3);
      if (hidden != kNoVar) {
        const VarId product =
            g_.Emit("matmul_v2", {{"X", hidden}, {"Y", rows(2, 3)}}, {{"trans_y", true}});
        inner = inner == kNoVar ? product : g_.Plus(product, inner);
      }
      if (inner != kNoVar) sum = g_.Plus(sum, g_.Mul(reset, inner));
    } else {
      sum = WithHidden(sum, rows(2, 3), part(2, 3),
                       hidden == kNoVar ? kNoVar : g_.Mul(reset, hidden));
    }
    HEDDLE_RETURN_IF_ERROR(Apply(1, Clipped(sum), &fresh));
    *next = g_.Mul(g_.Scale(z, -1, 1), fresh);
    if (hidden != kNoVar) *next = g_.Plus(*next, g_.Mul(z, hidden));
    return Status::Ok();
  }

  OpGradient& g_;
  const int64_t d_, directions_;
  std::string kind_;
  int64_t gates_ = 1, h_ = 0;
  std::vector<VarId> outs_;
  VarId hidden_ = kNoVar, memory_ = kNoVar;
};

}  // namespace

Status RecurrentNetworkGradient(OpGradient& g) {
  return g.Through([&](OpGradient::Outputs* out) {
    const bool batch_first = g.Attr<int64_t>("layout") != 0;
    VarId x = g.In("X");
    const Shape& shape = g.Info(x).shape;
    const int64_t steps = shape.known_rank() ? shape[batch_first ? 1 : 0] : -1;
    if (steps < 0) return Unimplemented("its gradient needs the number of steps, which is open");
    if (batch_first) x = g.Transpose(x, {1, 0, 2});
    const int64_t directions = g.Attr<std::string>("direction") == "bidirectional" ? 2 : 1;
    std::vector<VarId> steps_of[2], hidden, memory;
    for (int64_t d = 0; d < directions; ++d) {
      Cell cell(g, d, directions);
      HEDDLE_RETURN_IF_ERROR(
          cell.Run(x, steps, g.HasIn("sequence_lens") ? g.In("sequence_lens") : kNoVar));
      steps_of[d] = cell.outs();
      hidden.push_back(cell.hidden());
      memory.push_back(cell.memory());
    }
    const auto stacked = [&](const std::vector<VarId>& parts, int64_t axis) {
      return g.EmitMany("stack", {{"X", parts}}, {{"axis", axis}}, "Y", 1)[0];
    };
    if (g.OutGrad("Y") != kNoVar) {
      std::vector<VarId> each;
      for (int64_t d = 0; d < directions; ++d)
        each.push_back(stacked(steps_of[d], batch_first ? 1 : 0));
      // [steps, directions, batch, hidden] or [batch, steps, directions, hidden]
      out->push_back({{"Y", 0}, stacked(each, batch_first ? 2 : 1)});
    }
    if (g.OutGrad("Y_h") != kNoVar)
      out->push_back({{"Y_h", 0}, stacked(hidden, batch_first ? 1 : 0)});
    if (g.OutGrad("Y_c") != kNoVar)
      out->push_back({{"Y_c", 0}, stacked(memory, batch_first ? 1 : 0)});
    return Status::Ok();
  });
}

}  // namespace heddle::gradient
