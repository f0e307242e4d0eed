// Shifts and counts of bits.
#include <algorithm>
#include <bit>

#include "core/interrupts.h"
#include "kernels/elementwise/slots.h"

namespace heddle {
namespace {

// Counts beyond the type's width shift as far as it is wide.
template <typename T>
int ShiftOf(T b) {
  constexpr int kMost = static_cast<int>(sizeof(T)) * 8 - 1;
  if constexpr (std::is_signed_v<T>)
    if (b < 0) return 0;
  return b > T(kMost) ? kMost : static_cast<int>(b);
}
struct LeftShift {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) << ShiftOf(b));
  }
};
struct RightShift {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a >> ShiftOf(b));
  }
};

// The bits of int64 are those of unsigned numbers.
struct UnsignedRightShift {
  static constexpr int64_t kGrain = kElementGrain;
  static int64_t Apply(int64_t a, int64_t b) {
    const auto count = std::min(static_cast<uint64_t>(b), uint64_t{63});
    return static_cast<int64_t>(static_cast<uint64_t>(a) >> count);
  }
};
Status RunRightShiftOfInt64(KernelContext& ctx) {
  return RunBinaryOp<SlotsTf>(ctx, ctx.Bool("unsigned")
                                       ? BinaryLoop<UnsignedRightShift, int64_t, int64_t>::kLoops
                                       : BinaryLoop<RightShift, int64_t, int64_t>::kLoops);
}

template <typename T>
struct PopulationCount {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("x");
    const T* from = x.data<T>();
    uint8_t* to = ctx.Out("y").mutable_data<uint8_t>();
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = static_cast<uint8_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(from[i])));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_left_shift) {
  DefineTfBinary<LeftShift, uint8_t, int8_t, int16_t, int32_t, int64_t>(op, "x << y");
}
HEDDLE_OP(tf_right_shift) {
  DefineTfBinary<RightShift, uint8_t, int8_t, int16_t, int32_t>(
      op, "x >> y, which keeps the sign; with `unsigned` the bits of int64 are unsigned numbers")
      .Attr("unsigned", false)
      .Kernel(DType::kI64, &RunRightShiftOfInt64);
}
HEDDLE_OP(tf_population_count) {
  op.Doc("how many bits of each element are set").Input("x").Output("y");
  op.InferShape([](ShapeContext& ctx) {
    ctx.SetOut("y", ctx.InShape("x"), DType::kU8);
    return Status::Ok();
  });
  op.Kernels<PopulationCount, uint8_t, int8_t, int16_t, int32_t, int64_t>();
}
