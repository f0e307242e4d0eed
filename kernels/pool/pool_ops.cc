// Definitions of the pooling operators.
#include <algorithm>
#include <limits>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "core/threads/look_meter.h"
#include "kernels/base/convert.h"
#include "kernels/operands/operands.h"
#include "kernels/pool/pool.h"

namespace heddle {
namespace {

struct PoolState final : KernelState {
  PoolGeometry geometry;
};
using Prepared = Result<std::unique_ptr<KernelState>>;

Prepared Prepare(const PoolAttrs& attrs, const Shape& input) {
  auto state = std::make_unique<PoolState>();
  HEDDLE_ASSIGN_OR_RETURN(state->geometry, PoolGeometryOf(attrs, input));
  return std::unique_ptr<KernelState>(std::move(state));
}

Status PoolShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const PoolGeometry g, PoolGeometryOf(PoolAttrsOf(ctx), x));
  ctx.SetOut("Out", PoolOutShape(g), ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}
Prepared PreparePool(PrepareContext& ctx) { return Prepare(PoolAttrsOf(ctx), ctx.InShape("X")); }

template <typename T>
struct Pool {
  static Status Run(KernelContext& ctx) {
    PoolForward(ctx, ctx.State<PoolState>().geometry, ctx.In("X").data<T>(),
                ctx.Out("Out").mutable_data<T>());
    return Status::Ok();
  }
};

// The gradient coming in must have the shape of the output.
Status CheckGrad(const PoolGeometry& g, const Shape& grad) {
  if (grad == PoolOutShape(g)) return Status::Ok();
  return InvalidArgument("the output's gradient has shape ", grad.ToString(), ", expected ",
                         PoolOutShape(g).ToString());
}

Status LikeX(ShapeContext& ctx) {
  ctx.SetOut("X@GRAD", ctx.InShape("X"), ctx.InDType("X"));
  return Status::Ok();
}

// An average's gradient needs no more of X than its shape.
Status PoolGradShape(ShapeContext& ctx) {
  if (ctx.HasIn("X")) return LikeX(ctx);
  if (ctx.Str("pooling_type") == "max") return InvalidArgument("X is needed for maxima");
  const DType dtype = ctx.InDType("Out@GRAD");
  if (!ctx.HasIn("Shape")) return InvalidArgument("neither X nor its shape is given");
  if (!Known(ctx, "Shape")) return SameRank(ctx, "Out@GRAD", "X@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "Shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "Shape"));
  ctx.SetOut("X@GRAD", shape, dtype);
  return Status::Ok();
}
// With the shape alone shares are quotients.
Prepared PreparePoolGrad(PrepareContext& ctx) {
  auto state = std::make_unique<PoolState>();
  HEDDLE_ASSIGN_OR_RETURN(state->geometry,
                          PoolGeometryOf(PoolAttrsOf(ctx), ctx.OutShape("X@GRAD")));
  state->geometry.divides = !ctx.HasIn("X");
  return std::unique_ptr<KernelState>(std::move(state));
}

template <typename T>
struct PoolGrad {
  static Status Run(KernelContext& ctx) {
    const PoolGeometry& g = ctx.State<PoolState>().geometry;
    HEDDLE_RETURN_IF_ERROR(CheckGrad(g, ctx.In("Out@GRAD").shape()));
    if (g.max) HEDDLE_RETURN_IF_ERROR(CheckGrad(g, ctx.In("Out").shape()));
    PoolBackward(ctx, g, g.max ? ctx.In("X").data<T>() : nullptr,
                 g.max ? ctx.In("Out").data<T>() : nullptr, ctx.In("Out@GRAD").data<T>(),
                 ctx.Out("X@GRAD").mutable_data<T>());
    return Status::Ok();
  }
};

// Average pooling is linear: the double gradient is the operator itself.
Status DoubleGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("grad_x@GRAD");
  if (!x.known_rank()) return ctx.Defer();
  if (ctx.Str("pooling_type") == "max")
    return Unimplemented("the double gradient of max pooling is not supported");
  HEDDLE_ASSIGN_OR_RETURN(const PoolGeometry g, PoolGeometryOf(PoolAttrsOf(ctx), x));
  ctx.SetOut("grad_out@GRAD", PoolOutShape(g), ctx.InDType("grad_x@GRAD"));
  return Status::Ok();
}
Prepared PrepareDoubleGrad(PrepareContext& ctx) {
  return Prepare(PoolAttrsOf(ctx), ctx.InShape("grad_x@GRAD"));
}
template <typename T>
struct PoolDoubleGrad {
  static Status Run(KernelContext& ctx) {
    PoolForward(ctx, ctx.State<PoolState>().geometry, ctx.In("grad_x@GRAD").data<T>(),
                ctx.Out("grad_out@GRAD").mutable_data<T>());
    return Status::Ok();
  }
};

Status WithIndexShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const PoolGeometry g, PoolGeometryOf(PoolWithIndexAttrsOf(ctx), x));
  ctx.SetOut("Out", PoolOutShape(g), ctx.InDType("X"));
  ctx.SetOut("Mask", PoolOutShape(g), DType::kI32);
  return Status::Ok();
}
Prepared PrepareWithIndex(PrepareContext& ctx) {
  return Prepare(PoolWithIndexAttrsOf(ctx), ctx.InShape("X"));
}

template <typename T>
void MaxWithIndex(const PoolGeometry& g, const T* plane, T* out, int32_t* mask) {
  int64_t i = 0;
  LookMeter meter;
  for (const PoolWindow& d : g.windows[0])
    for (const PoolWindow& h : g.windows[1])
      for (const PoolWindow& w : g.windows[2]) {
        T best = std::numeric_limits<T>::lowest();
        int64_t index = -1;
        for (int64_t z = d.begin; z < d.end; ++z)
          for (int64_t y = h.begin; y < h.end; ++y) {
            meter.Did(2 + w.end - w.begin);
            for (int64_t x = w.begin; x < w.end; ++x) {
              const int64_t at = (z * g.in[1] + y) * g.in[2] + x;
              if (best < plane[at]) best = plane[at], index = at;
            }
          }
        out[i] = best;
        mask[i++] = static_cast<int32_t>(index);
      }
}

template <typename T>
struct MaxPoolWithIndex {
  static Status Run(KernelContext& ctx) {
    const PoolGeometry& g = ctx.State<PoolState>().geometry;
    const T* x = ctx.In("X").data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    int32_t* mask = ctx.Out("Mask").mutable_data<int32_t>();
    ctx.ParallelFor(
        g.batch * g.channels, 1 + 16384 / (1 + g.in_size()), [&](int64_t begin, int64_t end) {
          for (int64_t p = begin; p < end; ++p)
            MaxWithIndex(g, x + p * g.in_size(), out + p * g.out_size(), mask + p * g.out_size());
        });
    return Status::Ok();
  }
};

// For each of `planes`: to[index[i]] = (or +=) from[i]. Indices are of one plane.
template <typename T>
Status Scatter(int64_t planes, int64_t from_size, int64_t to_size, const T* from,
               const int32_t* index, bool add, T* to) {
  WatchedFill(to, planes * to_size, T(0));
  LookMeter meter;
  for (int64_t p = 0; p < planes; ++p, from += from_size, index += from_size, to += to_size)
    for (int64_t i = 0; i < from_size; ++i) {
      meter.Did(2);
      const int64_t at = index[i];
      if (at < 0 || at >= to_size) {
        if (add && at == -1) continue;  // a window that held nothing
        return OutOfRange("an index is ", at, ", the plane it points into has ", to_size,
                          " elements");
      }
      to[at] = add ? to[at] + from[i] : from[i];
    }
  return Status::Ok();
}

template <typename T>
struct MaxPoolWithIndexGrad {
  static Status Run(KernelContext& ctx) {
    const PoolGeometry& g = ctx.State<PoolState>().geometry;
    HEDDLE_RETURN_IF_ERROR(CheckGrad(g, ctx.In("Out@GRAD").shape()));
    HEDDLE_RETURN_IF_ERROR(CheckGrad(g, ctx.In("Mask").shape()));
    if (ctx.In("Mask").dtype() != DType::kI32)
      return InvalidArgument("Mask is ", Name(ctx.In("Mask").dtype()), ", expected int32");
    return Scatter(g.batch * g.channels, g.out_size(), g.in_size(), ctx.In("Out@GRAD").data<T>(),
                   ctx.In("Mask").data<int32_t>(), true, ctx.Out("X@GRAD").mutable_data<T>());
  }
};

Status UnpoolShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  const Ints &size = ctx.IntList("output_size"), &ksize = ctx.IntList("ksize"),
             &strides = ctx.IntList("strides"), &paddings = ctx.IntList("paddings");
  const size_t n = static_cast<size_t>(std::max(0, x.rank() - 2));
  if ((x.rank() != 4 && x.rank() != 5) || ksize.size() != n || strides.size() != n ||
      paddings.size() != n)
    return InvalidArgument("X has shape ", x.ToString(), ", ksize ", ksize.size(), ", strides ",
                           strides.size(), ", paddings ", paddings.size(),
                           " numbers: they do not go together");
  Shape out{x[0], x[1]};
  const bool given = size.size() == n || size.size() == n + 2;
  for (size_t i = 0; i < n; ++i) {
    const int64_t dim = x[static_cast<int>(i) + 2];
    const int64_t named = given ? size[size.size() - n + i] : 0;
    if (named > 0)
      out.push_back(named);
    else
      out.push_back(dim < 0 ? -1 : (dim - 1) * strides[i] - 2 * paddings[i] + ksize[i]);
    if (out.dim(-1) == 0 || out.dim(-1) < -1)
      return InvalidArgument("the output would have ", out.dim(-1), " elements along a dimension");
  }
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

template <typename Fn>
Status WithIndices(const KernelContext& ctx, const Tensor& indices, Fn&& fn) {
  if (indices.dtype() == DType::kI32) return fn(indices.data<int32_t>());
  if (indices.dtype() != DType::kI64)
    return InvalidArgument("Indices is ", Name(indices.dtype()), ", expected int32 or int64");
  Tensor narrow = ctx.Scratch(DType::kI32, {indices.numel()});
  const int64_t* from = indices.data<int64_t>();
  int32_t* to = narrow.mutable_data<int32_t>();
  for (const auto part : Stretches(indices.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      to[i] = from[i] < 0 || from[i] > INT32_MAX ? -1 : static_cast<int32_t>(from[i]);
  return fn(narrow.data<int32_t>());
}

template <typename T>
struct Unpool {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& indices = ctx.In("Indices");
    Tensor& out = ctx.Out("Out");
    if (!(indices.shape() == x.shape()))
      return InvalidArgument("Indices has shape ", indices.shape().ToString(), ", X ",
                             x.shape().ToString());
    const int rank = x.rank();
    return WithIndices(ctx, indices, [&](const int32_t* index) {
      return Scatter(x.dim(0) * x.dim(1), x.shape().Product(2, rank), out.shape().Product(2, rank),
                     x.data<T>(), index, false, out.mutable_data<T>());
    });
  }
};

template <typename T>
struct UnpoolGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& indices = ctx.In("Indices");
    const Tensor& grad = ctx.In("Out@GRAD");
    Tensor& to = ctx.Out("X@GRAD");
    const int rank = to.rank();
    if (!(indices.shape() == to.shape()) || grad.rank() != rank ||
        grad.shape().Product(0, 2) != to.shape().Product(0, 2))
      return InvalidArgument("Indices ", indices.shape().ToString(), ", Out@GRAD ",
                             grad.shape().ToString(), " and X ", to.shape().ToString(),
                             " do not go together");
    return WithIndices(ctx, indices, [&](const int32_t* index) {
      const int64_t from = grad.shape().Product(2, rank), size = to.shape().Product(2, rank);
      const T* g = grad.data<T>();
      T* out = to.mutable_data<T>();
      for (const auto part : Stretches(to.numel()))
        for (int64_t i = part.begin; i < part.end; ++i) {
          if (index[i] < 0 || index[i] >= from)
            return OutOfRange("Indices holds ", index[i], ", a plane has ", from, " elements");
          out[i] = g[i / size * from + index[i]];
        }
      return Status::Ok();
    });
  }
};

void WindowAttrs(OpDef& op, int spatial) {
  const size_t n = static_cast<size_t>(spatial);
  op.Attr("ksize", Ints{}).Attr("strides", Ints(n, 1)).Attr("paddings", Ints(n, 0));
  op.Attr("global_pooling", false).Attr("adaptive", false);
}

void AllAttrs(OpDef& op, int spatial) {
  WindowAttrs(op, spatial);
  op.Attr("ceil_mode", false).Attr("exclusive", true).Attr("pooling_type", "");
  op.Attr("padding_algorithm", "EXPLICIT").Attr("data_format", spatial == 2 ? "NCHW" : "NCDHW");
  op.Attr("skip_nan", false).Attr("keep_nan", false).Attr("from_infinity", false);
}

void UnpoolAttrs(OpDef& op, int spatial) {
  const size_t n = static_cast<size_t>(spatial);
  op.Attr("ksize", Ints{}).Attr("strides", Ints(n, 1)).Attr("paddings", Ints(n, 0));
  op.Attr("output_size", Ints(n, 0)).Attr("unpooling_type", "max");
  op.Attr("data_format", spatial == 2 ? "NCHW" : "NCDHW");
}

}  // namespace

void DefinePool(OpDef& op, int spatial) {
  op.Input("X").Output("Out");
  AllAttrs(op, spatial);
  if (spatial == 2) op.Traits(kChannelsLast);
  op.InferShape(PoolShape).Prepare(PreparePool).Kernels<Pool, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
void DefinePoolGrad(OpDef& op, int spatial) {
  op.Input("X", kOptional).Input("Out", kOptional).Input("Out@GRAD").Output("X@GRAD");
  op.Input("Shape", kOptional | kShapeValue).KernelKey("Out@GRAD");
  AllAttrs(op, spatial);
  op.InferShape(PoolGradShape).Prepare(PreparePoolGrad).Kernels<PoolGrad, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
void DefinePoolDoubleGrad(OpDef& op, int spatial) {
  op.Input("grad_x@GRAD").Output("grad_out@GRAD");
  AllAttrs(op, spatial);
  op.InferShape(DoubleGradShape).Prepare(PrepareDoubleGrad);
  op.Kernels<PoolDoubleGrad, float, double>();
}
void DefineMaxPoolWithIndex(OpDef& op, int spatial) {
  op.Input("X").Output("Out").Output("Mask");
  WindowAttrs(op, spatial);
  op.InferShape(WithIndexShape).Prepare(PrepareWithIndex);
  op.Kernels<MaxPoolWithIndex, float, double>();
}
void DefineMaxPoolWithIndexGrad(OpDef& op, int spatial) {
  op.Input("X", kNoBuffer).Input("Mask").Input("Out@GRAD").Output("X@GRAD");
  WindowAttrs(op, spatial);
  op.KernelKey("Out@GRAD").InferShape(LikeX).Prepare(PrepareWithIndex);
  op.Kernels<MaxPoolWithIndexGrad, float, double>();
}
void DefineUnpool(OpDef& op, int spatial) {
  op.Input("X").Input("Indices").Output("Out");
  UnpoolAttrs(op, spatial);
  op.InferShape(UnpoolShape).Kernels<Unpool, float, double>();
}
void DefineUnpoolGrad(OpDef& op, int spatial) {
  op.Input("X", kNoBuffer).Input("Indices").Input("Out", kOptional | kNoBuffer).Input("Out@GRAD");
  op.Output("X@GRAD");
  UnpoolAttrs(op, spatial);
  op.KernelKey("Out@GRAD").InferShape(LikeX).Kernels<UnpoolGrad, float, double>();
}

}  // namespace heddle
