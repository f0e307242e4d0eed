// Elements added before and after dimensions, or cut there, in five modes; and the gradient.
#include <algorithm>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"
#include "kernels/strided/index_pad.h"

namespace heddle {
namespace {

// The amounts for each dimension of a tensor; `known` is false while they are not.
Status ReadPadding(const OpContext& ctx, const Shape& x, Padding* pad, bool* known) {
  IntArgs list, axes;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "Paddings", "paddings", &list));
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "Axes", "axes", &axes));
  const bool some = Holds(ctx.InVar("Axes")) || axes.n > 0;
  pad->rank = x.rank();
  *known = list.known && list.n >= 0 && axes.known && axes.n >= 0;
  if (!*known) return Status::Ok();
  const int n = some ? axes.n : x.rank();
  if (list.n != 2 * n)
    return InvalidArgument("'paddings' has ", list.n, " values; expected two for each of ", n,
                           " dimensions");
  ShortInts places = FirstInts(n);
  if (some) {
    HEDDLE_ASSIGN_OR_RETURN(places, NormalAxes(axes.span(), x.rank(), "axes"));
  }
  const bool apart = ctx.Bool("before_first");
  for (int k = 0; k < n; ++k) {
    const auto i = static_cast<size_t>(places[static_cast<size_t>(k)]);
    pad->before[i] = list[apart ? k : 2 * k];
    pad->after[i] = list[apart ? n + k : 2 * k + 1];
  }
  return Status::Ok();
}

// The shape behind the padding, or with a sign of -1 before it.
Status SetPadded(ShapeContext& ctx, Key from, Key to, int sign) {
  const Shape& x = ctx.InShape(from);
  if (!x.known_rank()) return ctx.Defer();
  Padding pad;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, x, &pad, &known));
  if (!known) return SameRank(ctx, from, to);
  Shape out = x;
  for (int i = 0; i < x.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    int64_t both = 0;
    if (__builtin_add_overflow(pad.before[k], pad.after[k], &both) || both > int64_t{1} << 46 ||
        both < -(int64_t{1} << 46))
      return InvalidArgument("the paddings of dimension ", i, " are too large");
    if (x[i] < 0) continue;
    out[i] = x[i] + sign * both;
    if (out[i] < 0)
      return InvalidArgument("paddings ", pad.before[k], " and ", pad.after[k], " of dimension ", i,
                             " do not fit the shape ", x.ToString());
  }
  if (out.is_static()) HEDDLE_RETURN_IF_ERROR(MakeShape(out, "the padded shape").status());
  ctx.SetOut(to, out, ctx.InDType(from));
  if (x.rank() > 0 && out[0] == x[0]) ctx.ShareLoD(from, to);
  return Status::Ok();
}

Status PadShape(ShapeContext& ctx) { return SetPadded(ctx, "X", "Out", 1); }
Status PadGradShape(ShapeContext& ctx) { return SetPadded(ctx, "Out@GRAD", "X@GRAD", -1); }

// Of each position along the padded dimensions, the position in the tensor; -1: it has none.
using Sources = std::array<std::span<int64_t>, Shape::kMaxRank>;

Status FillSources(const std::string& mode, int64_t n, int64_t before, int axis,
                   std::span<int64_t> from) {
  const auto out = static_cast<int64_t>(from.size());
  const int64_t after = out - n - before;
  // Negative padding cuts first: what is repeated is what it leaves.
  const int64_t first = std::max<int64_t>(0, -before);
  const int64_t kept = n - first - std::max<int64_t>(0, -after);
  if (mode != "constant" && kept <= 0 && out > 0)
    return InvalidArgument("mode '", mode, "' cannot pad the empty axis ", axis);
  const bool edge = mode == "edge", wrap = mode == "wrap", reflect = mode == "reflect",
             symmetric = mode == "symmetric";
  const int64_t most = symmetric ? kept : kept - 1;
  if ((reflect || symmetric) && (before > most || after > most) && out > 0)
    return InvalidArgument("paddings ", before, " and ", after, " of axis ", axis,
                           " reflect more than its ", n, " elements have");
  if (!edge && !wrap && !reflect && !symmetric && mode != "constant")
    return InvalidArgument("mode is '", mode,
                           "', expected constant, reflect, symmetric, edge or wrap");
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
      } else if (symmetric) {
        at = at < 0 ? -at - 1 : at;
        at = at >= kept ? 2 * kept - 1 - at : at;
      } else {
        from[static_cast<size_t>(i)] = -1;
        continue;
      }
    }
    from[static_cast<size_t>(i)] = first + at;
  }
  return Status::Ok();
}

// For tensors of one dimension at least.
Status SourcesOf(const OpContext& ctx, const Shape& x, const Shape& padded, const Padding& pad,
                 std::pmr::vector<int64_t>* all, Sources* sources) {
  int64_t positions = 0;
  for (const int64_t d : padded) positions += d;
  all->resize(static_cast<size_t>(positions));
  std::span<int64_t> left(*all);
  for (int i = 0; i < x.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    const auto count = static_cast<size_t>(padded[i]);
    (*sources)[k] = left.first(count);
    left = left.subspan(count);
    HEDDLE_RETURN_IF_ERROR(FillSources(ctx.Str("mode"), x[i], pad.before[k], i, (*sources)[k]));
  }
  return Status::Ok();
}

// fn(row of the padded tensor, offset of its source in the other one, whether it has one)
template <typename Fn>
void ForEachRow(const Shape& x, const Shape& padded, const Sources& sources, int64_t begin,
                int64_t end, Fn&& fn) {
  const auto strides = RowMajorStrides(x);
  for (int64_t row = begin; row < end; ++row) {
    int64_t at = 0, rest = row;
    bool inside = true;
    for (int i = x.rank() - 2; i >= 0; --i) {
      const int64_t source = sources[static_cast<size_t>(i)][static_cast<size_t>(rest % padded[i])];
      rest /= padded[i];
      inside = inside && source >= 0;
      at += source * strides[i];
    }
    fn(row, at, inside);
  }
}

template <typename T>
void CopyRowsOf(const KernelContext& ctx, const Tensor& x, Tensor& out, T value, int64_t before,
                const Sources& sources) {
  const int last = x.rank() - 1;
  const Shape& shape = out.shape();
  const int64_t cols = shape[last], rows = cols == 0 ? 0 : out.numel() / cols;
  const T* from = static_cast<const T*>(x.raw());
  T* to = static_cast<T*>(out.mutable_raw());
  const int64_t* columns = sources[static_cast<size_t>(last)].data();
  // Columns that are copied as they stand.
  const int64_t first = std::clamp<int64_t>(before, 0, cols);
  const int64_t end_copy = std::clamp<int64_t>(x.shape()[last] + before, first, cols);
  ctx.ParallelFor(rows, 1 + 16384 / (1 + cols), [&](int64_t begin, int64_t end) {
    ForEachRow(x.shape(), shape, sources, begin, end, [&](int64_t row, int64_t at, bool inside) {
      T* line = to + row * cols;
      if (!inside) {
        WatchedFill(line, cols, value);
        return;
      }
      const auto pick = [&](int64_t c) { return columns[c] >= 0 ? from[at + columns[c]] : value; };
      for (const int64_t c : Watched(first)) line[c] = pick(c);
      WatchedCopy(from + at + first - before, end_copy - first, line + first);
      for (const int64_t c : Watched(end_copy, cols)) line[c] = pick(c);
    });
  });
}

// The element that is padded with, in `bytes`.
Status ReadValue(const KernelContext& ctx, DType dtype, std::byte* bytes) {
  if (const Tensor* given = ctx.InOpt("Value")) {
    if (given->dtype() != dtype || given->numel() != 1)
      return InvalidArgument("Value is ", Name(given->dtype()), " ", given->shape().ToString(),
                             ", expected one ", Name(dtype));
    std::memcpy(bytes, given->raw(), SizeOf(dtype));
    return Status::Ok();
  }
  VisitAnyDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T value = static_cast<T>(static_cast<ComputeType<T>>(ctx.Float("pad_value")));
    std::memcpy(bytes, &value, sizeof(T));
  });
  return Status::Ok();
}

Status Pad(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  Padding pad;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, x.shape(), &pad, &known));
  alignas(16) std::byte value[16] = {};
  HEDDLE_RETURN_IF_ERROR(ReadValue(ctx, x.dtype(), value));
  if (out.numel() == 0) return Status::Ok();
  if (x.rank() == 0) {
    CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
    return Status::Ok();
  }
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> all(&heap);
  Sources sources;
  HEDDLE_RETURN_IF_ERROR(SourcesOf(ctx, x.shape(), out.shape(), pad, &all, &sources));
  VisitElementSize(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T with;
    std::memcpy(&with, value, sizeof(T));
    CopyRowsOf<T>(ctx, x, out, with, pad.before[static_cast<size_t>(x.rank() - 1)], sources);
  });
  return Status::Ok();
}

// What of `grad` came from each element, added up in order.
template <typename T>
void AddRowsOf(const Tensor& grad, Tensor& out, const Sources& sources) {
  using C = ComputeType<T>;
  const Shape& padded = grad.shape();
  const int last = padded.rank() - 1;
  const int64_t cols = padded[last];
  const int64_t* columns = sources[static_cast<size_t>(last)].data();
  const T* from = grad.data<T>();
  T* to = out.mutable_data<T>();
  WatchedFill(to, out.numel(), T(0));
  ForEachRow(out.shape(), padded, sources, 0, grad.numel() / cols,
             [&](int64_t row, int64_t at, bool inside) {
               if (!inside) return;
               for (const int64_t c : Watched(cols))
                 if (columns[c] >= 0) {
                   T& sum = to[at + columns[c]];
                   sum = static_cast<T>(static_cast<C>(sum) + static_cast<C>(from[row * cols + c]));
                 }
             });
}

Status PadGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  Padding pad;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, grad.shape(), &pad, &known));
  if (ctx.Str("mode") == "constant") return RunPadGrad(ctx, grad, pad, PadMode::kConstant, out);
  if (grad.numel() == 0 || grad.rank() == 0) {
    if (grad.numel() == 0)
      ZeroBytes(ctx, out.mutable_raw(), out.bytes());
    else
      CopyBytes(ctx, grad.raw(), out.mutable_raw(), out.bytes());
    return Status::Ok();
  }
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> all(&heap);
  Sources sources;
  HEDDLE_RETURN_IF_ERROR(SourcesOf(ctx, out.shape(), grad.shape(), pad, &all, &sources));
  const bool summed = VisitDType<float, double, int32_t, int64_t, float16, bfloat16,
                                 std::complex<float>, std::complex<double>>(
      grad.dtype(), [&](auto tag) { AddRowsOf<typename decltype(tag)::type>(grad, out, sources); });
  return summed ? Status::Ok() : Unimplemented("no sums of ", Name(grad.dtype()), " tensors");
}

void DeclarePadding(OpDef& op) {
  op.Input("Paddings", kOptional | kShapeValue).Input("Axes", kOptional | kShapeValue);
  op.Attr("paddings", Ints{}).Attr("axes", Ints{}).Attr("before_first", false);
  op.Attr("mode", "constant");
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(pad) {
  op.Doc(
      "X with elements added before and after each dimension, or each of `axes`, or cut there; "
      "paddings: before and after each in turn, or with before_first those before all. Mode "
      "constant adds pad_value or Value; reflect, symmetric (with the border), edge and wrap "
      "repeat "
      "elements.");
  op.Input("X");
  DeclarePadding(op);
  op.Input("Value", kOptional).Output("Out").Attr("pad_value", 0.0);
  op.InferShape(PadShape).AnyKernel(Pad);
}

HEDDLE_OP(pad_grad) {
  op.Input("Out@GRAD");
  DeclarePadding(op);
  op.Output("X@GRAD").InferShape(PadGradShape).AnyKernel(PadGrad);
}
