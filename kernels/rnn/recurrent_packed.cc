#include "kernels/rnn/recurrent_packed.h"

#include <array>
#include <new>
#include <span>

#include "core/interrupts.h"
#include "core/machine.h"
#include "core/memory/lazy_buffer.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/check.h"
#include "kernels/base/index_args.h"
#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

// ONNX's gates in the order of kernels/rnn: i, f, c, o of an LSTM; r, z, h of a GRU.
std::span<const int64_t> GateOrder(RecurrentKind kind) {
  static constexpr std::array<int64_t, 4> kLstm{0, 2, 3, 1};
  static constexpr std::array<int64_t, 3> kGru{1, 0, 2};
  static constexpr std::array<int64_t, 1> kRnn{0};
  if (kind == RecurrentKind::kLstm) return kLstm;
  if (kind == RecurrentKind::kGru) return kGru;
  return kRnn;
}

// The network as kernels/rnn knows it; false where it has something that those lack.
bool PackedModeOf(const RecurrentConfig& c, RnnMode* mode) {
  if (c.clip != 0 || c.batch_first || c.reverse || c.input_forget || c.hidden == 0 || c.in == 0)
    return false;
  if (c.kind == RecurrentKind::kRnn) {
    const GateFunction::Kind kind = c.functions[0].kind;
    for (const GateFunction& f : c.functions)
      if (f.kind != kind) return false;
    *mode = kind == GateFunction::kRelu ? RnnMode::kRelu : RnnMode::kTanh;
    return kind == GateFunction::kRelu || kind == GateFunction::kTanh;
  }
  for (size_t i = 0; i < c.functions.size(); ++i) {
    const bool gate = i % c.functions_per_direction() == 0;
    if (c.functions[i].kind != (gate ? GateFunction::kSigmoid : GateFunction::kTanh)) return false;
  }
  *mode = c.kind == RecurrentKind::kLstm ? RnnMode::kLstm : RnnMode::kGru;
  return c.kind == RecurrentKind::kLstm || c.linear_before_reset;
}

// Direction d of weights [directions, gates * hidden, width], gates in the other order. The copy is
// kept beside the weights: every plan of the program finds the same one.
std::shared_ptr<const Tensor> Reordered(const PrepareContext& ctx, const Tensor& w, int64_t d,
                                        RecurrentKind kind, int64_t hidden) {
  const std::string key =
      StrCat("onnx gates ", static_cast<int>(kind), " ", d, " of ", w.shape().ToString());
  return ctx.packs().Get<Tensor>(w, key, [&] {
    const int64_t rows = w.dim(1), width = w.dim(2);
    auto out = std::make_unique<Tensor>(Tensor::Empty(DType::kF32, {rows, width}));
    if (!out->initialized()) throw std::bad_alloc();
    float* to = out->mutable_data<float>();
    for (const int64_t gate : GateOrder(kind))
      to = std::copy_n(w.data<float>() + (d * rows + gate * hidden) * width, hidden * width, to);
    return out.release();
  });
}

// One of the two biases of direction d, zeros where there are none.
Tensor BiasOf(const Tensor* b, int64_t d, int64_t which, RecurrentKind kind, int64_t hidden) {
  const auto order = GateOrder(kind);
  const auto gates = static_cast<int64_t>(order.size());
  Tensor out = Tensor::Zeros(DType::kF32, {gates * hidden});
  if (!out.initialized()) throw std::bad_alloc();
  float* to = out.mutable_data<float>();
  for (size_t g = 0; b != nullptr && g < order.size(); ++g)
    to = std::copy_n(b->data<float>() + ((d * 2 + which) * gates + order[g]) * hidden, hidden, to);
  return out;
}

}  // namespace

Result<RecurrentKind> RecurrentKindOf(const OpContext& ctx) {
  const std::string& cell = ctx.Str("cell");
  if (cell == "rnn") return RecurrentKind::kRnn;
  if (cell == "gru") return RecurrentKind::kGru;
  if (cell == "lstm") return RecurrentKind::kLstm;
  return InvalidArgument("cell is '", cell, "', expected rnn, gru or lstm");
}

Result<std::unique_ptr<KernelState>> PrepareRecurrent(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const RecurrentKind kind, RecurrentKindOf(ctx));
  auto state = std::make_unique<RecurrentState>();
  HEDDLE_ASSIGN_OR_RETURN(const RecurrentConfig c, RecurrentConfigOf(ctx, kind, false));
  const Tensor *w = ctx.ConstIn("W"), *r = ctx.ConstIn("R");
  const Tensor* b = ctx.HasIn("B") ? ctx.ConstIn("B") : nullptr;
  RnnMode mode = RnnMode::kTanh;
  bool fits = PackedModeOf(c, &mode) && w != nullptr && r != nullptr &&
              (b != nullptr || !ctx.HasIn("B")) && ctx.InDType("X") == DType::kF32;
  fits = fits && !ctx.HasIn("P");
  if (!fits) {
    state->facts().implementation = "gemm per step";
    return std::unique_ptr<KernelState>(std::move(state));
  }
  for (const Tensor* t : {w, r, b}) {
    if (t == nullptr) continue;
    HEDDLE_RETURN_IF_ERROR(CheckDType(DType::kF32, {t}));
    HEDDLE_RETURN_IF_ERROR(MakeResident(*t));
  }
  for (const int64_t d : Watched(c.directions)) {
    const auto ih = Reordered(ctx, *w, d, kind, c.hidden);
    const auto hh = Reordered(ctx, *r, d, kind, c.hidden);
    state->packed.push_back(PackRnn(ctx, mode, *ih, *hh, BiasOf(b, d, 0, kind, c.hidden),
                                    BiasOf(b, d, 1, kind, c.hidden)));
  }
  state->facts().implementation = StrCat("strips, ", simd::VectorsOf(MachineOr(ctx.machine())));
  return std::unique_ptr<KernelState>(std::move(state));
}
Status SequenceLengths(const KernelContext& ctx, const RecurrentConfig& c,
                       std::pmr::vector<int64_t>* lengths) {
  lengths->assign(static_cast<size_t>(c.batch), c.steps);
  const Tensor* given = ctx.InOpt("sequence_lens");
  if (given == nullptr) return Status::Ok();
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(given->dtype(), "sequence_lens"));
  for (const int64_t b : Watched(c.batch)) {
    const int64_t n = IntAt(*given, b);
    if (n < 0 || n > c.steps)
      return OutOfRange("sequence_lens holds ", n, ", expected 0 to ", c.steps);
    (*lengths)[static_cast<size_t>(b)] = n;
  }
  return Status::Ok();
}

Status RunPacked(KernelContext& ctx, const RecurrentConfig& c) {
  const auto& state = ctx.State<RecurrentState>();
  const bool lstm = c.kind == RecurrentKind::kLstm;
  const Tensor *h0 = ctx.InOpt("initial_h"), *c0 = lstm ? ctx.InOpt("initial_c") : nullptr;
  HEDDLE_RETURN_IF_ERROR(CheckDType(DType::kF32, {h0, c0}));
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> lengths(&heap);
  HEDDLE_RETURN_IF_ERROR(SequenceLengths(ctx, c, &lengths));
  const int64_t size = c.batch * c.hidden;
  Tensor zeros = ctx.CallScratch(DType::kF32, {size});
  std::fill_n(zeros.mutable_data<float>(), size, 0.0F);
  Tensor *y = ctx.OutOpt("Y"), *y_h = ctx.OutOpt("Y_h");
  Tensor* y_c = lstm ? ctx.OutOpt("Y_c") : nullptr;
  // The states of both directions lie side by side there, one behind the other in Y.
  Tensor side_by_side;
  const bool direct = y != nullptr && c.directions == 1;
  if (!direct)
    side_by_side = ctx.CallScratch(DType::kF32, {c.steps, c.batch, c.directions * c.hidden});
  RnnLayerArgs args;
  args.steps = c.steps;
  args.batch = c.batch;
  args.lengths = ctx.InOpt("sequence_lens") == nullptr ? nullptr : lengths.data();
  args.x = ctx.In("X").data<float>();
  args.out = (direct ? *y : side_by_side).mutable_data<float>();
  std::array<const PackedRnn*, 2> packs{};
  for (size_t d = 0; d < state.packed.size(); ++d) {
    const auto at = static_cast<int64_t>(d) * size;
    packs[d] = state.packed[d].get();
    args.h0[d] = h0 == nullptr ? zeros.data<float>() : h0->data<float>() + at;
    args.c0[d] = c0 == nullptr ? zeros.data<float>() : c0->data<float>() + at;
    args.last_h[d] = y_h == nullptr ? nullptr : y_h->mutable_data<float>() + at;
    args.last_c[d] = y_c == nullptr ? nullptr : y_c->mutable_data<float>() + at;
  }
  RunRnnLayer(ctx, std::span(packs).first(state.packed.size()), args);
  if (direct || y == nullptr) return Status::Ok();
  float* to = y->mutable_data<float>();
  for (const int64_t t : Watched(c.steps))
    for (int64_t d = 0; d < c.directions; ++d)
      for (int64_t b = 0; b < c.batch; ++b)
        to =
            std::copy_n(args.out + ((t * c.batch + b) * c.directions + d) * c.hidden, c.hidden, to);
  return Status::Ok();
}

}  // namespace heddle
