// RMSProp, and steps by the signs of gradient and momentum.
#include <cmath>

#include "kernels/optimizer/tf_apply.h"

namespace heddle::tf_apply {
namespace {

template <typename T>
struct RmsProp {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"}, {"ms", kState, "ms_out"},
                                           {"mom", kState, "mom_out"}, {"lr", kScalar},
                                           {"rho", kScalar},           {"momentum", kScalar},
                                           {"epsilon", kScalar},       {"grad", kGrad}};
  RmsProp(const T* a, const OpContext&) : lr(a[0]), rho(a[1]), momentum(a[2]), epsilon(a[3]) {}
  void Step(T* s, T g) const {
    s[1] += (g * g - s[1]) * (T(1) - rho);
    s[2] = s[2] * momentum + g * lr / std::sqrt(s[1] + epsilon);
    s[0] -= s[2];
  }
  T lr, rho, momentum, epsilon;
};

template <typename T>
struct Centered {
  static constexpr TfApplySlot kSlots[] = {
      {"var", kState, "var_out"}, {"mg", kState, "mg_out"}, {"ms", kState, "ms_out"},
      {"mom", kState, "mom_out"}, {"lr", kScalar},          {"rho", kScalar},
      {"momentum", kScalar},      {"epsilon", kScalar},     {"grad", kGrad}};
  Centered(const T* a, const OpContext&) : lr(a[0]), rho(a[1]), momentum(a[2]), epsilon(a[3]) {}
  void Step(T* s, T g) const {
    s[2] += (g * g - s[2]) * (T(1) - rho);
    s[1] += (g - s[1]) * (T(1) - rho);
    s[3] = s[3] * momentum + g * lr / std::sqrt(s[2] - s[1] * s[1] + epsilon);
    s[0] -= s[3];
  }
  T lr, rho, momentum, epsilon;
};

template <typename T>
T Sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0);
}

template <typename T>
struct AddSign {
  static constexpr TfApplySlot kSlots[] = {
      {"var", kState, "var_out"}, {"m", kState, "m_out"}, {"lr", kScalar}, {"alpha", kScalar},
      {"sign_decay", kScalar},    {"beta", kScalar},      {"grad", kGrad}};
  AddSign(const T* a, const OpContext&) : lr(a[0]), alpha(a[1]), decay(a[2]), beta(a[3]) {}
  void Step(T* s, T g) const {
    s[1] = s[1] * beta + g * (T(1) - beta);
    s[0] -= lr * (alpha + decay * Sign(g) * Sign(s[1])) * g;
  }
  T lr, alpha, decay, beta;
};

template <typename T>
struct PowerSign {
  static constexpr TfApplySlot kSlots[] = {
      {"var", kState, "var_out"}, {"m", kState, "m_out"}, {"lr", kScalar}, {"logbase", kScalar},
      {"sign_decay", kScalar},    {"beta", kScalar},      {"grad", kGrad}};
  PowerSign(const T* a, const OpContext&) : lr(a[0]), logbase(a[1]), decay(a[2]), beta(a[3]) {}
  void Step(T* s, T g) const {
    s[1] = s[1] * beta + g * (T(1) - beta);
    s[0] -= lr * std::exp(logbase * decay * Sign(g) * Sign(s[1])) * g;
  }
  T lr, logbase, decay, beta;
};

}  // namespace
}  // namespace heddle::tf_apply

HEDDLE_OP(tf_apply_rms_prop) { tf_apply::Define<tf_apply::RmsProp, false>(op, "RMSProp"); }
HEDDLE_OP(tf_sparse_apply_rms_prop) {
  tf_apply::Define<tf_apply::RmsProp, true>(op, "RMSProp for the rows of indices");
}
HEDDLE_OP(tf_apply_centered_rms_prop) {
  tf_apply::Define<tf_apply::Centered, false>(op, "RMSProp by the variance of the gradient");
}
HEDDLE_OP(tf_sparse_apply_centered_rms_prop) {
  tf_apply::Define<tf_apply::Centered, true>(op,
                                             "tf_apply_centered_rms_prop for the rows of indices");
}
HEDDLE_OP(tf_apply_add_sign) {
  tf_apply::Define<tf_apply::AddSign, false>(op, "steps larger where gradient and momentum agree");
}
HEDDLE_OP(tf_apply_power_sign) {
  tf_apply::Define<tf_apply::PowerSign, false>(
      op, "steps larger by a factor where gradient and momentum agree");
}
