// Powers of integers and of complex numbers; elementwise_pow takes floats.
#include "kernels/elementwise/slots.h"

namespace heddle {
namespace {

struct Power {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T base, T exponent) {
    if constexpr (std::is_integral_v<T>) {
      uint64_t power = 1, square = static_cast<uint64_t>(base);
      for (auto e = static_cast<uint64_t>(exponent); e > 0; e >>= 1) {
        if ((e & 1) != 0) power *= square;
        square *= square;
      }
      return static_cast<T>(power);
    } else {
      return std::pow(base, exponent);
    }
  }
};

template <typename T>
Status IntegerPowers(KernelContext& ctx) {
  const Tensor& y = ctx.In("y");
  if constexpr (std::is_signed_v<T>)
    for (int64_t i = 0; i < y.numel() && y.dtype() == kDTypeOf<T>; ++i)
      if (y.data<T>()[i] < 0)
        return InvalidArgument("y holds the negative power ", int64_t{y.data<T>()[i]},
                               " at position ", i, ", integers have none");
  return RunBinaryOp<SlotsTf>(ctx, BinaryLoop<Power, T, T>::kLoops);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_pow) {
  DefineTfBinary<Power, float, double, float16, bfloat16, complex64, complex128>(
      op, "x to the power of y");
  op.Kernel(DType::kU8, IntegerPowers<uint8_t>).Kernel(DType::kI8, IntegerPowers<int8_t>);
  op.Kernel(DType::kI16, IntegerPowers<int16_t>).Kernel(DType::kI32, IntegerPowers<int32_t>);
  op.Kernel(DType::kI64, IntegerPowers<int64_t>);
}
