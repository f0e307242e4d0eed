// Adagrad and Adadelta.
#include <cmath>

#include "kernels/optimizer/tf_apply.h"

namespace heddle::tf_apply {
namespace {

template <typename T>
struct AdagradRule {
  static constexpr TfApplySlot kSlots[] = {
      {"var", kState, "var_out"}, {"accum", kState, "accum_out"}, {"lr", kScalar}, {"grad", kGrad}};
  AdagradRule(const T* a, const OpContext& ctx) : lr(a[0]), update(ctx.Bool("update_slots")) {}
  void Step(T* s, T g) const {
    s[1] += update ? g * g : T(0);
    s[0] -= g * lr / std::sqrt(s[1]);
  }
  T lr;
  bool update;
};

template <typename T>
struct AdagradV2 {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"accum", kState, "accum_out"},
                                           {"lr", kScalar},
                                           {"epsilon", kScalar},
                                           {"grad", kGrad}};
  AdagradV2(const T* a, const OpContext& ctx)
      : lr(a[0]), epsilon(a[1]), update(ctx.Bool("update_slots")) {}
  void Step(T* s, T g) const {
    s[1] += update ? g * g : T(0);
    s[0] -= g * lr / (std::sqrt(s[1]) + epsilon);
  }
  T lr, epsilon;
  bool update;
};

template <typename T>
struct AdadeltaRule {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"accum", kState, "accum_out"},
                                           {"accum_update", kState, "accum_update_out"},
                                           {"lr", kScalar},
                                           {"rho", kScalar},
                                           {"epsilon", kScalar},
                                           {"grad", kGrad}};
  AdadeltaRule(const T* a, const OpContext&) : lr(a[0]), rho(a[1]), epsilon(a[2]) {}
  void Step(T* s, T g) const {
    s[1] = s[1] * rho + g * g * (T(1) - rho);
    const T update = std::sqrt(s[2] + epsilon) / std::sqrt(s[1] + epsilon) * g;
    s[0] -= update * lr;
    s[2] = s[2] * rho + update * update * (T(1) - rho);
  }
  T lr, rho, epsilon;
};

// p = var - rate g, shrunk towards 0 by l1, divided by 1 + rate l2.
template <typename T>
T Proximal(T var, T g, T rate, T l1, T l2) {
  const T p = var - rate * g;
  const T shrunk = l1 > T(0) ? std::copysign(std::max(std::abs(p) - rate * l1, T(0)), p) : p;
  return shrunk / (T(1) + rate * l2);
}

template <typename T>
struct ProximalDescent {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"alpha", kScalar},
                                           {"l1", kScalar},
                                           {"l2", kScalar},
                                           {"delta", kGrad}};
  ProximalDescent(const T* a, const OpContext&) : alpha(a[0]), l1(a[1]), l2(a[2]) {}
  void Step(T* s, T g) const { s[0] = Proximal(s[0], g, alpha, l1, l2); }
  T alpha, l1, l2;
};
template <typename T>
struct SparseProximalDescent : ProximalDescent<T> {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"alpha", kScalar},
                                           {"l1", kScalar},
                                           {"l2", kScalar},
                                           {"grad", kGrad}};
  using ProximalDescent<T>::ProximalDescent;
};

template <typename T>
struct ProximalAdagrad {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"accum", kState, "accum_out"},
                                           {"lr", kScalar},
                                           {"l1", kScalar},
                                           {"l2", kScalar},
                                           {"grad", kGrad}};
  ProximalAdagrad(const T* a, const OpContext&) : lr(a[0]), l1(a[1]), l2(a[2]) {}
  void Step(T* s, T g) const {
    s[1] += g * g;
    s[0] = Proximal(s[0], g, lr / std::sqrt(s[1]), l1, l2);
  }
  T lr, l1, l2;
};

}  // namespace
}  // namespace heddle::tf_apply

HEDDLE_OP(tf_apply_adagrad) {
  tf_apply::Define<tf_apply::AdagradRule, false>(op,
                                                 "accum += grad²; var -= lr grad / sqrt(accum)");
  op.Attr("update_slots", true);
}
HEDDLE_OP(tf_sparse_apply_adagrad) {
  tf_apply::Define<tf_apply::AdagradRule, true>(op, "tf_apply_adagrad for the rows of indices");
  op.Attr("update_slots", true);
}
HEDDLE_OP(tf_apply_adagrad_v2) {
  tf_apply::Define<tf_apply::AdagradV2, false>(
      op, "accum += grad²; var -= lr grad / (sqrt(accum) + epsilon)");
  op.Attr("update_slots", true);
}
HEDDLE_OP(tf_sparse_apply_adagrad_v2) {
  tf_apply::Define<tf_apply::AdagradV2, true>(op, "tf_apply_adagrad_v2 for the rows of indices");
  op.Attr("update_slots", true);
}
HEDDLE_OP(tf_apply_adadelta) { tf_apply::Define<tf_apply::AdadeltaRule, false>(op, "Adadelta"); }
HEDDLE_OP(tf_sparse_apply_adadelta) {
  tf_apply::Define<tf_apply::AdadeltaRule, true>(op, "Adadelta for the rows of indices");
}
HEDDLE_OP(tf_apply_proximal_gradient_descent) {
  tf_apply::Define<tf_apply::ProximalDescent, false>(op, "gradient descent, shrunk by l1 and l2");
}
HEDDLE_OP(tf_sparse_apply_proximal_gradient_descent) {
  tf_apply::Define<tf_apply::SparseProximalDescent, true>(
      op, "tf_apply_proximal_gradient_descent for the rows of indices");
}
HEDDLE_OP(tf_apply_proximal_adagrad) {
  tf_apply::Define<tf_apply::ProximalAdagrad, false>(op, "Adagrad, shrunk by l1 and l2");
}
HEDDLE_OP(tf_sparse_apply_proximal_adagrad) {
  tf_apply::Define<tf_apply::ProximalAdagrad, true>(
      op, "tf_apply_proximal_adagrad for the rows of indices");
}
