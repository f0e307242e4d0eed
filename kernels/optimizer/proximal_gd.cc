// Proximal steps: a step of descent, then shrinking towards 0 by l1 and l2.
#include <algorithm>

#include "core/shape_context.h"
#include "kernels/optimizer/update_rule.h"

namespace heddle {
namespace {

Status ProximalShape(ShapeContext& ctx) { return InferUpdate(ctx, {{"Param", "ParamOut"}}); }
Status ProximalAdagradShape(ShapeContext& ctx) {
  return InferUpdate(ctx, {{"Param", "ParamOut"}, {"Moment", "MomentOut"}});
}

template <typename C>
struct Penalties {
  static Penalties Of(const KernelContext& ctx) {
    return {NumberOr<C>(ctx, "L1Tensor", "l1"), NumberOr<C>(ctx, "L2Tensor", "l2")};
  }
  C Shrunk(C step, C lr) const {
    const C size = l1 > 0 ? std::max(std::abs(step) - lr * l1, C(0)) : std::abs(step);
    return std::copysign(size, step) / (C(1) + lr * l2);
  }
  C l1, l2;
};

template <typename C>
struct ProximalGd {
  static constexpr KeyPair kStates[] = {{"Param", "ParamOut"}};
  static constexpr bool kLazy = true;
  static Result<ProximalGd> Of(const KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const C lr, RateOf<C>(ctx));
    return ProximalGd{lr, Penalties<C>::Of(ctx)};
  }
  void Step(C* s, C g) const { s[0] = penalties.Shrunk(s[0] - lr * g, lr); }
  C lr;
  Penalties<C> penalties;
};

template <typename C>
struct ProximalAdagrad {
  static constexpr KeyPair kStates[] = {{"Param", "ParamOut"}, {"Moment", "MomentOut"}};
  static constexpr bool kLazy = true;
  static Result<ProximalAdagrad> Of(const KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const C lr, RateOf<C>(ctx));
    return ProximalAdagrad{lr, Penalties<C>::Of(ctx)};
  }
  void Step(C* s, C g) const {
    s[1] += g * g;
    const C rate = lr / std::sqrt(s[1]);
    s[0] = penalties.Shrunk(s[0] - rate * g, rate);
  }
  C lr;
  Penalties<C> penalties;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(proximal_gd) {
  DeclareRowUpdate(op).Doc("gradient descent with l1 and l2 penalties");
  op.Input("L1Tensor", kOptional).Input("L2Tensor", kOptional).Attr("l1", 0.0).Attr("l2", 0.0);
  op.InferShape(ProximalShape);
  op.Kernels<UpdateBy<ProximalGd>::Kernel, float, double, float16, bfloat16>();
}
HEDDLE_OP(proximal_adagrad) {
  DeclareRowUpdate(op).Doc("adagrad with l1 and l2 penalties").Input("Moment");
  op.Input("L1Tensor").Input("L2Tensor").Output("MomentOut").Inplace("Moment", "MomentOut");
  op.InferShape(ProximalAdagradShape);
  op.Kernels<UpdateBy<ProximalAdagrad>::Kernel, float, double, float16, bfloat16>();
}
