// gru and fusion_gru: gated recurrent units over sequences.
#include "core/interrupts.h"
#include "kernels/sequence/sequence_batch.h"

namespace heddle {
namespace {

Status CheckGruOperands(const ShapeContext& ctx, Key weight, int64_t d) {
  const Shape& w = ctx.InShape(weight);
  if (w.is_static() && w.numel() != 3 * d * d)
    return InvalidArgument(weight.name, " ", w.ToString(), " must be [", d, ", ", 3 * d, "]");
  if (ctx.HasIn("Bias") && ctx.InShape("Bias").is_static() && ctx.InShape("Bias").numel() != 3 * d)
    return InvalidArgument("Bias must have ", 3 * d, " elements");
  if (ctx.HasIn("H0") && ctx.InShape("H0").known_rank() && ctx.InShape("H0").dim(-1) != d)
    return InvalidArgument("H0 ", ctx.InShape("H0").ToString(), " must have ", d, " columns");
  return Status::Ok();
}

Status CheckGru(const ShapeContext& ctx) {
  const Shape& x = ctx.InShape("Input");
  if (x.known_rank() && (x.rank() != 2 || x[1] < 0 || x[1] % 3 != 0))
    return InvalidArgument("Input must be [T, 3 D], not ", x.ToString());
  return x.known_rank() ? CheckGruOperands(ctx, "Weight", x[1] / 3) : Status::Ok();
}

Status InferGru(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckGru(ctx));
  const Shape& x = ctx.InShape("Input");
  if (!x.known_rank()) return ctx.Defer();
  const Shape hidden{x[0], x[1] / 3};
  const DType dtype = ctx.InDType("Input");
  ctx.SetOut("BatchGate", x, dtype);
  ctx.SetOut("BatchResetHiddenPrev", hidden, dtype);
  ctx.SetOut("BatchHidden", hidden, dtype);
  ctx.SetOut("Hidden", hidden, dtype);
  ctx.ShareLoD("Input", "Hidden");
  return Status::Ok();
}

template <typename T>
Result<GruStep<T>> GruStepOf(KernelContext& ctx, const Tensor& weight, int64_t size) {
  HEDDLE_ASSIGN_OR_RETURN(const GateActivation act, GateActivationOf(ctx.Str("activation")));
  HEDDLE_ASSIGN_OR_RETURN(const GateActivation gate, GateActivationOf(ctx.Str("gate_activation")));
  return GruStep<T>{size, act, gate, ctx.Bool("origin_mode"), weight.data<T>()};
}

// H0 in the order of the batch; empty if there is no H0.
template <typename T>
Result<std::vector<T>> FirstHidden(KernelContext& ctx, const SequenceBatch& batch, int64_t size) {
  const Tensor* h0 = ctx.InOpt("H0");
  std::vector<T> sorted;
  if (h0 == nullptr) return sorted;
  const auto count = static_cast<int64_t>(batch.order.size());
  if (h0->numel() != count * size)
    return InvalidArgument("H0 ", h0->shape().ToString(), " must be [", count, ", ", size, "]");
  for (int64_t s : batch.order)
    sorted.insert(sorted.end(), h0->data<T>() + s * size, h0->data<T>() + (s + 1) * size);
  return sorted;
}

// Runs all steps. `gate` holds the projected inputs in batch order.
template <typename T>
void RunSteps(const GruStep<T>& step, const SequenceBatch& batch, const std::vector<T>& first,
              T* gate, T* reset, T* hidden) {
  const int64_t d = step.size;
  for (const int64_t t : Watched(batch.steps())) {
    const int64_t at = batch.Start(t);
    const T* prev = t > 0           ? hidden + batch.Start(t - 1) * d
                    : first.empty() ? nullptr
                                    : first.data();
    step.Forward(batch.Size(t), gate + at * 3 * d, prev, reset + at * d, hidden + at * d);
  }
}

// gru bounds the arguments of its sigmoids, fusion_gru does not.
template <typename T>
Result<GruStep<T>> BoundedStepOf(KernelContext& ctx, const Tensor& weight, int64_t size) {
  HEDDLE_ASSIGN_OR_RETURN(GruStep<T> step, GruStepOf<T>(ctx, weight, size));
  for (GateActivation* a : {&step.act, &step.gate_act})
    if (*a == GateActivation::kSigmoid) *a = GateActivation::kBoundedSigmoid;
  return step;
}

template <typename T>
struct Gru {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Input");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "Input"));
    const int64_t d = x.dim(1) / 3;
    HEDDLE_ASSIGN_OR_RETURN(const GruStep<T> step, BoundedStepOf<T>(ctx, ctx.In("Weight"), d));
    const SequenceBatch batch(*offsets, ctx.Bool("is_reverse"));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<T> first, FirstHidden<T>(ctx, batch, d));
    const Tensor* bias = ctx.InOpt("Bias");
    T* gate = ctx.Out("BatchGate").template mutable_data<T>();
    for (size_t i = 0; i < batch.row.size(); ++i)
      for (int64_t k = 0; k < 3 * d; ++k)
        gate[static_cast<int64_t>(i) * 3 * d + k] =
            x.data<T>()[batch.row[i] * 3 * d + k] + (bias ? bias->data<T>()[k] : T(0));
    Tensor& hidden = ctx.Out("BatchHidden");
    RunSteps(step, batch, first, gate, ctx.Out("BatchResetHiddenPrev").template mutable_data<T>(),
             hidden.mutable_data<T>());
    for (size_t i = 0; i < batch.row.size(); ++i)
      CopyRows(hidden, static_cast<int64_t>(i), 1, ctx.Out("Hidden"), batch.row[i]);
    return Status::Ok();
  }
};

Status InferGruGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckGru(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Input", "BatchGate"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "BatchHidden", "BatchResetHiddenPrev"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "BatchHidden", "Hidden@GRAD"));
  SetOutsLike(ctx, {{"Input", "Input@GRAD"},
                    {"H0", "H0@GRAD"},
                    {"Weight", "Weight@GRAD"},
                    {"Bias", "Bias@GRAD"}});
  if (ctx.HasOut("Input@GRAD")) ctx.ShareLoD("Input", "Input@GRAD");
  return Status::Ok();
}

template <typename T>
struct GruGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("Input"), &dout = ctx.In("Hidden@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "Input"));
    const int64_t d = x.dim(1) / 3, rows = x.dim(0);
    if (dout.numel() != rows * d) return InvalidArgument("Hidden@GRAD does not fit Input");
    HEDDLE_ASSIGN_OR_RETURN(const GruStep<T> step, BoundedStepOf<T>(ctx, ctx.In("Weight"), d));
    const SequenceBatch batch(*offsets, ctx.Bool("is_reverse"));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<T> first, FirstHidden<T>(ctx, batch, d));
    const T* gate = ctx.In("BatchGate").template data<T>();
    const T* reset = ctx.In("BatchResetHiddenPrev").template data<T>();
    const T* hidden = ctx.In("BatchHidden").template data<T>();
    Tensor *dw = ctx.OutOpt("Weight@GRAD"), *dh0 = ctx.OutOpt("H0@GRAD");
    if (dw) ZeroAll(*dw);
    std::vector<T> dfirst(first.size(), T(0)), dhidden(static_cast<size_t>(rows * d));
    std::vector<T> dgate(static_cast<size_t>(rows * 3 * d));
    for (size_t i = 0; i < batch.row.size(); ++i)
      std::copy_n(dout.data<T>() + batch.row[i] * d, d,
                  dhidden.data() + static_cast<int64_t>(i) * d);
    for (int64_t t = batch.steps() - 1; t >= 0; --t) {
      const int64_t at = batch.Start(t);
      const int64_t before = t > 0 ? batch.Start(t - 1) * d : 0;
      const T* prev = t > 0 ? hidden + before : first.empty() ? nullptr : first.data();
      T* dprev = t > 0 ? dhidden.data() + before : first.empty() ? nullptr : dfirst.data();
      step.Backward(batch.Size(t), gate + at * 3 * d, prev, reset + at * d, dhidden.data() + at * d,
                    dgate.data() + at * 3 * d, dprev,
                    dw ? dw->template mutable_data<T>() : nullptr);
    }
    if (Tensor* dx = ctx.OutOpt("Input@GRAD"))
      for (size_t i = 0; i < batch.row.size(); ++i)
        std::copy_n(dgate.data() + static_cast<int64_t>(i) * 3 * d, 3 * d,
                    dx->template mutable_data<T>() + batch.row[i] * 3 * d);
    if (Tensor* db = ctx.OutOpt("Bias@GRAD"))
      MatrixMap<T>(db->template mutable_data<T>(), 1, 3 * d) =
          ConstMatrixMap<T>(dgate.data(), rows, 3 * d).colwise().sum();
    for (size_t i = 0; dh0 && i < batch.order.size(); ++i)
      std::copy_n(dfirst.data() + static_cast<int64_t>(i) * d, d,
                  dh0->template mutable_data<T>() + batch.order[i] * d);
    return Status::Ok();
  }
};

Status InferGruFusion(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &wx = ctx.InShape("WeightX"), &wh = ctx.InShape("WeightH");
  if (!x.known_rank() || !wx.is_static() || !wh.is_static()) return ctx.Defer();
  if (x.rank() != 2 || wx.rank() != 2 || wh.rank() != 2 || wx[0] != x[1] || wx[1] != 3 * wh[0])
    return InvalidArgument("X ", x.ToString(), ", WeightX ", wx.ToString(), " and WeightH ",
                           wh.ToString(), " do not fit each other");
  HEDDLE_RETURN_IF_ERROR(CheckGruOperands(ctx, "WeightH", wh[0]));
  const DType dtype = ctx.InDType("X");
  ctx.SetOut("XX", Shape{x[0], wx[1]}, dtype);
  ctx.SetOut("Hidden", Shape{x[0], wh[0]}, dtype);
  for (Key unused : {Key("ReorderedH0"), Key("BatchedInput"), Key("BatchedOut")})
    if (ctx.HasOut(unused)) ctx.SetOut(unused, Shape{0}, dtype);
  ctx.ShareLoD("X", "Hidden");
  return Status::Ok();
}

template <typename T>
struct FusionGru {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &wx = ctx.In("WeightX");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    const int64_t d = wx.dim(1) / 3, rows = x.dim(0);
    HEDDLE_ASSIGN_OR_RETURN(GruStep<T> step, GruStepOf<T>(ctx, ctx.In("WeightH"), d));
    step.origin_mode = false;  // as in Paddle, whatever the attribute says
    const SequenceBatch batch(*offsets, ctx.Bool("is_reverse"));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<T> first, FirstHidden<T>(ctx, batch, d));
    Matrix<T> inputs(rows, x.dim(1));
    for (int64_t i = 0; i < rows; ++i)
      inputs.row(i) = MatrixAt<T>(x, 0).row(batch.row[static_cast<size_t>(i)]);
    Matrix<T> gate = Product<T>(inputs, MatrixAt<T>(wx, 0));
    if (const Tensor* bias = ctx.InOpt("Bias"))
      gate.rowwise() += ConstMatrixMap<T>(bias->data<T>(), 1, 3 * d).row(0);
    Matrix<T> reset(rows, d), hidden(rows, d);
    RunSteps(step, batch, first, gate.data(), reset.data(), hidden.data());
    auto out = MutableMatrixAt<T>(ctx.Out("Hidden"), 0);
    for (int64_t i = 0; i < rows; ++i) out.row(batch.row[static_cast<size_t>(i)]) = hidden.row(i);
    if (Tensor* xx = ctx.OutOpt("XX")) MutableMatrixAt<T>(*xx, 0) = gate;
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(gru) {
  op.Doc("gated recurrent unit over sequences of projected inputs")
      .Input("Input")
      .Input("H0", kOptional)
      .Input("Weight")
      .Input("Bias", kOptional)
      .Output("BatchGate")
      .Output("BatchResetHiddenPrev")
      .Output("BatchHidden")
      .Output("Hidden")
      .Attr("activation", "tanh")
      .Attr("gate_activation", "sigmoid")
      .Attr("is_reverse", false)
      .Attr("is_test", false)
      .Attr("origin_mode", false)
      .InferShape(InferGru)
      .Kernels<Gru, float, double>();
}

HEDDLE_OP(gru_grad) {
  op.Input("Input", kNoBuffer)
      .Input("H0", kOptional)
      .Input("Weight")
      .Input("Bias", kOptional | kNoBuffer)
      .Input("BatchGate")
      .Input("BatchResetHiddenPrev")
      .Input("BatchHidden")
      .Input("Hidden", kOptional | kNoBuffer)
      .Input("Hidden@GRAD")
      .Output("Input@GRAD", kOptional)
      .Output("H0@GRAD", kOptional)
      .Output("Weight@GRAD", kOptional)
      .Output("Bias@GRAD", kOptional)
      .Attr("activation", "tanh")
      .Attr("gate_activation", "sigmoid")
      .Attr("is_reverse", false)
      .Attr("is_test", false)
      .Attr("origin_mode", false)
      .InferShape(InferGruGrad)
      .Kernels<GruGrad, float, double>();
}

HEDDLE_OP(fusion_gru) {
  op.Doc("gru with the projection of its inputs")
      .Input("X")
      .Input("H0", kOptional)
      .Input("WeightX")
      .Input("WeightH")
      .Input("Bias", kOptional)
      .Output("ReorderedH0", kOptional)
      .Output("XX", kOptional)
      .Output("BatchedInput", kOptional)
      .Output("BatchedOut", kOptional)
      .Output("Hidden")
      .Attr("activation", "tanh")
      .Attr("gate_activation", "sigmoid")
      .Attr("is_reverse", false)
      .Attr("use_seq", true)
      .Attr("origin_mode", false)
      .Attr("Scale_data", 1.0)
      .Attr("Shift_data", 0.0)
      .Attr("Scale_weights", Floats{1.0})
      .Attr("force_fp32_output", false)
      .InferShape(InferGruFusion)
      .Kernels<FusionGru, float, double>();
}
