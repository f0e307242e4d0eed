// Definitions of reductions over chosen axes, from a functor.
#pragma once

#include <memory>
#include <span>

#include "core/error.h"
#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/binary_op.h"
#include "kernels/folds/reduce.h"
#include "kernels/folds/reduce_loops.h"
#include "kernels/operands/element_types.h"
#include "kernels/operands/operands.h"

namespace heddle {

// Bit i says that axis i is reduced. An empty list means all axes, or none.
Result<uint32_t> AxisMask(std::span<const int64_t> axes, bool all, int rank,
                          bool none_if_empty = false);
// X's shape without the reduced axes, or with ones in their place.
Shape ReducedShape(const Shape& x, uint32_t mask, bool keep_dim);

// The axes that attributes name, dim or axis and reduce_all, of an X of this rank.
Result<uint32_t> ReadReduceMask(const OpContext& ctx, int rank);

// Whether the operand Axes names the axes instead.
bool HasAxesOperand(const OpContext& ctx);
// The axes that the operand or the attributes name.
template <typename Context>
Result<uint32_t> ReducedAxes(const Context& ctx, int rank) {
  if (!HasAxesOperand(ctx)) return ReadReduceMask(ctx, rank);
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts given, IntsIn(ctx, "Axes"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts axes, NormalAxes(given, rank, "Axes"));
  return AxisMask(axes, false, rank, ctx.Str("no_axes") == "none");
}

// Out's shape from X and the attributes; `dtype` kUnknown: X's.
Status InferReduce(ShapeContext& ctx, DType dtype);

struct ReduceState : KernelState {
  ReducePlan plan;
};
Result<std::unique_ptr<KernelState>> PrepareReduce(PrepareContext& ctx);

// Out = the reduction of X over the operator's axes.
Status RunReduceOp(KernelContext& ctx, const ReduceLoops& loops);

// Slots and attributes of reduce_*.
void DefineReduceSlots(OpDef& op, bool axis_tensors);
// The operand Axes, and what it means that there are none.
void DefineAxesOperand(OpDef& op);
// Attribute in_double, for reductions that have such a form: RunInDouble.
void DefineInDouble(OpDef& op);

// reduce_*: the result has X's dtype.
template <typename R, typename... Ts>
void DefineReduce(OpDef& op, const char* doc, bool axis_tensors = false) {
  op.Doc(doc);
  DefineReduceSlots(op, axis_tensors);
  op.InferShape([](ShapeContext& ctx) { return InferReduce(ctx, DType::kUnknown); });
  op.Prepare(&PrepareReduce);
  (op.Kernel(kDTypeOf<Ts>,
             [](KernelContext& ctx) { return RunReduceOp(ctx, ReduceLoop<R, Ts, Ts>::kLoops); }),
   ...);
}

// The reduction R of in_double.h, where it has a form for T.
template <typename R, typename T>
Status RunInDouble(KernelContext& ctx) {
  constexpr bool kInteger = std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return RunInFloat(ctx);
  } else if constexpr (!kInteger && !std::is_same_v<T, float> && !std::is_same_v<T, double>) {
    return Unimplemented("attribute in_double is true for X of ", Name(kDTypeOf<T>),
                         ", expected floats, int32 or int64");
  } else {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReducedAxes(ctx, x.rank()));
    if (R::kOneIsItself && mask == 0) {
      CopyBytes(ctx, ctx.Out("Out").mutable_raw(), x.raw(), static_cast<int64_t>(x.bytes()));
      return Status::Ok();
    }
    if constexpr (kInteger) {
      HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), x.dtype()));
      using U = std::make_unsigned_t<T>;
      if (IsUnsigned(type)) return RunReduceOp(ctx, ReduceLoop<R, U, U>::kLoops);
    }
    return RunReduceOp(ctx, ReduceLoop<R, T, T>::kLoops);
  }
}

// reduce_* with a form D that computes in double.
template <typename R, typename D, typename... Ts>
void DefineReduceOrInDouble(OpDef& op, const char* doc) {
  DefineReduce<R, Ts...>(op, doc);
  DefineAxesOperand(op);
  DefineInDouble(op);
  (op.Kernel(kDTypeOf<Ts>,
             [](KernelContext& ctx) {
               return ctx.Bool("in_double") ? RunInDouble<D, Ts>(ctx)
                                            : RunReduceOp(ctx, ReduceLoop<R, Ts, Ts>::kLoops);
             }),
   ...);
}

// A gradient of a reduction: every element of X sees the Out and Out@GRAD it went into. The plan is
// that of X against Out with its reduced axes kept.
Result<BroadcastPlan> ReduceGradPlan(const KernelContext& ctx);
// X (only its shape, unless the gradient reads values), Out, Out@GRAD -> X@GRAD.
void DefineReduceGradSlots(OpDef& op, bool reads_values, bool axis_tensors);

// F::Apply(x, out, dout, count) per element; x and out are read where F::kReadsValues.
template <typename F, typename T>
struct ReduceGradRow {
  using C = ComputeType<T>;
  template <int kStep>  // 0: one out and dout for the whole row
  static void Run(const T* x, const T* out, const T* dout, T* d, int64_t n, double count) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (F::kReadsValues)
        d[i] = static_cast<T>(F::Apply(static_cast<C>(x[i]), static_cast<C>(out[i * kStep]),
                                       static_cast<C>(dout[i * kStep]), count));
      else
        d[i] = static_cast<T>(F::Apply(C{}, C{}, static_cast<C>(dout[i * kStep]), count));
    }
  }
};

template <typename F, typename T>
Status RunReduceGradTo(const KernelContext& ctx, T* d) {
  const Tensor& x = ctx.In("X");
  const Tensor& dout = ctx.In("Out@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, ReduceGradPlan(ctx));
  const T* xp = nullptr;
  const T* op = nullptr;
  if constexpr (F::kReadsValues) {
    const Tensor& out = ctx.In("Out");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&x, &out}));
    if (out.numel() != dout.numel())
      return InvalidArgument("Out and Out@GRAD must have one shape, got ", out.shape().ToString(),
                             " and ", dout.shape().ToString());
    xp = x.data<T>();
    op = out.data<T>();
  }
  const T* gp = dout.data<T>();
  const double count =
      dout.numel() == 0 ? 0.0 : static_cast<double>(x.numel()) / static_cast<double>(dout.numel());
  const auto run = plan.inner == InnerKind::kVectorScalar ? &ReduceGradRow<F, T>::template Run<0>
                                                          : &ReduceGradRow<F, T>::template Run<1>;
  ParallelRows(ctx, plan, kElementGrain, [&](int64_t xo, int64_t oo, int64_t at, int64_t n) {
    if constexpr (F::kReadsValues)
      run(xp + xo, op + oo, gp + oo, d + at, n, count);
    else
      run(nullptr, nullptr, gp + oo, d + at, n, count);
  });
  return Status::Ok();
}

template <typename F, typename T>
Status RunReduceGrad(KernelContext& ctx) {
  Tensor& dx = ctx.Out("X@GRAD");
  HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&dx}));
  return RunReduceGradTo<F, T>(ctx, dx.mutable_data<T>());
}

template <typename F, typename... Ts>
void DefineReduceGrad(OpDef& op, const char* doc, bool axis_tensors = false) {
  op.Doc(doc);
  DefineReduceGradSlots(op, F::kReadsValues, axis_tensors);
  op.InferShape(&GradLikeInputs);
  (op.Kernel(kDTypeOf<Ts>, &RunReduceGrad<F, Ts>), ...);
}

}  // namespace heddle
