// ONNX's padding: any axes, four modes, negative pads crop.
#include <memory_resource>
#include <span>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

using Offsets = std::array<int64_t, Shape::kMaxRank>;

struct OnnxPads {
  Offsets before{}, after{};
};

template <typename Context>
Result<OnnxPads> PadsOf(const Context& ctx) {
  const int rank = ShapeIn(ctx, "data").rank();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts pads, IntsIn(ctx, "pads"));
  HEDDLE_ASSIGN_OR_RETURN(ShortInts axes, IntsIn(ctx, "axes"));
  if (!Has(ctx, "axes")) axes = FirstInts(rank);
  HEDDLE_ASSIGN_OR_RETURN(axes, NormalAxes(axes, rank, "axes"));
  if (pads.size() != 2 * axes.size())
    return InvalidArgument("pads has ", pads.size(), " elements, expected two for each of ",
                           axes.size(), " axes");
  OnnxPads p;
  for (size_t i = 0; i < axes.size(); ++i) {
    p.before[static_cast<size_t>(axes[i])] = pads[i];
    p.after[static_cast<size_t>(axes[i])] = pads[i + axes.size()];
  }
  return p;
}

Status OnnxPadShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("data");
  if (!x.is_static() || !Known(ctx, "pads") || !Known(ctx, "axes"))
    return SameRank(ctx, "data", "output");
  HEDDLE_ASSIGN_OR_RETURN(const OnnxPads p, PadsOf(ctx));
  ShortInts dims;
  for (int i = 0; i < x.rank(); ++i) {
    int64_t d = 0;
    if (__builtin_add_overflow(x[i], p.before[i], &d) || __builtin_add_overflow(d, p.after[i], &d))
      return InvalidArgument("pads of axis ", i, " are too large");
    if (d < 0)
      return InvalidArgument("pads ", p.before[i], " and ", p.after[i], " cut more than axis ", i,
                             " of data ", x.ToString(), " has");
    dims.push_back(d);
  }
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape(dims, "output"));
  ctx.SetOut("output", out, ctx.InDType("data"));
  return Status::Ok();
}

// Fills in the source position of each position along an axis; -1 stands for the constant.
Status FillSources(const std::string& mode, int64_t n, int64_t before, int axis,
                   std::span<int64_t> from) {
  const auto out = static_cast<int64_t>(from.size());
  const int64_t after = out - n - before;
  // Negative padding cuts first: what is repeated is what it leaves.
  const int64_t first = std::max<int64_t>(0, -before);
  const int64_t kept = n - first - std::max<int64_t>(0, -after);
  if (mode != "constant" && kept <= 0 && out > 0)
    return InvalidArgument("mode '", mode, "' cannot pad the empty axis ", axis);
  if (mode == "reflect" && (before > kept - 1 || after > kept - 1) && out > 0)
    return InvalidArgument("pads ", before, " and ", after, " of axis ", axis,
                           " reflect more than its ", n, " elements have");
  const bool edge = mode == "edge", wrap = mode == "wrap", reflect = mode == "reflect";
  if (!edge && !wrap && !reflect && mode != "constant")
    return InvalidArgument("mode is '", mode, "', expected constant, reflect, edge or wrap");
  for (const int64_t i : Watched(out)) {
    int64_t at = i - before - first;  // among those kept
    if (at < 0 || at >= kept) {
      if (edge) {
        at = std::clamp<int64_t>(at, 0, kept - 1);
      } else if (wrap) {
        at = (at % kept + kept) % kept;
      } else if (reflect) {
        at = at < 0 ? -at : at;
        at = at >= kept ? 2 * (kept - 1) - at : at;
      } else {
        from[static_cast<size_t>(i)] = -1;
        continue;
      }
    }
    from[static_cast<size_t>(i)] = first + at;
  }
  return Status::Ok();
}

// `before`: of the last axis.
template <typename T>
void RunOnnxPad(const KernelContext& ctx, const Tensor& x, Tensor& out, T value, int64_t before,
                const std::array<std::span<int64_t>, Shape::kMaxRank>& sources) {
  const int rank = x.rank(), last = rank - 1;
  const auto strides = RowMajorStrides(x.shape());
  const Shape& shape = out.shape();
  const int64_t cols = shape[last], rows = cols == 0 ? 0 : out.numel() / cols;
  const T* from = static_cast<const T*>(x.raw());
  T* to = static_cast<T*>(out.mutable_raw());
  const int64_t* columns = sources[static_cast<size_t>(last)].data();
  // Columns that are copied as they stand.
  const int64_t first = std::clamp<int64_t>(before, 0, cols);
  const int64_t end_copy = std::clamp<int64_t>(x.shape()[last] + before, first, cols);
  ctx.ParallelFor(rows, 1 + 16384 / (1 + cols), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t at = 0, rest = row;
      bool inside = true;
      for (int i = last - 1; i >= 0; --i) {
        const int64_t source =
            sources[static_cast<size_t>(i)][static_cast<size_t>(rest % shape[i])];
        rest /= shape[i];
        inside = inside && source >= 0;
        at += source * strides[i];
      }
      T* line = to + row * cols;
      if (!inside) {
        WatchedFill(line, cols, value);
        continue;
      }
      const auto pick = [&](int64_t c) { return columns[c] >= 0 ? from[at + columns[c]] : value; };
      for (const int64_t c : Watched(first)) line[c] = pick(c);
      WatchedCopy(from + at + first - before, end_copy - first, line + first);
      for (const int64_t c : Watched(end_copy, cols)) line[c] = pick(c);
    }
  });
}

Status OnnxPad(KernelContext& ctx) {
  const Tensor& x = ctx.In("data");
  HEDDLE_ASSIGN_OR_RETURN(const OnnxPads p, PadsOf(ctx));
  Tensor& out = ctx.Out("output");
  const Tensor* constant = ctx.InOpt("constant_value");
  if (constant != nullptr && (constant->dtype() != x.dtype() || constant->numel() != 1))
    return InvalidArgument("constant_value is ", Name(constant->dtype()), " ",
                           constant->shape().ToString(), ", expected one ", Name(x.dtype()));
  if (out.numel() == 0) return Status::Ok();
  if (x.rank() == 0) {
    CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
    return Status::Ok();
  }
  int64_t positions = 0;
  for (const int64_t d : out.shape()) positions += d;
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> all(static_cast<size_t>(positions), &heap);
  std::array<std::span<int64_t>, Shape::kMaxRank> sources;
  std::span<int64_t> left(all);
  for (int i = 0; i < x.rank(); ++i) {
    const auto count = static_cast<size_t>(out.shape()[i]);
    sources[static_cast<size_t>(i)] = left.first(count);
    left = left.subspan(count);
    HEDDLE_RETURN_IF_ERROR(FillSources(ctx.Str("mode"), x.shape()[i],
                                       p.before[static_cast<size_t>(i)], i,
                                       sources[static_cast<size_t>(i)]));
  }
  VisitElementSize(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value{};
    if (constant != nullptr) std::memcpy(&value, constant->raw(), sizeof(T));
    RunOnnxPad<T>(ctx, x, out, value, p.before[static_cast<size_t>(x.rank() - 1)], sources);
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_pad) {
  op.Doc("data with elements added or (negative pads) cut at the ends of axes");
  op.Input("data").Input("pads", kShapeValue).Input("constant_value", kOptional);
  op.Input("axes", kOptional | kShapeValue).Output("output").Attr("mode", "constant");
  op.InferShape(OnnxPadShape).AnyKernel(OnnxPad);
}
