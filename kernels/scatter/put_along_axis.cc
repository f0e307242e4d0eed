// put_along_axis: writes or reduces one value per entry of Index into a copy of Input.
#include <algorithm>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/index/nd_rows.h"
#include "kernels/scatter/combine.h"
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

// The combinations with what was there, for every dtype that has them.
Status CombineAt(const KernelContext& ctx, Update how, const Tensor& value, const Tensor& elements,
                 Tensor& out) {
  HEDDLE_ASSIGN_OR_RETURN(const bool new_stays, NewStays(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const CombineFn combine, CombineOf(how, new_stays, out.dtype()));
  const auto size = static_cast<int64_t>(SizeOf(out.dtype()));
  const auto* from = static_cast<const std::byte*>(value.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  const int64_t* at = elements.data<int64_t>();
  for (const int64_t i : Watched(elements.numel()))
    combine(to + at[i] * size, from + i * size, 1, 1);
  return Status::Ok();
}

// kAssign: `how` is another word.
Update CombinationOf(const std::string& how) {
  return how == "add"                        ? Update::kAdd
         : how == "mul" || how == "multiply" ? Update::kMul
         : how == "amin"                     ? Update::kMin
         : how == "amax"                     ? Update::kMax
                                             : Update::kAssign;
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
  if (const Update combined = CombinationOf(how);
      combined != Update::kAssign && ctx.Bool("Include_self"))
    return CombineAt(ctx, combined, value, elements, out);
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
    const bool replaced = how == "assign" || !ctx.Bool("Include_self");
    if (replaced) ZeroRows(to->mutable_raw(), elements, size);
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
      .Attr("undecided", "old")
      .Inplace("Input", "Result")
      .InferShape(SameShape)
      .AnyKernel(Put);
}

HEDDLE_OP(put_along_axis_grad) {
  op.Input("Result@GRAD")
      .Input("Index")
      .Input("Input")
      .Input("Value")
      .Input("Result")
      .Output("Input@GRAD", kOptional)
      .Output("Value@GRAD", kOptional)
      .Attr("Axis", 0)
      .Attr("Reduce", "assign")
      .Attr("Include_self", true)
      .InferShape(PutGradShape)
      .AnyKernel(PutGrad);
}
