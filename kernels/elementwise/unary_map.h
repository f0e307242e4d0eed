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
// An absent input reads as zero, an absent output is dropped. With one output the functor returns
// T.
//
// A functor is made anew for every call, from the KernelContext when it has such a constructor
// (attributes); it must be cheap to make and free of state. Loops are written so that the compiler
// vectorises them: functors do not branch.
#pragma once

#include <algorithm>
#include <array>
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

inline constexpr int64_t kChunk = 512;  // elements converted or invented at a time

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

// Same-index only: inputs and outputs may be the same memory (in place), which ivdep promises.
template <typename M, typename T, size_t... I, size_t... O>
[[gnu::noinline]] void Loop(const M m, const T* const* in, T* const* out, int64_t n,
                            std::index_sequence<I...>, std::index_sequence<O...>) {
  const T* const x[] = {in[I]...};
  T* const y[] = {out[O]...};
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
void RunLoop(const M& m, const T* const* in, T* const* out, int64_t n) {
  if constexpr (requires { m.All(in[0], n, out[0]); })
    if (m.All(in[0], n, out[0])) return;
  Loop<M, T>(m, in, out, n, std::make_index_sequence<kIn<M>>(),
             std::make_index_sequence<kOut<M>>());
}

// Operands that are absent, or stored in 16 bits, go through buffers of a chunk.
template <typename M, typename T>
void RunChunked(const M& m, const T* const* in, T* const* out, int64_t begin, int64_t end) {
  using C = ComputeType<T>;
  C buffers[kIn<M> + kOut<M>][kChunk];
  const C* x[kIn<M>];
  C* y[kOut<M>];
  for (int64_t at = begin; at < end; at += kChunk) {
    const int64_t n = std::min(kChunk, end - at);
    for (int k = 0; k < kIn<M>; ++k) {
      for (int64_t i = 0; i < n; ++i) buffers[k][i] = in[k] ? static_cast<C>(in[k][at + i]) : C(0);
      x[k] = buffers[k];
    }
    for (int k = 0; k < kOut<M>; ++k) y[k] = buffers[kIn<M> + k];
    RunLoop<M, C>(m, x, y, n);
    for (int k = 0; k < kOut<M>; ++k)
      for (int64_t i = 0; out[k] != nullptr && i < n; ++i) out[k][at + i] = static_cast<T>(y[k][i]);
  }
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
  using namespace unary_internal;
  const T* in[kIn<M>];
  T* out[kOut<M>];
  int64_t n = 0;
  bool all = true;
  for (int k = 0; k < kIn<M>; ++k) {
    const Tensor* t = kIn<M> == 1 ? &ctx.In(M::kIns[k]) : ctx.InOpt(M::kIns[k]);
    in[k] = t ? t->data<T>() : nullptr;
    if (t)
      n = t->numel();
    else
      all = false;
  }
  for (int k = 0; k < kOut<M>; ++k) {
    Tensor* t = ctx.OutOpt(M::kOuts[k]);
    out[k] = t ? t->mutable_data<T>() : nullptr;
    all = all && t != nullptr;
  }
  const M m = unary_internal::Make<M>(ctx);
  ctx.ParallelFor(n, M::kGrain, [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, ComputeType<T>>) {
      if (all) [[likely]] {
        const T* x[kIn<M>];
        T* y[kOut<M>];
        for (int k = 0; k < kIn<M>; ++k) x[k] = in[k] + begin;
        for (int k = 0; k < kOut<M>; ++k) y[k] = out[k] + begin;
        return RunLoop<M, T>(m, x, y, end - begin);
      }
    }
    RunChunked<M, T>(m, in, out, begin, end);
  });
  return Status::Ok();
}

// A map from integers of one input to float32.
template <typename M, typename T>
Status RunIntegerMap(KernelContext& ctx) {
  using namespace unary_internal;
  const Tensor& x = ctx.In(M::kIns[0]);
  const T* in = x.data<T>();
  float* out = ctx.Out(M::kOuts[0]).template mutable_data<float>();
  const M m = Make<M>(ctx);
  ctx.ParallelFor(x.numel(), M::kGrain, [&](int64_t begin, int64_t end) {
    float buffer[kChunk];
    const float* source = buffer;
    for (int64_t at = begin; at < end; at += kChunk) {
      const int64_t n = std::min(kChunk, end - at);
      for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<float>(in[at + i]);
      float* target = out + at;
      RunLoop<M, float>(m, &source, &target, n);
    }
  });
  return Status::Ok();
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

// Slots, shapes and kernels of a map with several operands. Further inputs may be declared
// afterwards.
template <typename M, typename... MoreTypes>
OpDef& DefineMap(OpDef& op) {
  for (const Key& k : M::kIns) op.Input(k.name, unary_internal::kIn<M> == 1 ? 0u : kOptional);
  for (const Key& k : M::kOuts) op.Output(k.name, kOptional);
  op.InferShape(MapShape<M>);
  AddFloatKernels<M>(op);
  (op.Kernel(kDTypeOf<MoreTypes>, &RunMap<M, MoreTypes>), ...);
  return op;
}

}  // namespace heddle
