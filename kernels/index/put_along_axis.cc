// put_along_axis: writes or reduces one value per entry of Index into a copy of Input.
#include <algorithm>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/index/nd_rows.h"
#include "kernels/strided/index_slice.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Combines what is at an element with a new value. `seen` (a byte per element, zeros) is given when
// what was there before does not count: the first value then replaces it.
template <typename T, typename Combine>
void Accumulate(const Tensor& value, const Tensor& elements, uint8_t* seen, Combine combine,
                Tensor& out) {
  using C = ComputeType<T>;
  const int64_t* at = elements.data<int64_t>();
  const T* v = value.data<T>();
  T* to = out.mutable_data<T>();
  for (const int64_t i : Watched(elements.numel())) {
    T& t = to[at[i]];
    if (seen != nullptr && seen[at[i]] == 0) {
      seen[at[i]] = 1;
      t = v[i];
    } else {
      t = static_cast<T>(combine(static_cast<C>(t), static_cast<C>(v[i])));
    }
  }
}

// The mean over what was there (if it counts) and all values of an element.
template <typename T>
void Average(const Tensor& value, const Tensor& elements, uint8_t* seen, Tensor& count,
             Tensor& out) {
  using C = ComputeType<T>;
  Accumulate<T>(
      value, elements, seen, [](C a, C b) { return static_cast<C>(a + b); }, out);
  int64_t* n = count.mutable_data<int64_t>();
  WatchedFill(n, out.numel(), seen == nullptr ? 1 : 0);
  for (const auto part : Stretches(elements.numel()))
    for (int64_t i = part.begin; i < part.end; ++i) ++n[elements.data<int64_t>()[i]];
  for (const auto part : Stretches(out.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (n[i] > 1)
        out.mutable_data<T>()[i] =
            static_cast<T>(static_cast<C>(out.data<T>()[i]) / static_cast<C>(n[i]));
}

template <typename T>
Status Reduce(const KernelContext& ctx, const std::string& how, const Tensor& value,
              const Tensor& elements, Tensor& out) {
  using C = ComputeType<T>;
  Tensor marks;
  uint8_t* seen = nullptr;
  if (!ctx.Bool("Include_self")) {
    marks = ctx.Scratch(DType::kU8, out.shape());
    seen = marks.mutable_data<uint8_t>();
    WatchedFill(seen, out.numel(), uint8_t{0});
  }
  if (how == "add") {
    Accumulate<T>(
        value, elements, seen, [](C a, C b) { return static_cast<C>(a + b); }, out);
  } else if (how == "mul" || how == "multiply") {
    Accumulate<T>(
        value, elements, seen, [](C a, C b) { return static_cast<C>(a * b); }, out);
  } else if (how == "amin") {
    Accumulate<T>(
        value, elements, seen, [](C a, C b) { return b < a ? b : a; }, out);
  } else if (how == "amax") {
    Accumulate<T>(
        value, elements, seen, [](C a, C b) { return a < b ? b : a; }, out);
  } else if (how == "mean") {
    Tensor count = ctx.Scratch(DType::kI64, out.shape());
    Average<T>(value, elements, seen, count, out);
  } else {
    return InvalidArgument("'Reduce' is '", how,
                           "'; expected assign, add, mul, multiply, mean, amin or amax");
  }
  return Status::Ok();
}

// The leading part of `value` that has the index's shape.
Status Leading(const KernelContext& ctx, const Tensor& value, const Shape& shape, Tensor* part) {
  bool fits = value.rank() == shape.rank();
  for (int d = 0; fits && d < shape.rank(); ++d) fits = value.dim(d) >= shape[d];
  if (!fits)
    return InvalidArgument("'Value' of shape ", value.shape().ToString(), " does not fit 'Index' ",
                           shape.ToString());
  SliceSpec box = WholeSlice(shape);
  *part = ctx.Scratch(value.dtype(), shape);
  CopyOutOf(value.shape(), box, SizeOf(value.dtype())).Run(ctx, value.raw(), part->mutable_raw());
  return Status::Ok();
}

Status Put(KernelContext& ctx) {
  const Tensor& x = ctx.In("Input");
  Tensor& out = ctx.Out("Result");
  Tensor kept;
  const Tensor* given = &Apart(ctx, ctx.In("Value"), out, &kept);
  HEDDLE_ASSIGN_OR_RETURN(const Tensor elements, ElementsOfIndex(ctx, x.shape()));
  if (given->dtype() != x.dtype())
    return InvalidArgument("'Value' is ", Name(given->dtype()), ", but 'Input' is ",
                           Name(x.dtype()));
  Tensor part;
  if (!(given->shape() == elements.shape())) {
    HEDDLE_RETURN_IF_ERROR(Leading(ctx, *given, elements.shape(), &part));
    given = &part;
  }
  const Tensor& value = *given;
  CopyBytes(ctx, x.raw(), out.mutable_raw(), out.bytes());
  const std::string& how = ctx.Str("Reduce");
  if (how == "assign") {
    ScatterRows(ctx, value.raw(), elements, GoodRows(x.numel()), 1,
                static_cast<int64_t>(SizeOf(x.dtype())), out.mutable_raw());
    return Status::Ok();
  }
  Status status;
  const bool known =
      VisitDType<float, double, int32_t, int64_t, uint8_t, int16_t, float16, bfloat16>(
          x.dtype(), [&](auto tag) {
            status = Reduce<typename decltype(tag)::type>(ctx, how, value, elements, out);
          });
  return known ? status : Unimplemented("no sums of ", Name(x.dtype()), " tensors");
}

// If several values are put at one element, the last one counts; the others get gradient zero.
void ZeroOverwritten(const KernelContext& ctx, const Tensor& elements, const Shape& shape,
                     int64_t size, Tensor& value_grad) {
  Tensor last = ctx.Scratch(DType::kI64, shape);
  int64_t* writer = last.mutable_data<int64_t>();
  const int64_t* at = elements.data<int64_t>();
  for (const auto some : Stretches(elements.numel()))
    for (int64_t i = some.begin; i < some.end; ++i) writer[at[i]] = i;
  auto* to = static_cast<std::byte*>(value_grad.mutable_raw());
  for (const auto some : Stretches(elements.numel()))
    for (int64_t i = some.begin; i < some.end; ++i)
      if (writer[at[i]] != i) WatchedMemset(to + i * size, 0, static_cast<size_t>(size));
}

// Gradient of reduce = "mul": that of the product, times the product, divided by the factor.
template <typename T>
Status ProductGrad(KernelContext& ctx, const Tensor& elements) {
  const Tensor &grad = ctx.In("Result@GRAD"), &out = ctx.In("Result");
  if (out.numel() != grad.numel() || out.dtype() != grad.dtype())
    return InvalidArgument("'Result' does not fit 'Result@GRAD'");
  const T *g = grad.data<T>(), *y = out.data<T>();
  const int64_t* at = elements.data<int64_t>();
  if (Tensor* to = ctx.OutOpt("Input@GRAD")) {
    const Tensor& x = ctx.In("Input");
    if (x.numel() != grad.numel() || x.dtype() != grad.dtype())
      return InvalidArgument("'Input' does not fit 'Result@GRAD'");
    CopyBytes(ctx, grad.raw(), to->mutable_raw(), to->bytes());
    for (const auto some : Stretches(elements.numel()))
      for (int64_t i = some.begin; i < some.end; ++i)
        to->mutable_data<T>()[at[i]] = g[at[i]] * y[at[i]] / x.data<T>()[at[i]];
  }
  if (Tensor* to = ctx.OutOpt("Value@GRAD")) {
    const Tensor* value = &ctx.In("Value");
    Tensor part;
    if (!(value->shape() == elements.shape())) {
      HEDDLE_RETURN_IF_ERROR(Leading(ctx, *value, elements.shape(), &part));
      value = &part;
    }
    if (value->dtype() != grad.dtype()) return InvalidArgument("'Value' has another dtype");
    for (const auto some : Stretches(elements.numel()))
      for (int64_t i = some.begin; i < some.end; ++i)
        to->mutable_data<T>()[i] = g[at[i]] * y[at[i]] / value->data<T>()[i];
  }
  return Status::Ok();
}

Status PutGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Result@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor elements, ElementsOfIndex(ctx, grad.shape()));
  const auto size = static_cast<int64_t>(SizeOf(grad.dtype()));
  const std::string& how = ctx.Str("Reduce");
  if ((how == "mul" || how == "multiply") && ctx.Bool("Include_self")) {
    if (grad.dtype() == DType::kF32) return ProductGrad<float>(ctx, elements);
    if (grad.dtype() == DType::kF64) return ProductGrad<double>(ctx, elements);
  }
  if (how != "assign" && how != "add")
    return Unimplemented("the gradient of a reduction by '", how, "'");
  if (Tensor* to = ctx.OutOpt("Input@GRAD")) {
    CopyBytes(ctx, grad.raw(), to->mutable_raw(), to->bytes());
    if (how == "assign") ZeroRows(to->mutable_raw(), elements, size);
  }
  Tensor* to = ctx.OutOpt("Value@GRAD");
  if (to == nullptr) return Status::Ok();
  GatherRows(ctx, grad.raw(), elements, GoodRows(grad.numel()), 1, size, to->mutable_raw());
  if (how == "assign") ZeroOverwritten(ctx, elements, grad.shape(), size, *to);
  return Status::Ok();
}

Status PutGradShape(ShapeContext& ctx) {
  const DType dtype = ctx.InDType("Result@GRAD");
  if (ctx.HasOut("Input@GRAD")) ctx.SetOut("Input@GRAD", ctx.InShape("Result@GRAD"), dtype);
  if (ctx.HasOut("Value@GRAD")) ctx.SetOut("Value@GRAD", ctx.InShape("Index"), dtype);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(put_along_axis) {
  op.Doc("Input with Value put (or combined by Reduce) where Index says along Axis.")
      .Input("Input")
      .Input("Index")
      .Input("Value")
      .Output("Result")
      .Attr("Axis", 0)
      .Attr("Reduce", "assign")
      .Attr("Include_self", true)
      .Inplace("Input", "Result")
      .InferShape(SameShape)
      .AnyKernel(Put);
}

HEDDLE_OP(put_along_axis_grad) {
  op.Input("Result@GRAD")
      .Input("Index")
      .Input("Input", kOptional)
      .Input("Value", kOptional)
      .Input("Result", kOptional)
      .Output("Input@GRAD", kOptional)
      .Output("Value@GRAD", kOptional)
      .Attr("Axis", 0)
      .Attr("Reduce", "assign")
      .Attr("Include_self", true)
      .InferShape(PutGradShape)
      .AnyKernel(PutGrad);
}

HEDDLE_EXAMPLES(put_along_axis, R"(
example float32, assign
attr Axis INT 0
attr Reduce STRING "assign"
in Input float32 [2, 3] -0.68 0.73 -0.42 -0.7 -0.78 -0.59
in Index int64 [2, 3] 0 1 1 1 0 0
in Value float32 [2, 3] 0.42 0.87 -0.92 -0.34 0.75 -0.13
out Result float32 [2, 3] 0.42 0.75 -0.13 -0.34 0.87 -0.92

example float32, add
attr Axis INT 0
attr Reduce STRING "add"
in Input float32 [2, 3] 0.43 -0.02 -0.38 0.42 0.21 -0.1
in Index int64 [2, 3] 0 1 1 1 0 0
in Value float32 [2, 3] -0.19 -0.09 0.22 0.11 0.88 0.5
out Result float32 [2, 3] 0.24000001 0.86 0.120000005 0.53 0.11999999 0.12

example float32, multiply
attr Axis INT 0
attr Reduce STRING "multiply"
in Input float32 [2, 3] 0.73 -0.62 -0.94 -0.8 0.69 -0.29
in Index int64 [2, 3] 0 1 1 1 0 0
in Value float32 [2, 3] -0.04 0.01 -0.65 0.34 -0.37 0.33
out Result float32 [2, 3] -0.0292 0.22940001 -0.3102 -0.272 0.0069 0.18849999

example float64, assign
attr Axis INT 0
attr Reduce STRING "assign"
in Input float64 [2, 3] -0.4 -0.83 0.96 -0.55 -0.11 0.32
in Index int64 [2, 3] 0 1 1 1 0 0
in Value float64 [2, 3] 0.39 0.67 0.23 0.21 -0.29 0.94
out Result float64 [2, 3] 0.39 -0.29 0.94 0.21 0.67 0.23

example float64, add
attr Axis INT 0
attr Reduce STRING "add"
in Input float64 [2, 3] -0.18 0.3 -0.11 0.75 -0.19 0.78
in Index int64 [2, 3] 0 1 1 1 0 0
in Value float64 [2, 3] 0.26 -0.09 0.34 -0.13 -0.82 -0.62
out Result float64 [2, 3] 0.08000000000000002 -0.52 -0.73 0.62 -0.28 1.12

example float64, multiply
attr Axis INT 0
attr Reduce STRING "multiply"
in Input float64 [2, 3] 0.81 0.69 -0.91 -0.67 0.82 -0.13
in Index int64 [2, 3] 0 1 1 1 0 0
in Value float64 [2, 3] -0.1 0.75 0.41 -0.94 -0.71 0.43
out Result float64 [2, 3] -0.08100000000000002 -0.48989999999999995 -0.3913 0.6298 0.615 -0.0533
)")

HEDDLE_EXAMPLES(put_along_axis_grad, R"(
example float32, assign
attr Axis INT 1
attr Reduce STRING "assign"
in Input float32 [2, 3] -0.51 0.83 -0.49 -0.25 -0.2 -0.56
in Index int64 [2, 2] 1 0 2 1
in Value float32 [2, 2] 0.35 -0.12 0.87 -0.22
in Result float32 [2, 3] -0.42 -0.44 0.32 -0.78 -0.67 -0.4
in Result@GRAD float32 [2, 3] -0.42 -0.95 -0.76 0.41 -0.52 -0.24
out Input@GRAD float32 [2, 3] 0 0 -0.76 0.41 0 0
out Value@GRAD float32 [2, 2] -0.95 -0.42 -0.24 -0.52

example float32, add
attr Axis INT 1
attr Reduce STRING "add"
in Input float32 [2, 3] -0.64 -0.47 0.23 -0.73 0.54 -0.78
in Index int64 [2, 2] 1 0 2 1
in Value float32 [2, 2] 0.33 0.4 0.03 -0.44
in Result float32 [2, 3] -0.17 -0.84 0.24 0.73 -0.92 0.51
in Result@GRAD float32 [2, 3] 0.94 0.58 -0.74 -0.65 -0.58 0
out Input@GRAD float32 [2, 3] 0.94 0.58 -0.74 -0.65 -0.58 0
out Value@GRAD float32 [2, 2] 0.58 0.94 0 -0.58

example float64, assign
attr Axis INT 1
attr Reduce STRING "assign"
in Input float64 [2, 3] 0.19 0.77 -0.59 0.94 0.47 0.91
in Index int64 [2, 2] 1 0 2 1
in Value float64 [2, 2] -0.19 -0.8 0.34 0.94
in Result float64 [2, 3] -0.15 0.07 -0.43 0.32 -0.58 0.74
in Result@GRAD float64 [2, 3] -0.17 0.86 0.85 0.9 0.25 0.91
out Input@GRAD float64 [2, 3] 0 0 0.85 0.9 0 0
out Value@GRAD float64 [2, 2] 0.86 -0.17 0.91 0.25

example float64, add
attr Axis INT 1
attr Reduce STRING "add"
in Input float64 [2, 3] -0.24 -0.51 0.99 -0.91 -0.63 0.3
in Index int64 [2, 2] 1 0 2 1
in Value float64 [2, 2] 0.22 -0.25 0.24 0.84
in Result float64 [2, 3] 0.14 0.79 -0.58 -0.23 -0.57 -0.71
in Result@GRAD float64 [2, 3] 0.73 -0.26 0.68 0.72 0.68 0.51
out Input@GRAD float64 [2, 3] 0.73 -0.26 0.68 0.72 0.68 0.51
out Value@GRAD float64 [2, 2] -0.26 0.73 0.51 0.68
)")
