// Numbers as integers or small floats with a scale: of the whole tensor, of an axis or of blocks.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/operands/element_types.h"
#include "kernels/quantize/quantized.h"

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
Result<ElementType> LinearType(const OpContext& ctx, bool has_zero, DType zero) {
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
      LinearType(ctx, has_zero, has_zero ? ctx.InDType("y_zero_point") : DType::kU8));
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

using Quotient = double (*)(double a, double b);
// Dividend, divisor and quotient are numbers of T.
template <typename T>
double QuotientOf(double a, double b) {
  using C = ComputeType<T>;
  const auto rounded = [](double x) { return static_cast<C>(T(static_cast<C>(x))); };
  return double{rounded(double{rounded(a) / rounded(b)})};
}
// By ONNX's number of the type, 0 for that of the operands: quotients of smaller floats are floats.
Result<Quotient> QuotientIn(int64_t precision, DType x) {
  switch (precision) {
    case 0:
      return x == DType::kF64 ? Quotient{&QuotientOf<double>} : Quotient{&QuotientOf<float>};
    case 1:
      return Quotient{&QuotientOf<float>};
    case 10:
      return Quotient{&QuotientOf<float16>};
    case 11:
      return Quotient{&QuotientOf<double>};
    case 16:
      return Quotient{&QuotientOf<bfloat16>};
    default:
      return InvalidArgument("precision is ", precision, ", expected 0, 1, 10, 11 or 16");
  }
}

// fn(first element, how many, scale): for runs of elements with one scale, and for rows whose
// elements have a scale each, `scales` at once where `each` is set. Threads share them.
template <typename Fn>
void ForEachRun(const KernelContext& ctx, const ScaleLayout& l, int64_t numel, const Fn& fn) {
  constexpr int64_t kGrain = 1 << 14;
  if (l.single) {
    ctx.ParallelFor(numel, kGrain, [&](int64_t begin, int64_t end) {
      for (const auto some : Stretches(Stretches::Range{begin, end}))
        fn(some.begin, some.end - some.begin, 0, false);
    });
    return;
  }
  const bool each = l.inner == 1;
  const int64_t length = each ? l.n : l.inner, rows = each ? l.outer : l.outer * l.n;
  ctx.ParallelFor(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, length)),
                  [&](int64_t begin, int64_t end) {
                    for (const int64_t r : Watched(begin, end))
                      fn(r * length, length, each ? 0 : r % l.n, each);
                  });
}

// The common case: small integers, floats, no blocks. The numbers are those of the general loops.
bool QuantizeFast(const KernelContext& ctx, const ScaleLayout& l, const Tensor& x,
                  const Tensor& scale, const Tensor* zero, Tensor* out) {
  if (x.dtype() != DType::kF32 || scale.dtype() != DType::kF32 || l.block != 0) return false;
  return VisitDType<uint8_t, int8_t, int16_t>(out->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const float *from = x.data<float>(), *by = scale.data<float>();
    const T* const zeros = zero == nullptr ? nullptr : zero->data<T>();
    T* const to = out->mutable_data<T>();
    ForEachRun(ctx, l, x.numel(), [&](int64_t at, int64_t n, int64_t which, bool each) {
      if (each) {
        for (int64_t i = 0; i < n; ++i)
          to[at + i] = RoundTo<T>(from[at + i] / by[i], zeros == nullptr ? 0 : zeros[i]);
        return;
      }
      const T own = zeros == nullptr ? T(0) : zeros[which];
      if constexpr (sizeof(T) == 1)
        simd::BestByteSteps().round(from + at, n, {by[which], own, std::is_signed_v<T>},
                                    reinterpret_cast<uint8_t*>(to + at));
      else
        RoundRow(from + at, n, by[which], own, to + at);
    });
  });
}

// to[i] = (from[i] - zero[i]) * scale[i].
template <typename T>
void ScaleEach(const T* __restrict from, int64_t n, const float* __restrict scale,
               const T* __restrict zero, float* __restrict to) {
  if (zero == nullptr) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]) * scale[i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] - zero[i]) * scale[i];
  }
}

// Index i of the axis has the scales of its block: one for each of the `inner` elements behind it.
bool DequantizeBlocks(const KernelContext& ctx, const ScaleLayout& l, const Tensor& x,
                      const Tensor& scale, const Tensor* zero, Tensor* out) {
  return VisitDType<uint8_t, int8_t>(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const float* const by = scale.data<float>();
    const T *from = x.data<T>(), *zeros = zero == nullptr ? nullptr : zero->data<T>();
    float* const to = out->mutable_data<float>();
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, l.block * l.inner));
    ctx.ParallelFor(l.outer * l.groups, grain, [&](int64_t begin, int64_t end) {
      for (const int64_t g : Watched(begin, end)) {
        const int64_t first = g % l.groups * l.block, last = std::min(l.n, first + l.block);
        const int64_t at = (g / l.groups * l.n + first) * l.inner;
        if (l.inner == 1) {
          ScaleRow(from + at, last - first, by[g], zeros == nullptr ? 0 : zeros[g], to + at);
          continue;
        }
        const T* const z = zeros == nullptr ? nullptr : zeros + g * l.inner;
        for (int64_t i = 0; i < last - first; ++i)
          ScaleEach(from + at + i * l.inner, l.inner, by + g * l.inner, z, to + at + i * l.inner);
      }
    });
  });
}

bool DequantizeFast(const KernelContext& ctx, const ScaleLayout& l, const Tensor& x,
                    const Tensor& scale, const Tensor* zero, Tensor* out) {
  if (out->dtype() != DType::kF32 || scale.dtype() != DType::kF32) return false;
  if (x.dtype() == DType::kI32 && zero != nullptr) return false;  // a difference of 33 bits
  if (l.block != 0) return DequantizeBlocks(ctx, l, x, scale, zero, out);
  return VisitDType<uint8_t, int8_t, int16_t, int32_t>(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const float* const by = scale.data<float>();
    const T *from = x.data<T>(), *zeros = zero == nullptr ? nullptr : zero->data<T>();
    float* const to = out->mutable_data<float>();
    ForEachRun(ctx, l, x.numel(), [&](int64_t at, int64_t n, int64_t which, bool each) {
      if (each) return ScaleEach(from + at, n, by, zeros, to + at);
      ScaleRow(from + at, n, by[which], zeros == nullptr ? 0 : zeros[which], to + at);
    });
  });
}

Status OnnxQuantize(KernelContext& ctx) {
  const Tensor &x = ctx.In("x"), &scale = ctx.In("y_scale");
  const Tensor* zero = ctx.InOpt("y_zero_point");
  Tensor& out = ctx.Out("y");
  HEDDLE_ASSIGN_OR_RETURN(const ScaleLayout layout, LayoutOf(ctx, x.shape(), scale.shape()));
  HEDDLE_ASSIGN_OR_RETURN(
      const ElementType type,
      LinearType(ctx, zero != nullptr, zero == nullptr ? DType::kU8 : zero->dtype()));
  if (IsComplex(x.dtype()) || !IsFloat(scale.dtype()))
    return Unimplemented("no quantisation of ", Name(x.dtype()), " with a scale of ",
                         Name(scale.dtype()));
  const ElementType from = OwnElementType(x.dtype()), scales = OwnElementType(scale.dtype());
  HEDDLE_ASSIGN_OR_RETURN(const Quotient quotient, QuotientIn(ctx.Int("precision"), x.dtype()));
  const bool saturate = ctx.Int("saturate") != 0;
  const bool common =
      type == ElementType::kUint8 || type == ElementType::kInt8 || type == ElementType::kInt16;
  const int64_t precision = ctx.Int("precision");
  if (common && precision <= 1 && QuantizeFast(ctx, layout, x, scale, zero, &out))
    return Status::Ok();
  const bool known = VisitDType<uint8_t, int8_t, int16_t, int32_t>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.mutable_data<T>();
    ctx.ParallelFor(x.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = layout.At(i);
        const double q = quotient(NumberAt(x, i, from).real, NumberAt(scale, at, scales).real);
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
  if (type == OwnElementType(x.dtype()) && DequantizeFast(ctx, layout, x, scale, zero, &out))
    return Status::Ok();
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
  const auto steps = RangeSteps<float>::Of(ctx, from, x.numel());
  steps.Round(ctx, from, x.numel(), ctx.Out("y").mutable_data<uint8_t>());
  *ctx.Out("y_scale").mutable_data<float>() = steps.scale;
  *ctx.Out("y_zero_point").mutable_data<uint8_t>() = static_cast<uint8_t>(steps.zero);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(affine_quantize) {
  op.Doc(
      "x / y_scale in precision, + y_zero_point, rounded to elem_type (or output_dtype without a "
      "zero point)");
  op.Input("x").Input("y_scale").Input("y_zero_point", kOptional).Output("y");
  op.Attr("axis", 1).Attr("saturate", 1).Attr("block_size", 0).Attr("output_dtype", 0);
  op.Attr("precision", 0).Attr("elem_type", 0).Traits(kElementwise);
  op.InferShape(OnnxQuantizeShape).AnyKernel(OnnxQuantize);
}
HEDDLE_OP(affine_dequantize) {
  op.Doc("(x - x_zero_point) * x_scale, x and its zero point being of elem_type");
  op.Input("x").Input("x_scale").Input("x_zero_point", kOptional).Output("y");
  op.Attr("axis", 1).Attr("block_size", 0).Attr("output_dtype", 0).Attr("elem_type", 0);
  op.Traits(kElementwise);
  op.InferShape(OnnxDequantizeShape).AnyKernel(OnnxDequantize);
}
HEDDLE_OP(dynamic_quantize) {
  op.Doc("x in 255 steps of its own range, which is widened to contain 0");
  op.Input("x").Output("y").Output("y_scale").Output("y_zero_point");
  op.Traits(kElementwise);  // the range is that of the elements in any order
  op.InferShape(OnnxDynamicQuantizeShape).Kernel(DType::kF32, OnnxDynamicQuantize);
}
