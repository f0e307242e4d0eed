#include "kernels/elementwise/convert.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

// Without out_dtype, bool and int32 are counted in int64.
DType SumDType(const OpContext& ctx, DType x) {
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
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReadReduceMask(ctx, x.rank()));
  RunReduce(ctx, MakeReducePlan(x.shape().dims(), mask), *SumLoops(to), converted.raw(),
            ctx.Out("Out").mutable_raw());
  return Status::Ok();
}

template <typename T>
Status Sum(KernelContext& ctx) {
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
  op.Doc("sum over axes");
  DefineReduceSlots(op, false);
  op.InferShape(
      [](ShapeContext& ctx) { return InferReduce(ctx, SumDType(ctx, ctx.InDType("X"))); });
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

HEDDLE_EXAMPLES(reduce_sum, R"(
example bool 4x4, dim 1, in_dtype 0, out_dtype 4
attr dim INTS [1]
attr in_dtype INT 0
attr out_dtype INT 4
in X bool [4, 4] 1 0 1 1 0*6 1 0 1*4
out Out float16 [4] 3 0 1 4

example int32 4x4, dim 1, in_dtype 2, out_dtype 6
attr dim INTS [1]
attr in_dtype INT 2
attr out_dtype INT 6
in X int32 [4, 4] 0*16
out Out float64 [4] 0*4

example float64 4x1x1, dim 1 2, keep_dim
attr dim INTS [1, 2]
attr keep_dim BOOLEAN true
in X float64 [4, 1, 1] 0.594 0.397 0.2 0.791
out Out float64 [4, 1, 1] 0.594 0.397 0.2 0.791

example float64 4x4, dim 0 1
attr dim INTS [0, 1]
in X float64 [4, 4] 13 21 8 28 18 1 17 27 25 11 7 27 8 27 27 0
out Out float64 [] 265

example float32 4x4, dim 0 1
attr dim INTS [0, 1]
in X float32 [4, 4] 13 21 8 28 18 1 17 27 25 11 7 27 8 27 27 0
out Out float32 [] 265

example int64 4x4, dim 0 1
attr dim INTS [0, 1]
in X int64 [4, 4] 23 20 20 11 5 24 0 25 7 21 12 19 0 27 22 4
out Out int64 [] 240

example complex64 4x4, dim 0 1
attr dim INTS [0, 1]
in X complex64 [4, 4] 13+0.8j 21+0.3j 8+0.5j 28-0.7j 18-0.8j 1+0.6j 17-0.3j 27+0.1j 25-0.5j 11+0.1j
  7-0.2j 27+0.4j 8+0.7j 27+0.2j 27-0.4j 0-0.4j
out Out complex64 [] 265+0.40000007j

example bfloat16 4x4, dim 0 1
attr dim INTS [0, 1]
in X bfloat16 [4, 4] 13 21 8 28 18 1 17 27 25 11 7 27 8 27 27 0
out Out bfloat16 [] 264

example bool 4x4, dim 1, in_dtype 0, out_dtype 4, out_dtype 0
attr dim INTS [1]
attr in_dtype INT 0
attr out_dtype INT 0
in X bool [4, 4] 1 0 1 1 0*6 1 0 1*4
out Out bool [4] 1 0 1 1

example bool 4x4, dim 1, in_dtype 0, out_dtype 4, out_dtype 1
attr dim INTS [1]
attr in_dtype INT 0
attr out_dtype INT 1
in X bool [4, 4] 1 0 1 1 0*6 1 0 1*4
out Out int16 [4] 3 0 1 4

example bool 4x4, dim 1, in_dtype 0, out_dtype 4, out_dtype 20
attr dim INTS [1]
attr in_dtype INT 0
attr out_dtype INT 20
in X bool [4, 4] 1 0 1 1 0*6 1 0 1*4
out Out uint8 [4] 3 0 1 4

example bool 4x4, dim 1, in_dtype 0, out_dtype 4, out_dtype 21
attr dim INTS [1]
attr in_dtype INT 0
attr out_dtype INT 21
in X bool [4, 4] 1 0 1 1 0*6 1 0 1*4
out Out int8 [4] 3 0 1 4
)")

HEDDLE_EXAMPLES(reduce_sum_grad, R"(
example float64 2x4, dim 1, keep_dim
attr dim INTS [1]
attr keep_dim BOOLEAN true
in Out@GRAD float64 [2, 1] -0.8 0.4
in X float64 [2, 4] -0.62 -0.02 0.57 0.18 -0.42 0.77 -0.22 0.37
out X@GRAD float64 [2, 4] -0.8*4 0.4*4

example float64 3x3x1, dim -3 1 2, keep_dim
attr dim INTS [-3, 1, 2]
attr keep_dim BOOLEAN true
in Out@GRAD float64 [1, 1, 1] -0.8
in X float64 [3, 3, 1] 0.51 0.23 0.09 0.79 -0.33 -0.19 0.37 0.65 -0.05
out X@GRAD float64 [3, 3, 1] -0.8*9

example float32 scalar, dim
attr dim INTS []
in Out@GRAD float32 [] -0.2
in X float32 [1] 1
out X@GRAD float32 [1] -0.2

example bool 2x4, dim 1, keep_dim
attr dim INTS [1]
attr keep_dim BOOLEAN true
in Out@GRAD bool [2, 1] 1 1
in X bool [2, 4] 1*8
out X@GRAD bool [2, 4] 1*8

example int16 2x4, dim 1, keep_dim
attr dim INTS [1]
attr keep_dim BOOLEAN true
in Out@GRAD int16 [2, 1] -5 2
in X int16 [2, 4] -4 1 3 1 -2 5 -1 2
out X@GRAD int16 [2, 4] -5*4 2*4
)")
