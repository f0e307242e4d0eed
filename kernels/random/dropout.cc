// dropout and dropout_nd, whose mask is broadcast over the dimensions that `axis` does not name.
#include <algorithm>

#include "core/interrupts.h"
#include "core/operands/unwritten.h"
#include "core/shapes.h"
#include "kernels/index/index_args.h"

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

HEDDLE_EXAMPLES(dropout, R"(
example float32, upscale
random
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "upscale_in_train"
attr seed INT 3
attr fix_seed BOOLEAN true
in X float32 [40, 50] 2*2000
out Out float32 [40, 50] mean 2 0.2 range 0 2.66667 count 2
out Mask uint8 [40, 50] mean 0.75 0.05 range 0 1

example float32, downgrade
random
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "downgrade_in_infer"
attr seed INT 3
attr fix_seed BOOLEAN true
in X float32 [40, 50] 2*2000
out Out float32 [40, 50] mean 1.5 0.15 range 0 2 count 2
out Mask uint8 [40, 50] mean 0.75 0.05 range 0 1

example float32, test, upscale_in_train
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "upscale_in_train"
attr is_test BOOLEAN true
in X float32 [2, 3] -0.91 -0.59 -0.79 0.45 0.36 -0.05
out Out float32 [2, 3] -0.91 -0.59 -0.79 0.45 0.36 -0.05

example float32, test, downgrade_in_infer
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "downgrade_in_infer"
attr is_test BOOLEAN true
in X float32 [2, 3] -0.1 -0.96 0.51 0.2 0.92 0.33
out Out float32 [2, 3] -0.075 -0.71999997 0.3825 0.15 0.69 0.2475

example float64, upscale
random
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "upscale_in_train"
attr seed INT 3
attr fix_seed BOOLEAN true
in X float64 [40, 50] 2*2000
out Out float64 [40, 50] mean 2 0.2 range 0 2.66667 count 2
out Mask uint8 [40, 50] mean 0.75 0.05 range 0 1

example float64, downgrade
random
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "downgrade_in_infer"
attr seed INT 3
attr fix_seed BOOLEAN true
in X float64 [40, 50] 2*2000
out Out float64 [40, 50] mean 1.5 0.15 range 0 2 count 2
out Mask uint8 [40, 50] mean 0.75 0.05 range 0 1

example float64, test, upscale_in_train
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "upscale_in_train"
attr is_test BOOLEAN true
in X float64 [2, 3] 0.7 0.47 -0 -0.24 0.58 -0.66
out Out float64 [2, 3] 0.7 0.47 -0 -0.24 0.58 -0.66

example float64, test, downgrade_in_infer
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "downgrade_in_infer"
attr is_test BOOLEAN true
in X float64 [2, 3] 0.17 -0.14 -0.88 -0.42 0.47 -0.42
out Out float64 [2, 3] 0.1275 -0.10500000000000001 -0.66 -0.315 0.3525 -0.315

example float32 4x3, fix_seed, seed 0, dropout_implementation upscale_in_train
attr fix_seed BOOLEAN true
attr seed INT 0
attr dropout_implementation STRING "upscale_in_train"
attr dropout_prob FLOAT 0.35
attr is_test BOOLEAN true
in X float32 [4, 3] 0.538 0.692 0.308 0.385 0.923 0.077 0.154 0.461 0.769 0.615 0.231 0.846
out Mask ?
out Out float32 [4, 3] 0.538 0.692 0.308 0.385 0.923 0.077 0.154 0.461 0.769 0.615 0.231 0.846

example float32 4x3, no fix_seed, seed 0, dropout_prob 0
attr fix_seed BOOLEAN false
attr seed INT 0
attr dropout_prob FLOAT 0.0
in Seed int32 [1] 125
in X float32 [4, 3] 0.846 0.769 0.308 0.231 0.385 0.923 0.461 0.615 0.692 0.154 0.077 0.538
out Mask uint8 [4, 3] 1*12
out Out float32 [4, 3] 0.846 0.769 0.308 0.231 0.385 0.923 0.461 0.615 0.692 0.154 0.077 0.538

example float32 scalar, fix_seed, seed 0, dropout_prob 0
attr fix_seed BOOLEAN true
attr seed INT 0
attr dropout_prob FLOAT 0.0
in X float32 [] 0.696
out Mask uint8 [] 1
out Out float32 [] 0.696

example bfloat16 4x3, fix_seed, seed 0, dropout_prob 1
attr fix_seed BOOLEAN true
attr seed INT 0
attr dropout_prob FLOAT 1.0
in X bfloat16 [4, 3] 0.7 0.1 0.9 0.5 0.9 0.2 0 0.4 0.2 0.8 0.2 0.7
out Mask uint8 [4, 3] 0*12
out Out bfloat16 [4, 3] 0*12

example float64 scalar, fix_seed, seed 0, dropout_prob 0
attr fix_seed BOOLEAN true
attr seed INT 0
attr dropout_prob FLOAT 0.0
in X float64 [] 0.696
out Mask uint8 [] 1
out Out float64 [] 0.696
)")

HEDDLE_EXAMPLES(dropout_grad, R"(
example float32, upscale_in_train
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "upscale_in_train"
in Mask uint8 [2, 3] 1 0 1 1 1 0
in Out@GRAD float32 [2, 3] 0.21 -0.1 -0.55 0.34 0.47 -0.48
out X@GRAD float32 [2, 3] 0.28 -0 -0.73333335 0.45333335 0.62666667 -0

example float32, downgrade_in_infer
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "downgrade_in_infer"
in Mask uint8 [2, 3] 1 0 1 1 1 0
in Out@GRAD float32 [2, 3] -0.81 0.92 -0.5 -0.44 0.54 0.6
out X@GRAD float32 [2, 3] -0.81 0 -0.5 -0.44 0.54 0

example float64, upscale_in_train
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "upscale_in_train"
in Mask uint8 [2, 3] 1 0 1 1 1 0
in Out@GRAD float64 [2, 3] -0.22 0.27 0.66 -0.36 -0.68 0.42
out X@GRAD float64 [2, 3] -0.29333333333333333 0 0.88 -0.48 -0.9066666666666667 0

example float64, downgrade_in_infer
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "downgrade_in_infer"
in Mask uint8 [2, 3] 1 0 1 1 1 0
in Out@GRAD float64 [2, 3] 0.75 0.19 0.39 -0.65 0.06 0.74
out X@GRAD float64 [2, 3] 0.75 0 0.39 -0.65 0.06 0

example uint8 scalar, dropout_prob 0
attr dropout_prob FLOAT 0.0
in Mask uint8 [] 1
in Out@GRAD float64 [] -0.2
out X@GRAD float64 [] -0.2

example uint8 4x3, dropout_prob 0
attr dropout_prob FLOAT 0.0
in Mask uint8 [4, 3] 1*12
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out X@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7

example uint8 4x3x2, dropout_implementation upscale_in_train, dropout_prob 0
attr dropout_implementation STRING "upscale_in_train"
attr dropout_prob FLOAT 0.0
in Mask uint8 [4, 3, 2] 1*24
in Out@GRAD float64 [4, 3, 2] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
out X@GRAD float64 [4, 3, 2] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2

example uint8 scalar, dropout_prob 0, no. 2
attr dropout_prob FLOAT 0.0
in Mask uint8 [] 1
in Out@GRAD float32 [] -0.2
out X@GRAD float32 [] -0.2
)")

HEDDLE_EXAMPLES(dropout_nd, R"(
example float32, test
attr dropout_prob FLOAT 0.25
attr is_test BOOLEAN true
attr axis INTS [0]
in X float32 [2, 3] 0.09 -0.23 -0.24 -0.43 0.48 -0.52
out Out float32 [2, 3] 0.0675 -0.1725 -0.17999999 -0.3225 0.35999998 -0.39

example float32, along axis 0
random
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "upscale_in_train"
attr axis INTS [0]
attr seed INT 3
attr fix_seed BOOLEAN true
in X float32 [2000, 2] 2*4000
out Out float32 [2000, 2] mean 2 0.2 range 0 2.66667 count 2
out Mask ?

example float64, test
attr dropout_prob FLOAT 0.25
attr is_test BOOLEAN true
attr axis INTS [0]
in X float64 [2, 3] 0.68 0.94 0.56 -0.61 0.22 -0.04
out Out float64 [2, 3] 0.51 0.705 0.42000000000000004 -0.4575 0.165 -0.03

example float64, along axis 0
random
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "upscale_in_train"
attr axis INTS [0]
attr seed INT 3
attr fix_seed BOOLEAN true
in X float64 [2000, 2] 2*4000
out Out float64 [2000, 2] mean 2 0.2 range 0 2.66667 count 2
out Mask ?

example float64 4x2x3, fix_seed, seed 0, axis 1, dropout_prob 0
attr fix_seed BOOLEAN true
attr seed INT 0
attr axis INTS [1]
attr dropout_prob FLOAT 0.0
in X float64 [4, 2, 3] 0.24 0.92 0.16 0.28 0.96 0.84 0.12 0.72 0.76 0.68 0.6 0.44 0.64 0.2 0.48 0.52
  0.4 0.36 0.56 0.88 0.08 0.04 0.32 0.8
out Mask uint8 [1, 2, 1] 1 1
out Out float64 [4, 2, 3] 0.24 0.92 0.16 0.28 0.96 0.84 0.12 0.72 0.76 0.68 0.6 0.44 0.64 0.2 0.48
  0.52 0.4 0.36 0.56 0.88 0.08 0.04 0.32 0.8

example float32 4x2x3, fix_seed, seed 0, axis 1, dropout_prob 0
attr fix_seed BOOLEAN true
attr seed INT 0
attr axis INTS [1]
attr dropout_prob FLOAT 0.0
in X float32 [4, 2, 3] 0.24 0.92 0.16 0.28 0.96 0.84 0.12 0.72 0.76 0.68 0.6 0.44 0.64 0.2 0.48 0.52
  0.4 0.36 0.56 0.88 0.08 0.04 0.32 0.8
out Mask uint8 [1, 2, 1] 1 1
out Out float32 [4, 2, 3] 0.24 0.92 0.16 0.28 0.96 0.84 0.12 0.72 0.76 0.68 0.6 0.44 0.64 0.2 0.48
  0.52 0.4 0.36 0.56 0.88 0.08 0.04 0.32 0.8
)")

HEDDLE_EXAMPLES(dropout_nd_grad, R"(
example float32
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "upscale_in_train"
attr axis INTS [0]
in Mask uint8 [2, 1] 1 0
in Out@GRAD float32 [2, 3] -0.8 0.3 -0.23 -0.06 0.57 0.84
from cast X=Mask -> Out=m
attr in_dtype INT 20
attr out_dtype INT 5
from elementwise_mul X=Out@GRAD Y=m -> Out=t
from scale X=t -> Out=X@GRAD
attr scale FLOAT 1.3333333333333333
out X@GRAD float32 [2, 3] -1.0666667 0.40000004 -0.30666667 0 0 0

example float64
attr dropout_prob FLOAT 0.25
attr dropout_implementation STRING "upscale_in_train"
attr axis INTS [0]
in Mask uint8 [2, 1] 1 0
in Out@GRAD float64 [2, 3] -0.87 -0.13 -0.51 -0.94 0.87 -0.84
from cast X=Mask -> Out=m
attr in_dtype INT 20
attr out_dtype INT 6
from elementwise_mul X=Out@GRAD Y=m -> Out=t
from fill_any_like X=t -> Out=c
attr value FLOAT 0.75
from elementwise_div X=t Y=c -> Out=X@GRAD
out X@GRAD float64 [2, 3] -1.16 -0.17333333333333334 -0.68 -0 0 -0
)")
