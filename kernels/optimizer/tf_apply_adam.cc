// Adam and its kin.
#include <cmath>

#include "kernels/optimizer/tf_apply.h"

namespace heddle::tf_apply {
namespace {

template <typename T>
struct AdamStep {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"}, {"m", kState, "m_out"},
                                           {"v", kState, "v_out"},     {"beta1_power", kScalar},
                                           {"beta2_power", kScalar},   {"lr", kScalar},
                                           {"beta1", kScalar},         {"beta2", kScalar},
                                           {"epsilon", kScalar},       {"grad", kGrad}};
  AdamStep(const T* a, const OpContext& ctx)
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
  tf_apply::Define<tf_apply::AdamStep, false>(op, "Adam; beta1_power and beta2_power are operands");
  op.Attr("use_nesterov", false);
}
HEDDLE_OP(tf_apply_adam_with_amsgrad) {
  tf_apply::Define<tf_apply::Amsgrad, false>(op, "Adam with the greatest second moment so far");
}
HEDDLE_OP(tf_apply_ada_max) {
  tf_apply::Define<tf_apply::AdaMax, false>(op, "Adam with the infinity norm");
}
