#include "kernels/rnn/recurrent.h"

#include <cctype>
#include <cmath>
#include <memory_resource>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/quantize/quantized.h"
#include "kernels/rnn/recurrent_packed.h"

namespace heddle {
namespace {

struct NamedFunction {
  const char* name;
  GateFunction function;
  bool takes_alpha, takes_beta;
};
constexpr NamedFunction kFunctions[] = {
    {"sigmoid", {GateFunction::kSigmoid, 0, 0}, false, false},
    {"tanh", {GateFunction::kTanh, 0, 0}, false, false},
    {"relu", {GateFunction::kRelu, 0, 0}, false, false},
    {"affine", {GateFunction::kAffine, 1, 0}, true, true},
    {"leakyrelu", {GateFunction::kLeakyRelu, 0.01, 0}, true, false},
    {"thresholdedrelu", {GateFunction::kThresholdedRelu, 1, 0}, true, false},
    {"scaledtanh", {GateFunction::kScaledTanh, 1, 1}, true, true},
    {"hardsigmoid", {GateFunction::kHardSigmoid, 0.2, 0.5}, true, true},
    {"elu", {GateFunction::kElu, 1, 0}, true, false},
    {"softsign", {GateFunction::kSoftsign, 0, 0}, false, false},
    {"softplus", {GateFunction::kSoftplus, 0, 0}, false, false},
};

// The lists of alphas and betas hold values for those functions alone that take them, in order.
Result<RecurrentConfig::Functions> FunctionsOf(const OpContext& ctx, RecurrentKind kind,
                                               int64_t directions) {
  const Strings& names = ctx.Attr<Strings>("activations");
  const Floats& alphas = ctx.Attr<Floats>("activation_alpha");
  const Floats& betas = ctx.Attr<Floats>("activation_beta");
  const size_t each = kind == RecurrentKind::kLstm ? 3 : kind == RecurrentKind::kGru ? 2 : 1;
  const size_t count = each * static_cast<size_t>(directions);
  RecurrentConfig::Functions functions;
  if (names.empty()) {
    for (size_t i = 0; i < count; ++i) {
      const bool gate = each > 1 && i % each == 0;
      functions.push_back({gate ? GateFunction::kSigmoid : GateFunction::kTanh, 0, 0});
    }
    return functions;
  }
  if (names.size() < count)
    return InvalidArgument("activations names ", names.size(), " functions, expected ", count);
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < count; ++i) {
    std::string lower = names[i];
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const NamedFunction* found = nullptr;
    for (const NamedFunction& f : kFunctions)
      if (lower == f.name) found = &f;
    if (found == nullptr)
      return InvalidArgument("activations names '", names[i], "', which is no activation");
    GateFunction f = found->function;
    if (found->takes_alpha && alpha < alphas.size()) f.alpha = alphas[alpha++];
    if (found->takes_beta && beta < betas.size()) f.beta = betas[beta++];
    functions.push_back(f);
  }
  return functions;
}

template <typename Context>
Status CheckOperand(const Context& ctx, Key key, const Shape& expected) {
  if (!Has(ctx, key) || ShapeIn(ctx, key) == expected) return Status::Ok();
  return InvalidArgument("input ", key.name, " has shape ", ShapeIn(ctx, key).ToString(),
                         ", expected ", expected.ToString());
}

template <typename T>
T GateSigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

}  // namespace

template <typename T>
void GateFunction::Apply(T* x, int64_t n) const {
  const T a = static_cast<T>(alpha), b = static_cast<T>(beta);
  const auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i) x[i] = f(x[i]);
  };
  switch (kind) {
    case kSigmoid:
      return each([](T v) { return GateSigmoid(v); });
    case kTanh:
      return each([](T v) { return std::tanh(v); });
    case kRelu:
      return each([](T v) { return v > 0 ? v : T(0); });
    case kAffine:
      return each([=](T v) { return a * v + b; });
    case kLeakyRelu:
      return each([=](T v) { return v >= 0 ? v : a * v; });
    case kThresholdedRelu:
      return each([=](T v) { return v >= a ? v : T(0); });
    case kScaledTanh:
      return each([=](T v) { return a * std::tanh(b * v); });
    case kHardSigmoid:
      return each([=](T v) { return std::clamp(a * v + b, T(0), T(1)); });
    case kElu:
      return each([=](T v) { return v >= 0 ? v : a * (std::exp(v) - T(1)); });
    case kSoftsign:
      return each([](T v) { return v / (T(1) + std::fabs(v)); });
    case kSoftplus:
      return each([](T v) { return std::log1p(std::exp(-std::fabs(v))) + std::max(v, T(0)); });
  }
}

template <typename Context>
Result<RecurrentConfig> RecurrentConfigOf(const Context& ctx, RecurrentKind kind, bool transposed) {
  RecurrentConfig c;
  c.kind = kind;
  const std::string& direction = ctx.Str("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return InvalidArgument("direction is '", direction,
                           "', expected forward, reverse or bidirectional");
  c.reverse = direction == "reverse";
  c.directions = direction == "bidirectional" ? 2 : 1;
  c.batch_first = ctx.def().FindAttr("layout") >= 0 && ctx.Int("layout") != 0;
  c.clip = ctx.Float("clip");
  const Shape &x = ShapeIn(ctx, "X"), &w = ShapeIn(ctx, "W"), &r = ShapeIn(ctx, "R");
  HEDDLE_RETURN_IF_ERROR(CheckRank(x, 3, "X"));
  HEDDLE_RETURN_IF_ERROR(CheckRank(w, 3, "W"));
  HEDDLE_RETURN_IF_ERROR(CheckRank(r, 3, "R"));
  c.steps = x[c.batch_first ? 1 : 0];
  c.batch = x[c.batch_first ? 0 : 1];
  c.in = x[2];
  c.hidden = r[transposed ? 1 : 2];
  if (const int64_t wanted = ctx.Int("hidden_size"); wanted != 0 && wanted != c.hidden)
    return InvalidArgument("hidden_size is ", wanted, ", but R has shape ", r.ToString());
  const int64_t gates = c.gates() * c.hidden;
  HEDDLE_RETURN_IF_ERROR(CheckOperand(
      ctx, "W", transposed ? Shape{c.directions, c.in, gates} : Shape{c.directions, gates, c.in}));
  HEDDLE_RETURN_IF_ERROR(CheckOperand(
      ctx, "R",
      transposed ? Shape{c.directions, c.hidden, gates} : Shape{c.directions, gates, c.hidden}));
  HEDDLE_RETURN_IF_ERROR(CheckOperand(ctx, "B", {c.directions, 2 * gates}));
  HEDDLE_RETURN_IF_ERROR(CheckOperand(ctx, "sequence_lens", {c.batch}));
  const Shape state = c.batch_first ? Shape{c.batch, c.directions, c.hidden}
                                    : Shape{c.directions, c.batch, c.hidden};
  HEDDLE_RETURN_IF_ERROR(CheckOperand(ctx, "initial_h", state));
  if (kind == RecurrentKind::kLstm) {
    HEDDLE_RETURN_IF_ERROR(CheckOperand(ctx, "initial_c", state));
    HEDDLE_RETURN_IF_ERROR(CheckOperand(ctx, "P", {c.directions, 3 * c.hidden}));
    c.input_forget = ctx.Int("input_forget") != 0;
  }
  if (kind == RecurrentKind::kGru) c.linear_before_reset = ctx.Int("linear_before_reset") != 0;
  HEDDLE_ASSIGN_OR_RETURN(c.functions, FunctionsOf(ctx, kind, c.directions));
  return c;
}
template Result<RecurrentConfig> RecurrentConfigOf(const ShapeContext&, RecurrentKind, bool);
template Result<RecurrentConfig> RecurrentConfigOf(const KernelContext&, RecurrentKind, bool);
template Result<RecurrentConfig> RecurrentConfigOf(const PrepareContext&, RecurrentKind, bool);

void DeclareRecurrent(OpDef& op, RecurrentKind kind) {
  op.Input("X").Input("W").Input("R").Input("B", kOptional).Input("sequence_lens", kOptional);
  op.Input("initial_h", kOptional);
  if (kind == RecurrentKind::kLstm) op.Input("initial_c", kOptional).Input("P", kOptional);
  op.Output("Y", kOptional).Output("Y_h", kOptional);
  if (kind == RecurrentKind::kLstm) op.Output("Y_c", kOptional).Attr("input_forget", 0);
  if (kind == RecurrentKind::kGru) op.Attr("linear_before_reset", 0);
  op.Attr("direction", "forward").Attr("hidden_size", 0).Attr("clip", 0.0);
  op.Attr("activations", Strings{}).Attr("activation_alpha", Floats{});
  op.Attr("activation_beta", Floats{});
}

Status RecurrentShape(ShapeContext& ctx, RecurrentKind kind, bool transposed) {
  const DType dtype = ctx.InDType("X");
  const bool is_lstm = kind == RecurrentKind::kLstm;
  if (!AllStatic(ctx, {"X", "W", "R", "B", "sequence_lens", "initial_h"}) ||
      (is_lstm && !AllStatic(ctx, {"initial_c", "P"}))) {
    for (const Key& key : {Key("Y"), Key("Y_h"), Key("Y_c")})
      if ((is_lstm || key.hash != Key("Y_c").hash) && ctx.HasOut(key))
        ctx.SetOut(key, Shape::Unknown(), dtype);
    return ctx.Defer();
  }
  HEDDLE_ASSIGN_OR_RETURN(const RecurrentConfig c, RecurrentConfigOf(ctx, kind, transposed));
  if (ctx.HasOut("Y"))
    ctx.SetOut("Y",
               c.batch_first ? Shape{c.batch, c.steps, c.directions, c.hidden}
                             : Shape{c.steps, c.directions, c.batch, c.hidden},
               dtype);
  const Shape state = c.batch_first ? Shape{c.batch, c.directions, c.hidden}
                                    : Shape{c.directions, c.batch, c.hidden};
  if (ctx.HasOut("Y_h")) ctx.SetOut("Y_h", state, dtype);
  if (is_lstm && ctx.HasOut("Y_c")) ctx.SetOut("Y_c", state, dtype);
  return Status::Ok();
}

namespace {

// One direction.
template <typename T>
class LayerDirection {
 public:
  LayerDirection(KernelContext& ctx, const RecurrentConfig& c, const RecurrentWeights<T>& w,
                 int64_t d)
      : heap_(ctx), ctx_(ctx), c_(c), w_(w), d_(d), h_(c.hidden), gates_(c.gates() * c.hidden) {}

  Status Run(const T* x, const int64_t* lengths) {
    Prepare(x);
    const bool back = c_.reverse || d_ == 1;
    const int64_t longest = LongestOf(lengths, c_.batch, c_.steps);
    for (int64_t step = 0; step < longest; ++step) {
      HEDDLE_RETURN_IF_ERROR(ctx_.Interrupted());
      Recur();
      for (int64_t b = 0; b < c_.batch; ++b) {
        if (step >= lengths[b]) continue;
        const int64_t t = back ? lengths[b] - 1 - step : step;
        Cell(pre_.data() + (t * c_.batch + b) * gates_, b);
      }
      if (c_.kind == RecurrentKind::kGru && !c_.linear_before_reset) Candidate();
      for (int64_t b = 0; b < c_.batch; ++b) {
        if (step >= lengths[b]) continue;
        const int64_t t = back ? lengths[b] - 1 - step : step;
        T* pre = pre_.data() + (t * c_.batch + b) * gates_;
        if (c_.kind == RecurrentKind::kGru) Mix(pre, b);
        Put(t, b);
      }
    }
    PutState("Y_h", state_);
    if (c_.kind == RecurrentKind::kLstm) PutState("Y_c", cell_);
    return Status::Ok();
  }

 private:
  const GateFunction& Function(size_t i) const {
    return c_.functions[static_cast<size_t>(d_) * c_.functions_per_direction() + i];
  }

  // C[m, gates] = a[m, k] times the weights of gates [first, first + count).
  void Multiply(const T* a, int64_t m, int64_t k, const T* weights, int64_t first, int64_t count,
                T* c) {
    const T* rounded = a;
    if (w_.quantize) rounded = Rounded(a, m * k);
    GemmDims dims = GemmDims::Dense(m, count * h_, k, false, !w_.transposed);
    const T* part = weights + (w_.transposed ? first * h_ : first * h_ * k);
    if (w_.transposed) dims.ldb = gates_;
    if (m > 0 && dims.n > 0) ParallelGemm<T>(ctx_, dims, T(1), rounded, part, T(0), c);
  }

  // The n numbers, each rounded to one of 255 steps of their range.
  const T* Rounded(const T* a, int64_t n) {
    const RangeSteps<T> steps(a, n);
    rounded_.resize(static_cast<size_t>(n));
    for (const auto some : Stretches(n))
      for (int64_t i = some.begin; i < some.end; ++i)
        rounded_[static_cast<size_t>(i)] = (steps.StepOf(a[i]) - steps.zero) * steps.scale;
    return rounded_.data();
  }

  void Prepare(const T* x) {
    const auto rows = static_cast<size_t>(c_.batch), h = static_cast<size_t>(h_);
    state_.assign(rows * h, T(0));
    cell_.assign(rows * h, T(0));
    recurrent_.assign(rows * static_cast<size_t>(gates_), T(0));
    pre_.assign(static_cast<size_t>(c_.steps * c_.batch * gates_), T(0));
    TakeState("initial_h", &state_);
    if (c_.kind == RecurrentKind::kLstm) TakeState("initial_c", &cell_);
    if (c_.kind == RecurrentKind::kGru) reset_.assign(rows * h, T(0));
    if (c_.in > 0)
      Multiply(x, c_.steps * c_.batch, c_.in, w_.w + d_ * gates_ * c_.in, 0, c_.gates(),
               pre_.data());
    const Tensor* bias = ctx_.InOpt("B");
    if (bias == nullptr) return;
    const T* b = bias->data<T>() + d_ * 2 * gates_;
    recurrent_bias_ = b + gates_;
    // The recurrent bias of a GRU's candidate may lie inside the reset.
    const int64_t both = c_.kind == RecurrentKind::kGru && c_.linear_before_reset ? 2 * h_ : gates_;
    for (const int64_t i : Watched(c_.steps * c_.batch))
      for (int64_t j = 0; j < gates_; ++j)
        pre_[static_cast<size_t>(i * gates_ + j)] += b[j] + (j < both ? recurrent_bias_[j] : T(0));
  }

  void Recur() {
    const bool two = c_.kind == RecurrentKind::kGru && !c_.linear_before_reset;
    width_ = two ? 2 * h_ : gates_;
    Multiply(state_.data(), c_.batch, h_, w_.r + d_ * gates_ * h_, 0, two ? 2 : c_.gates(),
             recurrent_.data());
  }

  void Clip(T* x, int64_t n) const {
    if (c_.clip == 0) return;
    const T most = static_cast<T>(c_.clip);
    for (const auto some : Stretches(n))
      for (int64_t i = some.begin; i < some.end; ++i) x[i] = std::clamp(x[i], -most, most);
  }

  void Cell(T* pre, int64_t b) {
    const T* r = recurrent_.data() + b * width_;
    if (c_.kind == RecurrentKind::kGru) return Reset(pre, r, b);
    for (int64_t j = 0; j < gates_; ++j) pre[j] += r[j];
    T* h = state_.data() + b * h_;
    if (c_.kind == RecurrentKind::kLstm) return LstmCell(pre, h, cell_.data() + b * h_);
    Clip(pre, h_);
    Function(0).Apply(pre, h_);
    std::copy_n(pre, h_, h);
  }

  // Gates i, o, f, c; the peephole of o sees the new cell.
  void LstmCell(T* g, T* h, T* c) const {
    T *input = g, *output = g + h_, *forget = g + 2 * h_, *fresh = g + 3 * h_;
    const Tensor* p = ctx_.InOpt("P");
    const T* peep = p == nullptr ? nullptr : p->data<T>() + d_ * 3 * h_;
    for (int64_t j = 0; peep != nullptr && j < h_; ++j) {
      input[j] += peep[j] * c[j];
      forget[j] += peep[2 * h_ + j] * c[j];
    }
    Clip(input, h_);
    Clip(forget, h_);
    Clip(fresh, h_);
    Function(0).Apply(input, h_);
    if (c_.input_forget)
      for (int64_t j = 0; j < h_; ++j) forget[j] = T(1) - input[j];
    else
      Function(0).Apply(forget, h_);
    Function(1).Apply(fresh, h_);
    for (int64_t j = 0; j < h_; ++j) c[j] = forget[j] * c[j] + input[j] * fresh[j];
    for (int64_t j = 0; peep != nullptr && j < h_; ++j) output[j] += peep[h_ + j] * c[j];
    Clip(output, h_);
    Function(0).Apply(output, h_);
    std::copy_n(c, h_, h);
    Function(2).Apply(h, h_);
    for (int64_t j = 0; j < h_; ++j) h[j] *= output[j];
  }

  // A GRU's update and reset gates, and the part of the candidate that comes from the state.
  void Reset(T* pre, const T* r, int64_t b) {
    for (int64_t j = 0; j < 2 * h_; ++j) pre[j] += r[j];
    Clip(pre, 2 * h_);
    Function(0).Apply(pre, 2 * h_);
    T* reset = reset_.data() + b * h_;
    for (int64_t j = 0; j < h_; ++j) {
      if (!c_.linear_before_reset)
        reset[j] = pre[h_ + j] * state_[static_cast<size_t>(b * h_ + j)];
      else
        pre[2 * h_ + j] +=
            pre[h_ + j] *
            (r[2 * h_ + j] + (recurrent_bias_ == nullptr ? T(0) : recurrent_bias_[2 * h_ + j]));
    }
  }
  void Candidate() {
    Multiply(reset_.data(), c_.batch, h_, w_.r + d_ * gates_ * h_, 2, 1, recurrent_.data());
  }
  void Mix(T* pre, int64_t b) {
    T* fresh = pre + 2 * h_;
    if (!c_.linear_before_reset)
      for (int64_t j = 0; j < h_; ++j) fresh[j] += recurrent_[static_cast<size_t>(b * h_ + j)];
    Clip(fresh, h_);
    Function(1).Apply(fresh, h_);
    T* h = state_.data() + b * h_;
    for (int64_t j = 0; j < h_; ++j) h[j] = (T(1) - pre[j]) * fresh[j] + pre[j] * h[j];
  }

  // The offset of the state of sequence b in a tensor of states.
  int64_t StateAt(int64_t b) const {
    return (c_.batch_first ? b * c_.directions + d_ : d_ * c_.batch + b) * h_;
  }
  void TakeState(Key key, std::pmr::vector<T>* to) {
    const Tensor* t = ctx_.InOpt(key);
    for (int64_t b = 0; t != nullptr && b < c_.batch; ++b)
      std::copy_n(t->data<T>() + StateAt(b), h_, to->data() + b * h_);
  }
  void PutState(Key key, const std::pmr::vector<T>& from) {
    Tensor* t = ctx_.OutOpt(key);
    for (int64_t b = 0; t != nullptr && b < c_.batch; ++b)
      std::copy_n(from.data() + b * h_, h_, t->mutable_data<T>() + StateAt(b));
  }
  void Put(int64_t t, int64_t b) {
    Tensor* y = ctx_.OutOpt("Y");
    if (y == nullptr) return;
    const int64_t at = c_.batch_first ? (b * c_.steps + t) * c_.directions + d_
                                      : (t * c_.directions + d_) * c_.batch + b;
    std::copy_n(state_.data() + b * h_, h_, y->mutable_data<T>() + at * h_);
  }

  using List = std::pmr::vector<T>;

  CallHeap heap_;
  KernelContext& ctx_;
  const RecurrentConfig& c_;
  const RecurrentWeights<T>& w_;
  const int64_t d_, h_, gates_;
  int64_t width_ = 0;  // of a row of recurrent_
  const T* recurrent_bias_ = nullptr;
  List state_{&heap_}, cell_{&heap_}, pre_{&heap_}, recurrent_{&heap_}, reset_{&heap_},
      rounded_{&heap_};
};

}  // namespace

template <typename T>
Status RunRecurrent(KernelContext& ctx, const RecurrentConfig& c,
                    const RecurrentWeights<T>& weights) {
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> lengths(&heap);
  HEDDLE_RETURN_IF_ERROR(SequenceLengths(ctx, c, &lengths));
  const Tensor& x = ctx.In("X");
  const T* in = x.data<T>();
  std::pmr::vector<T> steps_first(&heap);
  if (c.batch_first) {
    steps_first.resize(static_cast<size_t>(x.numel()));
    for (const int64_t b : Watched(c.batch))
      for (int64_t t = 0; t < c.steps; ++t)
        std::copy_n(in + (b * c.steps + t) * c.in, c.in,
                    steps_first.data() + (t * c.batch + b) * c.in);
    in = steps_first.data();
  }
  if (Tensor* y = ctx.OutOpt("Y")) std::fill_n(y->mutable_data<T>(), y->numel(), T(0));
  for (const int64_t d : Watched(c.directions)) {
    HEDDLE_RETURN_IF_ERROR(LayerDirection<T>(ctx, c, weights, d).Run(in, lengths.data()));
  }
  return Status::Ok();
}
template Status RunRecurrent(KernelContext&, const RecurrentConfig&,
                             const RecurrentWeights<float>&);
template Status RunRecurrent(KernelContext&, const RecurrentConfig&,
                             const RecurrentWeights<double>&);

}  // namespace heddle
