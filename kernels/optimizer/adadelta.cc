// adadelta: steps scaled by the ratio of past updates to past gradients (Zeiler, 2012).
#include "core/operands/slot_kinds.h"
#include "core/shape_context.h"
#include "kernels/optimizer/update_rule.h"

namespace heddle {
namespace {

Status InferAdadelta(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(ctx, {{"Param", "ParamOut"},
                                           {"AvgSquaredGrad", "AvgSquaredGradOut"},
                                           {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename C>
struct Adadelta {
  static constexpr KeyPair kStates[] = {{"Param", "ParamOut"},
                                        {"AvgSquaredGrad", "AvgSquaredGradOut"},
                                        {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}};
  static constexpr bool kMasters = true;
  static constexpr bool kLazy = false;
  static Result<Adadelta> Of(const KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const C lr, RateOf<C>(ctx));
    return Adadelta{lr, NumberOr<C>(ctx, "RhoTensor", "rho"),
                    NumberOr<C>(ctx, "EpsilonTensor", "epsilon")};
  }
  C Move(C* s, C g) const {
    s[1] = rho * s[1] + (C(1) - rho) * g * g;
    const C update = -std::sqrt((s[2] + epsilon) / (s[1] + epsilon)) * g;
    s[2] = rho * s[2] + (C(1) - rho) * update * update;
    return lr * update;
  }
  void Step(C* s, C g) const { s[0] += Move(s, g); }
  C lr, rho, epsilon;
};

// With multi_precision, a master copy of Param's dtype takes the same steps.
template <typename C>
struct AdadeltaWithMaster : Adadelta<C> {
  static constexpr bool kMasters = false;  // it is a state
  static constexpr KeyPair kStates[] = {{"Param", "ParamOut"},
                                        {"AvgSquaredGrad", "AvgSquaredGradOut"},
                                        {"AvgSquaredUpdate", "AvgSquaredUpdateOut"},
                                        {"MasterParam", "MasterParamOut"}};
  void Step(C* s, C g) const {
    const C by = this->Move(s, g);
    s[0] += by;
    s[3] += by;
  }
};

template <typename T>
struct RunAdadelta {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    HEDDLE_RETURN_IF_ERROR(CheckMasters(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const Adadelta<C> rule, Adadelta<C>::Of(ctx));
    const Tensor* held = ctx.Bool("multi_precision") ? ctx.InOpt("MasterParam") : nullptr;
    if (held != nullptr && ctx.HasOut("MasterParamOut") && held->numel() == ctx.In("Param").numel())
      return RunUpdate<T>(ctx, AdadeltaWithMaster<C>{rule});
    return RunUpdate<T>(ctx, rule);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(adadelta) {
  DeclareRowUpdate(op).Doc("steps scaled by the ratio of past updates to past gradients");
  op.Input("AvgSquaredGrad").Input("AvgSquaredUpdate").Input("MasterParam", kOptional);
  op.Input("RhoTensor", kOptional).Input("EpsilonTensor", kOptional);
  op.Output("AvgSquaredGradOut").Output("AvgSquaredUpdateOut").Output("MasterParamOut", kOptional);
  op.Attr("rho", 0.95f).Attr("epsilon", 1e-6f).Attr("multi_precision", false);
  op.Inplace("AvgSquaredGrad", "AvgSquaredGradOut");
  op.Inplace("AvgSquaredUpdate", "AvgSquaredUpdateOut").InferShape(InferAdadelta);
  op.Kernels<RunAdadelta, float, double, float16, bfloat16>();
}
