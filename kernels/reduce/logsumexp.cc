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
