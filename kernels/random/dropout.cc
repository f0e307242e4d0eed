// dropout and dropout_nd, whose mask is broadcast over the dimensions that `axis` does not name.
#include <algorithm>

#include "core/interrupts.h"
#include "core/operands/unwritten.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"

namespace heddle {
namespace {

bool Upscales(const OpContext& ctx) {
  return ctx.Str("dropout_implementation") == "upscale_in_train";
}

Status DropoutShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  ctx.SetOut("Out", x, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  if (ctx.HasOut("Mask") && !ctx.Bool("is_test")) ctx.SetOut("Mask", x, DType::kU8);
  return Status::Ok();
}

Status DropoutNdShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(DropoutShape(ctx));
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  Shape mask = x;
  const Ints& axes = ctx.IntList("axis");
  for (int64_t a : axes) HEDDLE_RETURN_IF_ERROR(NormalAxis(a, x.rank()).status());
  if (!axes.empty())
    for (int i = 0; i < x.rank(); ++i)
      if (std::find(axes.begin(), axes.end(), i) == axes.end()) mask[i] = 1;
  if (ctx.HasOut("Mask") && !ctx.Bool("is_test")) ctx.SetOut("Mask", mask, DType::kU8);
  return Status::Ok();
}

// Calls fn(element, mask element) for all elements of a tensor under a mask that may have 1s.
template <typename Fn>
void ForMasked(const Shape& x, const Shape& mask, Fn&& fn) {
  const int64_t n = x.numel();
  if (mask.numel() == n) {
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) fn(i, i);
    return;
  }
  for (const int64_t i : Watched(n)) {
    int64_t rest = i, at = 0, step = 1;
    for (int d = x.rank() - 1; d >= 0; --d) {
      if (mask[d] != 1) at += rest % x[d] * step, step *= mask[d];
      rest /= x[d];
    }
    fn(i, at);
  }
}

template <typename T>
void Scale(const KernelContext& ctx, const Tensor& from, double by, Tensor& to) {
  using C = ComputeType<T>;
  const T* x = from.data<T>();
  T* y = to.mutable_data<T>();
  const C factor = static_cast<C>(by);
  ctx.ParallelFor(to.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(static_cast<C>(x[i]) * factor);
  });
}

// Factor of kept elements. A probability that a variable gives may be anything.
template <typename C>
C Factor(bool upscale, double p) {
  return !upscale ? C(1) : p != 1 ? static_cast<C>(1 / (1 - p)) : C(0);
}

template <typename T>
struct Dropout {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const Tensor& x = ctx.In("X");
    Tensor& out = ctx.Out("Out");
    const double p = ctx.Float("dropout_prob");
    const bool upscale = Upscales(ctx);
    if (ctx.Bool("is_test")) {
      Scale<T>(ctx, x, upscale ? 1 : 1 - p, out);
      return Status::Ok();
    }
    // Mask elements are drawn in order, whatever the threads.
    Tensor hold;
    Tensor* mask = ctx.OutOpt("Mask");
    if (!mask) {
      hold = ctx.Scratch(DType::kU8, x.shape());
      mask = &hold;
    }
    uint8_t* keep = mask->mutable_data<uint8_t>();
    Draw(ctx, p, keep, mask->numel());
    const C factor = Factor<C>(upscale, p);
    const T* from = x.data<T>();
    T* to = out.mutable_data<T>();
    ForMasked(x.shape(), mask->shape(), [&](int64_t i, int64_t m) {
      to[i] = keep[m] ? static_cast<T>(static_cast<C>(from[i]) * factor) : T(0);
    });
    return Status::Ok();
  }

  static void Draw(const KernelContext& ctx, double p, uint8_t* keep, int64_t n) {
    std::mt19937_64 fixed;
    bool use_fixed = ctx.Bool("fix_seed");
    uint64_t seed = static_cast<uint64_t>(ctx.Int("seed"));
    if (const Tensor* t = ctx.InOpt("Seed"); t && t->numel() == 1) {
      seed = static_cast<uint64_t>(IntAt(*t, 0));
      use_fixed = true;
    }
    if (use_fixed) fixed.seed(seed);
    std::mt19937_64& engine = use_fixed ? fixed : ctx.random();
    std::uniform_real_distribution<float> uniform(0.f, 1.f);
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i)
        keep[i] = uniform(engine) >= static_cast<float>(p) ? 1 : 0;
  }
};

Status GradShape(ShapeContext& ctx) {
  ctx.SetOut("X@GRAD", ctx.InShape("Out@GRAD"), ctx.InDType("Out@GRAD"));
  return Status::Ok();
}

template <typename T>
struct DropoutGrad {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const Tensor& grad = ctx.In("Out@GRAD");
    Tensor& to = ctx.Out("X@GRAD");
    const double p = ctx.Float("dropout_prob");
    const bool upscale = Upscales(ctx);
    if (ctx.Bool("is_test")) {
      Scale<T>(ctx, grad, upscale ? 1 : 1 - p, to);
      return Status::Ok();
    }
    const Tensor& mask = ctx.In("Mask");
    const Shape &gs = grad.shape(), &ms = mask.shape();
    bool fits = mask.dtype() == DType::kU8 && ms.rank() == gs.rank();
    for (int i = 0; fits && i < gs.rank(); ++i) fits = ms[i] == gs[i] || ms[i] == 1;
    if (!fits)
      return InvalidArgument("Mask is ", Name(mask.dtype()), " ", ms.ToString(),
                             ", expected uint8 of Out@GRAD's shape, ", gs.ToString());
    const C factor = Factor<C>(upscale, p);
    const T* from = grad.data<T>();
    const uint8_t* keep = mask.data<uint8_t>();
    T* out = to.mutable_data<T>();
    ForMasked(gs, ms, [&](int64_t i, int64_t m) {
      out[i] = keep[m] ? static_cast<T>(static_cast<C>(from[i]) * factor) : T(0);
    });
    return Status::Ok();
  }
};

void Define(OpDef& op) {
  op.Input("X").Input("Seed", kOptional).Output("Out").Output("Mask", kOptional | kMayBeUnwritten);
  op.Attr("dropout_prob", 0.5).Attr("is_test", false).Attr("fix_seed", false).Attr("seed", 0);
  op.Attr("dropout_implementation", "downgrade_in_infer");
  op.Traits(kRandom).Inplace("X", "Out").Kernels<Dropout, float, double, bfloat16>();
}
void DefineGrad(OpDef& op) {
  op.Input("Mask", kOptional).Input("Out@GRAD").Output("X@GRAD");
  op.Attr("dropout_prob", 0.5).Attr("is_test", false);
  op.Attr("dropout_implementation", "downgrade_in_infer");
  op.KernelKey("Out@GRAD").InferShape(GradShape).Kernels<DropoutGrad, float, double, bfloat16>();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(dropout) {
  op.Doc("sets elements to 0 at random while training; scales, or not, in tests");
  Define(op);
  op.InferShape(DropoutShape);
}
HEDDLE_OP(dropout_grad) { DefineGrad(op); }
HEDDLE_OP(dropout_nd) {
  op.Doc("dropout of whole slices: the mask has the dimensions of `axis` only");
  Define(op);
  op.Attr("axis", Ints{}).InferShape(DropoutNdShape);
}
HEDDLE_OP(dropout_nd_grad) {
  DefineGrad(op);
  op.Attr("axis", Ints{});
}
