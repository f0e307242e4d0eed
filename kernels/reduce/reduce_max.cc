// reduce_max, reduce_min, reduce_amax and reduce_amin.
#include "core/interrupts.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

struct ExtremeGrad {  // all elements equal to the result get all of the gradient
  static constexpr bool kReadsValues = true;
  template <typename T>
  static T Apply(T x, T out, T dout, double) {
    return x == out ? dout : T(0);
  }
};

// Elements equal to the result share the gradient evenly.
template <typename T>
struct SharedGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& out = ctx.In("Out");
    const Tensor& dout = ctx.In("Out@GRAD");
    Tensor& dx = ctx.Out("X@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&x, &out, &dx}));
    if (out.numel() != dout.numel())
      return InvalidArgument("Out and Out@GRAD must have one shape, got ", out.shape().ToString(),
                             " and ", dout.shape().ToString());
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, ReduceGradPlan(ctx));
    // dx first marks the equal elements, which are then counted.
    T* d = dx.mutable_data<T>();
    const bool whole_row = plan.inner == InnerKind::kVectorScalar;
    ForEachRow(plan, 0, plan.rows, [&](int64_t xo, int64_t oo, int64_t at) {
      const T* best = out.data<T>() + oo;
      for (const auto part : Stretches(plan.cols))
        for (int64_t i = part.begin; i < part.end; ++i)
          d[at + i] = static_cast<T>(x.data<T>()[xo + i] == best[whole_row ? 0 : i]);
    });
    Tensor counts = ctx.Scratch(kDTypeOf<T>, out.shape());
    RunReduce(ctx, MakeReducePlan(plan, false), *SumLoops(kDTypeOf<T>), d, counts.mutable_raw());
    ForEachRow(plan, 0, plan.rows, [&](int64_t, int64_t oo, int64_t at) {
      for (const auto part : Stretches(plan.cols))
        for (int64_t i = part.begin; i < part.end; ++i) {
          const int64_t o = oo + (whole_row ? 0 : i);
          if (d[at + i] != T(0)) d[at + i] = dout.data<T>()[o] / counts.data<T>()[o];
        }
    });
    return Status::Ok();
  }
};

void DefineSharedGrad(OpDef& op, const char* doc) {
  op.Doc(doc);
  DefineReduceGradSlots(op, true, true);
  op.InferShape(&GradLikeInputs).Kernels<SharedGrad, float, double, int32_t, int64_t>();
}

template <typename R>
void DefineSharedExtreme(OpDef& op, const char* doc) {
  DefineReduce<R, float, double, int32_t, int64_t, float16, bfloat16>(op, doc, true);
}
// `OfTruth` is the reduction of truth values.
template <typename R, typename OfTruth>
void DefineExtreme(OpDef& op, const char* doc) {
  DefineReduce<R, float, double, int8_t, uint8_t, int16_t, int32_t, int64_t, float16, bfloat16>(
      op, doc, true);
  op.Kernel(DType::kBool, [](KernelContext& ctx) {
    return RunReduceOp(ctx, ReduceLoop<OfTruth, bool, bool>::kLoops);
  });
  DefineAxesOperand(op);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(reduce_max) {
  DefineExtreme<MaxReduction, AnyReduction>(op, "greatest element over axes; NaN wins");
}
HEDDLE_OP(reduce_min) {
  DefineExtreme<MinReduction, AllReduction>(op, "smallest element over axes; NaN wins");
}
HEDDLE_OP(reduce_amax) {
  DefineSharedExtreme<MaxReduction>(
      op, "maximum over axes, the gradient shared between equal elements");
}
HEDDLE_OP(reduce_amin) {
  DefineSharedExtreme<MinReduction>(
      op, "minimum over axes, the gradient shared between equal elements");
}
HEDDLE_OP(reduce_max_grad) {
  DefineReduceGrad<ExtremeGrad, float, double, int32_t, int64_t>(op, "gradient of reduce_max",
                                                                 true);
}
HEDDLE_OP(reduce_min_grad) {
  DefineReduceGrad<ExtremeGrad, float, double, int32_t, int64_t>(op, "gradient of reduce_min",
                                                                 true);
}
HEDDLE_OP(reduce_amax_grad) { DefineSharedGrad(op, "gradient of reduce_amax"); }
HEDDLE_OP(reduce_amin_grad) { DefineSharedGrad(op, "gradient of reduce_amin"); }
