// gru and fusion_gru: gated recurrent units over sequences.
#include "core/interrupts.h"
#include "kernels/rnn/sequence_batch.h"

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

HEDDLE_EXAMPLES(fusion_gru, R"(
example float32 5x15, is_reverse
attr is_reverse BOOLEAN true
in Bias float32 [1, 15] 0.73 0.101 0.416 0.573 0.468 0.783 0.521 0.363 0.153 0.678 0.835 0.258 0.206
  0.626 0.311
in H0 float32 [3, 5] 0.397 0.291 0.344 0.768 0.609 0.715 0.132 0.875 0.556 0.45 0.822 0.662 0.238
  0.503 0.185
in WeightH float32 [5, 15] 0.525 0.59 0.486 0.551 0.917 0.538 0.46 0.055 0.76 0.852 0.029 0.839
  0.786 0.146 0.199 0.93 0.329 0.238 0.316 0.081 0.133 0.904 0.342 0.577 0.943 0.604 0.277 0.564
  0.355 0.395 0.695 0.512 0.042 0.264 0.303 0.159 0.212 0.669 0.186 0.381 0.812 0.473 0.29 0.068
  0.956 0.094 0.172 0.421 0.747 0.408 0.368 0.891 0.617 0.434 0.734 0.799 0.682 0.865 0.016 0.643
  0.826 0.969 0.656 0.251 0.878 0.12 0.499 0.447 0.982 0.721 0.708 0.107 0.773 0.225 0.63
in WeightX float32 [3, 15] 0.201 0.162 0.946 0.417 0.221 0.868 0.338 0.122 0.554 0.887 0.907 0.789
  0.476 0.436 0.613 0.319 0.731 0.103 0.691 0.377 0.632 0.26 0.652 0.809 0.593 0.672 0.142 0.24
  0.534 0.299 0.711 0.829 0.279 0.927 0.515 0.456 0.75 0.397 0.966 0.181 0.358 0.77 0.848 0.574
  0.495
in X float32 [9, 3] lod [[0, 2, 6, 9]] 0.948 0.685 0.849 0.487 0.422 0.389 0.718 0.093 0.29 0.454
  0.553 0.586 0.619 0.158 0.191 0.224 0.816 0.356 0.75 0.783 0.52 0.257 0.323 0.882 0.915 0.125
  0.652
out BatchedInput ?
out BatchedOut ?
out Hidden float32 [9, 5] lod [[0, 2, 6, 9]] 0.9988032 0.9988523 0.9961906 0.99774367 0.99937516
  0.94812566 0.9120607 0.88631314 0.9587846 0.957234 0.9996484 0.99938947 0.9993448 0.99507827
  0.99967057 0.9997307 0.99949247 0.99950266 0.99708384 0.9997478 0.9984773 0.99750483 0.9972941
  0.99101233 0.99890846 0.97506964 0.9415405 0.96714526 0.9573217 0.96910703 0.99987715 0.99969214
  0.9995866 0.99819005 0.99983853 0.9990253 0.99901503 0.9959819 0.99462956 0.99866974 0.9813968
  0.9698044 0.93655765 0.94538075 0.9311065
out ReorderedH0 ?
out XX ?

example float64 5x15, is_reverse
attr is_reverse BOOLEAN true
in Bias float64 [1, 15] 0.73 0.101 0.416 0.573 0.468 0.783 0.521 0.363 0.153 0.678 0.835 0.258 0.206
  0.626 0.311
in H0 float64 [3, 5] 0.397 0.291 0.344 0.768 0.609 0.715 0.132 0.875 0.556 0.45 0.822 0.662 0.238
  0.503 0.185
in WeightH float64 [5, 15] 0.525 0.59 0.486 0.551 0.917 0.538 0.46 0.055 0.76 0.852 0.029 0.839
  0.786 0.146 0.199 0.93 0.329 0.238 0.316 0.081 0.133 0.904 0.342 0.577 0.943 0.604 0.277 0.564
  0.355 0.395 0.695 0.512 0.042 0.264 0.303 0.159 0.212 0.669 0.186 0.381 0.812 0.473 0.29 0.068
  0.956 0.094 0.172 0.421 0.747 0.408 0.368 0.891 0.617 0.434 0.734 0.799 0.682 0.865 0.016 0.643
  0.826 0.969 0.656 0.251 0.878 0.12 0.499 0.447 0.982 0.721 0.708 0.107 0.773 0.225 0.63
in WeightX float64 [3, 15] 0.201 0.162 0.946 0.417 0.221 0.868 0.338 0.122 0.554 0.887 0.907 0.789
  0.476 0.436 0.613 0.319 0.731 0.103 0.691 0.377 0.632 0.26 0.652 0.809 0.593 0.672 0.142 0.24
  0.534 0.299 0.711 0.829 0.279 0.927 0.515 0.456 0.75 0.397 0.966 0.181 0.358 0.77 0.848 0.574
  0.495
in X float64 [9, 3] lod [[0, 2, 6, 9]] 0.948 0.685 0.849 0.487 0.422 0.389 0.718 0.093 0.29 0.454
  0.553 0.586 0.619 0.158 0.191 0.224 0.816 0.356 0.75 0.783 0.52 0.257 0.323 0.882 0.915 0.125
  0.652
out BatchedInput ?
out BatchedOut ?
out Hidden float64 [9, 5] lod [[0, 2, 6, 9]] 0.9988032615180732 0.9988524116823356
  0.9961905695257782 0.9977437349470487 0.9993752705434026 0.9481256904338409 0.9120607332425701
  0.886312946397033 0.9587845842894888 0.9572339458992035 0.9996484192803502 0.9993893995888377
  0.9993447629497384 0.9950781912549371 0.9996705650846619 0.9997308059499207 0.9994924132030062
  0.9995026557039746 0.9970839903165648 0.9997479162326209 0.9984772851997831 0.9975049149126688
  0.997294244955181 0.9910123305393939 0.9989085650435623 0.9750697895972819 0.9415403778965981
  0.9671452300164014 0.9573216282685824 0.9691070369377645 0.9998770752456391 0.9996920639587378
  0.9995866433346032 0.9981901569992323 0.9998385013219406 0.9990253000749891 0.999015175808652
  0.99598174865323 0.9946294976087511 0.9986697582603515 0.9813967046059703 0.9698044212505659
  0.9365576242748259 0.9453806945214966 0.9311063554263886
out ReorderedH0 ?
out XX ?

example float32 5x15, is_reverse, origin_mode true
attr is_reverse BOOLEAN true
attr origin_mode BOOLEAN true
in Bias float32 [1, 15] 0.73 0.101 0.416 0.573 0.468 0.783 0.521 0.363 0.153 0.678 0.835 0.258 0.206
  0.626 0.311
in H0 float32 [3, 5] 0.397 0.291 0.344 0.768 0.609 0.715 0.132 0.875 0.556 0.45 0.822 0.662 0.238
  0.503 0.185
in WeightH float32 [5, 15] 0.525 0.59 0.486 0.551 0.917 0.538 0.46 0.055 0.76 0.852 0.029 0.839
  0.786 0.146 0.199 0.93 0.329 0.238 0.316 0.081 0.133 0.904 0.342 0.577 0.943 0.604 0.277 0.564
  0.355 0.395 0.695 0.512 0.042 0.264 0.303 0.159 0.212 0.669 0.186 0.381 0.812 0.473 0.29 0.068
  0.956 0.094 0.172 0.421 0.747 0.408 0.368 0.891 0.617 0.434 0.734 0.799 0.682 0.865 0.016 0.643
  0.826 0.969 0.656 0.251 0.878 0.12 0.499 0.447 0.982 0.721 0.708 0.107 0.773 0.225 0.63
in WeightX float32 [3, 15] 0.201 0.162 0.946 0.417 0.221 0.868 0.338 0.122 0.554 0.887 0.907 0.789
  0.476 0.436 0.613 0.319 0.731 0.103 0.691 0.377 0.632 0.26 0.652 0.809 0.593 0.672 0.142 0.24
  0.534 0.299 0.711 0.829 0.279 0.927 0.515 0.456 0.75 0.397 0.966 0.181 0.358 0.77 0.848 0.574
  0.495
in X float32 [9, 3] lod [[0, 2, 6, 9]] 0.948 0.685 0.849 0.487 0.422 0.389 0.718 0.093 0.29 0.454
  0.553 0.586 0.619 0.158 0.191 0.224 0.816 0.356 0.75 0.783 0.52 0.257 0.323 0.882 0.915 0.125
  0.652
out BatchedInput ?
out BatchedOut ?
out Hidden float32 [9, 5] lod [[0, 2, 6, 9]] 0.9988032 0.9988523 0.9961906 0.99774367 0.99937516
  0.94812566 0.9120607 0.88631314 0.9587846 0.957234 0.9996484 0.99938947 0.9993448 0.99507827
  0.99967057 0.9997307 0.99949247 0.99950266 0.99708384 0.9997478 0.9984773 0.99750483 0.9972941
  0.99101233 0.99890846 0.97506964 0.9415405 0.96714526 0.9573217 0.96910703 0.99987715 0.99969214
  0.9995866 0.99819005 0.99983853 0.9990253 0.99901503 0.9959819 0.99462956 0.99866974 0.9813968
  0.9698044 0.93655765 0.94538075 0.9311065
out ReorderedH0 ?
out XX ?
)")

HEDDLE_EXAMPLES(gru, R"(
example float32
in x float32 [3, 6] lod [[0, 1, 3]] 0.32 0.28 0.91 -0.12 0.31 0.82 0.08 0.04 0.19 0.79 -0.59 -0.92
  0.72 0.28 0.96 0.94 0.52 -0.71
in w float32 [2, 6] -0.06 -0.65 0.17 0.29 -0.82 0.03 0.67 -0.16 -0.87 0.75 0.75 -0.19
in b float32 [1, 6] 0.59 -0.53 -1 -0.96 -0.33 0.95
op gru Input=x Weight=w Bias=b -> BatchGate=bg BatchResetHiddenPrev=br BatchHidden=bh Hidden=h
out h float32 [3, 2] lod [[0, 1, 3]] -0.01425812 0.4131344 -0.4801834 0.011393378 0.19380113
  0.041136283

example float32, reversed, origin mode
in x float32 [3, 3] lod [[0, 1, 3]] -0.91 0.86 -0.91 0.89 -0.31 0.43 -0.23 -0.81 -0.67
in w float32 [1, 3] -0.46 -0.29 0.17
op gru Input=x Weight=w -> BatchGate=bg BatchResetHiddenPrev=br BatchHidden=bh Hidden=h
attr is_reverse BOOLEAN true
attr origin_mode BOOLEAN true
out h float32 [3, 1] lod [[0, 1, 3]] -0.5141674 -0.14044474 -0.3259788

example float64
in x float64 [3, 6] lod [[0, 1, 3]] -0.83 -0.56 -0.72 -0.76 0.31 0.57 -0.26 -0.25 -0 -0.52 -0.81
  0.26 -0.74 0.16 -0.22 -0.91 -0.4 0.29
in w float64 [2, 6] 0.21 0.48 0.28 0.95 -0.38 -0.19 0.2 -0.03 0.6 0.74 -0.18 0.34
in b float64 [1, 6] -0.09 -0.05 0.83 -0.65 -0.99 -0.75
op gru Input=x Weight=w Bias=b -> BatchGate=bg BatchResetHiddenPrev=br BatchHidden=bh Hidden=h
out h float64 [3, 2] lod [[0, 1, 3]] -0.16855812135927398 -0.0626950075941688 -0.3913929618860199
  -0.19329520191504865 -0.5480176595488582 -0.3772785804324125

example float64, reversed, origin mode
in x float64 [3, 3] lod [[0, 1, 3]] 0.22 -0.31 0.03 -0.86 -0.75 0.79 0.29 0.6 0.59
in w float64 [1, 3] -0.74 -0.94 -0.55
op gru Input=x Weight=w -> BatchGate=bg BatchResetHiddenPrev=br BatchHidden=bh Hidden=h
attr is_reverse BOOLEAN true
attr origin_mode BOOLEAN true
out h float64 [3, 1] lod [[0, 1, 3]] 0.013352617401889429 0.5299728499526314 0.22679736916438487

example float64, one operator
in Input float64 [3, 6] lod [[0, 1, 3]] -0.83 -0.56 -0.72 -0.76 0.31 0.57 -0.26 -0.25 -0 -0.52 -0.81
  0.26 -0.74 0.16 -0.22 -0.91 -0.4 0.29
in Weight float64 [2, 6] 0.21 0.48 0.28 0.95 -0.38 -0.19 0.2 -0.03 0.6 0.74 -0.18 0.34
in Bias float64 [1, 6] -0.09 -0.05 0.83 -0.65 -0.99 -0.75
# Work space of the gradient.
out BatchGate ?
out BatchResetHiddenPrev ?
out BatchHidden ?
out Hidden float64 [3, 2] lod [[0, 1, 3]] -0.16855812135927398 -0.0626950075941688
  -0.3913929618860199 -0.19329520191504865 -0.5480176595488582 -0.3772785804324125
)")

HEDDLE_EXAMPLES(gru_grad, R"(
example float32
in x float32 [3, 6] lod [[0, 1, 3]] 0.24 -0.04 0.47 0.61 0.12 0.57 -0.55 -0.36 0.27 0.74 -0.91 0.77
  -0.97 -0.17 0.57 0.65 -0.53 -0.75
in w float32 [2, 6] -0.1 0.3 -0.01 -0.43 0.83 0.62 -0.07 0.83 -0.51 0.71 0.38 -0.55
in b float32 [1, 6] 0.74 -0.14 0.91 0.98 -0.68 0.91
in g float32 [3, 2] lod [[0, 1, 3]] 0.53 -0.31 0.05 -0.06 -0.27 -0.01
op gru Input=x Weight=w Bias=b -> BatchGate=bg BatchResetHiddenPrev=br BatchHidden=bh Hidden=h
op gru_grad Input=x Weight=w Bias=b BatchGate=bg BatchResetHiddenPrev=br BatchHidden=bh Hidden=h
  Hidden@GRAD=g -> Input@GRAD=dx Weight@GRAD=dw Bias@GRAD=db
out dx float32 [3, 6] -0.05342073 -0.06930091 0 0 0.28592673 -0.026433522 0.011565837 -0.016660057 0
  0 -0.0042577195 -0.0037232344 0.013704201 0.0015932102 -0.0025791884 -0.00082568766 -0.071255885
  -0.0040147835
out dw float32 [2, 6] -0.006902131 -0.0008024215 0.0012990101 0.0004158582 0.004826526 0.0005611177
  -0.0009083726 -0.00029080157 0.02912645 0.001641077 -0.02245139 -0.0012649829
out db float32 [1, 6] -0.02815069 -0.08436776 -0.0025791884 -0.00082568766 0.21041313 -0.03417154

example float64
in x float64 [3, 6] lod [[0, 1, 3]] -0.9 -0.95 -0.02 -0.2 -0.91 0.87 -0.92 -0.12 0.86 -0.35 -0.38
  0.91 0.3 0.85 -0.64 -0.69 -0.3 0.06
in w float64 [2, 6] 0.43 -0.9 0.94 0.74 0.82 0.76 0.26 -0.25 0.33 0.06 -0.57 -0.95
in b float64 [1, 6] -0.98 -0.14 0.67 0.24 -0.54 0.65
in g float64 [3, 2] lod [[0, 1, 3]] 0.24 -0.5 0.6 -0.05 -0.59 -0.51
op gru Input=x Weight=w Bias=b -> BatchGate=bg BatchResetHiddenPrev=br BatchHidden=bh Hidden=h
op gru_grad Input=x Weight=w Bias=b BatchGate=bg BatchResetHiddenPrev=br BatchHidden=bh Hidden=h
  Hidden@GRAD=g -> Input@GRAD=dx Weight@GRAD=dw Bias@GRAD=db
out dx float64 [3, 6] -0.02469147080450761 -0.08555684706445126 0 0 0.006282676326418784
  -0.02192457822233497 -0.02407653944320642 -0.0009586756326797739 0 0 0.01803772765024955
  -0.0003004773537513991 0.09064294011300021 -0.01149928765994342 0.0012518762289678769
  0.029752899014995116 -0.10992635624812508 -0.2795176839270443
out dw float64 [2, 6] -0.00856080920659047 0.0010860548824403907 -0.000118233957692673
  -0.0028100246030500924 0.036124913893443356 -0.004582935814234612 0.0004989238094035192
  0.0118577454974109 0.005307387821598081 0.013495478265895849 -0.015328710440717657
  -0.038977418939516444
out db float64 [1, 6] 0.04187492986528618 -0.09801481035707445 0.0012518762289678769
  0.029752899014995116 -0.08560595227145675 -0.3017427395031307
)")
