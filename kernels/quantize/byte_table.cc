// byte_table: a function of one byte as a table of its 256 values. An operator of heddle, made by a
// pass of element-wise operators between dequantised and quantised tensors.
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/quantize/byte_loops.h"

namespace heddle {
namespace {

constexpr int64_t kBytes = 256;

Status ByteTableShape(ShapeContext& ctx) {
  const Shape& table = ctx.InShape("Table");
  if (table.is_static() && !(table == Shape{kBytes}))
    return InvalidArgument("Table has shape ", table.ToString(), ", expected [256]");
  const DType dtype = ctx.InDType("Table");
  if (dtype != DType::kU8 && dtype != DType::kI8 && dtype != DType::kF32)
    return InvalidArgument("Table is ", Name(dtype), ", expected uint8, int8 or float32");
  ctx.SetOut("Out", ctx.InShape("X"), dtype);
  return Status::Ok();
}

Status RunByteTable(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &table = ctx.In("Table");
  Tensor& out = ctx.Out("Out");
  const auto* const from = static_cast<const uint8_t*>(x.raw());
  if (table.dtype() != DType::kF32) {
    LookUpBytes(ctx, from, x.numel(), static_cast<const uint8_t*>(table.raw()),
                static_cast<uint8_t*>(out.mutable_raw()));
    return Status::Ok();
  }
  const float* const values = table.data<float>();
  float* const to = out.mutable_data<float>();
  ctx.ParallelFor(x.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
    for (const auto part : Stretches(Stretches::Range{begin, end}))
      for (int64_t i = part.begin; i < part.end; ++i) to[i] = values[from[i]];
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(byte_table) {
  op.Doc(
      "Out = Table[X], where a negative X counts from the table's end: Table has the values for 0 "
      "to 127, then those for 128 to 255 (of uint8) or -128 to -1 (of int8)");
  op.Input("X").Input("Table").Output("Out").Traits(kElementwise);
  op.InferShape(ByteTableShape).Kernel({DType::kU8, DType::kI8}, RunByteTable);
}
