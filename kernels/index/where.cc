// X where a condition holds, else Y, all broadcast to one shape.
#include <algorithm>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/operands.h"
#include "kernels/strided/index_expand.h"

namespace heddle {
namespace {

// The condition's shape as it is broadcast: its axes are X's last ones, or X's first ones.
Result<Shape> ConditionShape(const OpContext& ctx, const Shape& condition, const Shape& x) {
  if (!ctx.Bool("leading_axes")) return condition;
  if (!condition.known_rank() || !x.known_rank()) return Shape::Unknown();
  if (condition.rank() > x.rank())
    return InvalidArgument("Condition has shape ", condition.ToString(), ", expected X's first ",
                           "dimensions, of ", x.ToString());
  Shape shape = condition;
  while (shape.rank() < x.rank()) shape.push_back(1);
  return shape;
}

Result<Shape> CommonShape(const OpContext& ctx, const Shape& c, const Shape& x, const Shape& y) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape condition, ConditionShape(ctx, c, x));
  HEDDLE_ASSIGN_OR_RETURN(const Shape values, BroadcastShape(x, y, -1));
  if (!condition.known_rank()) return x == y ? x : Shape::Unknown();
  return BroadcastShape(condition, values, -1);
}

Status InferWhere(ShapeContext& ctx) {
  const Shape &c = ctx.InShape("Condition"), &x = ctx.InShape("X"), &y = ctx.InShape("Y");
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, CommonShape(ctx, c, x, y));
  ctx.SetOut("Out", shape, ctx.InDType("X"));
  if (shape == x) ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

// Rows of the last dimension [begin, end).
template <typename T>
void Rows(const Shape& shape, const Tensor& ct, const Shape& condition, const Tensor& xt,
          const Tensor& yt, int64_t begin, int64_t end, T* out) {
  const auto cs = BroadcastStrides(condition, shape), xs = BroadcastStrides(xt.shape(), shape),
             ys = BroadcastStrides(yt.shape(), shape);
  const int last = shape.rank() - 1;
  const int64_t n = last < 0 ? 1 : shape[last];
  const auto inner = [&](const auto& steps) {
    return last < 0 ? int64_t{0} : steps[static_cast<size_t>(last)];
  };
  const int64_t ci = inner(cs), xi = inner(xs), yi = inner(ys);
  for (const int64_t row : Watched(begin, end)) {
    int64_t at = row, c0 = 0, x0 = 0, y0 = 0;
    for (int d = last - 1; d >= 0; --d) {
      const int64_t i = at % shape[d];
      at /= shape[d];
      c0 += i * cs[static_cast<size_t>(d)];
      x0 += i * xs[static_cast<size_t>(d)];
      y0 += i * ys[static_cast<size_t>(d)];
    }
    const bool* c = ct.data<bool>() + c0;
    const T* x = static_cast<const T*>(xt.raw()) + x0;
    const T* y = static_cast<const T*>(yt.raw()) + y0;
    for (int64_t i = 0; i < n; ++i) out[row * n + i] = c[i * ci] ? x[i * xi] : y[i * yi];
  }
}

template <typename T>
void SelectElements(const KernelContext& ctx, const Shape& condition, Tensor& out) {
  const Tensor &ct = ctx.In("Condition"), &xt = ctx.In("X"), &yt = ctx.In("Y");
  T* to = static_cast<T*>(out.mutable_raw());
  const Shape& shape = out.shape();
  if (condition == shape && xt.shape() == shape && yt.shape() == shape) {
    const bool* c = ct.data<bool>();
    const T *x = static_cast<const T*>(xt.raw()), *y = static_cast<const T*>(yt.raw());
    ctx.ParallelFor(out.numel(), kElementGrain, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) to[i] = c[i] ? x[i] : y[i];
    });
    return;
  }
  const int64_t n = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  const int64_t rows = n == 0 ? 0 : shape.numel() / n;
  constexpr int64_t kGrain = 16384;
  ctx.ParallelFor(
      rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)),
      [&](int64_t begin, int64_t end) { Rows<T>(shape, ct, condition, xt, yt, begin, end, to); });
}

Status Where(KernelContext& ctx) {
  const Tensor &c = ctx.In("Condition"), &x = ctx.In("X"), &y = ctx.In("Y");
  if (c.dtype() != DType::kBool || x.dtype() != y.dtype())
    return InvalidArgument("Condition is ", Name(c.dtype()), ", X ", Name(x.dtype()), " and Y ",
                           Name(y.dtype()), "; bool and two tensors of one type are expected");
  HEDDLE_ASSIGN_OR_RETURN(const Shape condition, ConditionShape(ctx, c.shape(), x.shape()));
  Tensor& out = ctx.Out("Out");
  VisitElementSize(x.dtype(), [&](auto tag) {
    SelectElements<typename decltype(tag)::type>(ctx, condition, out);
  });
  return Status::Ok();
}

// The gradient of an operand from that in the result's shape.
template <typename T, typename Fn>
Status GradOf(const KernelContext& ctx, const Shape& shape, Tensor* to, Fn&& fn) {
  if (to == nullptr) return Status::Ok();
  HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {to}));
  const bool same = to->shape() == shape;
  Tensor full = same ? *to : ctx.Scratch(to->dtype(), shape);
  T* d = full.mutable_data<T>();
  ctx.ParallelFor(full.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) d[i] = fn(i);
  });
  return same ? Status::Ok() : RunRepeatSum(ctx, full, *to);
}

template <typename T>
struct WhereGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& dt = ctx.In("Out@GRAD");
    Tensor given = ctx.In("Condition");
    if (given.dtype() != DType::kBool)
      return InvalidArgument("Condition is ", Name(given.dtype()), ", expected bool");
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ConditionShape(ctx, given.shape(), dt.shape()));
    Tensor condition = given.Reshaped(shape);
    if (!(shape == dt.shape())) {
      Tensor full = ctx.Scratch(DType::kBool, dt.shape());
      HEDDLE_RETURN_IF_ERROR(RunRepeat(ctx, condition, full));
      condition = full;
    }
    const bool* c = condition.data<bool>();
    const T* dout = dt.data<T>();
    HEDDLE_RETURN_IF_ERROR(GradOf<T>(ctx, dt.shape(), ctx.OutOpt("X@GRAD"),
                                     [=](int64_t i) { return c[i] ? dout[i] : T(0); }));
    return GradOf<T>(ctx, dt.shape(), ctx.OutOpt("Y@GRAD"),
                     [=](int64_t i) { return c[i] ? T(0) : dout[i]; });
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(where) {
  op.Doc(
        "X where the condition holds, else Y, all broadcast to one shape; with leading_axes the "
        "condition's axes are X's first ones")
      .Input("Condition")
      .Input("X")
      .Input("Y")
      .Output("Out");
  op.Attr("leading_axes", false);
  op.Inplace("X", "Out").Inplace("Y", "Out").KernelKey("X").InferShape(&InferWhere);
  op.AnyKernel(Where);
}

HEDDLE_OP(where_grad) {
  op.Doc("gradient of where").Input("Condition").Input("X", kNoBuffer).Input("Y", kNoBuffer);
  op.Input("Out@GRAD").Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional);
  op.Attr("leading_axes", false);
  op.KernelKey("Out@GRAD").InferShape(&GradLikeInputs);
  op.Kernels<WhereGrad, float, double, int32_t, int64_t, float16, bfloat16, std::complex<float>,
             std::complex<double>>();
}
