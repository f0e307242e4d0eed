// The gradient of lstm, from the gates it kept.
#include "kernels/rnn/sequence_batch.h"

namespace heddle {
namespace {

Status LstmGradShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("Input"), &w = ctx.InShape("Weight"), &bias = ctx.InShape("Bias");
  if (!x.is_static() || !w.is_static() || !bias.is_static()) return ctx.Defer();
  if (x.rank() != 2 || w.rank() != 2 || w[1] != 4 * w[0] || x[1] != w[1] ||
      bias.numel() < (ctx.Bool("use_peepholes") ? 7 : 4) * w[0])
    return InvalidArgument("Input ", x.ToString(), ", Weight ", w.ToString(), " and Bias ",
                           bias.ToString(), " do not fit each other");
  for (Key key : {Key("Hidden"), Key("Cell"), Key("Hidden@GRAD")})
    if (ctx.InShape(key).is_static() && !(ctx.InShape(key) == Shape{x[0], w[0]}))
      return InvalidArgument(key.name, " has shape ", ctx.InShape(key).ToString());
  HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "Input", "BatchGate"));
  SetOutsLike(ctx, {{"Input", "Input@GRAD"}, {"Weight", "Weight@GRAD"}, {"Bias", "Bias@GRAD"}});
  for (const KeyPair& p : {KeyPair{"H0", "H0@GRAD"}, KeyPair{"C0", "C0@GRAD"}})
    if (ctx.HasOut(p.out) && ctx.HasIn(p.in)) SetOutsLike(ctx, {p});
  return Status::Ok();
}

template <typename T>
struct LstmGrad {
  static Status Run(KernelContext& ctx) {
    LstmGrad g(ctx);
    HEDDLE_RETURN_IF_ERROR(g.Read());
    for (int64_t s = 0; s < SequenceCount(*g.offsets_); ++s) g.Sequence(s);
    g.Write();
    return Status::Ok();
  }

 private:
  explicit LstmGrad(KernelContext& ctx) : ctx_(ctx), d_(ctx.In("Weight").dim(0)) {}

  Status Read() {
    HEDDLE_ASSIGN_OR_RETURN(offsets_, OffsetsOf(ctx_.In("Input"), "Input"));
    HEDDLE_ASSIGN_OR_RETURN(gate_, GateActivationOf(ctx_.Str("gate_activation")));
    HEDDLE_ASSIGN_OR_RETURN(cell_, GateActivationOf(ctx_.Str("cell_activation")));
    HEDDLE_ASSIGN_OR_RETURN(candidate_, GateActivationOf(ctx_.Str("candidate_activation")));
    for (Key key : {Key("H0"), Key("C0")}) {
      const Tensor* t = ctx_.InOpt(key);
      if (t != nullptr && t->numel() != SequenceCount(*offsets_) * d_)
        return InvalidArgument(key.name, " has shape ", t->shape().ToString());
      (key.hash == Key("H0").hash ? h0_ : c0_) = t ? t->template data<T>() : nullptr;
    }
    const Tensor& x = ctx_.In("Input");
    const SequenceBatch batch(*offsets_, ctx_.Bool("is_reverse"));
    gates_.resize(x.dim(0), 4 * d_);
    const T* kept = ctx_.In("BatchGate").template data<T>();
    for (size_t i = 0; i < batch.row.size(); ++i)
      std::copy_n(kept + static_cast<int64_t>(i) * 4 * d_, 4 * d_, &gates_(batch.row[i], 0));
    d_gates_ = Matrix<T>::Zero(x.dim(0), 4 * d_);
    before_ = Matrix<T>::Zero(x.dim(0), d_);
    peep_ = Matrix<T>::Zero(3, d_);
    d_peep_ = Matrix<T>::Zero(3, d_);
    if (ctx_.Bool("use_peepholes"))
      peep_ = ConstMatrixMap<T>(ctx_.In("Bias").template data<T>() + 4 * d_, 3, d_);
    return Status::Ok();
  }

  // Goes from the last step back to the first. dh and dc are the gradients that the following step
  // passes on.
  void Sequence(int64_t s) {
    const auto weight = MatrixAt<T>(ctx_.In("Weight"), 0);
    const T *hidden = ctx_.In("Hidden").template data<T>(), *c = ctx_.In("Cell").template data<T>();
    const T* d_hidden = ctx_.In("Hidden@GRAD").template data<T>();
    const Tensor* d_cell = ctx_.InOpt("Cell@GRAD");
    const bool reverse = ctx_.Bool("is_reverse");
    const int64_t length = Length(*offsets_, s), first = Begin(*offsets_, s);
    Matrix<T> dh = Matrix<T>::Zero(1, d_), dc = Matrix<T>::Zero(1, d_);
    const std::vector<T> zeros(static_cast<size_t>(d_), T(0));
    for (int64_t t = length - 1; t >= 0; --t) {
      const int64_t row = first + (reverse ? length - 1 - t : t), prev = row + (reverse ? 1 : -1);
      const T* c_prev = t > 0 ? c + prev * d_ : c0_ ? c0_ + s * d_ : zeros.data();
      const T* h_prev = t > 0 ? hidden + prev * d_ : h0_ ? h0_ + s * d_ : zeros.data();
      std::copy_n(h_prev, d_, &before_(row, 0));
      for (int64_t k = 0; k < d_; ++k) {
        dh(0, k) += d_hidden[row * d_ + k];
        if (d_cell) dc(0, k) += d_cell->template data<T>()[row * d_ + k];
        Element(row, k, c[row * d_ + k], c_prev[k], dh(0, k), &dc(0, k));
      }
      SetProduct(dh, d_gates_.row(row), Turned<T>(weight));
    }
    const auto keep = [&](Key key, const Matrix<T>& value) {
      Tensor* out = ctx_.OutOpt(key);
      if (out != nullptr) std::copy_n(value.data(), d_, out->template mutable_data<T>() + s * d_);
    };
    keep("H0@GRAD", dh);
    keep("C0@GRAD", dc);
  }

  void Element(int64_t row, int64_t k, T c, T c_prev, T dh, T* dc) {
    const T g = gates_(row, k), in = gates_(row, d_ + k), forget = gates_(row, 2 * d_ + k),
            out = gates_(row, 3 * d_ + k), shown = Activate(cell_, c);
    const T d_out = dh * shown * Slope(gate_, out);
    const T d = *dc + dh * out * Slope(cell_, shown) + d_out * peep_(2, k);
    const T d_in = d * g * Slope(gate_, in), d_forget = d * c_prev * Slope(gate_, forget);
    d_gates_(row, k) = d * in * Slope(candidate_, g);
    d_gates_(row, d_ + k) = d_in;
    d_gates_(row, 2 * d_ + k) = d_forget;
    d_gates_(row, 3 * d_ + k) = d_out;
    d_peep_(0, k) += d_in * c_prev;
    d_peep_(1, k) += d_forget * c_prev;
    d_peep_(2, k) += d_out * c;
    *dc = d * forget + d_in * peep_(0, k) + d_forget * peep_(1, k);
  }

  void Write() {
    if (Tensor* out = ctx_.OutOpt("Input@GRAD"))
      std::copy_n(d_gates_.data(), out->numel(), out->template mutable_data<T>());
    if (Tensor* out = ctx_.OutOpt("Weight@GRAD"))
      SetProduct(MutableMatrixAt<T>(*out, 0), Turned<T>(before_), d_gates_);
    if (Tensor* out = ctx_.OutOpt("Bias@GRAD")) {
      T* b = out->template mutable_data<T>();
      std::fill_n(b, out->numel(), T(0));
      MatrixMap<T>(b, 1, 4 * d_) = d_gates_.colwise().sum();
      if (ctx_.Bool("use_peepholes")) MatrixMap<T>(b + 4 * d_, 3, d_) = d_peep_;
    }
  }

  KernelContext& ctx_;
  int64_t d_;
  const Offsets* offsets_ = nullptr;
  GateActivation gate_{}, cell_{}, candidate_{};
  const T *h0_ = nullptr, *c0_ = nullptr;
  Matrix<T> gates_, d_gates_, before_, peep_, d_peep_;  // in sequence order
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(lstm_grad) {
  op.Input("Input").Input("H0", kOptional).Input("C0", kOptional).Input("Weight").Input("Bias");
  op.Input("Hidden").Input("Cell").Input("BatchGate");
  op.Input("BatchCellPreAct", kOptional | kNoBuffer);
  op.Input("Hidden@GRAD").Input("Cell@GRAD", kOptional);
  op.Output("Input@GRAD", kOptional).Output("H0@GRAD", kOptional).Output("C0@GRAD", kOptional);
  op.Output("Weight@GRAD", kOptional).Output("Bias@GRAD", kOptional);
  op.Attr("use_peepholes", true).Attr("is_reverse", false).Attr("is_test", false);
  op.Attr("gate_activation", "sigmoid").Attr("cell_activation", "tanh");
  op.Attr("candidate_activation", "tanh");
  op.InferShape(LstmGradShape).Kernels<LstmGrad, float, double>();
}

HEDDLE_EXAMPLES(lstm_grad, R"(
example peepholes, float64
in x float64 [3, 4] lod [[0, 2, 3]] 0.1 0.06 0.85 -0.51 -0.87 0.8 0.75 -0.67 1 -0.31 -0.37 0.69
in w float64 [1, 4] 0.76 0.35 -0.89 0.12
in b float64 [1, 7] 0.39 0.65 -0.38 0.01 0.7 -0.41 0.35
in g float64 [3, 1] lod [[0, 2, 3]] -0.2 0.4 -0.6
op lstm Input=x Weight=w Bias=b -> Hidden=h Cell=c BatchGate=bg BatchCellPreAct=bc
attr use_peepholes BOOLEAN true
attr is_reverse BOOLEAN false
op lstm_grad Input=x Weight=w Bias=b Hidden=h Cell=c BatchGate=bg BatchCellPreAct=bc Hidden@GRAD=g
  -> Input@GRAD=dx Weight@GRAD=dw Bias@GRAD=db
attr use_peepholes BOOLEAN true
attr is_reverse BOOLEAN false
out dx float64 [3, 4] 0.0014912976680600289 0.0002812958676128357 0 -0.010143116154366277
  0.09136700568955822 -0.006046162175633097 0.009485682082177947 -0.01330211557124982
  -0.04489285909212007 -0.07493342609431114 -0 -0.05899021884043825
out dw float64 [1, 4] 0.010875199711737355 -0.0007196604578787997 0.0011290584195813608
  -0.0015833195181801357
out db float64 [1, 7] 0.047965444265498175 -0.08069829240233141 0.009485682082177947
  -0.08243545056605435 -0.0018411000555689414 0.0028884587117080523 -0.03151465115406345

example no peepholes, float64
in x float64 [3, 4] lod [[0, 2, 3]] 0.1 0.7 0.47 -0 -0.24 0.58 -0.66 0.17 -0.14 -0.88 -0.42 0.47
in w float64 [1, 4] -0.42 -0.22 0.27 0.66
in b float64 [1, 4] -0.36 -0.68 0.42 0.75
in g float64 [3, 1] lod [[0, 2, 3]] 0.2 0.4 -0.7
op lstm Input=x Weight=w Bias=b -> Hidden=h Cell=c BatchGate=bg BatchCellPreAct=bc
attr use_peepholes BOOLEAN false
attr is_reverse BOOLEAN false
op lstm_grad Input=x Weight=w Bias=b Hidden=h Cell=c BatchGate=bg BatchCellPreAct=bc Hidden@GRAD=g
  -> Input@GRAD=dx Weight@GRAD=dw Bias@GRAD=db
attr use_peepholes BOOLEAN false
attr is_reverse BOOLEAN false
out dx float64 [3, 4] 0.10033611265967496 -0.01350313863713721 0 -0.004191122027190961
  0.0912625096144206 -0.032792457345513476 -0.00811903967157355 -0.024378394677506972
  -0.07333204735643802 0.03560752862284206 -0 0.009863989077289345
out dw float64 [1, 4] -0.007916408309085536 0.00284452490844429 0.0007042720322878775
  0.0021146616173777465
out db float64 [1, 4] 0.11826657491765755 -0.010688067359808623 -0.00811903967157355
  -0.018705527627408586

example peepholes, reversed, float64
in x float64 [3, 4] lod [[0, 2, 3]] 0.06 0.74 0.68 0.94 0.56 -0.61 0.22 -0.04 0.23 -0.72 -0.18 0.56
in w float64 [1, 4] 0.88 -0.79 0.88 0.59
in b float64 [1, 7] -0.34 -0.38 -0.42 -0.65 0.76 0.64 0.47
in g float64 [3, 1] lod [[0, 2, 3]] 0.7 0.2 -0.3
op lstm Input=x Weight=w Bias=b -> Hidden=h Cell=c BatchGate=bg BatchCellPreAct=bc
attr use_peepholes BOOLEAN true
attr is_reverse BOOLEAN true
op lstm_grad Input=x Weight=w Bias=b Hidden=h Cell=c BatchGate=bg BatchCellPreAct=bc Hidden@GRAD=g
  -> Input@GRAD=dx Weight@GRAD=dw Bias@GRAD=db
attr use_peepholes BOOLEAN true
attr is_reverse BOOLEAN true
out dx float64 [3, 4] 0.21028476628410725 -0.023335350693171247 0.005403404031076633
  -0.020420604690293914 0.08801033935918555 0.014576732342222303 0 0.005210430917466644
  -0.03484596497379662 0.002899043345815077 -0 0.002046155210358095
out dw float64 [1, 4] 0.004191398126786388 -0.00046512045029033303 0.00010770070478394078
  -0.00040702370294909933
out db float64 [1, 7] 0.2634491406694962 -0.005859575005133868 0.005403404031076633
  -0.013164018562469175 -0.0013687900170507997 0.0003169494040642001 0.002680099538575539

example peepholes, float32
in x float32 [3, 4] lod [[0, 2, 3]] -0.54 0.89 -0.42 -0.18 -0.32 0.9 -0.54 -0.66 -0.02 0.81 0.77
  -0.61
in w float32 [1, 4] 0.04 -0.65 0.8 -0.24
in b float32 [1, 7] 0.41 0.02 0.27 0.87 -0.58 -0.33 0.32
in g float32 [3, 1] lod [[0, 2, 3]] -0.2 -0.5 0.8
op lstm Input=x Weight=w Bias=b -> Hidden=h Cell=c BatchGate=bg BatchCellPreAct=bc
attr use_peepholes BOOLEAN true
attr is_reverse BOOLEAN false
op lstm_grad Input=x Weight=w Bias=b Hidden=h Cell=c BatchGate=bg BatchCellPreAct=bc Hidden@GRAD=g
  -> Input@GRAD=dx Weight@GRAD=dw Bias@GRAD=db
attr use_peepholes BOOLEAN true
attr is_reverse BOOLEAN false
out dx float32 [3, 4] -0.17396095 0.0065638544 -0 0.004113434 -0.2036329 -0.004775521 0.0063137272
  -0.0030315823 0.2723458 0.03562286 0 0.04913946
out dw float32 [1, 4] 0.012340947 0.00028941515 -0.00038263647 0.0001837257
out db float32 [1, 7] -0.10524805 0.037411194 0.0063137272 0.05022131 0.00044016648 -0.0005819451
  0.012253715
)")
