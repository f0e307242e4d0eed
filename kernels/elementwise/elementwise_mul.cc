#include "core/operands/slot_kinds.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/convert.h"
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

HEDDLE_EXAMPLES(elementwise_mul, R"(
example float32 4x1
in X float32 [4, 1] -0.22 0.03 0.53 0.28
in Y float32 [4, 1] -0.35 0.2 -0.08 0.48
out Out float32 [4, 1] 0.077 0.006 -0.042399995 0.1344

example float64 2x4
in X float64 [4] 0.214 0.565 0.389 0.741
in Y float64 [2, 4] 0.119 0.418 0.717 0.318 0.219 0.816 0.518 0.617
out Out float64 [2, 4] 0.025466 0.23616999999999996 0.278913 0.23563800000000001 0.046866
  0.46103999999999995 0.20150200000000001 0.45719699999999996

example float32 4
in X float32 [4] 0.293 -0.097 -0.292 0.098
in Y float32 [4] -0.483 -0.316 -0.649 -0.815
out Out float32 [4] -0.14151901 0.030652002 0.18950799 -0.07987

example complex128 2
in X complex128 [2] -1.1-0.7j 0.8-1.6j
in Y complex128 [2] 0.9+1j 1.7+1.4j
out Out complex128 [2] -0.29000000000000015-1.73j 3.5999999999999996-1.6000000000000003j

example int32 4x1
in X int32 [4, 1] 0*4
in Y int32 [4, 1] 0*4
out Out int32 [4, 1] 0*4

example int64 4x1
in X int64 [4, 1] 0*4
in Y int64 [4, 1] 0*4
out Out int64 [4, 1] 0*4

example bool 4x1
in X bool [4, 1] 0 0 0 1
in Y bool [4, 1] 1 0 1 0
out Out bool [4, 1] 0*4

example complex64 4x1
in X complex64 [4, 1] -0.22+0.8j 0.03+0.3j 0.53+0.5j 0.28-0.7j
in Y complex64 [4, 1] -0.35-0.8j 0.2+0.6j -0.08-0.3j 0.48+0.1j
out Out complex64 [4, 1] 0.71700007-0.104j -0.17400001+0.078j 0.10760001-0.199j 0.2044-0.308j

example bfloat16 4x1
in X bfloat16 [4, 1] -0.22 0.03 0.53 0.28
in Y bfloat16 [4, 1] -0.35 0.2 -0.08 0.48
out Out bfloat16 [4, 1] 0.0767 0.00598 -0.0425 0.134
)")

HEDDLE_EXAMPLES(elementwise_mul_grad, R"(
example float64 4
in Out@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
in X float64 [4] -0.097 0.293 0.098 -0.292
in Y float64 [4] -0.316 -0.815 -0.649 -0.483
out X@GRAD float64 [4] 0.2528 0.24449999999999997 -0.4543 0.3864
out Y@GRAD float64 [4] 0.0776 -0.08789999999999999 0.0686 0.2336

example float64 1x1
in Out@GRAD float64 [1, 1] -0.6
in X float64 [1, 1] -0.178
in Y float64 [] -0.297
out X@GRAD float64 [1, 1] 0.1782
out Y@GRAD float64 [] 0.10679999999999999

example complex128 2
in Out@GRAD complex128 [2] 0.2-2j 1.2+0.9j
in X complex128 [2] 0.1+0.8j -0.9+0.1j
in Y complex128 [2] 1+1.1j 0.3-1.3j
out X@GRAD complex128 [2] -2-2.22j -0.8100000000000002+1.83j
out Y@GRAD complex128 [2] -1.58-0.36000000000000004j -0.9900000000000001-0.93j

example bool 4
in Out@GRAD bool [4] 1*4
in X bool [4] 1*4
in Y bool [4] 1*4
out X@GRAD bool [4] 1*4
out Y@GRAD bool [4] 1*4
)")
