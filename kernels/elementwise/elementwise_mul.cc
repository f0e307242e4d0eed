#include "core/operands/slot_kinds.h"
#include "kernels/base/convert.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/tile_loop.h"

namespace heddle {
namespace {

bool HasRows(const OpContext& ctx) {
  const Value* x = ctx.InVar("X");
  return x != nullptr && x->is_rows();
}

// X may be selected rows: their values are multiplied, which is how gradients are scaled to a norm.
Status InferMul(ShapeContext& ctx) {
  return HasRows(ctx) ? Status::Ok() : InferBinary<SlotsXY>(ctx);
}

Result<std::unique_ptr<KernelState>> PrepareMul(PrepareContext& ctx) {
  if (HasRows(ctx)) return std::unique_ptr<KernelState>();
  return PrepareBroadcast<SlotsXY>(ctx);
}

template <typename T>
struct Mul {
  static Status Run(KernelContext& ctx) {
    const BinaryLoops& loops = BinaryLoop<MulFn, T, T>::kLoops;
    if (!HasRows(ctx)) return RunBinaryOp<SlotsXY>(ctx, loops);
    const SelectedRows& rows = ctx.InVar("X")->rows();
    const Tensor x = rows.value, &y = ctx.In("Y");
    HEDDLE_RETURN_IF_ERROR(CheckSameDType(ctx, x, y));
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                            MakeBroadcastPlan(x.shape(), y.shape(), AxisOf(ctx)));
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(x.shape(), y.shape(), AxisOf(ctx)));
    if (!(shape == x.shape()))
      return InvalidArgument("Y ", y.shape().ToString(), " does not fit rows ",
                             x.shape().ToString());
    Tensor& out = AllocRowsLike(ctx, rows, *ctx.OutVar("Out")).value;
    RunBinary(ctx, plan, loops, x.raw(), y.raw(), out.mutable_raw(), nullptr);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_mul) {
  DefineElementwise<MulFn>(op, "x * y");
  op.InputFlags("X", kAnyKind | kTakesRows).InferShape(InferMul).Prepare(PrepareMul);
  op.Kernels<Mul, float, double, int32_t, int64_t, float16, bfloat16, bool, std::complex<float>,
             std::complex<double>>();
}

HEDDLE_OP(elementwise_mul_grad) {
  op.Doc("gradient of x * y");
  DefineElementwiseGrad<MulGradX, MulGradY, float, double, int32_t, int64_t, float16, bfloat16,
                        bool, std::complex<float>, std::complex<double>>(op, kUsesX | kUsesY);
}

HEDDLE_TILE(elementwise_mul) { return BinaryTile<MulFn>(); }
