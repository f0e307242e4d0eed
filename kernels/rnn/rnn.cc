#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/machine.h"
#include "core/memory/lazy_buffer.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/rnn/rnn_inference.h"
#include "kernels/rnn/rnn_pass.h"
#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

struct Network {
  RnnMode mode = RnnMode::kTanh;
  int64_t layers = 1, directions = 1, hidden = 0, steps = 0, batch = 0, in = 0;
  int64_t passes() const { return layers * directions; }
  int64_t width() const { return directions * hidden; }  // of a layer's output
  int64_t InOf(int64_t layer) const { return layer == 0 ? in : width(); }
  int64_t rows() const { return steps * batch; }
};

Result<RnnMode> ModeOf(const OpContext& ctx) {
  const std::string& mode = ctx.Str("mode");
  if (mode == "LSTM") return RnnMode::kLstm;
  if (mode == "GRU") return RnnMode::kGru;
  if (mode == "RNN_TANH") return RnnMode::kTanh;
  if (mode == "RNN_RELU") return RnnMode::kRelu;
  return InvalidArgument("mode is '", mode, "', expected LSTM, GRU, RNN_TANH or RNN_RELU");
}

Result<Network> NetworkOf(const OpContext& ctx, const Shape& input) {
  if (input.rank() != 3)
    return InvalidArgument("Input has shape ", input.ToString(), ", expected [time, batch, size]");
  Network net;
  HEDDLE_ASSIGN_OR_RETURN(net.mode, ModeOf(ctx));
  net.layers = ctx.Int("num_layers");
  net.directions = ctx.Bool("is_bidirec") ? 2 : 1;
  net.hidden = ctx.Int("hidden_size");
  net.steps = input[0], net.batch = input[1], net.in = input[2];
  if (net.layers < 1 || net.hidden < 1)
    return InvalidArgument("num_layers is ", net.layers, " and hidden_size ", net.hidden,
                           ", expected at least 1");
  const int states = net.mode == RnnMode::kLstm ? 2 : 1;
  if (ctx.InCount("PreState") != states)
    return InvalidArgument("PreState names ", ctx.InCount("PreState"), " tensors, expected ",
                           states);
  const int64_t weights = net.passes() * 4;
  if (ctx.InCount("WeightList") != weights)
    return InvalidArgument("WeightList names ", ctx.InCount("WeightList"), " tensors, expected ",
                           weights);
  return net;
}

Status Expect(const char* what, int i, const Shape& got, const Shape& want) {
  if (got == want || !got.is_static() || !want.is_static()) return Status::Ok();
  return InvalidArgument(what, " ", i, " has shape ", got.ToString(), ", expected ",
                         want.ToString());
}

template <typename Context>
Status CheckOperands(const Context& ctx, const Network& net) {
  for (int i = 0; i < ctx.InCount("PreState"); ++i)
    HEDDLE_RETURN_IF_ERROR(
        Expect("PreState", i, ctx.InShape("PreState", i), {net.passes(), net.batch, net.hidden}));
  const int64_t gates = RnnGates(net.mode) * net.hidden;
  const int passes = static_cast<int>(net.passes());
  for (int p = 0; p < passes; ++p) {
    HEDDLE_RETURN_IF_ERROR(Expect("WeightList", 2 * p, ctx.InShape("WeightList", 2 * p),
                                  {gates, net.InOf(p / net.directions)}));
    HEDDLE_RETURN_IF_ERROR(
        Expect("WeightList", 2 * p + 1, ctx.InShape("WeightList", 2 * p + 1), {gates, net.hidden}));
    for (int i = 2 * (passes + p); i < 2 * (passes + p) + 2; ++i)
      HEDDLE_RETURN_IF_ERROR(Expect("WeightList", i, ctx.InShape("WeightList", i), {gates}));
  }
  return Status::Ok();
}

Status RnnShape(ShapeContext& ctx) {
  const Shape& input = ctx.InShape("Input");
  if (!input.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Network net, NetworkOf(ctx, input));
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx, net));
  const DType dtype = ctx.InDType("Input");
  ctx.SetOut("Out", {net.steps, net.batch, net.width()}, dtype);
  for (int i = 0; i < ctx.OutCount("State"); ++i)
    if (ctx.HasOut("State", i))
      ctx.SetOut("State", {net.passes(), net.batch, net.hidden}, dtype, i);
  if (ctx.HasOut("DropoutState"))
    ctx.SetOut("DropoutState", {net.layers - 1, net.steps, net.batch, net.width()}, DType::kU8);
  if (ctx.HasOut("Reserve")) ctx.SetOut("Reserve", {0}, dtype);
  return Status::Ok();
}

// PreState and WeightList must have the dtype of Input.
Status CheckDTypes(const KernelContext& ctx) {
  const DType dtype = ctx.In("Input").dtype();
  for (int i = 0; i < ctx.InCount("PreState"); ++i)
    HEDDLE_RETURN_IF_ERROR(CheckDType(dtype, {&ctx.In("PreState", i)}));
  for (int i = 0; i < ctx.InCount("WeightList"); ++i)
    HEDDLE_RETURN_IF_ERROR(CheckDType(dtype, {&ctx.In("WeightList", i)}));
  return Status::Ok();
}

// Constant weights, packed once per pass. Without packed weights: the transposed recurrent weights;
// null entries are transposed in every run.
struct RnnState final : KernelState {
  std::vector<std::unique_ptr<const PackedRnn>> packed;
  std::vector<std::shared_ptr<const Tensor>> transposed;
};

// Whether there is dropout between layers. Its mask is an output, which the gradient reads.
bool Drops(const OpContext& ctx, const Network& net) {
  return !ctx.Bool("is_test") && ctx.Float("dropout_prob") > 0 && net.layers > 1;
}

template <typename T>
void Transpose(const T* from, int64_t rows, int64_t cols, T* to) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) to[c * rows + r] = from[r * cols + c];
}

template <typename T>
std::shared_ptr<const Tensor> PackTransposed(PrepareContext& ctx, const Tensor& weight) {
  return ctx.packs().Get<Tensor>(weight, "transposed " + weight.shape().ToString(), [&] {
    auto out =
        std::make_unique<Tensor>(Tensor::Empty(weight.dtype(), {weight.dim(1), weight.dim(0)}));
    if (!out->initialized()) throw std::bad_alloc();
    Transpose(weight.data<T>(), weight.dim(0), weight.dim(1), out->mutable_data<T>());
    return out.release();
  });
}

// Whether runs can use packed weights: float32, all weights constant, no dropout.
bool Packs(const PrepareContext& ctx, const Network& net) {
  if (ctx.InDType("Input") != DType::kF32 || Drops(ctx, net)) return false;
  for (int i = 0; i < ctx.InCount("WeightList"); ++i)
    if (ctx.ConstIn("WeightList", i) == nullptr || ctx.InDType("WeightList", i) != DType::kF32)
      return false;
  return true;
}

Result<std::unique_ptr<KernelState>> PrepareRnn(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Network net, NetworkOf(ctx, ctx.InShape("Input")));
  for (int i = 0; i < ctx.InCount("WeightList"); ++i)
    if (const Tensor* w = ctx.ConstIn("WeightList", i)) HEDDLE_RETURN_IF_ERROR(MakeResident(*w));
  auto state = std::make_unique<RnnState>();
  if (Packs(ctx, net)) {
    const int all = static_cast<int>(net.passes());
    const auto weight = [&](int i) -> const Tensor& { return *ctx.ConstIn("WeightList", i); };
    for (int p = 0; p < all; ++p)
      state->packed.push_back(PackRnn(ctx, net.mode, weight(2 * p), weight(2 * p + 1),
                                      weight(2 * (all + p)), weight(2 * (all + p) + 1)));
    state->facts().implementation = StrCat("strips, ", simd::VectorsOf(MachineOr(ctx.machine())));
    return std::unique_ptr<KernelState>(std::move(state));
  }
  state->facts().implementation = "gemm per step";
  for (int p = 0; p < net.passes(); ++p) {
    const Tensor* w = ctx.ConstIn("WeightList", 2 * p + 1);
    if (!w)
      state->transposed.push_back(nullptr);
    else if (w->dtype() == DType::kF64)
      state->transposed.push_back(PackTransposed<double>(ctx, *w));
    else
      state->transposed.push_back(PackTransposed<float>(ctx, *w));
  }
  return std::unique_ptr<KernelState>(std::move(state));
}

// The lengths of the sequences as int64; an empty tensor when all sequences have every step.
Result<Tensor> LengthsOf(const KernelContext& ctx, const Network& net) {
  const Tensor* t = ctx.InOpt("SequenceLength");
  if (!t) return Tensor();
  if (t->numel() != net.batch)
    return InvalidArgument("SequenceLength has ", t->numel(), " numbers, the batch is ", net.batch);
  Tensor lengths = ctx.Scratch(DType::kI64, {net.batch});
  for (int64_t i = 0; i < net.batch; ++i) {
    const int64_t n = t->dtype() == DType::kI64 ? t->data<int64_t>()[i] : t->data<int32_t>()[i];
    if (n < 0 || n > net.steps)
      return OutOfRange("SequenceLength holds ", n, ", expected 0 to ", net.steps);
    lengths.mutable_data<int64_t>()[i] = n;
  }
  return lengths;
}

// Runs the network with packed weights.
Status RunPackedCell(const KernelContext& ctx, const Network& net, const RnnState& state) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor lengths, LengthsOf(ctx, net));
  const int64_t size = net.batch * net.hidden;
  Tensor between =
      ctx.Scratch(DType::kF32, {std::min<int64_t>(2, net.layers - 1) * net.rows() * net.width()});
  RnnLayerArgs args;
  args.steps = net.steps, args.batch = net.batch;
  args.lengths = lengths.initialized() ? lengths.data<int64_t>() : nullptr;
  args.x = ctx.In("Input").data<float>();
  const auto after = [&](int i, int64_t pass) -> float* {
    Tensor* t = i < ctx.OutCount("State") ? ctx.OutOpt("State", i) : nullptr;
    return t ? t->mutable_data<float>() + pass * size : nullptr;
  };
  for (int64_t layer = 0; layer < net.layers; ++layer) {
    std::array<const PackedRnn*, 2> packs{};
    for (int64_t d = 0; d < net.directions; ++d) {
      const int64_t pass = layer * net.directions + d;
      const auto at = static_cast<size_t>(d);
      packs[at] = state.packed[static_cast<size_t>(pass)].get();
      args.h0[at] = ctx.In("PreState", 0).data<float>() + pass * size;
      args.last_h[at] = after(0, pass);
      if (net.mode != RnnMode::kLstm) continue;
      args.c0[at] = ctx.In("PreState", 1).data<float>() + pass * size;
      args.last_c[at] = after(1, pass);
    }
    args.out = layer + 1 == net.layers
                   ? ctx.Out("Out").mutable_data<float>()
                   : between.mutable_data<float>() + layer % 2 * net.rows() * net.width();
    RunRnnLayer(ctx, std::span(packs).first(static_cast<size_t>(net.directions)), args);
    args.x = args.out;
  }
  return Status::Ok();
}

// One run of the whole network: buffers for the traces of its passes and the layers' inputs.
template <typename T>
class Runner {
 public:
  Runner(const KernelContext& ctx, const Network& net, bool keep_all)
      : ctx_(ctx), net_(net), gates_(RnnGates(net.mode) * net.hidden), keep_(keep_all) {
    const int64_t slots = keep_ ? net.passes() : 1;
    traces_ = Scratch(slots * net.rows() * (gates_ + 2 * net.hidden));
    inputs_ = Scratch((keep_ ? net.layers : 2) * net.rows() * net.width());
    transposed_ = Scratch(gates_ * net.hidden);
  }

  Status ReadLengths() {
    HEDDLE_ASSIGN_OR_RETURN(lengths_, LengthsOf(ctx_, net_));
    return Status::Ok();
  }

  RnnSizes Sizes(int64_t pass) const {
    return {net_.mode,
            net_.steps,
            net_.batch,
            net_.InOf(pass / net_.directions),
            net_.hidden,
            pass % net_.directions == 1,
            lengths_.initialized() ? lengths_.data<int64_t>() : nullptr};
  }

  RnnWeights<T> Weights(int64_t pass, bool transpose) {
    const int p = static_cast<int>(pass), all = static_cast<int>(net_.passes());
    const auto at = [&](int i) { return ctx_.In("WeightList", i).template data<T>(); };
    RnnWeights<T> w{at(2 * p), at(2 * p + 1), nullptr, at(2 * (all + p)), at(2 * (all + p) + 1)};
    if (!transpose) return w;
    if (ctx_.has_state()) {
      if (const auto& packed = ctx_.template State<RnnState>().transposed[static_cast<size_t>(p)]) {
        w.hh_transposed = packed->template data<T>();
        return w;
      }
    }
    T* to = transposed_.template mutable_data<T>();
    Transpose(w.hh, gates_, net_.hidden, to);
    w.hh_transposed = to;
    return w;
  }

  RnnTrace<T> Trace(int64_t pass) {
    T* at = traces_.template mutable_data<T>() +
            (keep_ ? pass : 0) * net_.rows() * (gates_ + 2 * net_.hidden);
    T* states = at + net_.rows() * gates_;
    return {at, states, states + net_.rows() * net_.hidden};
  }

  // The input of layer `layer`.
  const T* Input(int64_t layer) {
    return layer == 0 ? ctx_.In("Input").template data<T>() : LayerInput(layer);
  }
  T* LayerInput(int64_t layer) {
    return inputs_.template mutable_data<T>() +
           (keep_ ? layer : layer % 2) * net_.rows() * net_.width();
  }
  const T* State(int i, int64_t pass) const {
    if (i >= ctx_.InCount("PreState")) return nullptr;
    return ctx_.In("PreState", i).template data<T>() + pass * net_.batch * net_.hidden;
  }

  // Writes the last layer's output to `out`. `mask`, which may be null, is the dropout between
  // layers. done(pass) is called while the trace of that pass is valid.
  template <typename Done>
  void Forward(T* out, const uint8_t* mask, T mask_scale, Done&& done) {
    for (int64_t layer = 0; layer < net_.layers; ++layer) {
      const bool last = layer + 1 == net_.layers;
      T* to = last ? out : LayerInput(layer + 1);
      for (int64_t d = 0; d < net_.directions; ++d) {
        const int64_t pass = layer * net_.directions + d;
        RnnForward(ctx_, Sizes(pass), Weights(pass, true), Input(layer), State(0, pass),
                   State(1, pass), Trace(pass), to + d * net_.hidden, net_.width());
        done(pass);
      }
      const int64_t n = net_.rows() * net_.width();
      if (mask && !last)
        for (int64_t i = 0; i < n; ++i) to[i] = mask[layer * n + i] ? to[i] * mask_scale : T(0);
    }
  }

  Tensor Scratch(int64_t n) const { return ctx_.Scratch(kDTypeOf<T>, {n}); }

 private:
  const KernelContext& ctx_;
  const Network& net_;
  int64_t gates_;
  bool keep_;
  Tensor traces_, inputs_, transposed_;
  Tensor lengths_;
};

template <typename T>
T MaskScale(const OpContext& ctx) {
  const double p = ctx.Float("dropout_prob");
  return p < 1 ? static_cast<T>(1 / (1 - p)) : T(0);
}

void DrawMask(const KernelContext& ctx, Tensor& mask) {
  const double p = ctx.Float("dropout_prob");
  std::uniform_real_distribution<double> uniform(0, 1);
  uint8_t* keep = mask.mutable_data<uint8_t>();
  for (const auto part : Stretches(mask.numel()))
    for (int64_t i = part.begin; i < part.end; ++i) keep[i] = uniform(ctx.random()) >= p ? 1 : 0;
}

// Copies the states before to the states after, or their gradients: for networks of no steps.
Status KeepStates(const KernelContext& ctx, Key from, Key to) {
  for (int i = 0; i < ctx.OutCount(to); ++i) {
    Tensor* out = ctx.OutOpt(to, i);
    const Tensor* in = i < ctx.InCount(from) ? ctx.InOpt(from, i) : nullptr;
    if (out != nullptr && in != nullptr && in->bytes() == out->bytes() && out->bytes() > 0)
      WatchedMemcpy(out->mutable_raw(), in->raw(), out->bytes());
  }
  return Status::Ok();
}

template <typename T>
struct Rnn {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Network net, NetworkOf(ctx, ctx.In("Input").shape()));
    HEDDLE_RETURN_IF_ERROR(CheckDTypes(ctx));
    if (net.rows() == 0) return KeepStates(ctx, "PreState", "State");
    if (Tensor* kept = ctx.OutOpt("DropoutState"); kept != nullptr && !Drops(ctx, net))
      WatchedMemset(kept->mutable_raw(), 1, kept->bytes());  // nothing is dropped
    if constexpr (std::is_same_v<T, float>)
      if (ctx.has_state() && !ctx.template State<RnnState>().packed.empty())
        return RunPackedCell(ctx, net, ctx.template State<RnnState>());
    Tensor hold;
    Tensor* mask = nullptr;
    if (Drops(ctx, net)) {
      mask = ctx.OutOpt("DropoutState");
      if (!mask) {
        hold = ctx.Scratch(DType::kU8, {(net.layers - 1) * net.rows() * net.width()});
        mask = &hold;
      }
      DrawMask(ctx, *mask);
    }
    Runner<T> runner(ctx, net, false);
    HEDDLE_RETURN_IF_ERROR(runner.ReadLengths());
    const int64_t size = net.batch * net.hidden;
    runner.Forward(ctx.Out("Out").mutable_data<T>(), mask ? mask->data<uint8_t>() : nullptr,
                   MaskScale<T>(ctx), [&](int64_t pass) {
                     const RnnTrace<T> trace = runner.Trace(pass);
                     const int64_t last = runner.Sizes(pass).At(net.steps - 1);
                     for (int i = 0; i < ctx.OutCount("State"); ++i)
                       if (Tensor* t = ctx.OutOpt("State", i))
                         WatchedCopy((i == 0 ? trace.states : trace.cells) + last * size, size,
                                     t->mutable_data<T>() + pass * size);
                   });
    return Status::Ok();
  }
};

Status RnnGradShape(ShapeContext& ctx) {
  const Shape& input = ctx.InShape("Input");
  if (!input.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Network net, NetworkOf(ctx, input));
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx, net));
  if (ctx.HasIn("Out@GRAD"))
    HEDDLE_RETURN_IF_ERROR(
        Expect("Out@GRAD", 0, ctx.InShape("Out@GRAD"), {net.steps, net.batch, net.width()}));
  if (ctx.HasOut("Input@GRAD")) ctx.SetOut("Input@GRAD", input, ctx.InDType("Input"));
  for (int i = 0; i < ctx.OutCount("PreState@GRAD"); ++i)
    if (ctx.HasOut("PreState@GRAD", i))
      ctx.SetOut("PreState@GRAD", ctx.InShape("PreState", i), ctx.InDType("PreState", i), i);
  for (int i = 0; i < ctx.OutCount("WeightList@GRAD"); ++i)
    if (ctx.HasOut("WeightList@GRAD", i))
      ctx.SetOut("WeightList@GRAD", ctx.InShape("WeightList", i), ctx.InDType("WeightList", i), i);
  return Status::Ok();
}

// Runs the forward pass again, which is cheaper than keeping its traces in variables of the
// program.
template <typename T>
struct RnnGrad {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Network net, NetworkOf(ctx, ctx.In("Input").shape()));
    HEDDLE_RETURN_IF_ERROR(CheckDTypes(ctx));
    HEDDLE_RETURN_IF_ERROR(CheckGrads(ctx, net));
    ClearOutputs(ctx);
    if (net.rows() == 0) return KeepStates(ctx, "State@GRAD", "PreState@GRAD");
    const Tensor* mask = Drops(ctx, net) ? ctx.InOpt("DropoutState") : nullptr;
    const int64_t layer_size = net.rows() * net.width();
    if (Drops(ctx, net) && (!mask || mask->numel() != (net.layers - 1) * layer_size))
      return InvalidArgument("DropoutState does not hold the forward pass's mask");
    const uint8_t* keep = mask ? mask->data<uint8_t>() : nullptr;
    Runner<T> runner(ctx, net, true);
    HEDDLE_RETURN_IF_ERROR(runner.ReadLengths());
    Tensor grad = runner.Scratch(layer_size), below = runner.Scratch(layer_size);
    runner.Forward(grad.mutable_data<T>(), keep, MaskScale<T>(ctx), [](int64_t) {});
    if (const Tensor* g = ctx.InOpt("Out@GRAD"))
      WatchedCopy(g->data<T>(), layer_size, grad.mutable_data<T>());
    else
      WatchedFill(grad.mutable_data<T>(), layer_size, T(0));
    for (int64_t layer = net.layers; layer-- > 0;) {
      Tensor* input_grad = ctx.OutOpt("Input@GRAD");
      T* to = layer > 0    ? below.mutable_data<T>()
              : input_grad ? input_grad->mutable_data<T>()
                           : nullptr;
      if (layer > 0) WatchedFill(to, layer_size, T(0));
      for (int64_t d = 0; d < net.directions; ++d)
        Pass(ctx, net, runner, layer, d, grad.data<T>(), to);
      if (layer == 0) break;
      if (keep) {
        const uint8_t* m = keep + (layer - 1) * layer_size;
        for (int64_t i = 0; i < layer_size; ++i) to[i] = m[i] ? to[i] * MaskScale<T>(ctx) : T(0);
      }
      std::swap(grad, below);
    }
    return Status::Ok();
  }

  static Status CheckGrads(const KernelContext& ctx, const Network& net) {
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {ctx.InOpt("Out@GRAD")}));
    for (int i = 0; i < ctx.InCount("State@GRAD"); ++i) {
      const Tensor* g = ctx.InOpt("State@GRAD", i);
      HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {g}));
      if (g != nullptr)
        HEDDLE_RETURN_IF_ERROR(
            Expect("State@GRAD", i, g->shape(), {net.passes(), net.batch, net.hidden}));
    }
    return Status::Ok();
  }

  static void ClearOutputs(const KernelContext& ctx) {
    const auto clear = [](Tensor* t) {
      if (t) WatchedMemset(t->mutable_raw(), 0, t->bytes());
    };
    clear(ctx.OutOpt("Input@GRAD"));
    for (int i = 0; i < ctx.OutCount("PreState@GRAD"); ++i) clear(ctx.OutOpt("PreState@GRAD", i));
    for (int i = 0; i < ctx.OutCount("WeightList@GRAD"); ++i)
      clear(ctx.OutOpt("WeightList@GRAD", i));
  }

  static void Pass(const KernelContext& ctx, const Network& net, Runner<T>& runner, int64_t layer,
                   int64_t direction, const T* grad, T* input_grad) {
    const int64_t pass = layer * net.directions + direction, size = net.batch * net.hidden;
    const int p = static_cast<int>(pass), all = static_cast<int>(net.passes());
    const auto weight = [&](int i) -> T* {
      if (i >= ctx.OutCount("WeightList@GRAD")) return nullptr;
      Tensor* t = ctx.OutOpt("WeightList@GRAD", i);
      return t ? t->mutable_data<T>() : nullptr;
    };
    Tensor states = runner.Scratch(2 * size);
    T* h = states.mutable_data<T>();
    for (int i = 0; i < 2; ++i) {
      const Tensor* g = i < ctx.InCount("State@GRAD") ? ctx.InOpt("State@GRAD", i) : nullptr;
      if (g)
        WatchedCopy(g->data<T>() + pass * size, size, h + i * size);
      else
        WatchedFill(h + i * size, size, T(0));
    }
    Tensor work = runner.Scratch(2 * net.rows() * RnnGates(net.mode) * net.hidden);
    const RnnGrads<T> grads{grad + direction * net.hidden,
                            net.width(),
                            h,
                            h + size,
                            input_grad,
                            weight(2 * p),
                            weight(2 * p + 1),
                            weight(2 * (all + p)),
                            weight(2 * (all + p) + 1)};
    RnnBackward(ctx, runner.Sizes(pass), runner.Weights(pass, false), runner.Input(layer),
                runner.State(0, pass), runner.State(1, pass), runner.Trace(pass), grads,
                work.mutable_data<T>());
    for (int i = 0; i < ctx.OutCount("PreState@GRAD"); ++i)
      if (Tensor* t = ctx.OutOpt("PreState@GRAD", i))
        WatchedCopy(h + i * size, size, t->mutable_data<T>() + pass * size);
  }
};

double RnnCost(const ShapeContext& ctx) {
  const Shape& x = ctx.InShape("Input");
  if (!x.is_static() || x.rank() != 3) return 0;
  const double h = static_cast<double>(ctx.Int("hidden_size"));
  return static_cast<double>(x[0]) * 500 +
         static_cast<double>(x[0] * x[1] * ctx.Int("num_layers")) * h * 4 *
             (h + static_cast<double>(x[2])) / 10;
}

void Attrs(OpDef& op) {
  op.Attr("dropout_prob", 0.0).Attr("is_bidirec", false).Attr("hidden_size", 100);
  op.Attr("num_layers", 1).Attr("mode", "RNN_TANH").Attr("is_test", false);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(rnn) {
  op.Doc("recurrent network (LSTM, GRU, tanh, relu) of several layers over [time, batch, size]");
  op.Input("Input").Input("PreState", kList).Input("WeightList", kList);
  op.Input("SequenceLength", kOptional);
  op.Output("Out").Output("DropoutState", kOptional).Output("State", kOptional | kList);
  op.Output("Reserve", kOptional);
  Attrs(op);
  op.Traits(kRandom).Cost(RnnCost).InferShape(RnnShape).Prepare(PrepareRnn);
  op.Kernels<Rnn, float, double>();
}
HEDDLE_OP(rnn_grad) {
  op.Input("Input").Input("PreState", kList).Input("WeightList", kList);
  op.Input("SequenceLength", kOptional).Input("Out", kOptional | kNoBuffer);
  op.Input("Reserve", kOptional | kNoBuffer).Input("DropoutState", kOptional);
  op.Input("Out@GRAD", kOptional).Input("State@GRAD", kOptional | kList);
  op.Output("Input@GRAD", kOptional).Output("PreState@GRAD", kOptional | kList);
  op.Output("WeightList@GRAD", kOptional | kList);
  Attrs(op);
  op.InferShape(RnnGradShape).Kernels<RnnGrad, float, double>();
}
