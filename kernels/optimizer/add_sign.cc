// Steps that the signs of gradient and momentum change (Bello et al., 2017).
#include "core/shape_context.h"
#include "kernels/optimizer/update_rule.h"

namespace heddle {
namespace {

Status InferSigned(ShapeContext& ctx) {
  return InferUpdate(ctx, {{"Param", "ParamOut"}, {"Moment", "MomentOut"}});
}

// kPower: the factor of a step is base^(decay agreement), else base + decay agreement.
template <typename C, bool kPower>
struct SignedStep {
  static constexpr KeyPair kStates[] = {{"Param", "ParamOut"}, {"Moment", "MomentOut"}};
  static constexpr bool kLazy = true;
  static Result<SignedStep> Of(const KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const C lr, RateOf<C>(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const double base, ScalarOf(ctx, kPower ? "LogBase" : "Alpha"));
    HEDDLE_ASSIGN_OR_RETURN(const double decay, ScalarOf(ctx, "SignDecay"));
    HEDDLE_ASSIGN_OR_RETURN(const double beta, ScalarOf(ctx, "Beta"));
    return SignedStep{lr, static_cast<C>(base), static_cast<C>(decay), static_cast<C>(beta)};
  }
  static C Sign(C x) { return x > C(0) ? C(1) : x < C(0) ? C(-1) : C(0); }
  void Step(C* s, C g) const {
    s[1] = s[1] * beta + g * (C(1) - beta);
    const C agreement = Sign(g) * Sign(s[1]);
    if constexpr (kPower)
      s[0] -= lr * std::exp(base * decay * agreement) * g;
    else
      s[0] -= lr * (base + decay * agreement) * g;
  }
  C lr, base, decay, beta;
};
template <typename C>
using AddSign = SignedStep<C, false>;
template <typename C>
using PowerSign = SignedStep<C, true>;

void DeclareSigned(OpDef& op, const char* doc, const char* base) {
  DeclareUpdate(op).Doc(doc).Input("Moment").Input(base).Input("SignDecay").Input("Beta");
  op.Output("MomentOut").Inplace("Moment", "MomentOut").InferShape(InferSigned);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(add_sign) {
  DeclareSigned(op, "steps larger where gradient and momentum agree", "Alpha");
  op.Kernels<UpdateBy<AddSign>::Kernel, float, double, float16, bfloat16>();
}
HEDDLE_OP(power_sign) {
  DeclareSigned(op, "steps larger by a factor where gradient and momentum agree", "LogBase");
  op.Kernels<UpdateBy<PowerSign>::Kernel, float, double, float16, bfloat16>();
}
