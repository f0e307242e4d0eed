// Running sums and products along an axis that is an operand.
#include "core/interrupts.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxScanShape(ShapeContext& ctx) {
  ctx.SetOut("y", ctx.InShape("x"), ctx.InDType("x"));
  return Status::Ok();
}

struct CumSumFn : AddFn {
  static constexpr int kNeutral = 0;
};
struct CumProdFn : MulFn {
  static constexpr int kNeutral = 1;
};

template <typename F, typename T>
Status RunOnnxScan(KernelContext& ctx) {
  const Tensor& x = ctx.In("x");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, IntIn(ctx, "axis", 0));
  HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x.shape(), axis));
  const bool exclusive = ctx.Int("exclusive") != 0, reverse = ctx.Int("reverse") != 0;
  const T* from = x.data<T>();
  T* to = ctx.Out("y").mutable_data<T>();
  lines.ForEach(ctx, 4, [&](int64_t line) {
    const int64_t begin = lines.Begin(line);
    T total = T(F::kNeutral);
    for (const int64_t i : Watched(lines.n)) {
      const int64_t at = begin + (reverse ? lines.n - 1 - i : i) * lines.inner;
      const T next = F::Apply(total, from[at]);
      to[at] = exclusive ? total : next;
      total = next;
    }
  });
  return Status::Ok();
}

template <typename F, typename... Ts>
void DefineOnnxScan(OpDef& op, const char* doc) {
  op.Doc(doc).Input("x").Input("axis").Output("y").Inplace("x", "y");
  op.Attr("exclusive", 0).Attr("reverse", 0).InferShape(OnnxScanShape);
  (op.Kernel(kDTypeOf<Ts>, &RunOnnxScan<F, Ts>), ...);
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_cum_sum) {
  DefineOnnxScan<CumSumFn, float, double, int32_t, int64_t>(op, "running sums along an axis");
}
HEDDLE_OP(onnx_cum_prod) {
  DefineOnnxScan<CumProdFn, float, double, int32_t, int64_t>(op, "running products along an axis");
}
