// The unary engine: element-wise operators with one input and their gradients, described by one
// functor:
//
//   struct Tanh : UnaryOp {
//     static constexpr GradReads kReads = kReadsOut;
//     template <typename T> T Forward(T x) const { return fast::Tanh(x); }
//     template <typename T> T Grad(T y, T dy) const { return dy * (T(1) - y * y); }
//   };
//   HEDDLE_OP(tanh) { DefineUnary<Tanh>(op, "tanh(x)"); }
//   HEDDLE_OP(tanh_grad) { DefineUnaryGrad<Tanh>(op); }
//
// Besides, a functor may have `bool Many(const float* x, int64_t n, float* y) const`, which
// computes Forward of n elements, or returns false.
//
// Gradients of gradients, with more operands, are maps: unary_map.h, which also says how functors
// are made and run.
#pragma once

#include "kernels/elementwise/unary_map.h"

namespace heddle {

// The operands of the gradient besides Out@GRAD: Grad(dy), Grad(x, dy) or Grad(y, dy).
enum GradReads { kReadsNothing, kReadsX, kReadsOut };

template <typename F>
struct ForwardMap : F {
  using F::F;
  static constexpr Key kIns[] = {"X"};
  static constexpr Key kOuts[] = {"Out"};
  template <typename T>
  T operator()(T x) const {
    return F::Forward(x);
  }
  // All elements at once, where F knows a better loop than one that the compiler makes of Forward.
  bool All(const float* x, int64_t n, float* y) const requires requires(const F& f) {
    f.Many(x, n, y);
  }
  { return F::Many(x, n, y); }
};

template <typename F, GradReads kReads = F::kReads>
struct GradMap;
template <typename F>
struct GradMap<F, kReadsNothing> : F {
  using F::F;
  static constexpr Key kIns[] = {"Out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD"};
  template <typename T>
  T operator()(T dy) const {
    return F::Grad(dy);
  }
};
template <typename F>
struct GradMap<F, kReadsX> : F {
  using F::F;
  static constexpr Key kIns[] = {"X", "Out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD"};
  template <typename T>
  T operator()(T x, T dy) const {
    return F::Grad(x, dy);
  }
};
template <typename F>
struct GradMap<F, kReadsOut> : F {
  using F::F;
  static constexpr Key kIns[] = {"Out", "Out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD"};
  template <typename T>
  T operator()(T y, T dy) const {
    return F::Grad(y, dy);
  }
};
template <typename F, typename... MoreTypes>
OpDef& DefineUnary(OpDef& op, const char* doc) {
  op.Doc(doc).Input("X").Output("Out").Inplace("X", "Out").InferShape(SameShape);
  op.Traits(kElementwise);
  AddFloatKernels<ForwardMap<F>>(op);
  (op.Kernel(kDTypeOf<MoreTypes>, &RunMap<ForwardMap<F>, MoreTypes>), ...);
  return op;
}

// DefineUnary for operators that turn integers into float32.
template <typename F, typename... MoreTypes>
OpDef& DefineFloatUnary(OpDef& op, const char* doc) {
  DefineUnary<F, MoreTypes...>(op, doc).InferShape(FloatShape);
  op.Kernel(DType::kI32, &RunIntegerMap<ForwardMap<F>, int32_t>);
  return op.Kernel(DType::kI64, &RunIntegerMap<ForwardMap<F>, int64_t>);
}

template <typename F, typename... MoreTypes>
OpDef& DefineUnaryGrad(OpDef& op) {
  using M = GradMap<F>;
  for (const Key& k : M::kIns) op.Input(k.name);
  op.Output("X@GRAD").Inplace("Out@GRAD", "X@GRAD").InferShape(MapShape<M>);
  AddFloatKernels<M>(op);
  (op.Kernel(kDTypeOf<MoreTypes>, &RunMap<M, MoreTypes>), ...);
  return op;
}

}  // namespace heddle
