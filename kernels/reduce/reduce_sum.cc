#include "kernels/base/convert.h"
#include "kernels/reduce/in_double.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

// Without out_dtype, bool and int32 are counted in int64, unless they are added in double.
DType SumDType(const OpContext& ctx, DType x) {
  if (ctx.Bool("in_double")) return x;
  const DType wanted =
      ctx.Int("out_dtype") >= 0 ? DTypeFromProto(ctx.Int("out_dtype")) : DType::kUnknown;
  if (wanted != DType::kUnknown) return wanted;
  return x == DType::kBool || x == DType::kI32 ? DType::kI64 : x;
}

// Converts X to the dtype of the result and adds it up there.
Status SumOfConverted(KernelContext& ctx, DType to) {
  const Tensor& x = ctx.In("X");
  Tensor converted = ctx.Scratch(to, x.shape());
  ConvertElements(ctx, x.raw(), x.dtype(), converted.mutable_raw(), to, x.numel());
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReducedAxes(ctx, x.rank()));
  RunReduce(ctx, MakeReducePlan(x.shape().dims(), mask), *SumLoops(to), converted.raw(),
            ctx.Out("Out").mutable_raw());
  return Status::Ok();
}

template <typename T>
Status Sum(KernelContext& ctx) {
  if (ctx.Bool("in_double")) {
    const std::string& of = ctx.Str("of");
    return of == "abs"      ? RunInDouble<AbsInDouble, T>(ctx)
           : of == "square" ? RunInDouble<SquaresInDouble, T>(ctx)
                            : RunInDouble<SumInDouble, T>(ctx);
  }
  const ReduceLoops* loops = nullptr;
  const DType to = ctx.Out("Out").dtype();
  if (to == DType::kF32 && to == kDTypeOf<T> && ctx.In("X").numel() <= kFewToSum) {
    loops = &ReduceLoop<SumTo<double>, float, float>::kLoops;
  } else if (to == kDTypeOf<T>) {
    loops = SumLoops(to);
  } else {
    VisitDType<float, double, int32_t, int64_t, float16, bfloat16>(to, [&](auto tag) {
      using Out = typename decltype(tag)::type;
      if constexpr (!IsComplex(kDTypeOf<T>)) loops = &ReduceLoop<SumTo<Out>, T, Out>::kLoops;
    });
  }
  return loops != nullptr ? RunReduceOp(ctx, *loops) : SumOfConverted(ctx, to);
}

struct SumGrad {
  static constexpr bool kReadsValues = false;
  template <typename T>
  static T Apply(T, T, T dout, double) {
    return dout;
  }
};

// X may have another dtype than Out.
template <typename T>
Status SumGradKernel(KernelContext& ctx) {
  Tensor& dx = ctx.Out("X@GRAD");
  if (dx.dtype() == kDTypeOf<T>) return RunReduceGrad<SumGrad, T>(ctx);
  Tensor wide = ctx.Scratch(kDTypeOf<T>, dx.shape());
  HEDDLE_RETURN_IF_ERROR((RunReduceGradTo<SumGrad, T>(ctx, wide.template mutable_data<T>())));
  ConvertElements(ctx, wide.raw(), wide.dtype(), dx.mutable_raw(), dx.dtype(), dx.numel());
  return Status::Ok();
}

template <typename... Ts>
void SumKernels(OpDef& op) {
  (op.Kernel(kDTypeOf<Ts>, &Sum<Ts>), ...);
}
template <typename... Ts>
void SumGradKernels(OpDef& op) {
  (op.Kernel(kDTypeOf<Ts>, &SumGradKernel<Ts>), ...);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(reduce_sum) {
  op.Doc("sum over axes; in double also of absolute values or squares");
  DefineReduceSlots(op, false);
  DefineAxesOperand(op);
  DefineInDouble(op);
  op.Attr("of", "x").InferShape([](ShapeContext& ctx) {
    const std::string& of = ctx.Str("of");
    if (of != "x" && !((of == "abs" || of == "square") && ctx.Bool("in_double")))
      return InvalidArgument("attribute of is '", of,
                             "', expected 'x', or with in_double 'abs' or ", "'square'");
    return InferReduce(ctx, SumDType(ctx, ctx.InDType("X")));
  });
  op.Prepare(&PrepareReduce);
  SumKernels<float, double, bool, int32_t, int64_t, float16, bfloat16, int16_t, int8_t, uint8_t,
             std::complex<float>, std::complex<double>>(op);
}

HEDDLE_OP(reduce_sum_grad) {
  op.Doc("gradient of reduce_sum");
  DefineReduceGradSlots(op, false, false);
  op.InferShape(&GradLikeInputs);
  SumGradKernels<float, double, bool, int32_t, int64_t, float16, bfloat16, int16_t,
                 std::complex<float>, std::complex<double>>(op);
}
