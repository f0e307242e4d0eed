// Gradient descent, with and without momentum.
#include "kernels/optimizer/tf_apply.h"

namespace heddle::tf_apply {
namespace {

template <typename T>
struct Descent {
  static constexpr TfApplySlot kSlots[] = {
      {"var", kState, "var_out"}, {"alpha", kScalar}, {"delta", kGrad}};
  Descent(const T* a, const OpContext&) : alpha(a[0]) {}
  void Step(T* s, T g) const { s[0] -= alpha * g; }
  T alpha;
};

template <typename T>
struct MomentumStep {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"accum", kState, "accum_out"},
                                           {"lr", kScalar},
                                           {"grad", kGrad},
                                           {"momentum", kScalar}};
  MomentumStep(const T* a, const OpContext& ctx)
      : lr(a[0]), momentum(a[1]), nesterov(ctx.Bool("use_nesterov")) {}
  void Step(T* s, T g) const {
    s[1] = s[1] * momentum + g;
    s[0] -= nesterov ? g * lr + s[1] * momentum * lr : s[1] * lr;
  }
  T lr, momentum;
  bool nesterov;
};

template <typename T>
struct KerasMomentum {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"accum", kState, "accum_out"},
                                           {"lr", kScalar},
                                           {"grad", kGrad},
                                           {"momentum", kScalar}};
  KerasMomentum(const T* a, const OpContext& ctx)
      : lr(a[0]), momentum(a[1]), nesterov(ctx.Bool("use_nesterov")) {}
  void Step(T* s, T g) const {
    s[1] = s[1] * momentum - g * lr;
    s[0] += nesterov ? s[1] * momentum - g * lr : s[1];
  }
  T lr, momentum;
  bool nesterov;
};

}  // namespace
}  // namespace heddle::tf_apply

HEDDLE_OP(tf_apply_gradient_descent) {
  tf_apply::Define<tf_apply::Descent, false>(op, "var -= alpha delta");
}
HEDDLE_OP(tf_apply_momentum) {
  tf_apply::Define<tf_apply::MomentumStep, false>(op,
                                                  "accum = momentum accum + grad; var -= lr accum");
  op.Attr("use_nesterov", false);
}
HEDDLE_OP(tf_apply_keras_momentum) {
  tf_apply::Define<tf_apply::KerasMomentum, false>(
      op, "accum = momentum accum - lr grad; var += accum");
  op.Attr("use_nesterov", false);
}
HEDDLE_OP(tf_sparse_apply_momentum) {
  tf_apply::Define<tf_apply::MomentumStep, true>(op, "tf_apply_momentum for the rows of indices");
  op.Attr("use_nesterov", false);
}
HEDDLE_OP(tf_sparse_apply_keras_momentum) {
  tf_apply::Define<tf_apply::KerasMomentum, true>(op,
                                                  "tf_apply_keras_momentum for rows of indices");
  op.Attr("use_nesterov", false);
}
