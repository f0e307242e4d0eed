#include <cmath>

#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

// Running maximum and sum of exp(x - maximum).
template <typename A>
struct LogSum {
  A max, sum;
};

struct LogSumExp {
  static constexpr bool kAnyOrder = false;
  template <typename T>
  using Acc = LogSum<ComputeType<T>>;
  template <typename A>
  static A Init() {
    using V = decltype(A::max);
    return {-std::numeric_limits<V>::infinity(), V(0)};
  }
  template <typename A, typename T>
  static A Load(T x) {
    return {static_cast<decltype(A::max)>(x), decltype(A::max)(1)};
  }
  template <typename V>
  static LogSum<V> Combine(LogSum<V> a, LogSum<V> b) {
    if (a.max < b.max) std::swap(a, b);
    if (a.max != b.max) {
      a.sum += b.sum * std::exp(b.max - a.max);
    } else {
      a.sum += b.sum;  // also where both are infinite
    }
    return a;
  }
  template <typename V>
  static V Finish(LogSum<V> a, int64_t) {
    return std::log(a.sum) + a.max;
  }
};

struct LogSumExpGrad {
  static constexpr bool kReadsValues = true;
  template <typename T>
  static T Apply(T x, T out, T dout, double) {
    return dout * std::exp(x - out);
  }
};

void DefineAttrs(OpDef& op) {
  op.Attr("axis", Ints{0}).Attr("keepdim", false).Attr("reduce_all", false);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(logsumexp) {
  op.Doc("log of the sum of exp(x) over axes").Input("X").Output("Out");
  DefineAttrs(op);
  op.InferShape([](ShapeContext& ctx) { return InferReduce(ctx, DType::kUnknown); });
  op.Prepare(&PrepareReduce);
  op.Kernel(DType::kF32, [](KernelContext& ctx) {
    return RunReduceOp(ctx, ReduceLoop<LogSumExp, float, float>::kLoops);
  });
  op.Kernel(DType::kF64, [](KernelContext& ctx) {
    return RunReduceOp(ctx, ReduceLoop<LogSumExp, double, double>::kLoops);
  });
}

HEDDLE_OP(logsumexp_grad) {
  op.Doc("gradient of logsumexp").Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  DefineAttrs(op);
  op.KernelKey("Out@GRAD").InferShape(&GradLikeInputs);
  op.Kernel(DType::kF32, &RunReduceGrad<LogSumExpGrad, float>);
  op.Kernel(DType::kF64, &RunReduceGrad<LogSumExpGrad, double>);
}

HEDDLE_EXAMPLES(logsumexp, R"(
example float32 2, axis -1
attr axis INTS [-1]
in X float32 [2] 0.81 -0.57
out Out float32 [] 1.0344056

example float64 scalar, axis
attr axis INTS []
in X float64 [] 0.543
out Out float64 [] 0.543

example float32 1, keepdim
attr keepdim BOOLEAN true
in X float32 [1] -1.52
out Out float32 [1] -1.52

example float32 2x3x4x3, axis , reduce_all
attr axis INTS []
attr reduce_all BOOLEAN true
in X float32 [2, 3, 4, 3] -0.66 -0.26 0.18 0.85 0.63 0.93 0.15 -0.04 0.1 -0.34 -0.93 0.12 -0.61
  -0.88 0.8 -0.58 0.82 0.04 -0.23 0.53 -0.55 -0.44 0.66 0.69 -0.36 -0.77 -0.15 0.39 0.58 0.5 0.07
  0.34 -0.82 0.2 0.55 -0.96 0.77 0.9 -0.69 -0.28 -0.31 -0.07 0.28 -0.12 0.96 -0.47 -0.53 -0.42 -0.01
  0.45 -0.09 -0.63 -0.71 0.01 0.47 -0.79 -0.9 -0.5 0.42 -0.2 0.74 -0.39 0.26 -0.74 0.36 -0.85 -0.17
  0.88 0.72 0.61 0.31 0.23
out Out float32 [] 4.429785
)")

HEDDLE_EXAMPLES(logsumexp_grad, R"(
example float64 1, keepdim
attr keepdim BOOLEAN true
in Out float64 [1] -1.52
in Out@GRAD float64 [1] -0.6
in X float64 [1] -1.52
out X@GRAD float64 [1] -0.6

example float64 scalar, axis
attr axis INTS []
in Out float64 [] 0.543
in Out@GRAD float64 [] -0.6
in X float64 [] 0.543
out X@GRAD float64 [] -0.6

example float64 4x2x4x1, axis 1 -2, keepdim
attr axis INTS [1, -2]
attr keepdim BOOLEAN true
in Out float64 [4, 1, 1, 1] 2.933049078656059 2.8604756171324435 2.350001720106967
  2.3132721834756196
in Out@GRAD float64 [4, 1, 1, 1] -0.2 -0.7 -0.8 -0.7
in X float64 [4, 2, 4, 1] -0.61 1.52 0.57 0.81 1.04 -0.26 -1.21 1.75 0.92 0.33 1.63 -1.09 1.87 -0.14
  -0.5 -1.8 -0.38 1.28 1.4 -0.02 -1.68 -1.33 -0.73 -1.44 0.1 1.16 -1.56 0.69 -0.85 0.45 0.21 -0.97
out X@GRAD float64 [4, 2, 4, 1] -0.005784999579120081 -0.04868000096253267 -0.018826553394015986
  -0.023933240005623385 -0.030122376108722173 -0.008209305171354956 -0.0031748750838201454
  -0.06126864969481062 -0.1005449325778566 -0.055734799469697324 -0.20450751396458722
  -0.013471882260771353 -0.2599800033618243 -0.03483437609084229 -0.02430311953203542
  -0.006623372742385544 -0.052175341987255576 -0.2744063419262988 -0.30939228657531553
  -0.07478445238507857 -0.014219439503949561 -0.020178345159239826 -0.03676734207541971
  -0.0180764503874425 -0.07653959216307189 -0.22092165834989186 -0.01455315999127282
  -0.13807653758145827 -0.029601000207936535 -0.10861485142117809 -0.08543946825350282
  -0.02625373203168774

example float32 1, keepdim
attr keepdim BOOLEAN true
in Out float32 [1] -1.52
in Out@GRAD float32 [1] -0.6
in X float32 [1] -1.52
out X@GRAD float32 [1] -0.6
)")
