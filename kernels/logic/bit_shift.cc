// Shifts and counts of bits.
#include <bit>

#include "core/interrupts.h"
#include "kernels/elementwise/binary_op.h"
#include "kernels/operands/broadcast_rows.h"
#include "kernels/operands/element_types.h"

namespace heddle {
namespace {

// Counts that are negative or not below the width are brought to the nearest that is possible, or
// mean that no bit stays but for the sign.
template <typename T>
struct BitShift {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
    HEDDLE_RETURN_IF_ERROR(CheckSameDType(ctx, x, y));
    HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), x.dtype()));
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(x.shape(), y.shape(), -1));
    const bool clamp = ctx.Str("out_of_range") == "clamp", is_unsigned = IsUnsigned(type);
    const auto bits = static_cast<uint64_t>(BitsOf(type));
    // How far to shift; `bits`: all go.
    const auto far = [=](T count) {
      if (!is_unsigned && count < 0) return clamp ? uint64_t{0} : bits;
      return std::min(static_cast<uint64_t>(count), clamp ? bits - 1 : bits);
    };
    T* to = ctx.Out("Out").template mutable_data<T>();
    if (ctx.Str("direction") == "left") {
      ForEachPair(ctx, plan, x.data<T>(), y.data<T>(), to, [=](T a, T b) {
        const uint64_t n = far(b);
        if (n == bits) return T(0);
        return static_cast<T>(
            WrapInteger(static_cast<int64_t>(static_cast<uint64_t>(a) << n), type));
      });
    } else if (is_unsigned) {
      ForEachPair(ctx, plan, x.data<T>(), y.data<T>(), to, [=](T a, T b) {
        const uint64_t n = far(b);
        return n == bits ? T(0) : static_cast<T>(static_cast<uint64_t>(a) >> n);
      });
    } else {
      ForEachPair(ctx, plan, x.data<T>(), y.data<T>(), to,
                  [=](T a, T b) { return static_cast<T>(a >> std::min(far(b), bits - 1)); });
    }
    return Status::Ok();
  }
};

Status BitShiftShape(ShapeContext& ctx) {
  if (const std::string& d = ctx.Str("direction"); d != "left" && d != "right")
    return InvalidArgument("attribute direction is '", d, "', expected 'left' or 'right'");
  if (const std::string& o = ctx.Str("out_of_range"); o != "clamp" && o != "zero")
    return InvalidArgument("attribute out_of_range is '", o, "', expected 'clamp' or 'zero'");
  return BroadcastPair(ctx, "X", "Y", "Out");
}

template <typename T>
struct PopulationCount {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const T* from = x.data<T>();
    uint8_t* to = ctx.Out("Out").mutable_data<uint8_t>();
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = static_cast<uint8_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(from[i])));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(bit_shift) {
  op.Doc("x shifted by y bits; elem_type says which type the operands stand for");
  op.Input("X").Input("Y").Output("Out").Attr("direction", "left").Attr("out_of_range", "zero");
  op.Attr("elem_type", 0).InferShape(BitShiftShape);
  op.Kernels<BitShift, uint8_t, int8_t, int16_t, int32_t, int64_t>();
}
HEDDLE_OP(population_count) {
  op.Doc("how many bits of each element are set").Input("X").Output("Out");
  op.InferShape([](ShapeContext& ctx) {
    ctx.SetOut("Out", ctx.InShape("X"), DType::kU8);
    return Status::Ok();
  });
  op.Kernels<PopulationCount, uint8_t, int8_t, int16_t, int32_t, int64_t>();
}
