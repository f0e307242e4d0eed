// Definitions of element-wise operators with two operands, from a functor.
#pragma once

#include <memory>

#include "core/shapes.h"
#include "kernels/base/broadcast.h"

namespace heddle {

// Names of the slots; an operator with other names has a struct like this one.
struct SlotsXY {
  static constexpr Key x() { return "X"; }
  static constexpr Key y() { return "Y"; }
  static constexpr Key out() { return "Out"; }
};

inline constexpr int64_t kElementGrain = 1 << 15;  // for a few cycles per element
inline constexpr int64_t kHeavyGrain = 1 << 12;    // for pow and the like

// The alignment attribute, -1 for operators without one.
inline int64_t AxisOf(const OpContext& ctx) {
  return ctx.def().FindAttr("axis") >= 0 ? ctx.Int("axis") : -1;
}

// F::Apply(a, b) in T's compute type; F::kGrain says how much work an element is.
template <typename F, typename T, typename Out>
struct BinaryLoop {
  using C = ComputeType<T>;
  static Out One(T a, T b) {
    return static_cast<Out>(F::Apply(static_cast<C>(a), static_cast<C>(b)));
  }
  static void VectorVector(const void* xv, const void* yv, void* ov, int64_t n, const void*) {
    const T* x = static_cast<const T*>(xv);
    const T* y = static_cast<const T*>(yv);
    Out* o = static_cast<Out*>(ov);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = One(x[i], y[i]);
  }
  static void VectorScalar(const void* xv, const void* yv, void* ov, int64_t n, const void*) {
    const T* x = static_cast<const T*>(xv);
    const T y = *static_cast<const T*>(yv);
    Out* o = static_cast<Out*>(ov);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = One(x[i], y);
  }
  static void ScalarVector(const void* xv, const void* yv, void* ov, int64_t n, const void*) {
    const T x = *static_cast<const T*>(xv);
    const T* y = static_cast<const T*>(yv);
    Out* o = static_cast<Out*>(ov);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = One(x, y[i]);
  }
  // Small types are rare, and loops are what costs the compiler time: 16-bit floats have none,
  // other types of fewer than four bytes have one.
  static constexpr BinaryLoops MakeLoops() {
    if constexpr (std::is_same_v<T, C>) {
      constexpr bool kAll = sizeof(T) >= 4;
      return {{&VectorVector, kAll ? &VectorScalar : nullptr, kAll ? &ScalarVector : nullptr},
              sizeof(T),
              sizeof(Out),
              F::kGrain};
    } else {
      using WideOut = std::conditional_t<std::is_same_v<Out, T>, C, Out>;
      return {{},         sizeof(T), sizeof(Out), F::kGrain, &BinaryLoop<F, C, WideOut>::kLoops,
              kDTypeOf<T>};
    }
  }
  static constexpr BinaryLoops kLoops = MakeLoops();
};

// The operands are those at the first places, where no name has to be looked up for them.
template <typename Slots>
bool OperandsLead(const OpContext& ctx) {
  const BoundOp& op = ctx.op();
  const auto &ins = ctx.def().inputs(), &outs = ctx.def().outputs();
  return ins.size() >= 2 && ins[0].name == Slots::x().name && ins[1].name == Slots::y().name &&
         outs[0].name == Slots::out().name && op.in_begin[1] == 1 && op.in_begin[2] == 2 &&
         op.out_begin[1] == 1 && op.out[0] != kNoSlot;
}

// Prepare for operators with X, Y and perhaps an axis.
template <typename Slots>
Result<std::unique_ptr<KernelState>> PrepareBroadcast(PrepareContext& ctx) {
  auto state = std::make_unique<BroadcastState>();
  state->leading = OperandsLead<Slots>(ctx);
  HEDDLE_ASSIGN_OR_RETURN(state->plan, MakeBroadcastPlan(ctx.InShape(Slots::x()),
                                                         ctx.InShape(Slots::y()), AxisOf(ctx)));
  return std::unique_ptr<KernelState>(std::move(state));
}

// The plan made by PrepareBroadcast, or one made now in `*local`.
template <typename Slots>
Result<const BroadcastPlan*> PlanOf(const KernelContext& ctx, BroadcastPlan* local) {
  if (ctx.has_state()) return &ctx.State<BroadcastState>().plan;
  HEDDLE_ASSIGN_OR_RETURN(*local, MakeBroadcastPlan(ctx.In(Slots::x()).shape(),
                                                    ctx.In(Slots::y()).shape(), AxisOf(ctx)));
  return local;
}

Status CheckSameDType(const KernelContext& ctx, const Tensor& x, const Tensor& y);
// A real and a complex operand: both are taken as complex. Anything else is an error.
Status RunMixed(const KernelContext& ctx, const Tensor& x, const Tensor& y);
// The dtype of x and y together: x's, or complex when one of them is.
DType PromotedDType(DType x, DType y);

// Operands of several dtypes or ranks, or many elements. Without a state, equal shapes need no
// plan.
template <typename Slots>
[[gnu::noinline]] Status RunAnyBinary(KernelContext& ctx, const BinaryLoops& loops,
                                      const void* arg) {
  const auto* const state = ctx.has_state() ? &ctx.State<BroadcastState>() : nullptr;
  const Tensor &x = ctx.In(Slots::x()), &y = ctx.In(Slots::y());
  Tensor& out = ctx.Out(Slots::out());
  if (x.dtype() != y.dtype()) [[unlikely]]
    return RunMixed(ctx, x, y);
  if (state != nullptr) {
    const BroadcastPlan& plan = state->plan;
    if (plan.rank == 1 && plan.numel > 0 && plan.numel <= loops.grain)
      loops.Run(plan.inner, x.raw(), y.raw(), out.mutable_raw(), plan.numel, arg);
    else
      RunBinary(ctx, plan, loops, x.raw(), y.raw(), out.mutable_raw(), arg);
    return Status::Ok();
  }
  if (const int64_t n = x.numel(); n <= loops.grain && x.shape() == y.shape()) {
    if (n > 0) loops.Run(InnerKind::kVectorVector, x.raw(), y.raw(), out.mutable_raw(), n, arg);
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                          MakeBroadcastPlan(x.shape(), y.shape(), AxisOf(ctx)));
  RunBinary(ctx, plan, loops, x.raw(), y.raw(), out.mutable_raw(), arg);
  return Status::Ok();
}

// Runs `loops` over the operands: few elements in a row without a further call.
template <typename Slots>
Status RunBinaryOp(KernelContext& ctx, const BinaryLoops& loops, const void* arg = nullptr) {
  const auto* const state = ctx.has_state() ? &ctx.State<BroadcastState>() : nullptr;
  if (state == nullptr || !state->leading) return RunAnyBinary<Slots>(ctx, loops, arg);
  const BroadcastPlan& plan = state->plan;
  const Tensor& x = ctx.frame()[ctx.op().in[0]]->tensor();
  const Tensor& y = ctx.frame()[ctx.op().in[1]]->tensor();
  if (x.dtype() != y.dtype() || plan.rank != 1 || plan.numel <= 0 || plan.numel > loops.grain)
    return RunAnyBinary<Slots>(ctx, loops, arg);
  loops.Run(plan.inner, x.raw(), y.raw(), ctx.frame()[ctx.op().out[0]]->tensor().mutable_raw(),
            plan.numel, arg);
  return Status::Ok();
}

// Out of the broadcast shape; of X's dtype, or of `dtype`.
Status BroadcastOut(ShapeContext& ctx, Key x, Key y, Key out, DType dtype);
template <typename Slots>
Status InferBinary(ShapeContext& ctx) {
  return BroadcastOut(ctx, Slots::x(), Slots::y(), Slots::out(),
                      PromotedDType(ctx.InDType(Slots::x()), ctx.InDType(Slots::y())));
}
template <typename Slots>
Status InferPredicate(ShapeContext& ctx) {
  return BroadcastOut(ctx, Slots::x(), Slots::y(), Slots::out(), DType::kBool);
}

// out = F(x, y) for each T, results of T.
template <typename F, typename Slots, typename... Ts>
void BinaryKernels(OpDef& op) {
  op.InferShape(&InferBinary<Slots>).Prepare(&PrepareBroadcast<Slots>);
  (op.Kernel(
       kDTypeOf<Ts>,
       [](KernelContext& ctx) { return RunBinaryOp<Slots>(ctx, BinaryLoop<F, Ts, Ts>::kLoops); }),
   ...);
}

// elementwise_*: X, Y, axis -> Out.
template <typename F, typename... Ts>
void DefineElementwise(OpDef& op, const char* doc) {
  op.Doc(doc).Input("X").Input("Y").Output("Out").Attr("axis", -1);
  op.Inplace("X", "Out").Inplace("Y", "Out").Traits(kBroadcasts);
  BinaryKernels<F, SlotsXY, Ts...>(op);
}

// Comparisons and the like: the result is bool.
template <typename F, typename... Ts>
void DefinePredicate(OpDef& op, const char* doc) {
  op.Doc(doc).Input("X").Input("Y").Output("Out").Attr("axis", -1);
  op.InferShape(&InferPredicate<SlotsXY>).Prepare(&PrepareBroadcast<SlotsXY>);
  (op.Kernel(kDTypeOf<Ts>,
             [](KernelContext& ctx) {
               return RunBinaryOp<SlotsXY>(ctx, BinaryLoop<F, Ts, bool>::kLoops);
             }),
   ...);
}

}  // namespace heddle
