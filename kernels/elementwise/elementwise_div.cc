#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/tile_loop.h"
#include "kernels/operands/element_types.h"

namespace heddle {
namespace {

template <typename T>
Status DivInts(KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(NoZeroDivisor(ctx.In("Y")));
  return RunBinaryOp<SlotsXY>(ctx, BinaryLoop<DivFn, T, T>::kLoops);
}

// elem_type may say that the bits are those of uint64.
Status DivInt64(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), DType::kI64));
  if (type != ElementType::kUint64) return DivInts<int64_t>(ctx);
  HEDDLE_RETURN_IF_ERROR(NoZeroDivisor(ctx.In("Y")));
  return RunBinaryOp<SlotsXY>(ctx, BinaryLoop<DivFn, uint64_t, uint64_t>::kLoops);
}

template <typename FX, typename FY, typename T>
Status DivIntsGrad(KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(NoZeroDivisor(ctx.In("Y")));
  return RunGradOp(ctx, LoopsOf<FX, T>(), LoopsOf<FY, T>(), true);
}

struct DivGradX {
  static constexpr unsigned kUses = kUsesY;
  template <typename T>
  static T Apply(T, T y, T, T dout, double) {
    return DivFn::Apply(dout, Conj(y));
  }
};

struct DivGradY {  // -dout * out / y
  static constexpr unsigned kUses = kUsesY | kUsesOut;
  template <typename T>
  static T Apply(T, T y, T out, T dout, double) {
    if constexpr (std::is_integral_v<T>) {  // multiplied first: a division cuts
      using W = std::conditional_t<sizeof(T) < sizeof(int), int, T>;
      const W negative = SubFn::Apply(W(0), static_cast<W>(dout));
      return static_cast<T>(
          DivFn::Apply(MulFn::Apply(negative, static_cast<W>(out)), static_cast<W>(y)));
    } else {
      return MulFn::Apply(SubFn::Apply(T(0), dout), Conj(DivFn::Apply(out, y)));
    }
  }
};

template <typename... Ts>
void AddIntegerGrads(OpDef& op) {
  (op.Kernel(kDTypeOf<Ts>, &DivIntsGrad<DivGradX, DivGradY, Ts>), ...);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_div) {
  DefineElementwise<DivFn, float, double, float16, bfloat16, std::complex<float>,
                    std::complex<double>>(op, "x / y; integers are cut towards zero");
  op.Attr("elem_type", 0);
  op.Kernel(DType::kI32, &DivInts<int32_t>).Kernel(DType::kI64, &DivInt64);
  op.Kernel(DType::kI16, &DivInts<int16_t>).Kernel(DType::kI8, &DivInts<int8_t>);
  op.Kernel(DType::kU8, &DivInts<uint8_t>).Kernel(DType::kBool, &DivInts<bool>);
}

HEDDLE_OP(elementwise_div_grad) {
  op.Doc("gradient of x / y");
  DefineElementwiseGrad<DivGradX, DivGradY, float, double, float16, bfloat16, std::complex<float>,
                        std::complex<double>>(op, kUsesY | kUsesOut);
  AddIntegerGrads<bool, uint8_t, int8_t, int16_t, int32_t, int64_t>(op);
}

HEDDLE_TILE(elementwise_div) { return BinaryTile<DivFn>(); }
