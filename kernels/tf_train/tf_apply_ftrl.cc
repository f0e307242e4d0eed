// Follow the regularised leader.
#include <cmath>

#include "kernels/tf_train/tf_apply.h"

namespace heddle::tf_apply {
namespace {

template <typename T>
struct FtrlRule {
  void Step(T* s, T g) const {
    const T shrunk = g + T(2) * shrinkage * s[0];
    const T accum = s[1] + g * g;
    const T old_power = std::pow(s[1], -power), new_power = std::pow(accum, -power);
    // With multiply_linear_by_lr, linear is kept times lr.
    const T scale = by_lr ? lr : T(1);
    s[2] += scale * (shrunk - (new_power - old_power) / lr * s[0]);
    const T most = l1 * scale;
    const T q = scale * (new_power / lr + T(2) * l2);
    const T size = s[2] < T(0) ? -s[2] : s[2];
    s[0] = size > most ? (s[2] < T(0) ? -most - s[2] : most - s[2]) / q : T(0);
    s[1] = accum;
  }
  T lr, l1, l2, shrinkage, power;
  bool by_lr;
};

template <typename T>
struct Ftrl : FtrlRule<T> {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"accum", kState, "accum_out"},
                                           {"linear", kState, "linear_out"},
                                           {"grad", kGrad},
                                           {"lr", kScalar},
                                           {"l1", kScalar},
                                           {"l2", kScalar},
                                           {"lr_power", kScalar}};
  Ftrl(const T* a, const OpContext& ctx)
      : FtrlRule<T>{a[0], a[1], a[2], T(0), a[3], ctx.Bool("multiply_linear_by_lr")} {}
};

template <typename T>
struct FtrlV2 : FtrlRule<T> {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"accum", kState, "accum_out"},
                                           {"linear", kState, "linear_out"},
                                           {"grad", kGrad},
                                           {"lr", kScalar},
                                           {"l1", kScalar},
                                           {"l2", kScalar},
                                           {"l2_shrinkage", kScalar},
                                           {"lr_power", kScalar}};
  FtrlV2(const T* a, const OpContext& ctx)
      : FtrlRule<T>{a[0], a[1], a[2], a[3], a[4], ctx.Bool("multiply_linear_by_lr")} {}
};

}  // namespace
}  // namespace heddle::tf_apply

HEDDLE_OP(tf_apply_ftrl) {
  tf_apply::Define<tf_apply::Ftrl, false>(op, "follow the regularised leader");
  op.Attr("multiply_linear_by_lr", false);
}
HEDDLE_OP(tf_apply_ftrl_v2) {
  tf_apply::Define<tf_apply::FtrlV2, false>(op, "tf_apply_ftrl with a shrinkage of the gradient");
  op.Attr("multiply_linear_by_lr", false);
}
HEDDLE_OP(tf_sparse_apply_ftrl) {
  tf_apply::Define<tf_apply::Ftrl, true>(op, "tf_apply_ftrl for the rows of indices");
  op.Attr("multiply_linear_by_lr", false);
}
HEDDLE_OP(tf_sparse_apply_ftrl_v2) {
  tf_apply::Define<tf_apply::FtrlV2, true>(op, "tf_apply_ftrl_v2 for the rows of indices");
  op.Attr("multiply_linear_by_lr", false);
}

HEDDLE_EXAMPLES(tf_apply_ftrl, R"(
example a matrix
in var float32 [2, 3] -0.41 0.56 0.65 -0.97 0.07 -0.45
in accum float32 [2, 3] 1.44 1.28 0.75 0.77 0.65 1.49
in linear float32 [2, 3] -0.41 0.22 -0.05 0.29 0.21 0.49
in grad float32 [2, 3] -0.76 0.52 -0.40 0.07 -0.33 -0.41
in lr float32 [] 0.1
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in lr_power float32 [] -0.5
out var_out float32 [2, 3] 0.015014222 -0.0041760392 0.099743366 -0.03743703 0.012954745
  -0.025356144
out accum_out float32 [2, 3] 2.0176 1.5504 0.91 0.77489996 0.7589 1.6581
out linear_out float32 [2, 3] -0.26626822 0.10283318 -1.0214397 0.3870396 -0.16544603 0.38157526

example a matrix, multiply_linear_by_lr true
attr multiply_linear_by_lr BOOLEAN true
in var float32 [2, 3] 0.06 -0.07 -0.28 0.49 0.18 -0.93
in accum float32 [2, 3] 0.75 0.96 1.42 1.39 1.05 0.51
in linear float32 [2, 3] 0.56 -0.14 0.15 0.42 0.26 -0.04
in grad float32 [2, 3] 0.82 -0.23 -0.22 0.70 -0.61 -0.41
in lr float32 [] 0.1
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in lr_power float32 [] -0.5
out var_out float32 [2, 3] -0.50913775 0.15211536 -0.10443352 -0.28095654 -0.13508399 -0.018581178
out accum_out float32 [2, 3] 1.4224 1.0129 1.4684 1.88 1.4221 0.6781
out linear_out float32 [2, 3] 0.6224029 -0.16113566 0.13363865 0.39584732 0.1687918 0.020672634
)")

HEDDLE_EXAMPLES(tf_apply_ftrl_v2, R"(
example a matrix
in var float32 [2, 3] 0.66 -0.87 0.67 0.39 -0.13 -0.43
in accum float32 [2, 3] 1.28 1.41 0.64 0.98 1.05 1.00
in linear float32 [2, 3] -0.34 -0.69 0.17 0.62 -0.86 -0.54
in grad float32 [2, 3] 0.64 0.58 0.33 -0.95 0.45 0.96
in lr float32 [] 0.1
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in l2_shrinkage float32 [] 0.2
in lr_power float32 [] -0.5
out var_out float32 [2, 3] 0.037726942 -0.049086064 -0.03161168 0.11595638 0.025387898 -0.13217987
out accum_out float32 [2, 3] 1.6896 1.7463999 0.7489 1.8824999 1.2524999 1.9216
out linear_out float32 [2, 3] -0.54793763 0.7084965 0.32988667 -1.6641618 -0.33920664 1.9087367

example a matrix, multiply_linear_by_lr true
attr multiply_linear_by_lr BOOLEAN true
in var float32 [2, 3] 1.00 0.40 -0.90 0.68 -0.56 0.29
in accum float32 [2, 3] 1.45 1.21 0.63 0.79 1.42 0.65
in linear float32 [2, 3] 0.22 -0.17 -0.68 0.24 -0.91 -0.78
in grad float32 [2, 3] -0.24 -0.86 -0.88 0.15 0.48 0.76
in lr float32 [] 0.1
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in l2_shrinkage float32 [] 0.2
in lr_power float32 [] -0.5
out var_out float32 [2, 3] -0.16613929 0.24960609 0.3707544 -0.29157487 0.63409996 0.6869911
out accum_out float32 [2, 3] 1.5076001 1.9496 1.4044 0.8125 1.6503999 1.2276
out linear_out float32 [2, 3] 0.21231586 -0.35851228 -0.4517864 0.2736535 -0.83229685 -0.7799061
)")

HEDDLE_EXAMPLES(tf_sparse_apply_ftrl, R"(
example two rows, one twice
in var float32 [2, 3] -0.73 -0.14 -0.37 0.20 -0.02 0.88
in accum float32 [2, 3] 0.87 0.56 1.20 0.65 1.13 1.01
in linear float32 [2, 3] 0.82 0.11 0.24 -0.47 0.10 -0.49
in grad float32 [3, 3] 0.50 0.03 -0.73 -0.53 -0.26 0.47 -0.64 0.43 0.31
in indices int32 [3] 1 0 1
in lr float32 [] 0.1
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in lr_power float32 [] -0.5
out var_out float32 [2, 3] -0.11552469 0.0047484017 -0.08393534 0.07611895 -0.044235703 0.23420496
out accum_out float32 [2, 3] 1.1509 0.6276 1.4209001 1.3096 1.3158001 1.639
out linear_out float32 [2, 3] 1.3124537 -0.08856709 1.067309 -0.9363121 0.5662675 -3.0952132

example two rows, one twice, multiply_linear_by_lr true
attr multiply_linear_by_lr BOOLEAN true
in var float32 [2, 3] -0.83 0.34 -0.82 -0.75 0.19 -0.52
in accum float32 [2, 3] 1.38 0.98 0.82 1.30 0.53 1.23
in linear float32 [2, 3] -0.89 -0.70 0.90 0.36 -0.55 -0.77
in grad float32 [3, 3] 0.95 0.33 0.64 -0.72 0.25 -0.29 -0.53 -0.33 0.23
in indices int32 [3] 1 0 1
in lr float32 [] 0.1
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in lr_power float32 [] -0.5
out var_out float32 [2, 3] 0.5640443 0.6537446 -0.93027383 -0.43746197 0.67874783 0.45308354
out accum_out float32 [2, 3] 1.8984001 1.0425 0.9041 2.4833999 0.7478 1.6925
out linear_out float32 [2, 3] -0.7934349 -0.68556696 0.90814865 0.7031371 -0.6055251 -0.60350573
)")

HEDDLE_EXAMPLES(tf_sparse_apply_ftrl_v2, R"(
example two rows, one twice
in var float32 [2, 3] -0.30 -0.23 -0.73 0.66 0.30 0.61
in accum float32 [2, 3] 0.93 1.35 1.02 1.09 1.07 1.24
in linear float32 [2, 3] -0.21 -0.81 -0.93 -0.60 -0.92 0.78
in grad float32 [3, 3] -0.04 0.52 -1.00 -0.06 0.78 0.24 -0.14 -0.07 -0.80
in indices int32 [3] 1 0 1
in lr float32 [] 0.1
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in l2_shrinkage float32 [] 0.2
in lr_power float32 [] -0.5
out var_out float32 [2, 3] 0.03390749 -0.026371658 0.06868044 0.04296693 0.055153754 0.19232276
out accum_out float32 [2, 3] 0.9336 1.9584 1.0776 1.1112001 1.3453 2.88
out linear_out float32 [2, 3] -0.3844058 0.42432684 -0.77669066 -0.5115227 -0.70074296 -3.35229

example two rows, one twice, multiply_linear_by_lr true
attr multiply_linear_by_lr BOOLEAN true
in var float32 [2, 3] -0.69 -0.68 -0.25 -0.23 0.76 -0.70
in accum float32 [2, 3] 0.75 0.78 0.66 0.79 0.74 0.98
in linear float32 [2, 3] -0.94 0.85 -0.26 0.88 0.38 0.35
in grad float32 [3, 3] -0.06 0.89 -0.76 0.34 -0.42 0.35 0.46 -0.67 -0.60
in indices int32 [3] 1 0 1
in lr float32 [] 0.1
in l1 float32 [] 0.05
in l2 float32 [] 0.1
in l2_shrinkage float32 [] 0.2
in lr_power float32 [] -0.5
out var_out float32 [2, 3] 0.9303661 -0.8419712 0.23430869 -0.95251167 -0.113386534 -0.280351
out accum_out float32 [2, 3] 0.8656 0.9564 0.7825 1.0052 1.981 1.9176
out linear_out float32 [2, 3] -0.8891979 0.8452511 -0.21695337 0.9790352 0.166857 0.3988299
)")
