// rnn and its gradient. The inputs of all steps are one product; then each step is a product of the
// state and one kernel, which activates all gates. The gradient computes the forward pass again, as
// on the host, and adds up the recurrent weights' gradients of all steps in one product.
#include <algorithm>
#include <utility>

#include "core/kernel_context.h"
#include "device/cuda/grid/batched_gemm.h"
#include "device/cuda/grid/ids.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/reduce.h"
#include "kernels/simd/recurrent_step.h"

namespace heddle::HEDDLE_GRID {
namespace {

struct RnnNet {
  RnnMode mode = RnnMode::kTanh;
  int64_t layers = 1, directions = 1, hidden = 0, steps = 0, batch = 0, in = 0;

  int64_t gates() const {
    return (mode == RnnMode::kLstm ? 4 : mode == RnnMode::kGru ? 3 : 1) * hidden;
  }
  int64_t passes() const { return layers * directions; }
  int64_t width() const { return directions * hidden; }  // of a layer's output
  int64_t rows() const { return steps * batch; }
  int64_t state() const { return batch * hidden; }
  int64_t InOf(int64_t layer) const { return layer == 0 ? in : width(); }
};

RnnNet NetOf(const OpContext& ctx, const Shape& input) {
  RnnNet net;
  const std::string& mode = ctx.Str("mode");
  if (mode == "LSTM") net.mode = RnnMode::kLstm;
  if (mode == "GRU") net.mode = RnnMode::kGru;
  if (mode == "RNN_RELU") net.mode = RnnMode::kRelu;
  net.layers = ctx.Int("num_layers");
  net.directions = ctx.Bool("is_bidirec") ? 2 : 1;
  net.hidden = ctx.Int("hidden_size");
  net.steps = input[0], net.batch = input[1], net.in = input[2];
  return net;
}

// The lengths of the sequences; without any all have every step. A card reports none that is out of
// range: a longer one has every step.
struct StepLengths {
  const int64_t* wide = nullptr;
  const int32_t* narrow = nullptr;
  HEDDLE_BODY bool Active(int64_t t, int64_t b) const {
    if (wide != nullptr) return t < wide[b];
    return narrow == nullptr || t < narrow[b];
  }
};
StepLengths LengthsOf(const KernelContext& ctx) {
  StepLengths lengths;
  const Tensor* const t = ctx.InOpt("SequenceLength");
  if (t == nullptr) return lengths;
  if (t->dtype() == DType::kI64)
    lengths.wide = t->data<int64_t>();
  else
    lengths.narrow = t->data<int32_t>();
  return lengths;
}

HEDDLE_BODY inline float Logistic(float x) { return 1.0f / (1.0f + expf(-x)); }

// Unit `j` of sequence `b` after step `t`. `gates` holds the input's sums of the step, and becomes
// the activated gates where the gradient needs them; `recurrent` the state's product.
struct RnnStepBody {
  RnnMode mode;
  int64_t t, batch, hidden;
  StepLengths lengths;
  float* gates;            // [batch, gates]
  const float* recurrent;  // [batch, gates]
  const float* bias_ih;
  const float* bias_hh;
  const float* h_prev;  // [batch, hidden]; may be h
  const float* c_prev;  // of LSTM; may be c
  float* h;
  float* c;  // of LSTM the cell; of GRU the candidate's recurrent part, or null
  float* out;
  int64_t out_step;
  bool keep;  // write the activated gates

  HEDDLE_BODY float Sum(int64_t row, int64_t gate, int64_t j) const {
    const int64_t at = row + gate * hidden + j, bias = gate * hidden + j;
    return gates[at] + recurrent[at] + bias_ih[bias] + bias_hh[bias];
  }
  HEDDLE_BODY void Keep(int64_t row, int64_t gate, int64_t j, float value) const {
    if (keep) gates[row + gate * hidden + j] = value;
  }
  HEDDLE_BODY float Lstm(int64_t i, int64_t row, int64_t j) const {
    const float in = Logistic(Sum(row, 0, j)), forget = Logistic(Sum(row, 1, j));
    const float candidate = tanhf(Sum(row, 2, j)), put = Logistic(Sum(row, 3, j));
    const float cell = forget * c_prev[i] + in * candidate;
    Keep(row, 0, j, in), Keep(row, 1, j, forget), Keep(row, 2, j, candidate), Keep(row, 3, j, put);
    c[i] = cell;
    return put * tanhf(cell);
  }
  HEDDLE_BODY float Gru(int64_t i, int64_t row, int64_t j) const {
    const float reset = Logistic(Sum(row, 0, j)), update = Logistic(Sum(row, 1, j));
    const int64_t at = row + 2 * hidden + j, bias = 2 * hidden + j;
    const float state = recurrent[at] + bias_hh[bias];
    const float candidate = tanhf(gates[at] + bias_ih[bias] + reset * state);
    Keep(row, 0, j, reset), Keep(row, 1, j, update), Keep(row, 2, j, candidate);
    if (c != nullptr) c[i] = state;
    return (1.0f - update) * candidate + update * h_prev[i];
  }
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t b = i / hidden, j = i % hidden;
    float* const to = out + (t * batch + b) * out_step + j;
    if (!lengths.Active(t, b)) {
      h[i] = h_prev[i];
      if (mode == RnnMode::kLstm) c[i] = c_prev[i];
      *to = 0;
      return;
    }
    float value;
    if (mode == RnnMode::kLstm) {
      value = Lstm(i, b * 4 * hidden, j);
    } else if (mode == RnnMode::kGru) {
      value = Gru(i, b * 3 * hidden, j);
    } else {
      const float sum = Sum(b * hidden, 0, j);
      value = mode == RnnMode::kTanh ? tanhf(sum) : sum > 0 ? sum : 0;
      Keep(b * hidden, 0, j, value);
    }
    h[i] = value;
    *to = value;
  }
};

// The gradients of that step: `dh` and `dc` hold those of the new state and become those of the old
// one, without the part through the recurrent product.
struct RnnStepGradBody {
  RnnMode mode;
  int64_t t, batch, hidden;
  StepLengths lengths;
  const float* gates;
  const float* c;
  const float* h_prev;
  const float* c_prev;
  const float* dout;
  int64_t out_step;
  float* dh;
  float* dc;
  float* dx;  // [batch, gates]: of the gates' input part
  float* dr;  // of their recurrent part; of others than GRU it is dx

  HEDDLE_BODY void Put(int64_t at, float value) const { dx[at] = dr[at] = value; }
  HEDDLE_BODY void Lstm(int64_t i, int64_t at, float g_h) const {
    const float in = gates[at], forget = gates[at + hidden], candidate = gates[at + 2 * hidden],
                put = gates[at + 3 * hidden], cell = tanhf(c[i]);
    const float g_c = dc[i] + g_h * put * (1.0f - cell * cell);
    Put(at, g_c * candidate * in * (1.0f - in));
    Put(at + hidden, g_c * c_prev[i] * forget * (1.0f - forget));
    Put(at + 2 * hidden, g_c * in * (1.0f - candidate * candidate));
    Put(at + 3 * hidden, g_h * cell * put * (1.0f - put));
    dc[i] = g_c * forget;
    dh[i] = 0;
  }
  HEDDLE_BODY void Gru(int64_t i, int64_t at, float g_h) const {
    const float reset = gates[at], update = gates[at + hidden], candidate = gates[at + 2 * hidden];
    const float g = g_h * (1.0f - update) * (1.0f - candidate * candidate);
    Put(at, g * c[i] * reset * (1.0f - reset));
    Put(at + hidden, g_h * (h_prev[i] - candidate) * update * (1.0f - update));
    dx[at + 2 * hidden] = g;
    dr[at + 2 * hidden] = g * reset;
    dh[i] = g_h * update;
  }
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t b = i / hidden, j = i % hidden;
    const int64_t each = mode == RnnMode::kLstm ? 4 : mode == RnnMode::kGru ? 3 : 1;
    const int64_t at = b * each * hidden + j;
    if (!lengths.Active(t, b)) {
      for (int64_t k = 0; k < each; ++k) Put(at + k * hidden, 0);
      return;
    }
    const float g_h = dh[i] + dout[(t * batch + b) * out_step + j];
    if (mode == RnnMode::kLstm) return Lstm(i, at, g_h);
    if (mode == RnnMode::kGru) return Gru(i, at, g_h);
    const float y = gates[at];
    Put(at, mode == RnnMode::kTanh ? g_h * (1.0f - y * y) : y > 0 ? g_h : 0);
    dh[i] = 0;
  }
};

// Dropout between layers.
struct MaskBody {
  const uint8_t* keep;
  float scale;
  float* x;
  HEDDLE_BODY void operator()(int64_t i) const { x[i] = keep[i] != 0 ? x[i] * scale : 0; }
};

MatrixBatch Matrix(const float* data, int64_t rows, int64_t cols, bool trans = false) {
  return {data, rows, cols, cols, trans, {}};
}
Status Multiply(Queue& queue, const MatrixBatch& a, const MatrixBatch& b, float* c, bool add) {
  const int64_t n = b.trans ? b.rows : b.cols;
  return BatchedProduct{Shape(), a, b, c, n, {}, 1, add ? 1.0f : 0.0f}.Run(queue);
}

struct RnnPassWeights {
  const float *ih, *hh, *bias_ih, *bias_hh;
};
RnnPassWeights WeightsOf(const KernelContext& ctx, const RnnNet& net, int64_t pass) {
  const int p = static_cast<int>(pass), all = static_cast<int>(net.passes());
  const auto at = [&](int i) { return ctx.In("WeightList", i).data<float>(); };
  return {at(2 * p), at(2 * p + 1), at(2 * (all + p)), at(2 * (all + p) + 1)};
}

// The memory of one pass: a direction of a layer. States are behind one another in the order of
// time, the first state before those that follow it: [steps + 1, batch, hidden]. With `keep` false
// there is one state, which the steps replace, and gates need not stay.
struct RnnPass {
  bool reverse = false, keep = false;
  float* gates = nullptr;  // [steps, batch, gates]
  float* h = nullptr;
  float* c = nullptr;

  int64_t Time(const RnnNet& net, int64_t step) const {
    return reverse ? net.steps - 1 - step : step;
  }
  // The place of the state before time t, and after it.
  int64_t Before(const RnnNet& net, int64_t t) const {
    return keep ? (reverse ? t + 1 : t) * net.state() : 0;
  }
  int64_t After(const RnnNet& net, int64_t t) const {
    return keep ? (reverse ? t : t + 1) * net.state() : 0;
  }
};

Status RunPass(Queue& queue, const RnnNet& net, const StepLengths& lengths, const RnnPass& pass,
               const RnnPassWeights& w, const float* x, int64_t in, float* recurrent, float* out) {
  const int64_t gates = net.gates();
  HEDDLE_RETURN_IF_ERROR(
      Multiply(queue, Matrix(x, net.rows(), in), Matrix(w.ih, gates, in, true), pass.gates, false));
  for (int64_t step = 0; step < net.steps; ++step) {
    const int64_t t = pass.Time(net, step);
    const float* const before = pass.h + pass.Before(net, t);
    HEDDLE_RETURN_IF_ERROR(Multiply(queue, Matrix(before, net.batch, net.hidden),
                                    Matrix(w.hh, gates, net.hidden, true), recurrent, false));
    const bool cells = pass.c != nullptr;
    HEDDLE_RETURN_IF_ERROR(Each(
        queue, net.state(),
        RnnStepBody{net.mode, t, net.batch, net.hidden, lengths, pass.gates + t * net.batch * gates,
                    recurrent, w.bias_ih, w.bias_hh, before,
                    cells ? pass.c + pass.Before(net, t) : nullptr, pass.h + pass.After(net, t),
                    cells ? pass.c + pass.After(net, t) : nullptr, out, net.width(), pass.keep}));
  }
  return Status::Ok();
}

// Parts of a work space begin where products read fast.
int64_t Padded(int64_t floats) {
  constexpr int64_t kAlign = 64;
  return (floats + kAlign - 1) / kAlign * kAlign;
}

Status CopyFloats(Queue& queue, float* to, const float* from, int64_t n) {
  return to == from ? Status::Ok() : queue.Copy(to, from, sizeof(float) * static_cast<size_t>(n));
}
Status ZeroFloats(Queue& queue, float* to, int64_t n) {
  return queue.Zero(to, sizeof(float) * static_cast<size_t>(n));
}

// Of a list that may be shorter, or lack the tensor.
const float* ListIn(const KernelContext& ctx, Key key, int i) {
  const Tensor* const t = i < ctx.InCount(key) ? ctx.InOpt(key, i) : nullptr;
  return t != nullptr ? t->data<float>() : nullptr;
}
float* ListOut(const KernelContext& ctx, Key key, int i) {
  Tensor* const t = i < ctx.OutCount(key) ? ctx.OutOpt(key, i) : nullptr;
  return t != nullptr ? t->mutable_data<float>() : nullptr;
}

// Networks of no steps: the states, or their gradients, stay as they are.
Status KeepStates(Queue& queue, KernelContext& ctx, const RnnNet& net, Key from, Key to) {
  for (int i = 0; i < ctx.OutCount(to); ++i) {
    const float* const source = ListIn(ctx, from, i);
    float* const target = ListOut(ctx, to, i);
    if (source != nullptr && target != nullptr)
      HEDDLE_RETURN_IF_ERROR(CopyFloats(queue, target, source, net.passes() * net.state()));
  }
  return Status::Ok();
}

// Without dropout between layers: its random numbers are the host's.
Status Rnn(Queue& queue, KernelContext& ctx) {
  const RnnNet net = NetOf(ctx, ctx.In("Input").shape());
  if (net.rows() == 0) return KeepStates(queue, ctx, net, "PreState", "State");
  const StepLengths lengths = LengthsOf(ctx);
  const bool lstm = net.mode == RnnMode::kLstm;
  const int64_t layer_size = Padded(net.rows() * net.width());
  const int64_t gates = Padded(net.rows() * net.gates());
  const int64_t each = Padded(net.batch * net.gates()), state = Padded(net.state());
  const int64_t between = std::min<int64_t>(2, net.layers - 1);
  Scratch scratch(queue);
  HEDDLE_RETURN_IF_ERROR(scratch.Take(gates + each + 2 * state + between * layer_size));
  float* const recurrent = scratch.data() + gates;
  float* const states = recurrent + each;
  float* const layers = states + 2 * state;
  const float* x = ctx.In("Input").data<float>();
  for (int64_t layer = 0; layer < net.layers; ++layer) {
    float* const out = layer + 1 == net.layers ? ctx.Out("Out").mutable_data<float>()
                                               : layers + layer % 2 * layer_size;
    for (int64_t d = 0; d < net.directions; ++d) {
      const int64_t at = layer * net.directions + d;
      RnnPass pass{d == 1, false, scratch.data(), states, lstm ? states + state : nullptr};
      // A state that is asked for lies in its place from the start.
      float* const last_h = ListOut(ctx, "State", 0);
      float* const last_c = lstm ? ListOut(ctx, "State", 1) : nullptr;
      if (last_h != nullptr) pass.h = last_h + at * net.state();
      if (last_c != nullptr) pass.c = last_c + at * net.state();
      HEDDLE_RETURN_IF_ERROR(CopyFloats(
          queue, pass.h, ctx.In("PreState", 0).data<float>() + at * net.state(), net.state()));
      if (lstm)
        HEDDLE_RETURN_IF_ERROR(CopyFloats(
            queue, pass.c, ctx.In("PreState", 1).data<float>() + at * net.state(), net.state()));
      HEDDLE_RETURN_IF_ERROR(RunPass(queue, net, lengths, pass, WeightsOf(ctx, net, at), x,
                                     net.InOf(layer), recurrent, out + d * net.hidden));
    }
    x = out;
  }
  return Status::Ok();
}

// to[j] = the sum of column j.
struct ColumnLoad {
  const float* x;
  HEDDLE_BODY float operator()(const Strides<1>::Places& p) const { return x[p.at[0]]; }
};
Status SumColumns(Queue& queue, const float* x, int64_t rows, int64_t cols, float* to) {
  Strides<1> kept, reduced;
  kept.Add(cols, {1});
  reduced.Add(rows, {cols});
  return ReduceInto<SumOp>(queue, kept, reduced, ColumnLoad{x}, to);
}

// The gradient: its buffers are one piece of scratch memory.
class RnnGradRun {
 public:
  RnnGradRun(Queue& queue, KernelContext& ctx, const RnnNet& net)
      : queue_(queue), ctx_(ctx), net_(net), lengths_(LengthsOf(ctx)), scratch_(queue) {}

  Status Run() {
    HEDDLE_RETURN_IF_ERROR(TakeMemory());
    HEDDLE_RETURN_IF_ERROR(Forward());
    const int64_t size = net_.rows() * net_.width();
    float *grad = inputs_ + net_.layers * layer_size_, *below = grad + layer_size_;
    const float* top = nullptr;
    if (const Tensor* g = ctx_.InOpt("Out@GRAD"))
      top = g->data<float>();
    else
      HEDDLE_RETURN_IF_ERROR(ZeroFloats(queue_, grad, size));
    Tensor* const input_grad = ctx_.OutOpt("Input@GRAD");
    for (int64_t layer = net_.layers; layer-- > 0;) {
      float* const to = layer > 0               ? below
                        : input_grad != nullptr ? input_grad->mutable_data<float>()
                                                : nullptr;
      for (int64_t d = 0; d < net_.directions; ++d)
        HEDDLE_RETURN_IF_ERROR(PassGrad(layer, d, top != nullptr ? top : grad, to));
      if (layer > 0) HEDDLE_RETURN_IF_ERROR(Drop(layer - 1, to));
      std::swap(grad, below);
      top = nullptr;
    }
    return Status::Ok();
  }

 private:
  Status TakeMemory() {
    const int64_t gates = Padded(net_.rows() * net_.gates()), state = Padded(net_.state());
    const int64_t each = Padded(net_.batch * net_.gates());
    const bool gru = net_.mode == RnnMode::kGru;
    layer_size_ = Padded(net_.rows() * net_.width());
    states_size_ = Padded((net_.steps + 1) * net_.state());
    trace_size_ = gates + 2 * states_size_;
    HEDDLE_RETURN_IF_ERROR(scratch_.Take(net_.passes() * trace_size_ +
                                         (net_.layers + 2) * layer_size_ + each + 2 * state +
                                         (gru ? 2 : 1) * gates));
    inputs_ = scratch_.data() + net_.passes() * trace_size_;
    recurrent_ = inputs_ + (net_.layers + 2) * layer_size_;
    dh_ = recurrent_ + each;
    dc_ = dh_ + state;
    dx_ = dc_ + state;
    dr_ = gru ? dx_ + gates : dx_;
    return Status::Ok();
  }

  RnnPass Trace(int64_t pass) const {
    float* const at = scratch_.data() + pass * trace_size_;
    float* const h = at + trace_size_ - 2 * states_size_;
    float* const c = h + states_size_;
    const bool cells = net_.mode == RnnMode::kLstm || net_.mode == RnnMode::kGru;
    return {pass % net_.directions == 1, true, at, h, cells ? c : nullptr};
  }
  // Layer `layer`'s input; layer 0 reads the operator's.
  const float* Input(int64_t layer) const {
    return layer == 0 ? ctx_.In("Input").data<float>() : LayerInput(layer);
  }
  float* LayerInput(int64_t layer) const { return inputs_ + layer % net_.layers * layer_size_; }

  // Of the output of layer `layer`, or of its gradient.
  Status Drop(int64_t layer, float* x) {
    const Tensor* const mask = ctx_.InOpt("DropoutState");
    const double p = ctx_.Float("dropout_prob");
    if (ctx_.Bool("is_test") || !(p > 0)) return Status::Ok();
    const int64_t size = net_.rows() * net_.width();
    if (mask == nullptr || mask->numel() != (net_.layers - 1) * size)
      return InvalidArgument("DropoutState does not hold the forward pass's mask");
    return Each(queue_, size,
                MaskBody{mask->data<uint8_t>() + layer * size,
                         p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0f, x});
  }

  Status Forward() {
    for (int64_t layer = 0; layer < net_.layers; ++layer) {
      float* const out = LayerInput(layer + 1);  // that of the last layer is not read
      for (int64_t d = 0; d < net_.directions; ++d) {
        const int64_t at = layer * net_.directions + d;
        const RnnPass pass = Trace(at);
        const int64_t first = pass.Before(net_, pass.Time(net_, 0));
        HEDDLE_RETURN_IF_ERROR(CopyFloats(queue_, pass.h + first,
                                          ctx_.In("PreState", 0).data<float>() + at * net_.state(),
                                          net_.state()));
        if (net_.mode == RnnMode::kLstm)
          HEDDLE_RETURN_IF_ERROR(
              CopyFloats(queue_, pass.c + first,
                         ctx_.In("PreState", 1).data<float>() + at * net_.state(), net_.state()));
        HEDDLE_RETURN_IF_ERROR(RunPass(queue_, net_, lengths_, pass, WeightsOf(ctx_, net_, at),
                                       Input(layer), net_.InOf(layer), recurrent_,
                                       out + d * net_.hidden));
      }
      if (layer + 1 < net_.layers) HEDDLE_RETURN_IF_ERROR(Drop(layer, out));
    }
    return Status::Ok();
  }

  // The gradient of the state after the last step of `pass`: `i` 0 of h, 1 of the cell.
  Status Begin(int i, int64_t pass, float* to) {
    const float* const g = ListIn(ctx_, "State@GRAD", i);
    if (g == nullptr) return ZeroFloats(queue_, to, net_.state());
    return CopyFloats(queue_, to, g + pass * net_.state(), net_.state());
  }

  Status PassGrad(int64_t layer, int64_t direction, const float* grad, float* input_grad) {
    const int64_t at = layer * net_.directions + direction, gates = net_.gates();
    const RnnPass pass = Trace(at);
    const RnnPassWeights w = WeightsOf(ctx_, net_, at);
    const bool lstm = net_.mode == RnnMode::kLstm, cells = pass.c != nullptr;
    HEDDLE_RETURN_IF_ERROR(Begin(0, at, dh_));
    if (lstm) HEDDLE_RETURN_IF_ERROR(Begin(1, at, dc_));
    for (int64_t step = net_.steps; step-- > 0;) {
      const int64_t t = pass.Time(net_, step), offset = t * net_.batch * gates;
      HEDDLE_RETURN_IF_ERROR(
          Each(queue_, net_.state(),
               RnnStepGradBody{
                   net_.mode, t, net_.batch, net_.hidden, lengths_, pass.gates + offset,
                   cells ? pass.c + pass.After(net_, t) : nullptr, pass.h + pass.Before(net_, t),
                   lstm ? pass.c + pass.Before(net_, t) : nullptr, grad + direction * net_.hidden,
                   net_.width(), dh_, dc_, dx_ + offset, dr_ + offset}));
      HEDDLE_RETURN_IF_ERROR(Multiply(queue_, Matrix(dr_ + offset, net_.batch, gates),
                                      Matrix(w.hh, gates, net_.hidden), dh_, true));
    }
    for (int i = 0; i < (lstm ? 2 : 1); ++i)
      if (float* const to = ListOut(ctx_, "PreState@GRAD", i))
        HEDDLE_RETURN_IF_ERROR(
            CopyFloats(queue_, to + at * net_.state(), i == 0 ? dh_ : dc_, net_.state()));
    if (input_grad != nullptr)
      HEDDLE_RETURN_IF_ERROR(Multiply(queue_, Matrix(dx_, net_.rows(), gates),
                                      Matrix(w.ih, gates, net_.InOf(layer)), input_grad,
                                      direction > 0));
    return WeightGrads(layer, at, pass);
  }

  Status WeightGrads(int64_t layer, int64_t at, const RnnPass& pass) {
    const int p = static_cast<int>(at), all = static_cast<int>(net_.passes());
    const int64_t rows = net_.rows(), gates = net_.gates();
    const auto to = [&](int i) { return ListOut(ctx_, "WeightList@GRAD", i); };
    if (float* const ih = to(2 * p))
      HEDDLE_RETURN_IF_ERROR(Multiply(queue_, Matrix(dx_, rows, gates, true),
                                      Matrix(Input(layer), rows, net_.InOf(layer)), ih, false));
    if (float* const hh = to(2 * p + 1))  // the states before the times 0, 1, 2…
      HEDDLE_RETURN_IF_ERROR(Multiply(queue_, Matrix(dr_, rows, gates, true),
                                      Matrix(pass.h + pass.Before(net_, 0), rows, net_.hidden), hh,
                                      false));
    if (float* const bias = to(2 * (all + p)))
      HEDDLE_RETURN_IF_ERROR(SumColumns(queue_, dx_, rows, gates, bias));
    if (float* const bias = to(2 * (all + p) + 1))
      HEDDLE_RETURN_IF_ERROR(SumColumns(queue_, dr_, rows, gates, bias));
    return Status::Ok();
  }

  Queue& queue_;
  KernelContext& ctx_;
  const RnnNet& net_;
  const StepLengths lengths_;
  Scratch scratch_;
  int64_t trace_size_ = 0, states_size_ = 0, layer_size_ = 0;
  float *inputs_ = nullptr, *recurrent_ = nullptr;
  float *dh_ = nullptr, *dc_ = nullptr, *dx_ = nullptr, *dr_ = nullptr;
};

Status RnnGrad(Queue& queue, KernelContext& ctx) {
  const RnnNet net = NetOf(ctx, ctx.In("Input").shape());
  if (net.rows() > 0) return RnnGradRun(queue, ctx, net).Run();
  for (const Key key : {Key("Input@GRAD"), Key("PreState@GRAD"), Key("WeightList@GRAD")})
    for (int i = 0; i < ctx.OutCount(key); ++i)
      if (Tensor* const t = ctx.OutOpt(key, i))
        HEDDLE_RETURN_IF_ERROR(queue.Zero(t->mutable_raw(), t->bytes()));
  return KeepStates(queue, ctx, net, "State@GRAD", "PreState@GRAD");
}

bool AllFloat(const CallView& call, Key key) {
  for (int i = 0; i < call.InCount(key); ++i)
    if (call.InVar(key, i) == nullptr || call.InDType(key, i) != DType::kF32) return false;
  return true;
}
bool RnnDrops(const CallView& call) {
  return !call.Bool("is_test") && call.Float("dropout_prob") > 0 && call.Int("num_layers") > 1;
}
bool CoversRnnGrad(const CallView& call) {
  const bool lengths = !call.HasIn("SequenceLength") || AreIds(call.InDType("SequenceLength"));
  return lengths && call.InShape("Input").rank() == 3 && AllFloat(call, "PreState") &&
         AllFloat(call, "WeightList");
}
bool CoversRnn(const CallView& call) { return CoversRnnGrad(call) && !RnnDrops(call); }

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(rnn) { kernel = {Rnn, CoversRnn}; }
HEDDLE_CUDA_KERNEL(rnn_grad) { kernel = {RnnGrad, CoversRnnGrad}; }
