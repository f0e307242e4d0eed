#include <algorithm>
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"
#include "kernels/base/index_args.h"

namespace heddle {
namespace {

// Lengths may be floats: a position belongs to a sequence when it is below the length.
Status CheckLengths(const Tensor& x) {
  return x.dtype() == DType::kF32 || x.dtype() == DType::kF64 ? Status::Ok()
                                                              : CheckIntDType(x.dtype(), "X");
}

int64_t LengthAt(const Tensor& x, int64_t i) {
  if (x.dtype() != DType::kF32 && x.dtype() != DType::kF64) return IntAt(x, i);
  const double length = x.dtype() == DType::kF32 ? x.data<float>()[i] : x.data<double>()[i];
  return ConvertTo<int64_t>(std::ceil(length));
}

Status MaskShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  if (!out.known_rank()) return ctx.Defer();
  if (out.rank() == Shape::kMaxRank) return InvalidArgument("'X' has too many dimensions");
  IntArg longest;
  HEDDLE_RETURN_IF_ERROR(ReadInt(ctx, "MaxLenTensor", "maxlen", &longest));
  if (!longest.known) return ctx.Defer();
  if (longest.value < 0) {  // as long as the longest sequence
    const Tensor* x = ctx.InValue("X");
    if (x == nullptr) return ctx.Defer();
    HEDDLE_RETURN_IF_ERROR(CheckLengths(*x));
    longest.value = 0;
    for (const auto part : Stretches(x->numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        longest.value = std::max(longest.value, LengthAt(*x, i));
  }
  out.push_back(longest.value);
  const DType dtype = DTypeFromProto(ctx.Int("out_dtype"));
  if (dtype == DType::kUnknown)
    return InvalidArgument("'out_dtype' is ", ctx.Int("out_dtype"), ", which is no element type");
  ctx.SetOut("Y", out, dtype);
  return Status::Ok();
}

Status Mask(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Y");
  HEDDLE_RETURN_IF_ERROR(CheckLengths(x));
  const int64_t longest = out.dim(-1);
  const bool known = VisitDType<float, double, int32_t, int64_t, bool, uint8_t, int8_t, int16_t,
                                float16, bfloat16>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.mutable_data<T>();
    for (int64_t i = 0; i < x.numel(); ++i, to += longest) {
      const int64_t n = std::clamp<int64_t>(LengthAt(x, i), 0, longest);
      WatchedFill(to, n, static_cast<T>(ComputeType<T>(1)));
      std::fill(to + n, to + longest, static_cast<T>(ComputeType<T>(0)));
    }
  });
  return known ? Status::Ok() : Unimplemented("no masks of type ", Name(out.dtype()));
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_mask) {
  op.Doc("For every length in X a row of that many ones, followed by zeros.")
      .Input("X", kShapeValue)
      .Input("MaxLenTensor", kOptional | kShapeValue)
      .Output("Y")
      .Attr("maxlen", -1)
      .Attr("out_dtype", 3)
      .InferShape(MaskShape)
      .AnyKernel(Mask);
}
