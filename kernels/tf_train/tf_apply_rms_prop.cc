// RMSProp, and steps by the signs of gradient and momentum.
#include <cmath>

#include "kernels/tf_train/tf_apply.h"

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

HEDDLE_EXAMPLES(tf_apply_rms_prop, R"(
example a matrix
in var float32 [2, 3] -0.95 -0.54 -0.84 -0.20 0.95 -0.27
in ms float32 [2, 3] 0.81 0.97 0.78 1.23 1.22 0.66
in mom float32 [2, 3] -0.52 0.34 0.88 0.29 -0.14 0.95
in lr float32 [] 0.1
in rho float32 [] 0.95
in momentum float32 [] 0.9
in epsilon float32 [] 0.001
in grad float32 [2, 3] -0.99 -0.88 0.56 -0.18 -0.91 0.10
out var_out float32 [2, 3] -0.37263978 -0.7562424 -1.6963346 -0.44436693 1.1590227 -1.1376138
out ms_out float32 [2, 3] 0.818505 0.96022004 0.75667995 1.17012 1.200405 0.6275
out mom_out float32 [2, 3] -0.5773602 0.21624239 0.8563347 0.24436693 -0.20902267 0.8676138
)")

HEDDLE_EXAMPLES(tf_apply_centered_rms_prop, R"(
example a matrix
in var float32 [2, 3] 0.98 0.04 -0.30 -0.81 -0.86 0.80
in mg float32 [2, 3] -0.00 0.09 -0.09 -0.05 -0.09 -0.02
in ms float32 [2, 3] 0.56 0.76 0.91 0.81 0.55 0.54
in mom float32 [2, 3] 0.94 -0.64 0.02 -0.20 0.06 -0.83
in lr float32 [] 0.1
in rho float32 [] 0.95
in momentum float32 [] 0.9
in epsilon float32 [] 0.001
in grad float32 [2, 3] -0.37 -0.78 0.08 0.84 0.20 0.71
out var_out float32 [2, 3] 0.18437386 0.7059912 -0.32663077 -0.72357917 -0.9417404 1.4502857
out mg_out float32 [2, 3] -0.018500004 0.046499994 -0.0815 -0.0054999925 -0.0755 0.016500007
out ms_out float32 [2, 3] 0.538845 0.75242 0.86482 0.80478 0.5245 0.538205
out mom_out float32 [2, 3] 0.79562616 -0.6659912 0.026630748 -0.08642082 0.08174035 -0.6502856
)")

HEDDLE_EXAMPLES(tf_sparse_apply_centered_rms_prop, R"(
example two rows, one twice
in var float32 [2, 3] -0.57 -0.97 0.08 -0.03 0.14 -0.25
in mg float32 [2, 3] 0.03 0.05 0.08 -0.04 -0.01 0.07
in ms float32 [2, 3] 0.72 0.62 0.81 0.59 1.27 1.32
in mom float32 [2, 3] -0.37 -0.74 -0.84 -0.51 -0.83 -0.14
in lr float32 [] 0.1
in rho float32 [] 0.95
in momentum float32 [] 0.9
in epsilon float32 [] 0.001
in grad float32 [3, 3] 0.15 -0.51 -0.88 0.40 -0.90 -0.60 -0.43 -0.25 -0.80
in indices int32 [3] 1 0 1
out var_out float32 [2, 3] -0.28513175 -0.19065511 0.9036603 0.8625212 1.6702613 0.20767719
out mg_out float32 [2, 3] 0.0485 0.0024999902 0.04599999 -0.050475 -0.045750007 -0.018625021
out ms_out float32 [2, 3] 0.69200003 0.6295 0.7875 0.5427887 1.1616546 1.2600842
out mom_out float32 [2, 3] -0.28486824 -0.7793449 -0.8236603 -0.45353553 -0.73707443 -0.25429383
)")

HEDDLE_EXAMPLES(tf_apply_add_sign, R"(
example a matrix
in var float32 [2, 3] -0.16 -0.37 0.50 0.11 0.79 0.31
in m float32 [2, 3] 0.52 0.15 -0.12 0.63 0.31 0.91
in lr float32 [] 0.1
in alpha float32 [] 0.5
in sign_decay float32 [] 0.8
in beta float32 [] 0.9
in grad float32 [2, 3] 0.46 0.40 -0.46 0.62 -0.24 -0.74
out var_out float32 [2, 3] -0.2198 -0.422 0.5598 0.029399998 0.7828 0.2878
out m_out float32 [2, 3] 0.514 0.17500001 -0.15400001 0.629 0.25499997 0.745
)")

HEDDLE_EXAMPLES(tf_apply_power_sign, R"(
example a matrix
in var float32 [2, 3] -0.87 -0.66 -0.47 0.35 -0.43 -0.87
in m float32 [2, 3] 0.53 0.11 -0.95 -0.90 -0.74 -0.29
in lr float32 [] 0.1
in logbase float32 [] 1
in sign_decay float32 [] 0.8
in beta float32 [] 0.9
in grad float32 [2, 3] 0.72 0.90 0.22 -0.54 -0.14 -0.28
out var_out float32 [2, 3] -1.030239 -0.8602987 -0.47988525 0.4701792 -0.39884242 -0.80768484
out m_out float32 [2, 3] 0.54899997 0.18900001 -0.83299994 -0.86399996 -0.68 -0.28899997
)")

HEDDLE_EXAMPLES(tf_sparse_apply_rms_prop, R"(
example two rows, one twice
in var float32 [2, 3] -0.35 -0.70 0.30 -0.86 0.07 -0.27
in ms float32 [2, 3] 0.56 1.01 0.54 0.93 0.57 0.59
in mom float32 [2, 3] -0.15 0.65 -0.75 -0.55 0.25 0.90
in lr float32 [] 0.1
in rho float32 [] 0.95
in momentum float32 [] 0.9
in epsilon float32 [] 0.001
in grad float32 [3, 3] 0.15 -0.21 0.95 -0.91 0.72 -0.42 -0.71 -0.76 -0.38
in indices int32 [3] 1 0 1
out var_out float32 [2, 3] -0.09493059 -1.3574939 1.0330862 0.12648472 -0.20062251 -1.9910046
out ms_out float32 [2, 3] 0.573405 0.98542 0.52182 0.86559874 0.5453997 0.58256376
out mom_out float32 [2, 3] -0.2550694 0.6574939 -0.73308617 -0.50742394 0.07407622 0.78903174
)")
