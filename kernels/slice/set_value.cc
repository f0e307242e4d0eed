#include <algorithm>
#include <complex>
#include <limits>
#include <type_traits>

#include "core/shapes.h"
#include "kernels/strided/index_expand.h"
#include "kernels/strided/index_slice.h"

namespace heddle {
namespace {

struct Part {
  SliceSpec spec;  // of Input
  Shape assigned;  // what a value is broadcast to: no decreased axes, none_axes added
};

Status Resolve(const OpContext& ctx, const Shape& x, Part* part) {
  IntArgs starts, ends, steps, none;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "StartsTensorList", "StartsTensorList", "starts", &starts));
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "EndsTensorList", "EndsTensorList", "ends", &ends));
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "StepsTensorList", "StepsTensorList", "steps", &steps));
  const Ints& drop = ctx.IntList("decrease_axes");
  HEDDLE_RETURN_IF_ERROR(
      ResolveSlice(x, ctx.IntList("axes"), starts, ends, &steps, drop, {}, &part->spec));
  HEDDLE_ASSIGN_OR_RETURN(part->assigned, DropAxes(part->spec.counts(), drop));
  for (int64_t axis : ctx.IntList("none_axes")) {
    if (axis < 0 || part->assigned.rank() == Shape::kMaxRank)
      return OutOfRange("'none_axes' holds ", axis, ", which is no place in ",
                        part->assigned.ToString());
    part->assigned.insert(static_cast<int>(std::min<int64_t>(axis, part->assigned.rank())), 1);
  }
  return Status::Ok();
}

// The value's shape without leading ones that the part lacks.
Shape Fitted(const Shape& value, const Shape& assigned) {
  Shape fitted = value;
  while (fitted.rank() > assigned.rank() && fitted[0] == 1) fitted.erase(0);
  return fitted;
}

// The integer of a number that the program's file holds as one: an int64 beyond a double's
// precision must not leave the type.
template <typename T>
T Rounded(double v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else {
    if (v >= static_cast<double>(std::numeric_limits<T>::max()))
      return std::numeric_limits<T>::max();
    if (v <= static_cast<double>(std::numeric_limits<T>::min()))
      return std::numeric_limits<T>::min();
    return static_cast<T>(v);
  }
}

// The values of the attributes as a tensor.
Status AttrTensor(const KernelContext& ctx, DType dtype, Tensor* out) {
  const Ints& dims = ctx.IntList("shape");
  if (dims.size() > static_cast<size_t>(Shape::kMaxRank))
    return InvalidArgument("'shape' has ", dims.size(), " dimensions");
  const Shape shape(std::span(dims.data(), dims.size()));
  const Floats* given = &ctx.Attr<Floats>("values");
  for (Key key : {Key("fp32_values"), Key("fp64_values"), Key("int32_values"), Key("int64_values"),
                  Key("bool_values")})
    if (given->empty()) given = &ctx.Attr<Floats>(key);
  const Floats& values = *given;
  // Complex values come as pairs.
  const size_t parts = IsComplex(dtype) && values.size() == 2 * size_t(shape.numel()) ? 2 : 1;
  if (!shape.is_static() || shape.numel() * parts != values.size())
    return InvalidArgument("there are ", values.size(), " values for the shape ", shape.ToString());
  *out = ctx.Scratch(dtype, shape);
  const bool known =
      VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16, float, double,
                 std::complex<float>, std::complex<double>>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        T* to = out->mutable_data<T>();
        for (size_t i = 0; i * parts < values.size(); ++i) {
          if constexpr (IsComplex(kDTypeOf<T>)) {
            using R = typename T::value_type;
            to[i] = T(static_cast<R>(values[i * parts]),
                      parts == 2 ? static_cast<R>(values[i * 2 + 1]) : R(0));
          } else if constexpr (std::is_integral_v<T>) {
            to[i] = Rounded<T>(values[i]);
          } else {
            to[i] = static_cast<T>(static_cast<ComputeType<T>>(values[i]));
          }
        }
      });
  return known ? Status::Ok() : Unimplemented("no values of type ", Name(dtype));
}

Status SetValue(KernelContext& ctx) {
  const Tensor& x = ctx.In("Input");
  Tensor& out = ctx.Out("Out");
  Part part;
  HEDDLE_RETURN_IF_ERROR(Resolve(ctx, x.shape(), &part));
  Tensor value;
  if (const Tensor* given = ctx.InOpt("ValueTensor"))
    value = *given;
  else
    HEDDLE_RETURN_IF_ERROR(AttrTensor(ctx, x.dtype(), &value));
  if (value.dtype() != x.dtype())
    return InvalidArgument("'ValueTensor' is ", Name(value.dtype()), ", but 'Input' is ",
                           Name(x.dtype()));
  const Shape fitted = Fitted(value.shape(), part.assigned);
  HEDDLE_ASSIGN_OR_RETURN(const Shape both, BroadcastShape(part.assigned, fitted, -1));
  if (!(both == part.assigned))
    return InvalidArgument("a value of shape ", value.shape().ToString(),
                           " cannot be assigned to a part of shape ", part.assigned.ToString());
  Tensor kept;
  const Tensor* source = &Apart(ctx, value, out, &kept);
  CopyBytes(ctx, x.raw(), out.mutable_raw(), out.bytes());
  Tensor expanded;
  if (!(fitted == part.assigned)) {
    expanded = ctx.Scratch(x.dtype(), part.assigned);
    HEDDLE_RETURN_IF_ERROR(RunRepeat(ctx, source->Reshaped(fitted), expanded));
    source = &expanded;
  }
  CopyInto(x.shape(), part.spec, SizeOf(x.dtype())).Run(ctx, source->raw(), out.mutable_raw());
  return Status::Ok();
}

// Input's gradient is zero where the value went; the value's is what the part received.
Status SetValueGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  const size_t size = SizeOf(grad.dtype());
  Part part;
  HEDDLE_RETURN_IF_ERROR(Resolve(ctx, grad.shape(), &part));
  Tensor zeros = ctx.Scratch(grad.dtype(), part.assigned);
  if (Tensor* to = ctx.OutOpt("Input@GRAD")) {
    CopyBytes(ctx, grad.raw(), to->mutable_raw(), to->bytes());
    ZeroBytes(ctx, zeros.mutable_raw(), zeros.bytes());
    CopyInto(grad.shape(), part.spec, size).Run(ctx, zeros.raw(), to->mutable_raw());
  }
  Tensor* to = ctx.OutOpt("ValueTensor@GRAD");
  if (to == nullptr) return Status::Ok();
  Tensor& received = zeros;
  CopyOutOf(grad.shape(), part.spec, size).Run(ctx, grad.raw(), received.mutable_raw());
  Tensor sum = to->Reshaped(Fitted(to->shape(), part.assigned));
  return RunRepeatSum(ctx, received, sum);
}

Status GradShapes(ShapeContext& ctx) {
  if (ctx.HasOut("Input@GRAD"))
    ctx.SetOut("Input@GRAD", ctx.InShape("Out@GRAD"), ctx.InDType("Out@GRAD"));
  if (!ctx.HasOut("ValueTensor@GRAD")) return Status::Ok();
  if (!ctx.HasIn("ValueTensor")) return InvalidArgument("'ValueTensor' is missing");
  ctx.SetOut("ValueTensor@GRAD", ctx.InShape("ValueTensor"), ctx.InDType("Out@GRAD"));
  return Status::Ok();
}

void Declare(OpDef& op) {
  op.Input("StartsTensorList", kOptional | kList)
      .Input("EndsTensorList", kOptional | kList)
      .Input("StepsTensorList", kOptional | kList)
      .Attr("axes", Ints{})
      .Attr("starts", Ints{})
      .Attr("ends", Ints{})
      .Attr("steps", Ints{})
      .Attr("decrease_axes", Ints{})
      .Attr("none_axes", Ints{});
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(set_value) {
  op.Doc("Input with Input[start:end:step] replaced by ValueTensor or by `values`.")
      .Input("Input")
      .Input("ValueTensor", kOptional);
  Declare(op);
  op.Output("Out")
      .Attr("shape", Ints{})
      .Attr("values", Floats{})
      .Attr("fp32_values", Floats{})
      .Attr("fp64_values", Floats{})
      .Attr("int32_values", Floats{})
      .Attr("int64_values", Floats{})
      .Attr("bool_values", Floats{})
      .Inplace("Input", "Out")
      .InferShape(SameShape)
      .AnyKernel(SetValue);
}
HEDDLE_OP(set_value_grad) {
  op.Input("Out@GRAD").Input("ValueTensor", kOptional | kNoBuffer);
  Declare(op);
  op.Output("Input@GRAD", kOptional)
      .Output("ValueTensor@GRAD", kOptional)
      .InferShape(GradShapes)
      .AnyKernel(SetValueGrad);
}
