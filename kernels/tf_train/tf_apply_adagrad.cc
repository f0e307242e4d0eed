// Adagrad and Adadelta.
#include <cmath>

#include "kernels/tf_train/tf_apply.h"

namespace heddle::tf_apply {
namespace {

template <typename T>
struct Adagrad {
  static constexpr TfApplySlot kSlots[] = {
      {"var", kState, "var_out"}, {"accum", kState, "accum_out"}, {"lr", kScalar}, {"grad", kGrad}};
  Adagrad(const T* a, const OpContext& ctx) : lr(a[0]), update(ctx.Bool("update_slots")) {}
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
struct Adadelta {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"accum", kState, "accum_out"},
                                           {"accum_update", kState, "accum_update_out"},
                                           {"lr", kScalar},
                                           {"rho", kScalar},
                                           {"epsilon", kScalar},
                                           {"grad", kGrad}};
  Adadelta(const T* a, const OpContext&) : lr(a[0]), rho(a[1]), epsilon(a[2]) {}
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
  tf_apply::Define<tf_apply::Adagrad, false>(op, "accum += grad²; var -= lr grad / sqrt(accum)");
  op.Attr("update_slots", true);
}
HEDDLE_OP(tf_sparse_apply_adagrad) {
  tf_apply::Define<tf_apply::Adagrad, true>(op, "tf_apply_adagrad for the rows of indices");
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
HEDDLE_OP(tf_apply_adadelta) { tf_apply::Define<tf_apply::Adadelta, false>(op, "Adadelta"); }
HEDDLE_OP(tf_sparse_apply_adadelta) {
  tf_apply::Define<tf_apply::Adadelta, true>(op, "Adadelta for the rows of indices");
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

HEDDLE_EXAMPLES(tf_apply_adagrad, R"(
example a matrix
in var float32 [2, 3] 0.25 0.48 0.59 0.88 0.48 0.84
in accum float32 [2, 3] 0.53 0.97 1.44 1.15 1.40 0.61
in lr float32 [] 0.1
in grad float32 [2, 3] -0.06 -0.51 0.09 0.15 -0.97 -0.57
out var_out float32 [2, 3] 0.2582138 0.5259833 0.58252096 0.8661473 0.5433987 0.8989511
out accum_out float32 [2, 3] 0.5336 1.2301 1.4481001 1.1725 2.3409 0.93490005

example a matrix, update_slots false
attr update_slots BOOLEAN false
in var float32 [2, 3] -0.44 0.83 0.53 -0.68 0.59 -0.72
in accum float32 [2, 3] 1.12 0.63 0.50 1.37 0.71 0.72
in lr float32 [] 0.1
in grad float32 [2, 3] 0.96 0.74 -0.42 0.92 0.08 0.36
out var_out float32 [2, 3] -0.5307115 0.7367687 0.58939695 -0.7586009 0.5805057 -0.76242644
out accum_out float32 [2, 3] 1.12 0.63 0.5 1.37 0.71 0.72
)")

HEDDLE_EXAMPLES(tf_sparse_apply_adagrad, R"(
example two rows, one twice
in var float32 [2, 3] -0.59 0.88 0.38 0.93 0.79 -0.40
in accum float32 [2, 3] 0.86 0.67 0.65 0.57 0.80 1.10
in lr float32 [] 0.1
in grad float32 [3, 3] -0.99 0.36 -0.32 -0.38 0.64 -0.04 -0.37 -0.04 0.41
in indices int32 [3] 1 0 1
out var_out float32 [2, 3] -0.5520833 0.81840456 0.3849553 1.038003 0.75680685 -0.4058396
out accum_out float32 [2, 3] 1.0044 1.0796 0.6516 1.687 0.9312 1.3705

example two rows, one twice, update_slots false
attr update_slots BOOLEAN false
in var float32 [2, 3] -0.89 0.95 -0.95 0.50 0.69 -0.96
in accum float32 [2, 3] 1.29 0.87 1.08 0.51 0.55 0.68
in lr float32 [] 0.1
in grad float32 [3, 3] 0.91 -0.61 0.51 0.86 0.88 -0.31 -0.29 0.05 0.55
in indices int32 [3] 1 0 1
out var_out float32 [2, 3] -0.96571875 0.85565406 -0.92017025 0.41318262 0.7655104 -1.0885439
out accum_out float32 [2, 3] 1.29 0.87 1.08 0.51 0.55 0.68
)")

HEDDLE_EXAMPLES(tf_apply_adagrad_v2, R"(
example a matrix
in var float32 [2, 3] -0.78 0.50 0.59 0.72 -0.93 0.89
in accum float32 [2, 3] 0.59 0.84 1.11 1.42 0.84 1.42
in lr float32 [] 0.1
in epsilon float32 [] 0.001
in grad float32 [2, 3] 0.09 -0.38 -0.37 -0.65 -0.84 -0.70
out var_out float32 [2, 3] -0.79162234 0.53826135 0.6231052 0.7678509 -0.8624879 0.94061357
out accum_out float32 [2, 3] 0.59809995 0.9844 1.2469001 1.8425 1.5455999 1.91

example a matrix, update_slots false
attr update_slots BOOLEAN false
in var float32 [2, 3] 0.38 0.99 -0.68 -0.90 0.97 0.07
in accum float32 [2, 3] 0.91 0.74 1.09 1.33 0.96 0.92
in lr float32 [] 0.1
in epsilon float32 [] 0.001
in grad float32 [2, 3] -0.89 0.83 -0.93 -0.01 0.68 -0.74
out var_out float32 [2, 3] 0.47319967 0.8936265 -0.5910074 -0.8991336 0.90066856 0.14706999
out accum_out float32 [2, 3] 0.91 0.74 1.09 1.33 0.96 0.92
)")

HEDDLE_EXAMPLES(tf_sparse_apply_adagrad_v2, R"(
example two rows, one twice
in var float32 [2, 3] 0.46 0.90 0.26 0.58 -0.79 -0.13
in accum float32 [2, 3] 0.65 1.34 0.79 0.95 1.50 1.35
in lr float32 [] 0.1
in epsilon float32 [] 0.001
in grad float32 [3, 3] 0.95 -0.09 -0.02 0.46 -0.04 -0.42 -0.19 -0.71 -0.25
in indices int32 [3] 1 0 1
out var_out float32 [2, 3] 0.41049635 0.9034504 0.30268046 0.52406853 -0.7326604 -0.107265905
out accum_out float32 [2, 3] 0.8616 1.3416001 0.9664 1.8886 2.0121999 1.4129

example two rows, one twice, update_slots false
attr update_slots BOOLEAN false
in var float32 [2, 3] 0.98 0.92 0.25 -0.00 -0.32 -0.82
in accum float32 [2, 3] 0.77 1.28 1.37 0.86 1.29 1.27
in lr float32 [] 0.1
in epsilon float32 [] 0.001
in grad float32 [3, 3] 0.39 0.33 0.52 -0.27 0.41 -0.44 -0.03 0.54 0.38
in indices int32 [3] 1 0 1
out var_out float32 [2, 3] 1.0107343 0.8837928 0.28755966 -0.038777985 -0.39653182 -0.8997913
out accum_out float32 [2, 3] 0.77 1.28 1.37 0.86 1.29 1.27
)")

HEDDLE_EXAMPLES(tf_apply_adadelta, R"(
example a matrix
in var float32 [2, 3] -0.41 0.89 0.30 0.16 -0.98 0.09
in accum float32 [2, 3] 0.75 1.17 0.96 1.32 1.15 1.30
in accum_update float32 [2, 3] 0.85 1.14 1.24 1.33 0.85 1.34
in lr float32 [] 0.1
in rho float32 [] 0.95
in epsilon float32 [] 0.001
in grad float32 [2, 3] 0.74 0.38 0.95 0.91 0.04 0.06
out var_out float32 [2, 3] -0.489309 0.8516406 0.1918819 0.067793794 -0.9835286 0.0837508
out accum_out float32 [2, 3] 0.73987997 1.1187199 0.95712495 1.295405 1.09258 1.2351799
out accum_update_out float32 [2, 3] 0.8389496 1.0903572 1.2364476 1.3060099 0.80756223 1.2731953
)")

HEDDLE_EXAMPLES(tf_sparse_apply_adadelta, R"(
example two rows, one twice
in var float32 [2, 3] -0.67 0.67 0.87 -0.05 0.38 0.44
in accum float32 [2, 3] 1.23 0.67 1.28 1.08 1.17 0.92
in accum_update float32 [2, 3] 1.12 1.27 1.14 1.22 0.53 0.66
in lr float32 [] 0.1
in rho float32 [] 0.95
in epsilon float32 [] 0.001
in grad float32 [3, 3] -0.12 0.30 -0.56 0.37 0.26 -0.92 -0.06 -0.55 -0.89
in indices int32 [3] 1 0 1
out var_out float32 [2, 3] -0.7061191 0.6333851 0.95757145 -0.030378493 0.3970503 0.5638713
out accum_out float32 [2, 3] 1.175345 0.63988 1.25832 0.97556406 1.075325 0.88480103
out accum_update_out float32 [2, 3] 1.070523 1.2132032 1.1213437 1.1020766 0.48747677 0.6353036
)")

HEDDLE_EXAMPLES(tf_apply_proximal_gradient_descent, R"(
example a matrix
in var float32 [2, 3] -0.73 -0.37 -0.64 -0.61 -0.93 -0.07
in alpha float32 [] 0.5
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in delta float32 [2, 3] -0.24 0.22 0.18 -0.52 0.81 -1.00
out var_out float32 [2, 3] -0.5571429 -0.43333337 -0.6714286 -0.30952385 -1.2476192 0.3857143
)")

HEDDLE_EXAMPLES(tf_sparse_apply_proximal_gradient_descent, R"(
example two rows, one twice
in var float32 [2, 3] -0.19 -0.44 -0.18 -0.77 0.66 -0.25
in alpha float32 [] 0.5
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in grad float32 [3, 3] -0.93 0.23 -0.81 0.09 -0.32 0.16 0.92 0.64 -0.16
in indices int32 [3] 1 0 1
out var_out float32 [2, 3] -0.2 -0.24285714 -0.22380953 -0.668254 0.14308396 0.17029479
)")

HEDDLE_EXAMPLES(tf_apply_proximal_adagrad, R"(
example a matrix
in var float32 [2, 3] 0.63 0.28 -0.26 -0.72 0.19 0.13
in accum float32 [2, 3] 1.46 1.47 1.11 0.85 1.39 0.50
in lr float32 [] 0.1
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in grad float32 [2, 3] -0.78 0.13 0.23 -0.72 0.26 0.78
out var_out float32 [2, 3] 0.6760574 0.26308092 -0.2741495 -0.6486311 0.16297321 0.050681636
out accum_out float32 [2, 3] 2.0684 1.4869 1.1629 1.3684001 1.4576 1.1083999
)")

HEDDLE_EXAMPLES(tf_sparse_apply_proximal_adagrad, R"(
example two rows, one twice
in var float32 [2, 3] -0.25 -0.14 -0.55 -0.42 0.94 -0.24
in accum float32 [2, 3] 1.46 1.41 1.10 0.76 1.48 1.00
in lr float32 [] 0.1
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in grad float32 [3, 3] -0.17 -0.36 0.97 -0.02 -0.43 -0.05 -0.76 0.24 -0.11
in indices int32 [3] 1 0 1
out var_out float32 [2, 3] -0.24220335 -0.101190776 -0.5353773 -0.31881174 0.9272512 -0.29032928
out accum_out float32 [2, 3] 1.4604 1.5949 1.1025001 1.3665 1.6672001 1.9530001
)")
