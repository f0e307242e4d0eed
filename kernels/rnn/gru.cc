// gru and fusion_gru: gated recurrent units over sequences.
#include "kernels/rnn/sequence_batch.h"

namespace heddle {
namespace {

Status CheckOperands(const ShapeContext& ctx, Key weight, int64_t d) {
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
  return x.known_rank() ? CheckOperands(ctx, "Weight", x[1] / 3) : Status::Ok();
}

Status Infer(ShapeContext& ctx) {
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
Result<GruStep<T>> StepOf(KernelContext& ctx, const Tensor& weight, int64_t size) {
  HEDDLE_ASSIGN_OR_RETURN(const Activation act, ActivationOf(ctx.Str("activation")));
  HEDDLE_ASSIGN_OR_RETURN(const Activation gate, ActivationOf(ctx.Str("gate_activation")));
  return GruStep<T>{size, act, gate, ctx.Bool("origin_mode"), weight.data<T>()};
}

// H0 in the order of the batch; empty without one.
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

// All steps; `gate` comes with the projected inputs in batch order.
template <typename T>
void RunSteps(const GruStep<T>& step, const SequenceBatch& batch, const std::vector<T>& first,
              T* gate, T* reset, T* hidden) {
  const int64_t d = step.size;
  for (int64_t t = 0; t < batch.steps(); ++t) {
    const int64_t at = batch.Start(t);
    const T* prev = t > 0           ? hidden + batch.Start(t - 1) * d
                    : first.empty() ? nullptr
                                    : first.data();
    step.Forward(batch.Size(t), gate + at * 3 * d, prev, reset + at * d, hidden + at * d);
  }
}

// gru bounds its sigmoids, fusion_gru does not.
template <typename T>
Result<GruStep<T>> BoundedStepOf(KernelContext& ctx, const Tensor& weight, int64_t size) {
  HEDDLE_ASSIGN_OR_RETURN(GruStep<T> step, StepOf<T>(ctx, weight, size));
  for (Activation* a : {&step.act, &step.gate_act})
    if (*a == Activation::kSigmoid) *a = Activation::kBoundedSigmoid;
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

Status InferGrad(ShapeContext& ctx) {
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

Status InferFusion(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &wx = ctx.InShape("WeightX"), &wh = ctx.InShape("WeightH");
  if (!x.known_rank() || !wx.is_static() || !wh.is_static()) return ctx.Defer();
  if (x.rank() != 2 || wx.rank() != 2 || wh.rank() != 2 || wx[0] != x[1] || wx[1] != 3 * wh[0])
    return InvalidArgument("X ", x.ToString(), ", WeightX ", wx.ToString(), " and WeightH ",
                           wh.ToString(), " do not fit each other");
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx, "WeightH", wh[0]));
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
    HEDDLE_ASSIGN_OR_RETURN(const GruStep<T> step, StepOf<T>(ctx, ctx.In("WeightH"), d));
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
      .InferShape(Infer)
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
      .InferShape(InferGrad)
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
      .InferShape(InferFusion)
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
out XX float32 [9, 15] lod [[0, 2, 6, 9]] 0.97871894 0.9893199 0.9682897 0.9761973 0.98862994
  0.9896667 0.9528398 0.95588547 0.9862016 0.98314935 0.9999051 0.99978924 0.999789 0.9986936
  0.9998598 0.9262161 0.90733194 0.85531133 0.8939907 0.92388296 0.9256115 0.8491932 0.8707134
  0.9049552 0.9219685 0.9920292 0.97549117 0.97805345 0.98140776 0.98592436 0.96448785 0.97898054
  0.9581464 0.94322467 0.9841272 0.98056084 0.9208734 0.9289644 0.9633456 0.97174495 0.99964535
  0.99938726 0.9993379 0.99495757 0.9996693 0.97340155 0.98753184 0.95291704 0.9640305 0.98773175
  0.9838964 0.9372251 0.9502592 0.9776118 0.9740491 0.9997649 0.99951756 0.99961174 0.9973104
  0.99975824 0.9593291 0.97499096 0.94964945 0.93515795 0.9815268 0.9766818 0.9097338 0.92336625
  0.956568 0.9678449 0.99946964 0.99894035 0.99889266 0.99334836 0.9994694 0.92661655 0.9453201
  0.84756386 0.93436587 0.95747435 0.94385916 0.8682813 0.8992888 0.9319121 0.9419116 0.9956659
  0.9883665 0.9837178 0.9855124 0.9921628 0.9755974 0.98939264 0.96422225 0.97098047 0.98908854
  0.98886126 0.94347185 0.9573748 0.9831066 0.9822525 0.99989843 0.99969935 0.99972034 0.9982965
  0.99985147 0.97321635 0.9862614 0.94309175 0.96290976 0.9859847 0.9790785 0.9395652 0.9422729
  0.9750319 0.96380144 0.9995104 0.99942195 0.9995676 0.9965266 0.9996301 0.91679436 0.92284924
  0.92773247 0.92255694 0.92360276 0.96276456 0.8958621 0.8272647 0.9269681 0.9425049 0.9958632
  0.99553704 0.9909731 0.98251593 0.9928218

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
out XX float64 [9, 15] lod [[0, 2, 6, 9]] 0.9787189313267388 0.9893199616957519 0.9682896654964315
  0.9761973007697134 0.9886299774648135 0.9896666931792927 0.9528397363392114 0.9558854847333154
  0.9862015775454764 0.9831493531189662 0.9999051844868827 0.9997893567416851 0.9997889309542081
  0.9986936791280439 0.9998599289310592 0.9262161665544214 0.9073319822063246 0.8553113051660596
  0.8939907429956322 0.9238830133577545 0.9256115523175344 0.849193177606051 0.8707133740879991
  0.904955193091342 0.9219685383601783 0.9920292278789096 0.9754911734868645 0.9780532892778055
  0.9814077850182179 0.9859242868029192 0.9644878206793 0.9789805274220537 0.9581463506784755
  0.9432246714119125 0.9841271905666297 0.9805608452427574 0.9208734285454715 0.9289643796268194
  0.9633455301998846 0.9717450340460783 0.9996453858255769 0.9993871878065013 0.9993378658948557
  0.9949574566046919 0.9996693175019888 0.973401522297682 0.9875318244761598 0.9529170292735533
  0.9640304980155426 0.9877317187047101 0.9838964108129534 0.9372250932449839 0.950259240743826
  0.9776117368344862 0.9740490934877836 0.9997650587664184 0.9995175065487831 0.9996117717502233
  0.9973105335419643 0.9997583415295896 0.9593291286677637 0.974991040547258 0.949649473844501
  0.935157962278271 0.981526799628046 0.9766818747224286 0.9097337807062611 0.9233662648948019
  0.9565679897523672 0.9678448698434702 0.999469648731141 0.9989404305008334 0.998892749252869
  0.9933483784325148 0.9994694560964581 0.9266165907675163 0.9453201301215938 0.8475638040306746
  0.9343658546531333 0.957474369996518 0.9438591903794462 0.8682812825633369 0.8992887806435086
  0.9319121013041219 0.9419115759735243 0.9956660189214463 0.9883663801303684 0.9837177503076413
  0.9855123010649463 0.9921628538627643 0.9755973838692947 0.9893926095507137 0.9642222508567964
  0.9709804151302946 0.9890884622565861 0.988861313223137 0.943471820276942 0.9573747789455473
  0.9831066231791123 0.9822524813977549 0.9998983806969068 0.9996993209534122 0.9997204040080199
  0.9982965740348018 0.9998513947935719 0.973216321878776 0.9862613896681233 0.9430917693939157
  0.9629097841592771 0.9859847065868319 0.9790784874416322 0.9395651706951296 0.942272901629366
  0.9750319177130342 0.9638014361764167 0.9995104528782837 0.9994220812989993 0.9995675309529357
  0.9965265068264926 0.9996301391956584 0.9167944316964901 0.9228492076390703 0.9277325050467123
  0.922556929930692 0.9236027250077395 0.9627645277361552 0.8958620521862005 0.827264649785375
  0.9269680444269878 0.9425048787866372 0.9958630810737072 0.9955370705231719 0.990973104288992
  0.9825158761148007 0.9928217346317774
)")
