#include "core/operands/slot_kinds.h"
#include "core/shape_context.h"
#include "kernels/optimizer/update_rule.h"

namespace heddle {
namespace {

Status InferRmsprop(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(ctx, {{"Param", "ParamOut"},
                                           {"Moment", "MomentOut"},
                                           {"MeanSquare", "MeanSquareOut"},
                                           {"MeanGrad", "MeanGradOut"}}));
  if (ctx.Bool("centered") && (!ctx.HasIn("MeanGrad") || !ctx.HasOut("MeanGradOut")))
    return InvalidArgument("centered RMSProp needs MeanGrad and MeanGradOut");
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename C>
struct Rmsprop {
  static constexpr KeyPair kStates[] = {
      {"Param", "ParamOut"}, {"MeanSquare", "MeanSquareOut"}, {"Moment", "MomentOut"}};
  static constexpr bool kMasters = true;
  static constexpr bool kLazy = false;
  static Result<Rmsprop> Of(const KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const C lr, RateOf<C>(ctx));
    return Rmsprop{lr, NumberOr<C>(ctx, "DecayTensor", "decay"),
                   NumberOr<C>(ctx, "EpsilonTensor", "epsilon"),
                   NumberOr<C>(ctx, "MomentumTensor", "momentum")};
  }
  void Move(C* s, C g, C size) const {
    s[2] = momentum * s[2] + lr * g / std::sqrt(size + epsilon);
    s[0] -= s[2];
  }
  void Step(C* s, C g) const {
    s[1] = rho * s[1] + (C(1) - rho) * g * g;
    Move(s, g, s[1]);
  }
  C lr, rho, epsilon, momentum;
};

template <typename C>
struct CenteredRmsprop : Rmsprop<C> {
  static constexpr KeyPair kStates[] = {{"Param", "ParamOut"},
                                        {"MeanSquare", "MeanSquareOut"},
                                        {"Moment", "MomentOut"},
                                        {"MeanGrad", "MeanGradOut"}};
  void Step(C* s, C g) const {
    const C rho = this->rho;
    s[1] = rho * s[1] + (C(1) - rho) * g * g;
    s[3] = rho * s[3] + (C(1) - rho) * g;
    this->Move(s, g, s[1] - s[3] * s[3]);
  }
};

template <typename T>
struct RunRmsprop {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    HEDDLE_RETURN_IF_ERROR(CheckMasters(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const Rmsprop<C> rule, Rmsprop<C>::Of(ctx));
    if (ctx.Bool("centered")) return RunUpdate<T>(ctx, CenteredRmsprop<C>{rule});
    HEDDLE_RETURN_IF_ERROR(RunUpdate<T>(ctx, rule));
    // Without centring the mean is only handed on.
    if (ctx.HasOut("MeanGradOut"))
      if (const Tensor* in = ctx.InOpt("MeanGrad")) CopyWhenApart(*in, ctx.Out("MeanGradOut"));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(rmsprop) {
  DeclareRowUpdate(op).Doc("momentum of gradients divided by their root mean square");
  op.Input("MeanSquare").Input("Moment").Input("MeanGrad", kOptional);
  op.Input("MasterParam", kOptional).Input("DecayTensor", kOptional);
  op.Input("EpsilonTensor", kOptional).Input("MomentumTensor", kOptional);
  op.Output("MomentOut").Output("MeanSquareOut").Output("MeanGradOut", kOptional);
  op.Output("MasterParamOut", kOptional).Attr("epsilon", 1e-10f).Attr("decay", 0.9f);
  op.Attr("momentum", 0.0).Attr("centered", false).Attr("multi_precision", false);
  op.Inplace("Moment", "MomentOut").Inplace("MeanSquare", "MeanSquareOut");
  op.Inplace("MeanGrad", "MeanGradOut").InferShape(InferRmsprop);
  op.Kernels<RunRmsprop, float, double, float16, bfloat16>();
}
