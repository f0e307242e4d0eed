// Update operators of variables: dense ones take a gradient of the variable's shape, sparse ones
// rows of it, one after another.
//
// A rule is a template over the type that it computes in:
//
//   template <typename T>
//   struct Momentum {
//     static constexpr TfApplySlot kSlots[] = {{"var", kState, "var_out"}, …};      in TensorFlow's
//     order Momentum(const T* a, const OpContext& ctx);                        a: the scalars in
//     order void Step(T* s, T g) const;                                        s: the states in
//     order
//   };
#pragma once

#include <span>
#include <string>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/kernel_context.h"
#include "core/shape_context.h"
#include "kernels/base/check.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {

enum class TfApplyRole : uint8_t { kState, kScalar, kGrad };
struct TfApplySlot {
  Key key;
  TfApplyRole role;
  Key out = "";  // of a state
};

namespace tf_apply {

inline constexpr TfApplyRole kState = TfApplyRole::kState;
inline constexpr TfApplyRole kScalar = TfApplyRole::kScalar;
inline constexpr TfApplyRole kGrad = TfApplyRole::kGrad;

constexpr int Count(std::span<const TfApplySlot> slots, TfApplyRole role) {
  int n = 0;
  for (const TfApplySlot& s : slots) n += s.role == role ? 1 : 0;
  return n;
}

// Declares the slots and the outputs <state>_out, which are the states' own variables.
void Declare(OpDef& op, std::span<const TfApplySlot> slots, bool sparse);
// Checks shapes and dtypes, and gives each output its state's.
Status Infer(ShapeContext& ctx, std::span<const TfApplySlot> slots, bool sparse);

// The operands of one call. Outputs hold what the states held before.
struct Operands {
  std::array<void*, 5> state{};
  std::array<double, 8> scalar{};
  Tensor grad, indices;
  int64_t numel = 0, rows = 0, row = 0;  // of the variable
};
Status Gather(const KernelContext& ctx, std::span<const TfApplySlot> slots, bool sparse,
              Operands* operands);

// Steps of `n` elements from `to` of the states. A function by itself, so that the dense operator
// and the sparse one of a rule share its loop.
template <typename R, typename T>
[[gnu::noinline]] void Advance(const R& rule, const Operands& o, int64_t to, const T* grad,
                               int64_t n) {
  using C = ComputeType<T>;
  constexpr int kStates = Count(R::kSlots, kState);
  T* state[kStates];
  for (int k = 0; k < kStates; ++k) state[k] = static_cast<T*>(o.state[k]) + to;
  for (const auto part : Stretches(n))
#pragma GCC ivdep
    for (int64_t i = part.begin; i < part.end; ++i) {
      C s[kStates];
      for (int k = 0; k < kStates; ++k) s[k] = static_cast<C>(state[k][i]);
      rule.Step(s, static_cast<C>(grad[i]));
      for (int k = 0; k < kStates; ++k) state[k][i] = static_cast<T>(s[k]);
    }
}

template <template <typename> class Rule, typename T, bool kSparse>
Status Run(KernelContext& ctx) {
  using C = ComputeType<T>;
  using R = Rule<C>;
  constexpr int kScalars = Count(R::kSlots, kScalar);
  Operands o;
  HEDDLE_RETURN_IF_ERROR(Gather(ctx, R::kSlots, kSparse, &o));
  C scalars[kScalars + 1];
  for (int i = 0; i < kScalars; ++i) scalars[i] = static_cast<C>(o.scalar[i]);
  const R rule(scalars, ctx);
  const T* grad = o.grad.data<T>();
  if constexpr (kSparse) {
    for (const int64_t i : Watched(o.indices.numel()))
      Advance<R, T>(rule, o, IntAt(o.indices, i) * o.row, grad + i * o.row, o.row);
  } else {
    ctx.ParallelFor(o.numel, 1 << 14, [&](int64_t begin, int64_t end) {
      Advance<R, T>(rule, o, begin, grad + begin, end - begin);
    });
  }
  return Status::Ok();
}

template <template <typename> class Rule, bool kSparse>
OpDef& Define(OpDef& op, const char* doc) {
  Declare(op.Doc(doc), Rule<float>::kSlots, kSparse);
  op.InferShape([](ShapeContext& ctx) { return Infer(ctx, Rule<float>::kSlots, kSparse); });
  op.Kernel(DType::kF32, &Run<Rule, float, kSparse>);
  op.Kernel(DType::kF64, &Run<Rule, double, kSparse>);
  op.Kernel(DType::kF16, &Run<Rule, float16, kSparse>);
  return op.Kernel(DType::kBF16, &Run<Rule, bfloat16, kSparse>);
}

}  // namespace tf_apply
}  // namespace heddle
