// Gradients of broadcasting operators: an element-wise part, summed back to a repeated operand.
#pragma once

#include "core/shapes.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_op.h"
#include "kernels/folds/reduce.h"

namespace heddle {

enum GradUses : unsigned { kUsesX = 1, kUsesY = 2, kUsesOut = 4 };

// The operands of an element-wise gradient; pointers it does not use may be null.
struct GradInputs {
  const void* x = nullptr;
  const void* y = nullptr;
  const void* out = nullptr;
  const void* dout = nullptr;
};

// d[i] for a row: x and y point at the row's first element, out and dout too. With `wide` set,
// operands of the 16-bit type `stored` are converted for those loops.
struct GradLoops {
  using Fn = void (*)(const GradInputs& in, void* d, int64_t n, double arg);
  Fn fn[3];  // by InnerKind; nullptr without `wide`: the gradient is dout itself
  uint32_t size;
  int64_t grain;
  unsigned uses = 0;  // GradUses; other operands may have no memory
  const GradLoops* wide = nullptr;
  DType stored = DType::kUnknown;
};

// d = loops(x, y, out, dout), added up over the dimensions in which that operand is repeated. `d`
// may share memory with dout when the operand is not repeated.
void RunBinaryGrad(const KernelContext& ctx, const BroadcastPlan& plan, const GradLoops& loops,
                   const GradInputs& in, DType dtype, Tensor* d, bool of_x, double arg = 0);

// F::Apply(x, y, out, dout, arg), F::kUses says what is read.

template <typename F, typename T>
struct GradLoop {
  using C = ComputeType<T>;
  template <InnerKind kKind>
  static void Run(const GradInputs& in, void* dv, int64_t n, double arg) {
    const T* x = static_cast<const T*>(in.x);
    const T* y = static_cast<const T*>(in.y);
    const T* out = static_cast<const T*>(in.out);
    const T* dout = static_cast<const T*>(in.dout);
    T* d = static_cast<T*>(dv);
    constexpr int64_t xs = kKind == InnerKind::kScalarVector ? 0 : 1;
    constexpr int64_t ys = kKind == InnerKind::kVectorScalar ? 0 : 1;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      d[i] = static_cast<T>(F::Apply(Load<kUsesX>(x, i * xs), Load<kUsesY>(y, i * ys),
                                     Load<kUsesOut>(out, i), static_cast<C>(dout[i]), arg));
  }
  template <GradUses kUse>
  static C Load(const T* p, int64_t i) {
    if constexpr ((F::kUses & kUse) != 0)
      return static_cast<C>(p[i]);
    else
      return C{};
  }
  static constexpr GradLoops MakeLoops() {
    if constexpr (std::is_same_v<T, C>)
      return {{&Run<InnerKind::kVectorVector>, &Run<InnerKind::kVectorScalar>,
               &Run<InnerKind::kScalarVector>},
              sizeof(T),
              kElementGrain,
              F::kUses};
    else
      return {{}, sizeof(T), kElementGrain, F::kUses, &GradLoop<F, C>::kLoops, kDTypeOf<T>};
  }
  static constexpr GradLoops kLoops = MakeLoops();
};

// The gradient that just hands dout on.
struct PassGrad {
  template <typename T>
  static constexpr GradLoops Loops() {
    return {{nullptr, nullptr, nullptr}, sizeof(T), kElementGrain};
  }
};
template <typename F, typename T>
constexpr GradLoops LoopsOf() {
  if constexpr (std::is_same_v<F, PassGrad>)
    return PassGrad::Loops<T>();
  else
    return GradLoop<F, T>::kLoops;
}

struct MulGradX {
  static constexpr unsigned kUses = kUsesY;
  template <typename T>
  static T Apply(T, T y, T, T dout, double) {
    return MulFn::Apply(dout, Conj(y));
  }
};

struct MulGradY {
  static constexpr unsigned kUses = kUsesX;
  template <typename T>
  static T Apply(T x, T, T, T dout, double) {
    return MulFn::Apply(dout, Conj(x));
  }
};

// X@GRAD and Y@GRAD of X, Y and Out@GRAD (and Out, where a functor uses it). Y first: X@GRAD may
// take over the memory of Out@GRAD.
Status RunGradOp(KernelContext& ctx, const GradLoops& of_x, const GradLoops& of_y, bool uses_out);

void DefineGradSlots(OpDef& op, unsigned uses, bool has_axis);

template <typename FX, typename FY, typename... Ts>
void DefineElementwiseGrad(OpDef& op, unsigned uses, bool has_axis = true) {
  DefineGradSlots(op, uses, has_axis);
  op.InferShape(&GradLikeInputs).Prepare(&PrepareBroadcast<SlotsXY>);
  static_assert(sizeof...(Ts) > 0);
  const bool uses_out = (uses & kUsesOut) != 0;
  if (uses_out)
    (op.Kernel(kDTypeOf<Ts>,
               [](KernelContext& ctx) {
                 return RunGradOp(ctx, LoopsOf<FX, Ts>(), LoopsOf<FY, Ts>(), true);
               }),
     ...);
  else
    (op.Kernel(kDTypeOf<Ts>,
               [](KernelContext& ctx) {
                 return RunGradOp(ctx, LoopsOf<FX, Ts>(), LoopsOf<FY, Ts>(), false);
               }),
     ...);
}

}  // namespace heddle
