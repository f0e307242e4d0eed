// Steps scaled by running sums of squared gradients (Duchi et al., 2011).
#include "core/operands/slot_kinds.h"
#include "core/shape_context.h"
#include "kernels/optimizer/update_rule.h"

namespace heddle {
namespace {

Status InferMoment(ShapeContext& ctx) {
  return InferUpdate(ctx, {{"Param", "ParamOut"}, {"Moment", "MomentOut"}});
}

Status InferAdagrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferMoment(ctx));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

constexpr KeyPair kAdagradStates[] = {{"Param", "ParamOut"}, {"Moment", "MomentOut"}};

template <typename C>
struct Adagrad {
  static constexpr auto& kStates = kAdagradStates;
  static constexpr bool kMasters = true;
  static constexpr bool kLazy = true;
  static Result<Adagrad> Of(const KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const C lr, RateOf<C>(ctx));
    return Adagrad{lr, NumberOr<C>(ctx, "EpsilonTensor", "epsilon"), ctx.Bool("update_moment")};
  }
  void Step(C* s, C g) const {
    s[1] += update ? g * g : C(0);
    s[0] -= lr * g / (std::sqrt(s[1]) + epsilon);
  }
  C lr, epsilon;
  bool update;
};

template <typename C>
struct DecayedAdagrad {
  static constexpr auto& kStates = kAdagradStates;
  static constexpr bool kLazy = false;
  static Result<DecayedAdagrad> Of(const KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const C lr, RateOf<C>(ctx));
    return DecayedAdagrad{lr, static_cast<C>(ctx.Float("epsilon")),
                          static_cast<C>(ctx.Float("decay"))};
  }
  void Step(C* s, C g) const {
    s[1] = decay * s[1] + (C(1) - decay) * g * g;
    s[0] -= lr * g / (std::sqrt(s[1]) + epsilon);
  }
  C lr, epsilon, decay;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(adagrad) {
  DeclareRowUpdate(op).Doc("rate divided by the root of summed squared gradients");
  op.Input("Moment").Input("MasterParam", kOptional).Input("EpsilonTensor", kOptional);
  op.Output("MomentOut").Output("MasterParamOut", kOptional);
  op.Attr("epsilon", 1e-6f).Attr("multi_precision", false).Attr("update_moment", true);
  op.Inplace("Moment", "MomentOut").InferShape(InferAdagrad);
  op.Kernels<UpdateBy<Adagrad>::Kernel, float, double, float16, bfloat16>();
}

HEDDLE_OP(decayed_adagrad) {
  op.Doc("adagrad with a decaying mean of squares")
      .Input("Param")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("Moment")
      .Input("LearningRate")
      .Output("ParamOut")
      .Output("MomentOut")
      .Attr("decay", 0.95f)
      .Attr("epsilon", 1e-6f)
      .Inplace("Param", "ParamOut")
      .Inplace("Moment", "MomentOut")
      .InferShape(InferMoment)
      .Kernels<UpdateBy<DecayedAdagrad>::Kernel, float, double>();
}
