// Each index becomes a row that holds the value "off", and the value "on" at the index.
#include <complex>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// The length of the rows; `known` is false while it is not.
Status ReadDepth(const ShapeContext& ctx, IntArg* depth) {
  if (ctx.HasIn("depth_tensor") && IsFloat(ctx.InDType("depth_tensor"))) {
    depth->known = Known(ctx, "depth_tensor");
    HEDDLE_ASSIGN_OR_RETURN(const double number, NumberIn(ctx, "depth_tensor", 0));
    if (!(number >= 0) || number > 1e15)
      return InvalidArgument("the depth is ", number, "; expected a positive number");
    depth->value = static_cast<int64_t>(number);
    return Status::Ok();
  }
  return ReadInt(ctx, "depth_tensor", "depth", depth);
}

Status RowShape(ShapeContext& ctx, Shape out, int64_t axis, int64_t least, DType dtype) {
  IntArg depth;
  HEDDLE_RETURN_IF_ERROR(ReadDepth(ctx, &depth));
  if (depth.known && depth.value < least)
    return InvalidArgument("the depth is ", depth.value, "; expected a positive number");
  if (out.rank() == Shape::kMaxRank) return InvalidArgument("'X' has too many dimensions");
  HEDDLE_ASSIGN_OR_RETURN(const int at, NormalAxis(axis, out.rank() + 1));
  out.insert(at, depth.known ? depth.value : -1);
  if (out.is_static()) HEDDLE_RETURN_IF_ERROR(MakeShape(out, "the result").status());
  ctx.SetOut("Out", out, dtype);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Result<DType> NamedDType(const OpContext& ctx) {
  const DType dtype = DTypeFromProto(ctx.Int("dtype"));
  if (dtype != DType::kUnknown) return dtype;
  return InvalidArgument("'dtype' is ", ctx.Int("dtype"), ", which is no element type");
}

Status OneHotV1Shape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  if (!out.known_rank()) return ctx.Defer();
  if (out.rank() == 0 || (out.dim(-1) != 1 && out.dim(-1) >= 0))
    return InvalidArgument("the last dimension of 'X' must be 1, not ", out.ToString());
  out.erase(out.rank() - 1);
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, NamedDType(ctx));
  return RowShape(ctx, out, -1, 1, dtype);
}

Status OneHotV2Shape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (!ctx.HasIn("Values")) {
    HEDDLE_ASSIGN_OR_RETURN(const DType dtype, NamedDType(ctx));
    return RowShape(ctx, x, ctx.Int("axis"), 1, dtype);
  }
  if (ctx.InShape("Values").is_static() && ctx.InShape("Values").numel() != 2)
    return InvalidArgument("Values has shape ", ctx.InShape("Values").ToString(),
                           ", expected the two values off and on");
  return RowShape(ctx, x, ctx.Int("axis"), 0, ctx.InDType("Values"));
}

// What becomes of an index that names no place.
enum class Beyond : uint8_t { kError, kOff };

template <typename T>
Status SetOnes(const Tensor& x, const AxisLines& lines, Beyond beyond, bool wrap, const void* on,
               size_t size, void* out) {
  const T* v = x.data<T>();
  auto* to = static_cast<std::byte*>(out);
  for (const int64_t line : Watched(lines.lines())) {
    const auto given = ConvertTo<int64_t>(v[line]);
    const int64_t at = wrap && given < 0 ? given + lines.n : given;
    if (at >= 0 && at < lines.n)
      WatchedMemcpy(to + static_cast<size_t>(lines.Begin(line) + at * lines.inner) * size, on,
                    size);
    else if (beyond == Beyond::kError)
      return OutOfRange("'X' holds ", given, " at position ", line, "; expected 0 to ",
                        lines.n - 1);
  }
  return Status::Ok();
}

Status OneHotRows(KernelContext& ctx, const Tensor* values, int64_t axis, Beyond beyond,
                  bool wrap) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  if (values == nullptr) HEDDLE_RETURN_IF_ERROR(CheckIntDType(x.dtype(), "X"));
  HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(out.shape(), axis));
  const size_t size = SizeOf(out.dtype());
  alignas(16) std::byte pair[2 * sizeof(std::complex<double>)] = {};
  if (values != nullptr) {
    std::memcpy(pair, values->raw(), 2 * size);
  } else if (!VisitDType<float, double, int32_t, int64_t, bool, uint8_t, int8_t, int16_t, float16,
                         bfloat16>(out.dtype(), [&](auto tag) {
               using T = typename decltype(tag)::type;
               const T one = static_cast<T>(ComputeType<T>(1));
               std::memcpy(pair + size, &one, size);
             })) {
    return Unimplemented("no one-hot vectors of ", Name(out.dtype()));
  }
  VisitElementSize(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T off;
    std::memcpy(&off, pair, sizeof(T));
    WatchedFill(static_cast<T*>(out.mutable_raw()), out.numel(), off);
  });
  Status status;
  const bool known =
      VisitDType<uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16, float, double>(
          x.dtype(), [&](auto tag) {
            status = SetOnes<typename decltype(tag)::type>(x, lines, beyond, wrap, pair + size,
                                                           size, out.mutable_raw());
          });
  return known ? status : Unimplemented("indices of dtype ", Name(x.dtype()));
}

Status OneHotV1(KernelContext& ctx) {
  return OneHotRows(ctx, nullptr, -1,
                    ctx.Bool("allow_out_of_range") ? Beyond::kOff : Beyond::kError, false);
}
Status OneHotV2(KernelContext& ctx) {
  const std::string& beyond = ctx.Str("out_of_range");
  if (beyond != "error" && beyond != "off")
    return InvalidArgument("out_of_range is '", beyond, "', expected error or off");
  return OneHotRows(ctx, ctx.InOpt("Values"), ctx.Int("axis"),
                    beyond == "off" ? Beyond::kOff : Beyond::kError, ctx.Bool("wrap"));
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(one_hot_v2) {
  op.Doc(
        "A row of `depth` zeros with a one at X, for every element of X; or of the first of Values "
        "with the second one. The rows lie along a new axis. With `wrap` a negative index counts "
        "from the end, and one out of range is an error or leaves its row off.")
      .Input("X")
      .Input("depth_tensor", kOptional | kShapeValue)
      .Input("Values", kOptional)
      .Output("Out")
      .Attr("depth", -1)
      .Attr("dtype", 5)
      .Attr("allow_out_of_range", false)
      .Attr("axis", -1)
      .Attr("out_of_range", "error")
      .Attr("wrap", false)
      .InferShape(OneHotV2Shape)
      .AnyKernel(OneHotV2);
}
HEDDLE_OP(one_hot) {
  op.Doc("one_hot_v2 whose X has a last dimension of 1.")
      .Input("X")
      .Input("depth_tensor", kOptional | kShapeValue)
      .Output("Out")
      .Attr("depth", -1)
      .Attr("dtype", 5)
      .Attr("allow_out_of_range", false)
      .InferShape(OneHotV1Shape)
      .AnyKernel(OneHotV1);
}
