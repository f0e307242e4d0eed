// Element-wise operators over operands of one shape and dtype, each described by a functor with the
// names of its slots:
//
//   struct TanhGradGrad : UnaryOp {
//     static constexpr Key kIns[] = {"Out", "grad_out", "grad_x@GRAD"};
//     static constexpr Key kOuts[] = {"Out@GRAD", "grad_out@GRAD"};
//     template <typename T> std::array<T, 2> operator()(T y, T dy, T ddx) const;
//   };
//   HEDDLE_OP(tanh_grad_grad) { DefineMap<TanhGradGrad>(op); }
//
// An absent gradient reads as zero (MayBeAbsent), an absent output is dropped. With one output the
// functor returns T.
//
// A functor is made anew for every call, from the KernelContext when it has such a constructor
// (attributes); it must be cheap to make and free of state. Loops are written so that the compiler
// vectorises them: functors do not branch.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/shapes.h"

namespace heddle {

// Names for the lists of further types below.
using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

struct UnaryOp {
  // Elements a thread should get at least (≈ 50 µs of work): smaller for costly functors.
  static constexpr int64_t kGrain = 1 << 16;
  static void Declare(OpDef&) {}  // adds the attributes
};
// For functors that call the scalar library for each element.
struct SlowUnaryOp : UnaryOp {
  static constexpr int64_t kGrain = 1 << 12;
};

namespace unary_internal {

template <typename M>
inline constexpr int kIn = static_cast<int>(std::size(M::kIns));
template <typename M>
inline constexpr int kOut = static_cast<int>(std::size(M::kOuts));

template <typename M>
M Make(const KernelContext& ctx) {
  if constexpr (std::is_constructible_v<M, const KernelContext&>)
    return M(ctx);
  else
    return M();
}

// A map over elements, without its types: one function walks the operands of all maps, so that a
// functor costs the compiler no more than its loops.
struct ErasedMap {
  // Computes n elements. `functor` is a map, `in` and `out` are arrays of the type it computes in.
  using Loop = void (*)(const void* functor, const void* const* in, void* const* out, int64_t n);

  std::span<const Key> ins, outs;  // at most kMostOperands together
  int64_t grain;
  const void* functor;
  Loop loop;
  DType compute;     // of the loop
  DType stored_in;   // of the inputs, which are converted where it differs
  DType stored_out;  // of the outputs
};
inline constexpr size_t kMostOperands = 8;

// Runs a map over its context's operands, on the run's threads.
Status RunErasedMap(KernelContext& ctx, const ErasedMap& map);

// Same-index only: inputs and outputs may be the same memory (in place), which ivdep promises.
template <typename M, typename T, size_t... I, size_t... O>
void Loop(const M& m, const void* const* in, void* const* out, int64_t n, std::index_sequence<I...>,
          std::index_sequence<O...>) {
  const T* const x[] = {static_cast<const T*>(in[I])...};
  T* const y[] = {static_cast<T*>(out[O])...};
  if constexpr (requires { m.All(x[0], n, y[0]); })
    if (m.All(x[0], n, y[0])) return;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (sizeof...(O) == 1) {
      y[0][i] = static_cast<T>(m(x[I][i]...));
    } else {
      const auto r = m(x[I][i]...);
      ((y[O][i] = r[O]), ...);
    }
  }
}
template <typename M, typename T>
void ErasedLoop(const void* functor, const void* const* in, void* const* out, int64_t n) {
  const M m = *static_cast<const M*>(functor);
  Loop<M, T>(m, in, out, n, std::make_index_sequence<kIn<M>>(),
             std::make_index_sequence<kOut<M>>());
}

// A map of operands of type In to results of type Out, computed in C.
template <typename M, typename C, typename In, typename Out>
Status RunMapIn(KernelContext& ctx) {
  static_assert(kIn<M> + kOut<M> <= kMostOperands);
  const M m = Make<M>(ctx);
  return RunErasedMap(ctx, {M::kIns, M::kOuts, M::kGrain, &m, &ErasedLoop<M, C>, kDTypeOf<C>,
                            kDTypeOf<In>, kDTypeOf<Out>});
}

}  // namespace unary_internal

// Checks that the first `operands` inputs, as far as present, have one shape and dtype, and gives
// these to every output.
Status SameShapes(ShapeContext& ctx, int operands);

// Like SameShape, but integers become float32.
Status FloatShape(ShapeContext& ctx);

// Cost of calling the scalar library once for each element.
double SlowMapCost(const ShapeContext& ctx);

template <typename M>
Status MapShape(ShapeContext& ctx) {
  return SameShapes(ctx, unary_internal::kIn<M>);
}

template <typename M, typename T>
Status RunMap(KernelContext& ctx) {
  return unary_internal::RunMapIn<M, ComputeType<T>, T, T>(ctx);
}

// A map from integers of one input to float32.
template <typename M, typename T>
Status RunIntegerMap(KernelContext& ctx) {
  return unary_internal::RunMapIn<M, float, T, float>(ctx);
}

template <typename M, typename... Ts>
OpDef& AddMapKernels(OpDef& op) {
  M::Declare(op);
  if (M::kGrain <= SlowUnaryOp::kGrain) op.Cost(SlowMapCost);
  (op.Kernel(kDTypeOf<Ts>, &RunMap<M, Ts>), ...);
  return op;
}
// float and double, and the 16-bit types through float.
template <typename M>
OpDef& AddFloatKernels(OpDef& op) {
  return AddMapKernels<M, float, double, float16, bfloat16>(op);
}

// Whether a map does without the operand: gradients, by their names, may be absent, values may not.
bool MayBeAbsent(std::string_view operand);

// Slots, shapes and kernels of a map with several operands. Further inputs may be declared
// afterwards.
template <typename M, typename... MoreTypes>
OpDef& DefineMap(OpDef& op) {
  for (const Key& k : M::kIns)
    op.Input(k.name, unary_internal::kIn<M> > 1 && MayBeAbsent(k.name) ? kOptional : 0u);
  for (const Key& k : M::kOuts) op.Output(k.name, kOptional);
  op.InferShape(MapShape<M>);
  AddFloatKernels<M>(op);
  (op.Kernel(kDTypeOf<MoreTypes>, &RunMap<M, MoreTypes>), ...);
  return op;
}

}  // namespace heddle
