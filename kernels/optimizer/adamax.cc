// adamax: Adam with the infinity norm (Kingma and Ba, 2015).
#include "core/operands/slot_kinds.h"
#include "core/shape_context.h"
#include "kernels/optimizer/update_rule.h"

namespace heddle {
namespace {

Status InferAdamax(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(
      ctx, {{"Param", "ParamOut"}, {"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename C>
struct Adamax {
  static constexpr KeyPair kStates[] = {
      {"Param", "ParamOut"}, {"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}};
  static constexpr bool kMasters = true;
  static constexpr bool kLazy = false;
  static Result<Adamax> Of(const KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const double pow1, ScalarOf(ctx, "Beta1Pow"));
    HEDDLE_ASSIGN_OR_RETURN(const C lr, RateOf<C>(ctx));
    const C epsilon = NumberOr<C>(ctx, "EpsilonTensor", "epsilon");
    const bool in_norm = ctx.Bool("epsilon_in_norm");
    return Adamax{lr / (C(1) - static_cast<C>(pow1)), NumberOr<C>(ctx, "Beta1Tensor", "beta1"),
                  NumberOr<C>(ctx, "Beta2Tensor", "beta2"), in_norm ? epsilon : C(0),
                  in_norm ? C(0) : epsilon};
  }
  void Step(C* s, C g) const {
    s[1] = beta1 * s[1] + (C(1) - beta1) * g;
    s[2] = std::max(std::abs(g), beta2 * s[2] + norm_epsilon);
    s[0] -= step * (s[1] / (s[2] + epsilon));
  }
  C step, beta1, beta2, norm_epsilon, epsilon;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(adamax) {
  DeclareUpdate(op).Doc("Adam with the infinity norm").Input("Moment").Input("InfNorm");
  op.Input("Beta1Pow").Input("MasterParam", kOptional).Input("Beta1Tensor", kOptional);
  op.Input("Beta2Tensor", kOptional).Input("EpsilonTensor", kOptional);
  op.Output("MomentOut").Output("InfNormOut").Output("MasterParamOut", kOptional);
  op.Attr("beta1", 0.9f).Attr("beta2", 0.999f).Attr("epsilon", 1e-8f);
  op.Attr("epsilon_in_norm", true);  // else it is added where the step is divided
  op.Attr("multi_precision", false).Inplace("Moment", "MomentOut");
  op.Inplace("InfNorm", "InfNormOut").InferShape(InferAdamax);
  op.Kernels<UpdateBy<Adamax>::Kernel, float, double, float16, bfloat16>();
}
