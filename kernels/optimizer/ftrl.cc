#include "core/operands/slot_kinds.h"
#include "core/shape_context.h"
#include "kernels/optimizer/update_rule.h"

namespace heddle {
namespace {

Status InferFtrl(ShapeContext& ctx) {
  return InferUpdate(ctx, {{"Param", "ParamOut"},
                           {"SquaredAccumulator", "SquaredAccumOut"},
                           {"LinearAccumulator", "LinearAccumOut"}});
}

template <typename C>
struct Ftrl {
  static constexpr KeyPair kStates[] = {{"Param", "ParamOut"},
                                        {"SquaredAccumulator", "SquaredAccumOut"},
                                        {"LinearAccumulator", "LinearAccumOut"}};
  static constexpr bool kLazy = true;
  static Result<Ftrl> Of(const KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const C lr, RateOf<C>(ctx));
    const double least = ctx.Float("penalty_offset");
    double shrinkage = 0;
    if (ctx.InOpt("L2ShrinkageTensor") != nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(shrinkage, ScalarOf(ctx, "L2ShrinkageTensor"));
    }
    Ftrl rule{lr,
              static_cast<C>(ScalarOr(ctx, "L1Tensor", "l1") + least),
              static_cast<C>(ScalarOr(ctx, "L2Tensor", "l2") + least),
              static_cast<C>(shrinkage),
              -NumberOr<C>(ctx, "LrPowerTensor", "lr_power"),
              ctx.Bool("linear_times_lr") ? lr : C(1)};
    rule.root = rule.power == C(0.5);
    return rule;
  }
  C Power(C x) const { return root ? std::sqrt(x) : std::pow(x, power); }
  void Step(C* s, C g) const {
    const C sum = s[1] + g * g, now = Power(sum), old = Power(s[1]);
    s[2] += scale * (g + C(2) * shrinkage * s[0] - (now - old) / lr * s[0]);
    const C most = l1 * scale;
    const C pull = (s[2] >= C(0) ? most : -most) - s[2];
    s[0] = std::abs(s[2]) > most ? pull / (scale * (now / lr + C(2) * l2)) : C(0);
    s[1] = sum;
  }
  C lr, l1, l2, shrinkage, power;
  C scale;  // LinearAccumulator holds the sum times this
  bool root = false;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(ftrl) {
  DeclareRowUpdate(op).Doc("follow the regularised leader");
  op.Input("SquaredAccumulator").Input("LinearAccumulator").Input("L1Tensor", kOptional);
  op.Input("L2Tensor", kOptional).Input("L2ShrinkageTensor", kOptional);
  op.Input("LrPowerTensor", kOptional).Output("SquaredAccumOut").Output("LinearAccumOut");
  op.Attr("l1", 0.0).Attr("l2", 0.0).Attr("lr_power", -0.5);
  op.Attr("linear_times_lr", false);  // what LinearAccumulator holds
  op.Attr("penalty_offset", 1e-10);   // keeps both penalties away from zero
  op.Inplace("SquaredAccumulator", "SquaredAccumOut");
  op.Inplace("LinearAccumulator", "LinearAccumOut").InferShape(InferFtrl);
  op.Kernels<UpdateBy<Ftrl>::Kernel, float, double, float16, bfloat16>();
}
