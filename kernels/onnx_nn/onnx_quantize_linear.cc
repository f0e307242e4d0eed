// Numbers as integers or small floats with a scale: of the whole tensor, of an axis or of blocks.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/onnx/element_types.h"
#include "kernels/onnx_nn/quantized.h"

namespace heddle {
namespace {

// Which element of the scale belongs to each element of the tensor: element (o, i, k) of
// [outer, n, inner] has scale (o, i / block, k) of blocks, i of an axis, or the only one.
struct ScaleLayout {
  int64_t outer = 1, n = 1, inner = 1, block = 0, groups = 1;
  bool single = false;

  int64_t At(int64_t index) const {
    if (single) return 0;
    const int64_t k = index % inner, i = index / inner % n;
    if (block == 0) return i;
    return (index / inner / n * groups + i / block) * inner + k;
  }
};

Result<ScaleLayout> LayoutOf(const OpContext& ctx, const Shape& x, const Shape& scale) {
  ScaleLayout l;
  const int64_t block = ctx.Int("block_size");
  if (block == 0 && scale.numel() == 1) {
    l.single = true;
    return l;
  }
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  const AxisLines lines = AxisLines::Of(x, axis);
  l.outer = lines.outer;
  l.n = lines.n;
  l.inner = lines.inner;
  if (block == 0) {
    if (scale.rank() == 1 && x.rank() > 0 && scale[0] == l.n) return l;
    return InvalidArgument("a scale of shape ", scale.ToString(), " does not fit axis ", axis,
                           " of ", x.ToString());
  }
  l.block = block;
  bool good = block > 0 && scale.rank() == x.rank() && x.rank() > 0;
  for (int i = 0; good && i < x.rank(); ++i)
    good = scale[i] == (i == axis ? x[i] / block + (x[i] % block != 0 ? 1 : 0) : x[i]);
  if (!good)
    return InvalidArgument("a scale of shape ", scale.ToString(), " does not fit ", x.ToString(),
                           " in blocks of ", block, " along axis ", axis);
  l.groups = scale[axis];
  return l;
}

Status CheckZero(const Shape& scale, const Shape* zero) {
  if (zero == nullptr || *zero == scale || (zero->numel() == 1 && scale.numel() == 1))
    return Status::Ok();
  return InvalidArgument("the zero point has shape ", zero->ToString(), ", the scale ",
                         scale.ToString(), ", expected one shape");
}

// The type that results: of the zero point, output_dtype, or uint8.
Result<ElementType> QuantizedType(const OpContext& ctx, bool has_zero, DType zero) {
  if (has_zero) return StoredAs(ctx.Int("elem_type"), zero);
  int64_t number = ctx.Int("output_dtype");
  if (number == 0) number = ctx.Int("elem_type");
  if (number == 0) return ElementType::kUint8;
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, DTypeOfOnnx(number, DType::kU8));
  return StoredAs(number, dtype);
}

Status OnnxQuantizeShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"x", "y_scale", "y_zero_point"})) return ctx.Defer();
  const Shape &x = ctx.InShape("x"), &scale = ctx.InShape("y_scale");
  const bool has_zero = ctx.HasIn("y_zero_point");
  HEDDLE_RETURN_IF_ERROR(LayoutOf(ctx, x, scale).status());
  HEDDLE_RETURN_IF_ERROR(CheckZero(scale, has_zero ? &ctx.InShape("y_zero_point") : nullptr));
  HEDDLE_ASSIGN_OR_RETURN(
      const ElementType type,
      QuantizedType(ctx, has_zero, has_zero ? ctx.InDType("y_zero_point") : DType::kU8));
  if (!IsTinyFloat(type) && (!IsIntegral(type) || BitsOf(type) > 16))
    return InvalidArgument("cannot quantise to element type ", static_cast<int>(type));
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, DTypeOfOnnx(static_cast<int64_t>(type), DType::kU8));
  ctx.SetOut("y", x, dtype);
  return Status::Ok();
}

// An integer rounded to the nearest one, ties to even, and limited to its type.
int64_t Quantized(double x, int64_t zero, ElementType type) {
  if (std::isnan(x)) return std::clamp<int64_t>(0, LeastOf(type), GreatestOf(type));
  const double rounded = std::nearbyint(x) + static_cast<double>(zero);
  return static_cast<int64_t>(std::clamp(rounded, static_cast<double>(LeastOf(type)),
                                         static_cast<double>(GreatestOf(type))));
}

Status OnnxQuantize(KernelContext& ctx) {
  const Tensor &x = ctx.In("x"), &scale = ctx.In("y_scale");
  const Tensor* zero = ctx.InOpt("y_zero_point");
  Tensor& out = ctx.Out("y");
  HEDDLE_ASSIGN_OR_RETURN(const ScaleLayout layout, LayoutOf(ctx, x.shape(), scale.shape()));
  HEDDLE_ASSIGN_OR_RETURN(
      const ElementType type,
      QuantizedType(ctx, zero != nullptr, zero == nullptr ? DType::kU8 : zero->dtype()));
  if (IsComplex(x.dtype()) || !IsFloat(scale.dtype()))
    return Unimplemented("no quantisation of ", Name(x.dtype()), " with a scale of ",
                         Name(scale.dtype()));
  const ElementType from = OwnElementType(x.dtype()), scales = OwnElementType(scale.dtype());
  const bool saturate = ctx.Int("saturate") != 0, wide = x.dtype() == DType::kF64;
  const bool known = VisitDType<uint8_t, int8_t, int16_t, int32_t>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.mutable_data<T>();
    ctx.ParallelFor(x.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = layout.At(i);
        const double a = NumberAt(x, i, from).real, b = NumberAt(scale, at, scales).real;
        // Quotients of floats are floats.
        const double q = wide ? a / b : double{static_cast<float>(a) / static_cast<float>(b)};
        const Number z = zero == nullptr ? Number{true, 0, 0} : NumberAt(*zero, at, type);
        if (IsTinyFloat(type))
          to[i] = static_cast<T>(ToTinyFloat(q + z.real, type, saturate, Rounding::kNearest));
        else
          to[i] = static_cast<T>(Quantized(q, z.integer, type));
      }
    });
  });
  return known ? Status::Ok() : Unimplemented("no quantisation to ", Name(out.dtype()));
}

Status OnnxDequantizeShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"x", "x_scale", "x_zero_point"})) return ctx.Defer();
  const Shape &x = ctx.InShape("x"), &scale = ctx.InShape("x_scale");
  HEDDLE_RETURN_IF_ERROR(LayoutOf(ctx, x, scale).status());
  HEDDLE_RETURN_IF_ERROR(
      CheckZero(scale, ctx.HasIn("x_zero_point") ? &ctx.InShape("x_zero_point") : nullptr));
  HEDDLE_RETURN_IF_ERROR(StoredAs(ctx.Int("elem_type"), ctx.InDType("x")).status());
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype,
                          DTypeOfOnnx(ctx.Int("output_dtype"), ctx.InDType("x_scale")));
  ctx.SetOut("y", x, IsFloat(dtype) ? dtype : DType::kF32);
  return Status::Ok();
}

Status OnnxDequantize(KernelContext& ctx) {
  const Tensor &x = ctx.In("x"), &scale = ctx.In("x_scale");
  const Tensor* zero = ctx.InOpt("x_zero_point");
  Tensor& out = ctx.Out("y");
  HEDDLE_ASSIGN_OR_RETURN(const ScaleLayout layout, LayoutOf(ctx, x.shape(), scale.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), x.dtype()));
  if ((!IsTinyFloat(type) && !IsIntegral(type)) || (zero != nullptr && zero->dtype() != x.dtype()))
    return Unimplemented("no dequantisation of ", Name(x.dtype()));
  const ElementType scales = OwnElementType(scale.dtype());
  const bool known = VisitDType<float, double, float16, bfloat16>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    T* to = out.mutable_data<T>();
    ctx.ParallelFor(x.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = layout.At(i);
        const double z = zero == nullptr ? 0 : NumberAt(*zero, at, type).real;
        const C centered = static_cast<C>(NumberAt(x, i, type).real - z);
        to[i] = static_cast<T>(centered * static_cast<C>(NumberAt(scale, at, scales).real));
      }
    });
  });
  return known ? Status::Ok() : Unimplemented("no dequantisation to ", Name(out.dtype()));
}

Status OnnxDynamicQuantizeShape(ShapeContext& ctx) {
  ctx.SetOut("y", ctx.InShape("x"), DType::kU8);
  ctx.SetOut("y_scale", {}, DType::kF32);
  ctx.SetOut("y_zero_point", {}, DType::kU8);
  return Status::Ok();
}

Status OnnxDynamicQuantize(KernelContext& ctx) {
  const Tensor& x = ctx.In("x");
  const float* from = x.data<float>();
  const RangeSteps<float> steps(from, x.numel());
  uint8_t* to = ctx.Out("y").mutable_data<uint8_t>();
  for (const auto part : Stretches(x.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      to[i] = static_cast<uint8_t>(steps.StepOf(from[i]));
  *ctx.Out("y_scale").mutable_data<float>() = steps.scale;
  *ctx.Out("y_zero_point").mutable_data<uint8_t>() = static_cast<uint8_t>(steps.zero);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_quantize_linear) {
  op.Doc("x / y_scale + y_zero_point, rounded to elem_type (or output_dtype without a zero point)");
  op.Input("x").Input("y_scale").Input("y_zero_point", kOptional).Output("y");
  op.Attr("axis", 1).Attr("saturate", 1).Attr("block_size", 0).Attr("output_dtype", 0);
  op.Attr("precision", 0).Attr("elem_type", 0);
  op.InferShape(OnnxQuantizeShape).AnyKernel(OnnxQuantize);
}
HEDDLE_OP(onnx_dequantize_linear) {
  op.Doc("(x - x_zero_point) * x_scale, x and its zero point being of elem_type");
  op.Input("x").Input("x_scale").Input("x_zero_point", kOptional).Output("y");
  op.Attr("axis", 1).Attr("block_size", 0).Attr("output_dtype", 0).Attr("elem_type", 0);
  op.InferShape(OnnxDequantizeShape).AnyKernel(OnnxDequantize);
}
HEDDLE_OP(onnx_dynamic_quantize_linear) {
  op.Doc("x in 255 steps of its own range, which is widened to contain 0");
  op.Input("x").Output("y").Output("y_scale").Output("y_zero_point");
  op.InferShape(OnnxDynamicQuantizeShape).Kernel(DType::kF32, OnnxDynamicQuantize);
}

HEDDLE_EXAMPLES(onnx_quantize_linear, R"(
example one scale
dtypes none: rounding of other values differs
in x float32 [7] 0.5 1.5 2.5 -0.5 300 -300 nan
in y_scale float32 [] 1
in y_zero_point uint8 [] 3
out y uint8 [7] 3 5 5 3 255 0 0

example an axis, int8
dtypes none: rounding of other values differs
attr axis INT 0
in x float32 [2, 3] 0.5 1.5 -200 -0.5 300 7
in y_scale float32 [2] 0.5 3
in y_zero_point int8 [2] 3 -3
out y int8 [2, 3] 4 6 -128 -3 97 -1

example no zero point
dtypes none: rounding of other values differs
in x float32 [3] 0.3 1.5 2.5
in y_scale float32 [] 0.1
out y uint8 [3] 3 15 25

example float8e4m3fn
# oracle reference
# opset 21
# type y_zero_point FLOAT8E4M3FN
dtypes none: the zero point holds bits
attr elem_type INT 17
in x float32 [5] 0 1 2 1000 -100
in y_scale float32 [] 2
in y_zero_point uint8 [] 0
out y uint8 [5] 0 48 56 126 228

example int4
# opset 21
# type y_zero_point INT4
# oracle reference
dtypes none: the zero point is of another type
attr elem_type INT 22
in x float32 [2, 4] 0 2.5 4.8 8.6 -30 -20 6 9
in y_scale float32 [4] 2 3 4 5
in y_zero_point int8 [4] 0 -2 1 3
out y int8 [2, 4] 0 -1 2 5 -8 -8 3 5

example uint16
# opset 21
# type y_zero_point UINT16
dtypes none: the zero point is of another type
attr elem_type INT 4
in x float32 [5] 0 -128 3 1e6 -1000
in y_scale float32 [] 2
in y_zero_point int32 [] 32767
out y int32 [5] 32767 32703 32769 65535 32267

example blocks
# opset 21
dtypes none: rounding of other values differs
attr axis INT 1
attr block_size INT 2
in x float32 [2, 3] 6 12 50 5 -7 3
in y_scale float32 [2, 2] 1.5 2.5 3 4.9
in y_zero_point uint8 [2, 2] 0 1 2 3
out y uint8 [2, 3] 4 8 21 4 0 4
)")
HEDDLE_EXAMPLES(onnx_dequantize_linear, R"(
example one scale
dtypes none: the zero point shares the dtype
in x uint8 [4] 0 3 128 255
in x_scale float32 [] 2
in x_zero_point uint8 [] 128
out y float32 [4] -256 -250 0 254

example an axis
dtypes none: the zero point shares the dtype
in x int8 [1, 3, 2] 3 -89 34 -100 74 59
in x_scale float32 [3] 2 4 5
in x_zero_point int8 [3] 84 24 -16
out y float32 [1, 3, 2] -162 -346 40 -496 450 375

example int32 without a zero point
dtypes none: other types need one
in x int32 [3] 3 -89 34
in x_scale float32 [1] 0.5
out y float32 [3] 1.5 -44.5 17

example float8e5m2
# oracle reference
# opset 21
# type x FLOAT8E5M2
dtypes none: the operand holds bits
attr elem_type INT 19
in x uint8 [4] 0 60 200 119
in x_scale float32 [] 2
out y float32 [4] 0 2 -16 57344

example uint4
# opset 21
# type x UINT4
# type x_zero_point UINT4
dtypes none: the operand is of another type
attr axis INT 0
attr elem_type INT 21
in x uint8 [5] 0 1 7 10 15
in x_scale float32 [] 2
in x_zero_point uint8 [] 1
out y float32 [5] -2 0 12 18 28

example blocks
# opset 21
dtypes none: the zero point shares the dtype
attr block_size INT 2
in x int8 [1, 4, 2] 3 -89 34 -100 74 59 5 -24
in x_scale float32 [1, 2, 2] 2 4 5 0.5
in x_zero_point int8 [1, 2, 2] 0 0 1 -2
out y float32 [1, 4, 2] 6 -356 68 -400 365 30.5 20 -11
)")
HEDDLE_EXAMPLES(onnx_dynamic_quantize_linear, R"(
example both signs
in x float32 [2, 3] 0 2 -3 -2.5 1.34 0.5
out y uint8 [2, 3] 153 255 0 26 221 179
out y_scale float32 [] 0.019607844
out y_zero_point uint8 [] 153

example positive
in x float32 [3] 1 2 3
out y uint8 [3] 85 170 255
out y_scale float32 [] 0.011764706
out y_zero_point uint8 [] 0

example zeros
in x float32 [3] 0 0 0
out y uint8 [3] 0 0 0
out y_scale float32 [] 1
out y_zero_point uint8 [] 0
)")
