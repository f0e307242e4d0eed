// Maxima, minima, sums and means of any number of tensors, broadcast against each other.
#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/folds/reduce_loops.h"
#include "kernels/operands/broadcast_rows.h"
#include "kernels/operands/element_types.h"

namespace heddle {
namespace {

Status OnnxManyShape(ShapeContext& ctx, Key out) {
  if (!AllStatic(ctx, {"data_0"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastAll(ctx, "data_0"));
  for (int i = 1; i < ctx.InCount("data_0"); ++i)
    if (ctx.InDType("data_0", i) != ctx.InDType("data_0"))
      return InvalidArgument("data_0[", i, "] is ", Name(ctx.InDType("data_0", i)),
                             ", the first operand ", Name(ctx.InDType("data_0")));
  ctx.SetOut(out, shape, ctx.InDType("data_0"));
  return Status::Ok();
}

struct AddMany {
  static constexpr Key kOut = "sum";
  template <typename T>
  static T Apply(T a, T b) {
    return AddFn::Apply(a, b);
  }
};
struct MeanMany : AddMany {
  static constexpr Key kOut = "mean";
};
struct MaxMany {
  static constexpr Key kOut = "max";
  template <typename T>
  static T Apply(T a, T b) {
    return MaxReduction::Combine(a, b);
  }
};
struct MinMany {
  static constexpr Key kOut = "min";
  template <typename T>
  static T Apply(T a, T b) {
    return MinReduction::Combine(a, b);
  }
};

template <typename F, typename T>
Status RunOnnxMany(KernelContext& ctx) {
  Tensor& out = ctx.Out(F::kOut);
  T* to = out.mutable_data<T>();
  if (out.numel() == 0) return Status::Ok();
  ExpandTo(ctx, ctx.In("data_0"), out.shape(), to);
  for (int i = 1; i < ctx.InCount("data_0"); ++i) {
    const Tensor& x = ctx.In("data_0", i);
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                            MakeBroadcastPlan(out.shape(), x.shape(), -1));
    if constexpr (std::is_same_v<T, int64_t>) {
      HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), out.dtype()));
      if (type == ElementType::kUint64) {
        ForEachPair(ctx, plan, to, x.data<T>(), to, [](T a, T b) {
          return static_cast<T>(F::Apply(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
        });
        continue;
      }
    }
    ForEachPair(ctx, plan, to, x.data<T>(), to, [](T a, T b) { return F::Apply(a, b); });
  }
  if constexpr (std::is_same_v<F, MeanMany>) {
    const T count = static_cast<T>(ctx.InCount("data_0"));
    for (const auto part : Stretches(out.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) to[i] /= count;
  }
  return Status::Ok();
}

template <typename F, typename... Ts>
void DefineOnnxMany(OpDef& op, const char* doc) {
  op.Doc(doc).Input("data_0", kList).Output(F::kOut.name).Attr("elem_type", 0);
  op.InferShape([](ShapeContext& ctx) { return OnnxManyShape(ctx, F::kOut); });
  (op.Kernel(kDTypeOf<Ts>, &RunOnnxMany<F, Ts>), ...);
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_max) {
  DefineOnnxMany<MaxMany, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>(
      op, "the greatest of elements; NaN wins");
}
HEDDLE_OP(onnx_min) {
  DefineOnnxMany<MinMany, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>(
      op, "the smallest of elements; NaN wins");
}
HEDDLE_OP(onnx_sum) {
  DefineOnnxMany<AddMany, float, double, int32_t, int64_t>(op, "sums of elements");
}
HEDDLE_OP(onnx_mean) { DefineOnnxMany<MeanMany, float, double>(op, "means of elements"); }
