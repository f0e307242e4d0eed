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
void DefineExtreme(OpDef& op, const char* doc) {
  DefineReduce<R, float, double, int32_t, int64_t, float16, bfloat16>(op, doc, true);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(reduce_max) { DefineExtreme<MaxReduction>(op, "maximum over axes"); }
HEDDLE_OP(reduce_min) { DefineExtreme<MinReduction>(op, "minimum over axes"); }
HEDDLE_OP(reduce_amax) {
  DefineExtreme<MaxReduction>(op, "maximum over axes, the gradient shared between equal elements");
}
HEDDLE_OP(reduce_amin) {
  DefineExtreme<MinReduction>(op, "minimum over axes, the gradient shared between equal elements");
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

HEDDLE_EXAMPLES(reduce_max, R"(
example int64 4x4, dim 0 1, reduce_all
attr dim INTS [0, 1]
attr reduce_all BOOLEAN true
in X int64 [4, 4] 0 1 0 0 0 1 1 0 1 0 1 1 0 0 1 1
out Out int64 [] 1

example float32 1x1x4x3, dim 0 -3 3
attr dim INTS [0, -3, 3]
in X float32 [1, 1, 4, 3] 0.13 -0.39 -0.13 -0.91 0.91 1.17 -1.17 1.43 0.65 -0.65 -1.43 0.39
out Out float32 [4] 0.13 1.17 1.43 0.39

example float32 4x4, dim 1
attr dim INTS [1]
in X float32 [4, 4] 0.921 0.633 0.748 0.691 0.289 0.404 0.863 0.806 0.059 0.576 0.174 0.346 0.518
  0.231 0.116 0.461
out Out float32 [4] 0.921 0.863 0.576 0.518

example float64 4x4, dim -2
attr dim INTS [-2]
in X float64 [4, 4] 1.19 0.33 -1.19 0.54 1.41 0.76 0.98 -0.98 1.63 -0.76 -0.54 -0.11 0.11 -1.41
  -1.63 -0.33
out Out float64 [4] 1.63 0.76 0.98 0.54

example float32, AxisTensor is not read
attr dim INTS [0]
in X float32 [2, 3] 0.3 -1.2 0.5 0.1 0.7 -0.4
in AxisTensor int64 [1] 1
out Out float32 [3] 0.3 0.7 0.5
)")

HEDDLE_EXAMPLES(reduce_min, R"(
example float64 2x4, dim , reduce_all
attr dim INTS []
attr reduce_all BOOLEAN true
in X float64 [2, 4] 0.189 0.456 0.544 0.722 0.278 0.367 0.633 0.811
out Out float64 [] 0.189

example float32 4x4, dim -1, keep_dim
attr dim INTS [-1]
attr keep_dim BOOLEAN true
in X float32 [4, 4] -0.52 -1.35 0.31 0.73 0.1 1.14 1.56 -1.56 -0.1 0.52 1.35 0.93 -0.93 -0.73 -1.14
  -0.31
out Out float32 [4, 1] -1.35 -1.56 -0.1 -1.14

example float64 4x3x2, dim 1 2
attr dim INTS [1, 2]
in X float64 [4, 3, 2] 0.837 0.241 0.599 0.519 0.44 0.48 0.758 0.281 0.956 0.042 0.917 0.559 0.877
  0.638 0.082 0.201 0.4 0.162 0.678 0.122 0.36 0.797 0.718 0.321
out Out float64 [4] 0.241 0.042 0.082 0.122

example float64 2x3, dim -2
attr dim INTS [-2]
in X float64 [2, 3] -1.02 -0.61 0.2 1.02 -0.2 0.61
out Out float64 [3] -1.02 -0.61 0.2

example int32 2x4, dim , reduce_all
attr dim INTS []
attr reduce_all BOOLEAN true
in X int32 [2, 4] 1 1 0 0 1 1 0 1
out Out int32 [] 0

example int64 2x4, dim , reduce_all
attr dim INTS []
attr reduce_all BOOLEAN true
in X int64 [2, 4] 1 1 0 0 1 1 0 1
out Out int64 [] 0
)")

HEDDLE_EXAMPLES(reduce_amax, R"(
example float64 2x4, dim 1, keep_dim
attr dim LONGS [1]
attr keep_dim BOOLEAN true
in X float64 [2, 4] 0.189 0.456 0.544 0.722 0.278 0.367 0.633 0.811
out Out float64 [2, 1] 0.722 0.811

example int32 2x2x2, dim 0 1
attr dim LONGS [0, 1]
in X int32 [2, 2, 2] 3 7 2 6 5 8 1 4
out Out int32 [2] 5 8

example float64 2x4, dim , reduce_all
attr dim LONGS []
attr reduce_all BOOLEAN true
in X float64 [2, 4] 0.189 0.456 0.544 0.722 0.278 0.367 0.633 0.811
out Out float64 [] 0.811

example float32 2x4, dim 1, keep_dim
attr dim LONGS [1]
attr keep_dim BOOLEAN true
in X float32 [2, 4] 0.189 0.456 0.544 0.722 0.278 0.367 0.633 0.811
out Out float32 [2, 1] 0.722 0.811

example int64 2x4, dim 1, keep_dim
attr dim LONGS [1]
attr keep_dim BOOLEAN true
in X int64 [2, 4] 1 1 0 0 1 1 0 1
out Out int64 [2, 1] 1 1
)")

HEDDLE_EXAMPLES(reduce_amin, R"(
example float64 2x4, dim , reduce_all
attr dim LONGS []
attr reduce_all BOOLEAN true
in X float64 [2, 4] 0.189 0.456 0.544 0.722 0.278 0.367 0.633 0.811
out Out float64 [] 0.189

example int32 2x2x2, dim 0 1
attr dim LONGS [0, 1]
in X int32 [2, 2, 2] 3 7 2 6 5 8 1 4
out Out int32 [2] 1 4

example float64 2x4, dim 1, keep_dim
attr dim LONGS [1]
attr keep_dim BOOLEAN true
in X float64 [2, 4] 0.189 0.456 0.544 0.722 0.278 0.367 0.633 0.811
out Out float64 [2, 1] 0.189 0.278

example float32 2x4, dim , reduce_all
attr dim LONGS []
attr reduce_all BOOLEAN true
in X float32 [2, 4] 0.189 0.456 0.544 0.722 0.278 0.367 0.633 0.811
out Out float32 [] 0.189

example int64 2x4, dim , reduce_all
attr dim LONGS []
attr reduce_all BOOLEAN true
in X int64 [2, 4] 1 1 0 0 1 1 0 1
out Out int64 [] 0
)")

HEDDLE_EXAMPLES(reduce_max_grad, R"(
example float64 2x2x1x1, dim 0 -1
attr dim INTS [0, -1]
in Out float64 [2, 1] 0.24 0.72
in Out@GRAD float64 [2, 1] 0 0.1
in X float64 [2, 2, 1, 1] 0.24 -0.24 -0.72 0.72
out X@GRAD float64 [2, 2, 1, 1] 0 0 0 0.1

example float64 5
in Out float64 [] 0.637
in Out@GRAD float64 [] 0.1
in X float64 [5] 0.473 0.637 0.309 0.555 0.391
out X@GRAD float64 [5] 0 0.1 0 0 0

example float64 4x4, dim -2
attr dim INTS [-2]
in Out float64 [4] 1.19 1.41 1.63 0.54
in Out@GRAD float64 [4] -0.1 -0.4 -0.5 0.8
in X float64 [4, 4] -1.19 0.98 -0.76 -0.98 -1.63 -0.33 0.76 0.54 0.33 -0.54 0.11 -0.11 1.19 1.41
  1.63 -1.41
out X@GRAD float64 [4, 4] -0 -0 -0 0 -0 -0 -0 0.8 -0 -0 -0 0 -0.1 -0.4 -0.5 0

example float32 2x2x1x1, dim 0 -1
attr dim INTS [0, -1]
in Out float32 [2, 1] 0.24 0.72
in Out@GRAD float32 [2, 1] 0 0.1
in X float32 [2, 2, 1, 1] 0.24 -0.24 -0.72 0.72
out X@GRAD float32 [2, 2, 1, 1] 0 0 0 0.1
)")

HEDDLE_EXAMPLES(reduce_min_grad, R"(
example float64 2x3, dim -2
attr dim INTS [-2]
in Out float64 [3] -0.61 -1.02 -0.2
in Out@GRAD float64 [3] -0.8 -0.3 0.7
in X float64 [2, 3] -0.61 0.61 -0.2 1.02 -1.02 0.2
out X@GRAD float64 [2, 3] -0.8 -0 0.7 -0 -0.3 0

example float64 4x4, dim -1, keep_dim
attr dim INTS [-1]
attr keep_dim BOOLEAN true
in Out float64 [4, 1] -1.35 -1.56 -0.52 -1.14
in Out@GRAD float64 [4, 1] -0.1 -0.4 -0.5 0.8
in X float64 [4, 4] 0.1 -0.73 -0.93 -1.35 0.73 -0.31 1.35 -1.56 1.56 0.31 0.93 -0.52 1.14 -0.1 -1.14
  0.52
out X@GRAD float64 [4, 4] -0 -0 -0 -0.1 -0 -0 -0 -0.4 -0 -0 -0 -0.5 0 0 0.8 0

example float64 4x3x3, dim 0 -2 2, keep_dim
attr dim INTS [0, -2, 2]
attr keep_dim BOOLEAN true
in Out float64 [1, 1, 1] -1.83
in Out@GRAD float64 [1, 1, 1] 0.3
in X float64 [4, 3, 3] -1.31 -1.2 -1.1 0.68 -0.16 -1.73 1.41 -1.62 0.99 1.52 -0.68 0.58 0.89 0.16
  0.26 -0.37 0.78 1.1 0.05 -0.58 -1.83 -1.52 -0.26 -0.99 -1.41 -0.05 1.2 1.73 1.31 -0.89 1.62 0.47
  1.83 -0.47 -0.78 0.37
out X@GRAD float64 [4, 3, 3] 0*20 0.3 0*15

example float32 2x3, dim -2
attr dim INTS [-2]
in Out float32 [3] -0.61 -1.02 -0.2
in Out@GRAD float32 [3] -0.8 -0.3 0.7
in X float32 [2, 3] -0.61 0.61 -0.2 1.02 -1.02 0.2
out X@GRAD float32 [2, 3] -0.8 -0 0.7 -0 -0.3 0
)")

HEDDLE_EXAMPLES(reduce_amax_grad, R"(
example dim 1, ties
attr dim LONGS [1]
in Out float64 [2] 3 2
in Out@GRAD float64 [2] -0.1 -0.7
in X float64 [2, 3] 1 3 3 2 2 0
out X@GRAD float64 [2, 3] -0 -0.05 -0.05 -0.35 -0.35 -0

example all
attr dim LONGS [0, 1]
attr keep_dim BOOLEAN true
in Out float64 [1, 1] 3
in Out@GRAD float64 [1, 1] 0
in X float64 [2, 3] 1 3 3 -2 3 0
out X@GRAD float64 [2, 3] 0*6
)")

HEDDLE_EXAMPLES(reduce_amin_grad, R"(
example dim 1, ties
attr dim LONGS [1]
in Out float64 [2] 1 0
in Out@GRAD float64 [2] -0.1 -0.7
in X float64 [2, 3] 1 3 3 2 2 0
out X@GRAD float64 [2, 3] -0.1 -0*4 -0.7

example all
attr dim LONGS [0, 1]
attr keep_dim BOOLEAN true
in Out float64 [1, 1] -2
in Out@GRAD float64 [1, 1] 0
in X float64 [2, 3] 1 3 3 -2 3 0
out X@GRAD float64 [2, 3] 0*6
)")
