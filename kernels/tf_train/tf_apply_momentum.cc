// Gradient descent, with and without momentum.
#include "kernels/tf_train/tf_apply.h"

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
struct Momentum {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"accum", kState, "accum_out"},
                                           {"lr", kScalar},
                                           {"grad", kGrad},
                                           {"momentum", kScalar}};
  Momentum(const T* a, const OpContext& ctx)
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
  tf_apply::Define<tf_apply::Momentum, false>(op, "accum = momentum accum + grad; var -= lr accum");
  op.Attr("use_nesterov", false);
}
HEDDLE_OP(tf_apply_keras_momentum) {
  tf_apply::Define<tf_apply::KerasMomentum, false>(
      op, "accum = momentum accum - lr grad; var += accum");
  op.Attr("use_nesterov", false);
}
HEDDLE_OP(tf_sparse_apply_momentum) {
  tf_apply::Define<tf_apply::Momentum, true>(op, "tf_apply_momentum for the rows of indices");
  op.Attr("use_nesterov", false);
}
HEDDLE_OP(tf_sparse_apply_keras_momentum) {
  tf_apply::Define<tf_apply::KerasMomentum, true>(op,
                                                  "tf_apply_keras_momentum for rows of indices");
  op.Attr("use_nesterov", false);
}

HEDDLE_EXAMPLES(tf_apply_gradient_descent, R"(
example a matrix
in var float32 [2, 3] -0.34 -0.98 0.17 0.65 0.45 -0.81
in alpha float32 [] 0.5
in delta float32 [2, 3] 0.06 -0.66 0.42 -0.11 0.88 0.59
out var_out float32 [2, 3] -0.37 -0.65 -0.03999999 0.705 0.00999999 -1.105
)")

HEDDLE_EXAMPLES(tf_apply_momentum, R"(
example a matrix
in var float32 [2, 3] -0.76 -0.37 0.83 -0.08 -0.13 -0.12
in accum float32 [2, 3] 1.27 1.44 1.03 1.47 1.10 0.60
in lr float32 [] 0.1
in grad float32 [2, 3] 0.63 -0.16 -0.90 0.96 -0.93 0.15
in momentum float32 [] 0.9
out var_out float32 [2, 3] -0.93729997 -0.48360002 0.8273 -0.30830002 -0.13599999 -0.18900001
out accum_out float32 [2, 3] 1.773 1.136 0.02699995 2.283 0.060000002 0.69000006

example a matrix, use_nesterov true
attr use_nesterov BOOLEAN true
in var float32 [2, 3] -0.04 0.76 -0.21 -0.57 -0.45 -0.60
in accum float32 [2, 3] 1.06 0.86 1.25 0.74 0.85 0.75
in lr float32 [] 0.1
in grad float32 [2, 3] 0.96 0.68 0.70 0.24 -0.20 -0.71
in momentum float32 [] 0.9
out var_out float32 [2, 3] -0.30826 0.56114 -0.44425 -0.67554 -0.48084998 -0.52585
out accum_out float32 [2, 3] 1.9139999 1.454 1.825 0.906 0.565 -0.035000026
)")

HEDDLE_EXAMPLES(tf_apply_keras_momentum, R"(
example a matrix
in var float32 [2, 3] 0.66 -0.02 -0.92 -0.66 -0.80 0.44
in accum float32 [2, 3] 1.40 0.70 1.30 0.82 1.18 1.36
in lr float32 [] 0.1
in grad float32 [2, 3] 0.25 0.60 -0.25 -0.98 0.02 0.17
in momentum float32 [] 0.9
out var_out float32 [2, 3] 1.895 0.55 0.27499992 0.17599994 0.25999993 1.6470001
out accum_out float32 [2, 3] 1.235 0.57 1.1949999 0.83599997 1.06 1.207

example a matrix, use_nesterov true
attr use_nesterov BOOLEAN true
in var float32 [2, 3] -0.63 -0.22 -0.37 -0.95 -0.38 -0.23
in accum float32 [2, 3] 0.98 1.20 0.90 1.48 1.32 1.42
in lr float32 [] 0.1
in grad float32 [2, 3] 0.39 0.34 0.07 0.60 -0.27 0.19
in momentum float32 [] 0.9
out var_out float32 [2, 3] 0.08969998 0.6874 0.34569985 0.13480002 0.74049985 0.8840997
out accum_out float32 [2, 3] 0.843 1.046 0.8029999 1.2720001 1.2149999 1.2589998
)")

HEDDLE_EXAMPLES(tf_sparse_apply_momentum, R"(
example two rows, one twice
in var float32 [2, 3] 0.36 0.04 -0.43 -0.84 -0.83 -0.29
in accum float32 [2, 3] 1.08 1.26 1.21 0.81 1.43 0.77
in lr float32 [] 0.1
in grad float32 [3, 3] 0.43 -0.86 0.51 0.34 0.91 0.79 0.38 0.68 0.48
in indices int32 [3] 1 0 1
in momentum float32 [] 0.9
out var_out float32 [2, 3] 0.22880001 -0.16439998 -0.6179 -1.09821 -0.97912997 -0.56657
out accum_out float32 [2, 3] 1.312 2.044 1.879 1.4230999 1.0643 1.5626999

example two rows, one twice, use_nesterov true
attr use_nesterov BOOLEAN true
in var float32 [2, 3] 0.22 -0.58 0.03 0.79 -0.52 0.95
in accum float32 [2, 3] 1.04 0.89 0.50 0.89 0.68 1.15
in lr float32 [] 0.1
in grad float32 [3, 3] 0.80 0.82 0.23 -0.23 -0.78 0.38 0.11 0.43 -0.25
in indices int32 [3] 1 0 1
in momentum float32 [] 0.9
out var_out float32 [2, 3] 0.17946002 -0.50389 -0.0827 0.41532898 -0.92857194 0.75818497
out accum_out float32 [2, 3] 0.7059999 0.020999968 0.83 1.5509 1.7187998 0.8885
)")

HEDDLE_EXAMPLES(tf_sparse_apply_keras_momentum, R"(
example two rows, one twice
in var float32 [2, 3] 0.77 -0.57 -0.39 -0.46 0.24 0.79
in accum float32 [2, 3] 0.67 1.13 1.27 0.72 0.56 1.07
in lr float32 [] 0.1
in grad float32 [3, 3] 0.66 0.76 0.46 -0.17 -0.15 0.06 0.81 -0.40 -0.44
in indices int32 [3] 1 0 1
in momentum float32 [] 0.9
out var_out float32 [2, 3] 1.39 0.46199995 0.747 0.5648 1.0932 2.5763001
out accum_out float32 [2, 3] 0.62 1.032 1.137 0.44280002 0.4252 0.8693

example two rows, one twice, use_nesterov true
attr use_nesterov BOOLEAN true
in var float32 [2, 3] 0.21 0.93 -0.63 -0.94 -0.77 0.13
in accum float32 [2, 3] 1.10 0.68 0.69 1.09 1.15 1.19
in lr float32 [] 0.1
in grad float32 [3, 3] 0.46 -0.88 -0.03 0.67 0.91 -0.36 0.70 0.29 0.85
in indices int32 [3] 1 0 1
in momentum float32 [] 0.9
out var_out float32 [2, 3] 0.9737 1.3079 -0.0026999712 0.47984993 1.1832297 1.8080401
out accum_out float32 [2, 3] 0.923 0.52099997 0.657 0.7715 0.9816999 0.8816
)")
