// Steps of fused loops (core/tile_ops.h) from functors: the same ones that the operators' own
// kernels call for each element, so that fused results are the same.
//
//   HEDDLE_TILE(tanh) { return UnaryTile<Tanh>(); }
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "core/kernel_context.h"
#include "core/tile_ops.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/unary.h"

namespace heddle {

namespace tile_internal {

template <typename M, typename T, size_t... I>
void Loop(const TileStep& step, std::byte* const* at, int64_t n, std::index_sequence<I...>) {
  alignas(M) std::byte bytes[sizeof(M)];
  std::memcpy(bytes, step.args, sizeof(M));
  const M m = *reinterpret_cast<const M*>(bytes);
  const T* const x[] = {reinterpret_cast<const T*>(at[step.in[I]])...};
  T* const y = reinterpret_cast<T*>(at[step.out]);
  n &= -TileStep::kGroup;  // tells the compiler
  if constexpr (requires { m.All(x[0], n, y); })
    if (m.All(x[0], n, y)) return;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(m(x[I][i]...));
}

template <typename M, typename T, int kOperands>
void Run(const TileStep& step, std::byte* const* at, int64_t n) {
  Loop<M, T>(step, at, n, std::make_index_sequence<kOperands>());
}

}  // namespace tile_internal

// y = m(x…) with `kOperands` operands; `grain` elements are worth a thread of their own.
template <typename T, int kOperands, typename M>
Status SetTile(const M& m, int64_t grain, TileStep* step) {
  static_assert(std::is_trivially_copyable_v<M> && sizeof(M) <= TileStep::kArgBytes &&
                alignof(M) <= alignof(double) && kOperands <= TileStep::kMaxIn);
  step->fn = &tile_internal::Run<M, T, kOperands>;
  step->work = 1 / static_cast<float>(grain);
  std::memcpy(step->args, &m, sizeof(M));
  return Status::Ok();
}

// A map (unary_map.h) as a step.
template <typename M, typename T>
Status MakeMapTile(const KernelContext& attrs, TileStep* step) {
  return SetTile<T, unary_internal::kIn<M>>(unary_internal::Make<M>(attrs), M::kGrain, step);
}
template <typename M>
TileOp MapTile() {
  static_assert(unary_internal::kOut<M> == 1);
  return {unary_internal::kIn<M>, &MakeMapTile<M, float>, &MakeMapTile<M, double>};
}
template <typename F>
TileOp UnaryTile() {
  return MapTile<ForwardMap<F>>();
}
template <typename F>
TileOp UnaryGradTile() {
  return MapTile<GradMap<F>>();
}

// Two maps of the same slots, of which attribute kAttr of type bool chooses.
template <typename Which, typename Set, typename Unset>
struct EitherMap {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      return ctx.Bool(Which::kAttr) ? RunMap<Set, T>(ctx) : RunMap<Unset, T>(ctx);
    }
  };
  template <typename T>
  static Status MakeTile(const KernelContext& attrs, TileStep* step) {
    return attrs.Bool(Which::kAttr) ? MakeMapTile<Set, T>(attrs, step)
                                    : MakeMapTile<Unset, T>(attrs, step);
  }
  static TileOp Tile() { return {unary_internal::kIn<Set>, &MakeTile<float>, &MakeTile<double>}; }
};
// The gradient of F, or with the attribute another map of the same slots.
template <typename Which, typename Set, typename F, typename... MoreTypes>
OpDef& DefineGradOr(OpDef& op) {
  using Either = EitherMap<Which, Set, GradMap<F>>;
  DefineUnaryGrad<F, MoreTypes...>(op).Attr(Which::kAttr.name, false);
  return op.template Kernels<Either::template Kernel, float, double, float16, bfloat16>();
}

// F::Apply(x, y), the operands broadcast.
template <typename F>
struct BinaryStep {
  template <typename T>
  T operator()(T x, T y) const {
    return F::Apply(x, y);
  }
  template <typename T>
  static Status Make(const KernelContext&, TileStep* step) {
    return SetTile<T, 2>(BinaryStep(), F::kGrain, step);
  }
  // Operand kOne is one value.
  template <typename T, int kOne>
  static void Repeat(const TileStep& step, std::byte* const* at, int64_t n) {
    const T one = *reinterpret_cast<const T*>(at[step.in[kOne]]);
    const T* const x = reinterpret_cast<const T*>(at[step.in[1 - kOne]]);
    T* const y = reinterpret_cast<T*>(at[step.out]);
    n &= -TileStep::kGroup;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = kOne == 0 ? F::Apply(one, x[i]) : F::Apply(x[i], one);
  }
};
template <typename F>
TileOp BinaryTile() {
  using Step = BinaryStep<F>;
  return {2,
          &Step::template Make<float>,
          &Step::template Make<double>,
          {&Step::template Repeat<float, 0>, &Step::template Repeat<float, 1>},
          {&Step::template Repeat<double, 0>, &Step::template Repeat<double, 1>}};
}

}  // namespace heddle
