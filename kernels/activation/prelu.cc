#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"
#include "kernels/operands/broadcast_rows.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// Which element of Alpha belongs to element i of X: (i / inner) % period.
struct AlphaIndex {
  int64_t inner = 1, period = 1;
  int64_t operator()(int64_t i) const { return i / inner % period; }
};

Result<AlphaIndex> AlphaIndexOf(const OpContext& ctx, const Shape& x) {
  const std::string& mode = ctx.Str("mode");
  AlphaIndex index;
  if (mode == "all") return index;
  if (mode == "channel") {
    if (x.rank() < 2)
      return InvalidArgument("X has shape ", x.ToString(), ", mode 'channel' needs rank 2 or more");
    const bool last = ctx.Str("data_format") == "NHWC" || x.rank() == 2;
    index.period = x.dim(last ? -1 : 1);
    if (!last) index.inner = x.Product(2, x.rank());
  } else if (mode == "element") {
    if (x.rank() < 1) return InvalidArgument("X is a scalar, mode 'element' needs dimensions");
    index.period = x.Product(1, x.rank());
  } else {
    return InvalidArgument("mode is '", mode, "', expected all, channel or element");
  }
  return index;
}

Status CheckAlpha(const OpContext& ctx, const Shape& x, const Shape& alpha) {
  if (!x.is_static() || !alpha.is_static()) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(const AlphaIndex index, AlphaIndexOf(ctx, x));
  if (alpha.numel() == index.period || x.numel() == 0) return Status::Ok();
  return InvalidArgument("Alpha has shape ", alpha.ToString(), ", expected ", index.period,
                         " elements for X ", x.ToString());
}

bool IsBroadcast(const OpContext& ctx) { return ctx.Str("mode") == "broadcast"; }

Status PreluShape(ShapeContext& ctx) {
  if (IsBroadcast(ctx)) {
    if (!AllStatic(ctx, {"X", "Alpha"})) return ctx.Defer();
    if (ctx.InDType("X") != ctx.InDType("Alpha"))
      return InvalidArgument("Alpha is ", Name(ctx.InDType("Alpha")), ", X ",
                             Name(ctx.InDType("X")), ", expected one dtype");
    HEDDLE_ASSIGN_OR_RETURN(const Shape both, BroadcastShape(ctx.InShape("X"), ctx.InShape("Alpha"),
                                                             static_cast<int>(ctx.Int("axis"))));
    ctx.SetOut("Out", both, ctx.InDType("X"));
    return Status::Ok();
  }
  HEDDLE_RETURN_IF_ERROR(CheckAlpha(ctx, ctx.InShape("X"), ctx.InShape("Alpha")));
  return SameShape(ctx);
}

template <typename T>
struct Prelu {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const T* x = in.data<T>();
    const T* alpha = ctx.In("Alpha").data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    if (IsBroadcast(ctx)) {
      HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                              MakeBroadcastPlan(in.shape(), ctx.In("Alpha").shape(),
                                                static_cast<int>(ctx.Int("axis"))));
      ForEachPair(ctx, plan, x, alpha, out,
                  [](T v, T a) { return v < 0 ? static_cast<T>(v * a) : v; });
      return Status::Ok();
    }
    HEDDLE_ASSIGN_OR_RETURN(const AlphaIndex index, AlphaIndexOf(ctx, in.shape()));
    if (in.numel() == 0) return Status::Ok();
    // Stretches that share one element of Alpha, or one element of Alpha each.
    const int64_t row = index.inner > 1 || index.period == 1 ? index.inner : index.period;
    const int64_t width = index.period == 1 ? in.numel() : row;
    ctx.ParallelFor(in.numel() / width, 1 + 65536 / width, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = x + r * width;
        T* to = out + r * width;
        if (index.inner > 1 || index.period == 1) {
          const T a = alpha[index(r * width)];
          for (int64_t i = 0; i < width; ++i) to[i] = from[i] > T(0) ? from[i] : a * from[i];
        } else {
          for (int64_t i = 0; i < width; ++i) to[i] = from[i] > T(0) ? from[i] : alpha[i] * from[i];
        }
      }
    });
    return Status::Ok();
  }
};

Status PreluGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  HEDDLE_RETURN_IF_ERROR(CheckAlpha(ctx, x, ctx.InShape("Alpha")));
  const Shape& grad = ctx.InShape("Out@GRAD");
  if (x.is_static() && grad.is_static() && !(x == grad))
    return InvalidArgument("Out@GRAD has shape ", grad.ToString(), ", X ", x.ToString());
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", x, ctx.InDType("X"));
  if (ctx.HasOut("Alpha@GRAD"))
    ctx.SetOut("Alpha@GRAD", ctx.InShape("Alpha"), ctx.InDType("Alpha"));
  return Status::Ok();
}

template <typename T>
struct PreluGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AlphaIndex index, AlphaIndexOf(ctx, in.shape()));
    const T* x = in.data<T>();
    const T* alpha = ctx.In("Alpha").data<T>();
    const T* grad = ctx.In("Out@GRAD").data<T>();
    if (Tensor* t = ctx.OutOpt("X@GRAD")) {
      T* to = t->mutable_data<T>();
      for (const auto part : Stretches(in.numel()))
        for (int64_t i = part.begin; i < part.end; ++i)
          to[i] = x[i] > T(0) ? grad[i] : alpha[index(i)] * grad[i];
    }
    if (Tensor* t = ctx.OutOpt("Alpha@GRAD")) {
      T* to = t->mutable_data<T>();
      for (const auto part : Stretches(t->numel()))
        for (int64_t i = part.begin; i < part.end; ++i) to[i] = T(0);
      for (const auto part : Stretches(in.numel()))
        for (int64_t i = part.begin; i < part.end; ++i)
          if (!(x[i] > T(0))) to[index(i)] += x[i] * grad[i];
    }
    return Status::Ok();
  }
};

void Attrs(OpDef& op) { op.Attr("mode", "all").Attr("data_format", "NCHW"); }

}  // namespace
}  // namespace heddle

HEDDLE_OP(prelu) {
  op.Doc(
      "x where positive, else Alpha * x; one Alpha for all, per channel or per element, or (mode "
      "broadcast) X and Alpha both broadcast, Alpha's dimensions from `axis` on");
  op.Input("X").Input("Alpha").Output("Out").InferShape(PreluShape);
  Attrs(op);
  op.Attr("axis", -1);
  op.Kernels<Prelu, float, double, int32_t, int64_t>().Kernel({DType::kF16, DType::kBF16},
                                                              RunInFloat);
}
HEDDLE_OP(prelu_grad) {
  op.Input("X").Input("Alpha").Input("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("Alpha@GRAD", kOptional).InferShape(PreluGradShape);
  Attrs(op);
  op.Kernels<PreluGrad, float, double>();
}
