// Adam and its kin.
#include <cmath>

#include "kernels/tf_train/tf_apply.h"

namespace heddle::tf_apply {
namespace {

template <typename T>
struct Adam {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"}, {"m", kState, "m_out"},
                                           {"v", kState, "v_out"},     {"beta1_power", kScalar},
                                           {"beta2_power", kScalar},   {"lr", kScalar},
                                           {"beta1", kScalar},         {"beta2", kScalar},
                                           {"epsilon", kScalar},       {"grad", kGrad}};
  Adam(const T* a, const OpContext& ctx)
      : rate(a[2] * std::sqrt(T(1) - a[1]) / (T(1) - a[0])),
        beta1(a[3]),
        beta2(a[4]),
        epsilon(a[5]),
        nesterov(ctx.Bool("use_nesterov")) {}
  void Step(T* s, T g) const {
    s[1] += (g - s[1]) * (T(1) - beta1);
    s[2] += (g * g - s[2]) * (T(1) - beta2);
    const T m = nesterov ? g * (T(1) - beta1) + beta1 * s[1] : s[1];
    s[0] -= m * rate / (std::sqrt(s[2]) + epsilon);
  }
  T rate, beta1, beta2, epsilon;
  bool nesterov;
};

template <typename T>
struct Amsgrad {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"m", kState, "m_out"},
                                           {"v", kState, "v_out"},
                                           {"vhat", kState, "vhat_out"},
                                           {"beta1_power", kScalar},
                                           {"beta2_power", kScalar},
                                           {"lr", kScalar},
                                           {"beta1", kScalar},
                                           {"beta2", kScalar},
                                           {"epsilon", kScalar},
                                           {"grad", kGrad}};
  Amsgrad(const T* a, const OpContext&)
      : rate(a[2] * std::sqrt(T(1) - a[1]) / (T(1) - a[0])),
        beta1(a[3]),
        beta2(a[4]),
        epsilon(a[5]) {}
  void Step(T* s, T g) const {
    s[1] += (g - s[1]) * (T(1) - beta1);
    s[2] += (g * g - s[2]) * (T(1) - beta2);
    s[3] = s[3] < s[2] ? s[2] : s[3];
    s[0] -= s[1] * rate / (std::sqrt(s[3]) + epsilon);
  }
  T rate, beta1, beta2, epsilon;
};

template <typename T>
struct AdaMax {
  static constexpr TfApplySlot kSlots[] = {
      {"var", kState, "var_out"}, {"m", kState, "m_out"}, {"v", kState, "v_out"},
      {"beta1_power", kScalar},   {"lr", kScalar},        {"beta1", kScalar},
      {"beta2", kScalar},         {"epsilon", kScalar},   {"grad", kGrad}};
  AdaMax(const T* a, const OpContext&)
      : rate(a[1] / (T(1) - a[0])), beta1(a[2]), beta2(a[3]), epsilon(a[4]) {}
  void Step(T* s, T g) const {
    s[1] += (g - s[1]) * (T(1) - beta1);
    const T size = g < T(0) ? -g : g, old = beta2 * s[2];
    s[2] = old < size ? size : old;
    s[0] -= rate * s[1] / (s[2] + epsilon);
  }
  T rate, beta1, beta2, epsilon;
};

}  // namespace
}  // namespace heddle::tf_apply

HEDDLE_OP(tf_apply_adam) {
  tf_apply::Define<tf_apply::Adam, false>(op, "Adam; beta1_power and beta2_power are operands");
  op.Attr("use_nesterov", false);
}
HEDDLE_OP(tf_apply_adam_with_amsgrad) {
  tf_apply::Define<tf_apply::Amsgrad, false>(op, "Adam with the greatest second moment so far");
}
HEDDLE_OP(tf_apply_ada_max) {
  tf_apply::Define<tf_apply::AdaMax, false>(op, "Adam with the infinity norm");
}

HEDDLE_EXAMPLES(tf_apply_adam, R"(
example a matrix
in var float32 [2, 3] -0.54 0.39 0.68 -0.05 -0.80 -0.61
in m float32 [2, 3] -0.69 -0.81 -0.70 0.23 -0.79 0.52
in v float32 [2, 3] 1.24 1.32 1.30 1.21 1.42 1.46
in beta1_power float32 [] 0.81
in beta2_power float32 [] 0.98
in lr float32 [] 0.1
in beta1 float32 [] 0.9
in beta2 float32 [] 0.99
in epsilon float32 [] 0.001
in grad float32 [2, 3] 0.25 0.93 -0.79 -0.79 -0.87 -0.59
out var_out float32 [2, 3] -0.5000077 0.43123847 0.72636455 -0.05867435 -0.7500804 -0.6352701
out m_out float32 [2, 3] -0.59599996 -0.636 -0.709 0.12799999 -0.79800004 0.40899998
out v_out float32 [2, 3] 1.228225 1.315449 1.2932409 1.204141 1.4133689 1.448881

example a matrix, use_nesterov true
attr use_nesterov BOOLEAN true
in var float32 [2, 3] -0.25 -0.08 0.36 0.49 -0.83 -0.19
in m float32 [2, 3] 0.09 -0.25 -0.76 0.19 -0.25 0.37
in v float32 [2, 3] 1.00 1.46 1.45 0.57 1.26 1.22
in beta1_power float32 [] 0.81
in beta2_power float32 [] 0.98
in lr float32 [] 0.1
in beta1 float32 [] 0.9
in beta2 float32 [] 0.99
in epsilon float32 [] 0.001
in grad float32 [2, 3] -0.41 -0.77 -0.04 -0.29 0.47 0.84
out var_out float32 [2, 3] -0.24962665 -0.0584675 0.3986832 0.48023075 -0.82246935 -0.22098856
out m_out float32 [2, 3] 0.03999999 -0.30200002 -0.68799996 0.14199999 -0.17799997 0.41700003
out v_out float32 [2, 3] 0.991681 1.451329 1.4355161 0.565141 1.249609 1.214856
)")

HEDDLE_EXAMPLES(tf_apply_adam_with_amsgrad, R"(
example a matrix
in var float32 [2, 3] -0.24 -0.42 -0.00 0.39 0.58 0.15
in m float32 [2, 3] -0.41 -0.33 0.70 0.04 -0.90 -0.16
in v float32 [2, 3] 0.74 1.17 0.57 0.77 0.60 0.98
in vhat float32 [2, 3] 1.48 1.04 0.89 1.43 0.59 0.86
in beta1_power float32 [] 0.81
in beta2_power float32 [] 0.98
in lr float32 [] 0.1
in beta1 float32 [] 0.9
in beta2 float32 [] 0.99
in epsilon float32 [] 0.001
in grad float32 [2, 3] 0.62 -0.99 0.53 -0.28 -0.97 -0.50
out var_out float32 [2, 3] -0.22123227 -0.39275324 -0.053830292 0.38950247 0.6667968 0.16462627
out m_out float32 [2, 3] -0.30699998 -0.39600003 0.68299997 0.007999994 -0.907 -0.194
out v_out float32 [2, 3] 0.736444 1.168101 0.567109 0.763084 0.603409 0.9727
out vhat_out float32 [2, 3] 1.48 1.168101 0.89 1.43 0.603409 0.9727
)")

HEDDLE_EXAMPLES(tf_apply_ada_max, R"(
example a matrix
in var float32 [2, 3] -0.08 -0.23 0.03 -0.89 -0.56 0.95
in m float32 [2, 3] -0.11 -0.06 -0.83 -0.44 0.91 0.37
in v float32 [2, 3] 1.01 0.55 0.89 1.28 0.93 1.09
in beta1_power float32 [] 0.81
in lr float32 [] 0.1
in beta1 float32 [] 0.9
in beta2 float32 [] 0.99
in epsilon float32 [] 0.001
in grad float32 [2, 3] 0.80 0.29 0.27 -0.93 -0.95 0.54
out var_out float32 [2, 3] -0.07000901 -0.20587921 0.45959684 -0.68706006 -0.96068627 0.76142097
out m_out float32 [2, 3] -0.018999971 -0.024999991 -0.71999997 -0.48900002 0.724 0.38700002
out v_out float32 [2, 3] 0.9999 0.5445 0.8811 1.2672 0.95 1.0791
)")
