#include <cmath>

#include "core/error.h"
#include "kernels/base/along_line.h"
#include "kernels/base/check.h"
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
