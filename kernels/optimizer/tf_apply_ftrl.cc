// Follow the regularised leader.
#include <cmath>

#include "kernels/optimizer/tf_apply.h"

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
struct FtrlUpdate : FtrlRule<T> {
  static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"},
                                           {"accum", kState, "accum_out"},
                                           {"linear", kState, "linear_out"},
                                           {"grad", kGrad},
                                           {"lr", kScalar},
                                           {"l1", kScalar},
                                           {"l2", kScalar},
                                           {"lr_power", kScalar}};
  FtrlUpdate(const T* a, const OpContext& ctx)
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
  tf_apply::Define<tf_apply::FtrlUpdate, false>(op, "follow the regularised leader");
  op.Attr("multiply_linear_by_lr", false);
}
HEDDLE_OP(tf_apply_ftrl_v2) {
  tf_apply::Define<tf_apply::FtrlV2, false>(op, "tf_apply_ftrl with a shrinkage of the gradient");
  op.Attr("multiply_linear_by_lr", false);
}
HEDDLE_OP(tf_sparse_apply_ftrl) {
  tf_apply::Define<tf_apply::FtrlUpdate, true>(op, "tf_apply_ftrl for the rows of indices");
  op.Attr("multiply_linear_by_lr", false);
}
HEDDLE_OP(tf_sparse_apply_ftrl_v2) {
  tf_apply::Define<tf_apply::FtrlV2, true>(op, "tf_apply_ftrl_v2 for the rows of indices");
  op.Attr("multiply_linear_by_lr", false);
}
