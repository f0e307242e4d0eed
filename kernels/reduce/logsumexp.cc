#include <cmath>

#include "kernels/reduce/in_double.h"
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

template <typename T>
Status LogOfSums(KernelContext& ctx) {
  return ctx.Bool("in_double") ? RunInDouble<LogSumExpInDouble, T>(ctx)
                               : RunReduceOp(ctx, ReduceLoop<LogSumExp, T, T>::kLoops);
}

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
  DefineAxesOperand(op);
  DefineInDouble(op);
  op.Kernel(DType::kF32, &LogOfSums<float>);
  op.Kernel(DType::kF64, &LogOfSums<double>);
  op.Kernel(DType::kI32, &RunInDouble<LogSumExpInDouble, int32_t>);
  op.Kernel(DType::kI64, &RunInDouble<LogSumExpInDouble, int64_t>);
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_OP(logsumexp_grad) {
  op.Doc("gradient of logsumexp").Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  DefineAttrs(op);
  op.KernelKey("Out@GRAD").InferShape(&GradLikeInputs);
  op.Kernel(DType::kF32, &RunReduceGrad<LogSumExpGrad, float>);
  op.Kernel(DType::kF64, &RunReduceGrad<LogSumExpGrad, double>);
}
