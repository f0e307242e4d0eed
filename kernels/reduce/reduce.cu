// reduce_* over chosen axes, mean and norms of whole tensors, and their gradients.
#include "core/kernel_context.h"
#include "core/shapes.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/reduce.h"

namespace heddle::HEDDLE_GRID {
namespace {

// Bit d: dimension d is reduced.
Result<uint32_t> ReducedAxes(const OpContext& ctx, int rank) {
  const uint32_t every = (1u << rank) - 1;
  const Ints& axes = ctx.IntList("dim");
  if (ctx.Bool("reduce_all") || axes.empty()) return every;
  uint32_t mask = 0;
  for (const int64_t axis : axes) {
    HEDDLE_ASSIGN_OR_RETURN(const int a, NormalAxis(axis, rank));
    mask |= 1u << a;
  }
  return mask & every;
}

template <typename T>
struct Load {
  RealIn<T> x;
  HEDDLE_BODY float operator()(const Strides<1>::Places& p) const { return x[p.at[0]]; }
};
template <typename T>
struct LoadSquare {
  RealIn<T> x;
  HEDDLE_BODY float operator()(const Strides<1>::Places& p) const {
    return x[p.at[0]] * x[p.at[0]];
  }
};

template <typename Op, template <typename> typename Map>
Status ReduceAxes(Queue& queue, const Tensor& x, uint32_t mask, Tensor& out, bool mean) {
  Strides<1> kept, reduced;
  Cut<1>(
      x.shape(), {RowMajor(x.shape())}, [&](int d) { return (mask >> d & 1) == 0; }, &kept,
      &reduced);
  return VisitReal(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return ReduceInto<Op>(queue, kept, reduced, Map<T>{ReadOf<T>(x)}, out.mutable_data<T>(),
                          mean ? 1.0f / static_cast<float>(reduced.numel) : 1.0f);
  });
}

template <typename Op, bool kMean>
Status Reduce(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReducedAxes(ctx, x.rank()));
  return ReduceAxes<Op, Load>(queue, x, mask, ctx.Out("Out"), kMean);
}
template <template <typename> typename Map, bool kMean>
Status ReduceWhole(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  return ReduceAxes<SumOp, Map>(queue, x, (1u << x.rank()) - 1, ctx.Out("Out"), kMean);
}

// Not sums in double, of something else than X, or over axes that are an operand.
bool CoversReduce(const CallView& call) {
  const OpDef& def = call.def();
  if (call.InCount("Axes") > 0 || (call.IntList("dim").empty() && call.Str("no_axes") != "all"))
    return false;
  if (def.FindAttr("in_double") >= 0 && call.Bool("in_double")) return false;
  return IsReal(call.OutDType("Out"));
}
bool CoversReduceGrad(const CallView& call) { return IsReal(call.OutDType("X@GRAD")); }

// --- gradients: every element sees the result it went into ---

template <typename T>
struct SpreadGradBody {
  Strides<1> strides;
  RealIn<T> dout;
  RealOut<T> dx;
  float scale;
  HEDDLE_BODY void operator()(int64_t i) const {
    dx[i] = dout[strides.At(static_cast<uint32_t>(i)).at[0]] * scale;
  }
};
template <typename T>
struct ExtremeGradBody {
  Strides<1> strides;
  RealIn<T> x, out, dout;
  RealOut<T> dx;
  HEDDLE_BODY void operator()(int64_t i) const {
    const int32_t at = strides.At(static_cast<uint32_t>(i)).at[0];
    dx[i] = x[i] == out[at] ? dout[at] : 0;
  }
};
struct TwiceBody {
  const float* x;
  const float* dout;
  float* dx;
  HEDDLE_BODY void operator()(int64_t i) const { dx[i] = 2 * x[i] * dout[0]; }
};

// The offset of the result of element i of X: reduced dimensions have step 0.
Strides<1> ToResult(const Shape& x, uint32_t mask) {
  Steps steps;
  int64_t step = 1;
  for (int d = x.rank() - 1; d >= 0; --d) {
    if ((mask >> d & 1) != 0) continue;
    steps.at[d] = step;
    step *= x[d];
  }
  return MakeStrides<1>(x, {steps});
}
int64_t ReducedCount(const Shape& x, uint32_t mask) {
  int64_t n = 1;
  for (int d = 0; d < x.rank(); ++d)
    if ((mask >> d & 1) != 0) n *= x[d];
  return n;
}

// Every element of X@GRAD is that of Out@GRAD that belongs to it, times `scale`.
Status SpreadGrad(Queue& queue, KernelContext& ctx, uint32_t mask, float scale) {
  const Tensor& dout = ctx.In("Out@GRAD");
  Tensor& dx = ctx.Out("X@GRAD");
  return VisitReal(dx.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Each(
        queue, dx.numel(),
        SpreadGradBody<T>{ToResult(dx.shape(), mask), ReadOf<T>(dout), WriteOf<T>(dx), scale});
  });
}

template <bool kMean>
Status SumGrad(Queue& queue, KernelContext& ctx) {
  const Shape& dx = ctx.Out("X@GRAD").shape();
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReducedAxes(ctx, dx.rank()));
  return SpreadGrad(queue, ctx, mask,
                    kMean ? 1.0f / static_cast<float>(ReducedCount(dx, mask)) : 1.0f);
}

Status MeanGrad(Queue& queue, KernelContext& ctx) {
  const Shape& dx = ctx.Out("X@GRAD").shape();
  return SpreadGrad(queue, ctx, (1u << dx.rank()) - 1,
                    1.0f / static_cast<float>(std::max<int64_t>(1, dx.numel())));
}

Status ExtremeGrad(Queue& queue, KernelContext& ctx) {
  Tensor& dx = ctx.Out("X@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReducedAxes(ctx, dx.rank()));
  return VisitReal(dx.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Each(queue, dx.numel(),
                ExtremeGradBody<T>{ToResult(dx.shape(), mask), ReadOf<T>(ctx.In("X")),
                                   ReadOf<T>(ctx.In("Out")), ReadOf<T>(ctx.In("Out@GRAD")),
                                   WriteOf<T>(dx)});
  });
}

Status SquaredNormGrad(Queue& queue, KernelContext& ctx) {
  Tensor& dx = ctx.Out("X@GRAD");
  return Each(queue, dx.numel(),
              TwiceBody{ctx.In("X").data<float>(), ctx.In("Out@GRAD").data<float>(),
                        dx.mutable_data<float>()});
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(reduce_sum) { kernel = {Reduce<SumOp, false>, CoversReduce, kReals}; }
HEDDLE_CUDA_KERNEL(reduce_mean) { kernel = {Reduce<SumOp, true>, CoversReduce, kReals}; }
HEDDLE_CUDA_KERNEL(reduce_max) { kernel = {Reduce<MaxOp, false>, CoversReduce, kReals}; }
HEDDLE_CUDA_KERNEL(reduce_min) { kernel = {Reduce<MinOp, false>, CoversReduce, kReals}; }
HEDDLE_CUDA_KERNEL(reduce_prod) { kernel = {Reduce<ProdOp, false>, CoversReduce, kReals}; }
HEDDLE_CUDA_KERNEL(mean) { kernel = {ReduceWhole<Load, true>, nullptr, kReals}; }
HEDDLE_CUDA_KERNEL(squared_l2_norm) { kernel = {ReduceWhole<LoadSquare, false>}; }
HEDDLE_CUDA_KERNEL(reduce_sum_grad) { kernel = {SumGrad<false>, CoversReduceGrad, kReals}; }
HEDDLE_CUDA_KERNEL(reduce_mean_grad) { kernel = {SumGrad<true>, CoversReduceGrad, kReals}; }
HEDDLE_CUDA_KERNEL(reduce_max_grad) { kernel = {ExtremeGrad, CoversReduceGrad, kReals}; }
HEDDLE_CUDA_KERNEL(reduce_min_grad) { kernel = {ExtremeGrad, CoversReduceGrad, kReals}; }
HEDDLE_CUDA_KERNEL(mean_grad) { kernel = {MeanGrad, nullptr, kReals}; }
HEDDLE_CUDA_KERNEL(squared_l2_norm_grad) { kernel = {SquaredNormGrad}; }
