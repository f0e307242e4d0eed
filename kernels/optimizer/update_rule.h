// One loop for the optimizers whose step is a function of one element: its gradient, and what the
// parameter and its companions (the states) were before.
//
// A rule is a template over the type that it computes in:
//
//   template <typename C>
//   struct Adagrad {
//     static constexpr KeyPair kStates[] = {{"Param", "ParamOut"}, {"Moment", "MomentOut"}};
//     static constexpr bool kLazy = true;     // rows without a gradient stay as they are
//     static constexpr bool kMasters = true;  // where MasterParam is handed on
//     static Result<Adagrad> Of(const KernelContext& ctx);
//     void Step(C* s, C g) const;             // s: the states in order
//   };
//
// Rows that repeat in a sparse gradient are added up before the step. With the attribute each_row,
// each row of Grad that GradRows names is a step of its own, one after another, and other rows stay
// as they are.
#pragma once

#include <array>
#include <cmath>
#include <iterator>

#include "core/kernel_context.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {

template <typename Rule>
inline constexpr size_t kStatesOf = std::size(Rule::kStates);

// A number that an operand or else an attribute gives, in the type C.
template <typename C>
C NumberOr(const KernelContext& ctx, Key operand, Key attr) {
  return static_cast<C>(ScalarOr(ctx, operand, attr));
}
template <typename C>
Result<C> RateOf(const KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const double rate, ScalarOf(ctx, "LearningRate"));
  return static_cast<C>(rate);
}

// Whether MasterParam is handed on as it is.
template <typename Rule>
inline constexpr bool kHasMasters = [] {
  if constexpr (requires { Rule::kMasters; })
    return Rule::kMasters;
  else
    return false;
}();

// Steps of n elements. A function by itself: the loop is the same for whole gradients and for rows.
// It has a copy of the rule, which stores to the states cannot change: its numbers stay in
// registers.
template <typename Rule, typename T, size_t kStates>
[[gnu::noinline]] void StepAll(Rule rule, const std::array<const T*, kStates>& in,
                               const std::array<T*, kStates>& out, int64_t at, int64_t n,
                               const T* g) {
  using C = ComputeType<T>;
  const T* from[kStates];
  T* to[kStates];
  for (size_t k = 0; k < kStates; ++k) {
    from[k] = in[k] + at;
    to[k] = out[k] + at;
  }
  for (const auto part : Stretches(n))
#pragma GCC ivdep
    for (int64_t i = part.begin; i < part.end; ++i) {
      C s[kStates];
      for (size_t k = 0; k < kStates; ++k) s[k] = static_cast<C>(from[k][i]);
      rule.Step(s, static_cast<C>(g[i]));
      for (size_t k = 0; k < kStates; ++k) to[k][i] = static_cast<T>(s[k]);
    }
}

// The update of a rule that is known.
template <typename T, typename Rule>
Status RunUpdate(KernelContext& ctx, const Rule& rule) {
  constexpr size_t kStates = kStatesOf<Rule>;
  const Tensor& param = ctx.In(Rule::kStates[0].in);
  HEDDLE_ASSIGN_OR_RETURN(auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, Rule::kLazy));
  std::array<const T*, kStates> in;
  std::array<T*, kStates> out;
  for (size_t k = 0; k < kStates; ++k) {
    const KeyPair& state = Rule::kStates[k];
    if (ctx.In(state.in).numel() != param.numel())
      return InvalidArgument(state.in.name, " ", ctx.In(state.in).shape().ToString(),
                             " must have as many elements as Param ", param.shape().ToString());
    grad.KeepFrom(ctx.Out(state.out).raw());
    if (grad.keeps_rest()) CopyWhenApart(ctx.In(state.in), ctx.Out(state.out));
    out[k] = ctx.Out(state.out).template mutable_data<T>();
    in[k] = grad.keeps_rest() ? out[k] : ctx.In(state.in).template data<T>();
  }
  grad.ForEach(ctx, [&](int64_t at, int64_t n, const T* g) {
    StepAll<Rule, T, kStates>(rule, in, out, at, n, g);
  });
  if constexpr (kHasMasters<Rule>) KeepMasters(ctx);
  return Status::Ok();
}

// op.Kernels<UpdateBy<Rule>::Kernel, …>
template <template <typename> class Rule>
struct UpdateBy {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      if constexpr (kHasMasters<Rule<ComputeType<T>>>) HEDDLE_RETURN_IF_ERROR(CheckMasters(ctx));
      HEDDLE_ASSIGN_OR_RETURN(const auto rule, Rule<ComputeType<T>>::Of(ctx));
      return RunUpdate<T>(ctx, rule);
    }
  };
};

}  // namespace heddle
