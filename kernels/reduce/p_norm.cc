#include <cmath>

#include "core/error.h"
#include "kernels/base/check.h"
#include "kernels/reduce/along_line.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

struct CountOfNonzero : SumReduction {
  template <typename A, typename T>
  static A Load(T x) {
    return A(x != T(0));
  }
};
struct MaxOfAbs : MaxReduction {
  template <typename A, typename T>
  static A Load(T x) {
    return std::fabs(static_cast<A>(x));
  }
};
struct MinOfAbs : MinReduction {
  template <typename A, typename T>
  static A Load(T x) {
    return std::fabs(static_cast<A>(x));
  }
};

// With asvector the whole tensor is one line.
Result<AxisLines> NormLines(const OpContext& ctx, const Shape& x) {
  if (ctx.Bool("asvector")) return AxisLines{1, x.numel(), 1};
  return AxisLines::At(x, ctx.Int("axis"));
}

template <typename T>
const ReduceLoops* LoopsFor(double p) {
  if (p == 0) return &ReduceLoop<CountOfNonzero, T, T>::kLoops;
  if (p == 1) return &ReduceLoop<SumOfAbs, T, T>::kLoops;
  if (p == 2) return &ReduceLoop<RootOfSquares, T, T>::kLoops;
  if (std::isinf(p))
    return p > 0 ? &ReduceLoop<MaxOfAbs, T, T>::kLoops : &ReduceLoop<MinOfAbs, T, T>::kLoops;
  return nullptr;
}

template <typename T>
struct PNorm {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, NormLines(ctx, xt.shape()));
    const double porder = ctx.Float("porder");
    T* out = ctx.Out("Out").template mutable_data<T>();
    if (const ReduceLoops* loops = LoopsFor<T>(porder)) {
      RunReduce(ctx, MakeReducePlan(std::array{lines.outer, lines.n, lines.inner}, 2), *loops,
                xt.raw(), out);
      return Status::Ok();
    }
    const T* x = xt.data<T>();
    const T p = static_cast<T>(porder);
    // Paddle rounds the exponent to float32, whatever X's dtype.
    const T root = static_cast<T>(1.0f / static_cast<float>(porder));
    lines.ForEach(ctx, 16, [&](int64_t line) {
      T total = 0;
      AlongLine(lines, line, [&](int64_t, int64_t at) { total += std::pow(std::fabs(x[at]), p); });
      out[line] = std::pow(total, root);
    });
    return Status::Ok();
  }
};

template <typename T>
T Sign(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

template <typename T>
struct PNormGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, NormLines(ctx, xt.shape()));
    const Tensor& norm = ctx.In("Out");
    const Tensor& dt = ctx.In("Out@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&norm, &dt}));
    if (norm.numel() != lines.lines() || dt.numel() != lines.lines())
      return InvalidArgument("Out and Out@GRAD must have ", lines.lines(), " elements");
    const double porder = ctx.Float("porder");
    const T p = static_cast<T>(porder), eps = static_cast<T>(ctx.Float("epsilon"));
    const T* x = xt.data<T>();
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    // As in Paddle, epsilon is added to the power of the norm.
    lines.ForEach(ctx, 16, [&](int64_t line) {
      const T n = norm.data<T>()[line], g = dt.data<T>()[line];
      AlongLine(lines, line, [&](int64_t, int64_t at) {
        const T v = x[at], a = std::fabs(v);
        if (porder == 0)
          dx[at] = T(0);
        else if (std::isinf(porder))
          dx[at] = a == n ? Sign(v) * g : T(0);
        else if (porder == 1)
          dx[at] = Sign(v) * g / (T(1) + eps);
        else if (porder == 2)
          dx[at] = v / (n + eps) * g;
        else
          dx[at] = std::pow(a, p - 1) / (std::pow(n, p - 1) + eps) * g * Sign(v);
      });
    });
    return Status::Ok();
  }
};

Status InferNorm(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) {
    ctx.SetOut("Out", Shape::Unknown(), ctx.InDType("X"));
    return Status::Ok();
  }
  uint32_t mask = (1u << x.rank()) - 1;
  if (!ctx.Bool("asvector")) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
    mask &= 1u << axis;
  }
  ctx.SetOut("Out", ReducedShape(x, mask, ctx.Bool("keepdim")), ctx.InDType("X"));
  return Status::Ok();
}

void DefinePNormAttrs(OpDef& op) {
  op.Attr("porder", 2.0).Attr("axis", -1).Attr("epsilon", 1e-12).Attr("keepdim", false);
  op.Attr("asvector", false);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(p_norm) {
  op.Doc("p-norm along an axis or of the whole tensor").Input("X").Output("Out");
  DefinePNormAttrs(op);
  op.InferShape(&InferNorm).Kernels<PNorm, float, double>();
}

HEDDLE_OP(p_norm_grad) {
  op.Doc("gradient of p_norm").Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  DefinePNormAttrs(op);
  op.InferShape(&GradLikeInputs).Kernels<PNormGrad, float, double>();
}

HEDDLE_EXAMPLES(p_norm, R"(
example float32 5, asvector, keepdim, porder 3
attr asvector BOOLEAN true
attr keepdim BOOLEAN true
attr porder FLOAT 3.0
in X float32 [5] -0.49 -0.88 -1.28 0.3 -0.09
out Out float32 [1] 1.4299666

example float64 3x4, axis 1
attr axis INT 1
in X float64 [3, 4] 1.404 1.123 1.334 1.825 1.264 1.193 1.684 1.755 1.544 1.895 1.614 1.474
out Out float64 [3] 2.8883431236610373 2.9894524582270914 3.279120766303065

example float32 3x4x3, axis 2, keepdim
attr axis INT 2
attr keepdim BOOLEAN true
in X float32 [3, 4, 3] 1.174 0.718 0.879 0.664 1.255 1.228 0.799 0.933 0.825 0.906 1.469 1.362 0.557
  1.067 1.013 1.335 1.121 0.96 0.611 1.147 0.53 0.852 1.201 0.772 1.442 1.389 0.691 0.584 0.986 1.04
  1.281 1.416 1.094 0.745 0.638 1.308
out Out float32 [3, 4, 1] 1.6329241 1.8772067 1.479701 2.1985998 1.5731837 1.990092 1.4035063
  1.6626151 2.118057 1.5475309 2.2006483 1.6349107

example float32 3x4, asvector
attr asvector BOOLEAN true
in X float32 [3, 4] 1.4 1.514 1.229 1.286 1.684 1.058 1.115 1.343 1.57 1.457 1.172 1.627
out Out float32 [] 4.7986445
)")

HEDDLE_EXAMPLES(p_norm_grad, R"(
example float64 4x4, porder 1
attr porder FLOAT 1.0
in Out float64 [4] 3.56 4.27 3.2600000000000002 2.8299999999999996
in Out@GRAD float64 [4] -0.1 -0.4 -0.5 0.8
in X float64 [4, 4] 0.91 -1.26 0.04 1.35 0.7 -1.04 -1.7 -0.83 -1.48 1.13 0.26 -0.39 1.57 0.48 -0.17
  -0.61
out X@GRAD float64 [4, 4] -0.0999999999999 0.0999999999999 -0.0999999999999 -0.0999999999999
  -0.3999999999996 0.3999999999996 0.3999999999996 0.3999999999996 0.49999999999949996
  -0.49999999999949996 -0.49999999999949996 0.49999999999949996 0.7999999999992 0.7999999999992
  -0.7999999999992 -0.7999999999992

example float64 5x4x1, keepdim, porder 0
attr keepdim BOOLEAN true
attr porder FLOAT 0.0
in Out float64 [5, 4, 1] 1*20
in Out@GRAD float64 [5, 4, 1] -0.7 0.1 -0 -0.9 -0 0.6 -0.6 -0 0 -0.4 0.5 0.3 0.6 -0.2 0.4 0.1 -0.6
  -0.7 0.2 -0.6
in X float64 [5, 4, 1] -0.71 -1.81 0.02 0.38 -1.26 1.3 -0.89 0.2 0.57 -0.35 -1.08 -1.62 -0.16 0.93
  -1.44 1.11 0.75 1.66 -0.53 1.48
out X@GRAD float64 [5, 4, 1] 0*20

example float32 4x4, porder 1
attr porder FLOAT 1.0
in Out float32 [4] 3.56 4.27 3.26 2.83
in Out@GRAD float32 [4] -0.1 -0.4 -0.5 0.8
in X float32 [4, 4] 0.91 -1.26 0.04 1.35 0.7 -1.04 -1.7 -0.83 -1.48 1.13 0.26 -0.39 1.57 0.48 -0.17
  -0.61
out X@GRAD float32 [4, 4] -0.1 0.1 -0.1 -0.1 -0.4 0.4 0.4 0.4 0.5 -0.5 -0.5 0.5 0.8 0.8 -0.8 -0.8

example float32 3, epsilon 0.5, porder 3
gradient none: epsilon is large
attr axis INT 0
attr porder FLOAT 3.0
attr epsilon FLOAT 0.5
in X float32 [3] 1 -2 3
in Out float32 [] 3.3019273
in Out@GRAD float32 [] 0.5
out X@GRAD float32 [3] 0.04384917 -0.17539668 0.39464253

example float64 3, epsilon 2, porder 0.5
gradient none: epsilon is large
attr axis INT 0
attr porder FLOAT 0.5
attr epsilon FLOAT 2.0
in X float64 [3] 1 -2 3
in Out float64 [] 17.19151
in Out@GRAD float64 [] 0.5
out X@GRAD float64 [3] 0.22309666771191172 -0.15775316659921468 0.12880492115878073

example float32 3, a norm of 0, porder 3
gradient none: the norm has no slope at 0
attr axis INT 0
attr porder FLOAT 3.0
in X float32 [3] 0 0 0
in Out float32 [] 0
in Out@GRAD float32 [] 0.5
out X@GRAD float32 [3] 0 0 0

example float32 3, epsilon 10, porder 1
gradient none: epsilon is large
attr axis INT 0
attr porder FLOAT 1.0
attr epsilon FLOAT 10.0
in X float32 [3] 1 -2 3
in Out float32 [] 6
in Out@GRAD float32 [] 0.5
out X@GRAD float32 [3] 0.045454547 -0.045454547 0.045454547
)")
