// The gradient of lstm, from the gates it kept.
#include "kernels/sequence/sequence_batch.h"

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
