#include "core/error.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

// Adds up in the result's type.
template <typename Out>
struct SumTo : SumReduction {
  template <typename T>
  using Acc = ComputeType<Out>;
};

// Without out_dtype, bool and int32 are counted in int64.
DType SumDType(const OpContext& ctx, DType x) {
  const DType wanted =
      ctx.Int("out_dtype") >= 0 ? DTypeFromProto(ctx.Int("out_dtype")) : DType::kUnknown;
  if (wanted != DType::kUnknown) return wanted;
  return x == DType::kBool || x == DType::kI32 ? DType::kI64 : x;
}

template <typename T>
Status Sum(KernelContext& ctx) {
  const ReduceLoops* loops = nullptr;
  const DType to = ctx.Out("Out").dtype();
  // Few values are added in double: what cancels out leaves nothing, at no price worth mentioning.
  constexpr int64_t kFew = 1 << 14;
  if (to == DType::kF32 && to == kDTypeOf<T> && ctx.In("X").numel() <= kFew) {
    loops = &ReduceLoop<SumTo<double>, float, float>::kLoops;
  } else if (to == kDTypeOf<T>) {
    loops = SumLoops(to);
  } else {
    VisitDType<float, double, int32_t, int64_t, float16, bfloat16>(to, [&](auto tag) {
      using Out = typename decltype(tag)::type;
      if constexpr (!IsComplex(kDTypeOf<T>)) loops = &ReduceLoop<SumTo<Out>, T, Out>::kLoops;
    });
  }
  if (loops == nullptr) return Unimplemented("sum of ", Name(kDTypeOf<T>), " as ", Name(to));
  return RunReduceOp(ctx, *loops);
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
  if constexpr (IsComplex(kDTypeOf<T>)) {
    return Unimplemented("gradient of a sum of ", Name(dx.dtype()), " as ", Name(kDTypeOf<T>));
  } else {
    Tensor wide = ctx.Scratch(kDTypeOf<T>, dx.shape());
    const T* from = wide.data<T>();
    HEDDLE_RETURN_IF_ERROR((RunReduceGradTo<SumGrad, T>(ctx, wide.template mutable_data<T>())));
    const bool known = VisitDType<float, double, int32_t, int64_t, bool>(dx.dtype(), [&](auto tag) {
      using To = typename decltype(tag)::type;
      To* to = dx.mutable_data<To>();
      for (int64_t i = 0, n = dx.numel(); i < n; ++i) to[i] = static_cast<To>(from[i]);
    });
    return known ? Status::Ok()
                 : Unimplemented("gradient of a sum of ", Name(dx.dtype()), " as ",
                                 Name(kDTypeOf<T>));
  }
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
  SumGradKernels<float, double, int32_t, int64_t, float16, bfloat16, std::complex<float>,
                 std::complex<double>>(op);
}
