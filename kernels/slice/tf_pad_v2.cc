// Padding by a constant, and by mirrored elements with its gradient.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

struct Pads {
  std::array<int64_t, Shape::kMaxRank> before{}, after{};
};

template <typename Context>
Result<Pads> PadsIn(const Context& ctx, const Shape& x) {
  const Shape& s = ShapeIn(ctx, "paddings");
  if (s.rank() != 2 || s[0] != x.rank() || s[1] != 2)
    return InvalidArgument("paddings has shape ", s.ToString(), ", expected [", x.rank(), ", 2]");
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts list, IntsIn(ctx, "paddings"));
  Pads p;
  for (int i = 0; i < x.rank(); ++i) {
    p.before[i] = list[2 * static_cast<size_t>(i)];
    p.after[i] = list[2 * static_cast<size_t>(i) + 1];
    if (p.before[i] < 0 || p.after[i] < 0)
      return InvalidArgument("paddings holds ", p.before[i], " and ", p.after[i], " for axis ", i,
                             ", expected 0 or more");
  }
  return p;
}

template <int kSign>
Status PadConstantShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.known_rank()) return ctx.Defer();
  if (!Known(ctx, "paddings") || !ctx.InShape("paddings").is_static())
    return SameRank(ctx, "input", "output");
  HEDDLE_ASSIGN_OR_RETURN(const Pads p, PadsIn(ctx, x));
  Shape out = x;
  for (int i = 0; i < x.rank(); ++i) {
    if (x[i] < 0) continue;
    int64_t both = 0;
    if (__builtin_add_overflow(p.before[i], p.after[i], &both) || both > int64_t{1} << 46)
      return InvalidArgument("paddings of axis ", i, " are too large");
    out[i] = x[i] + kSign * both;
    if (out[i] < 0)
      return InvalidArgument("paddings of axis ", i, " take more than its ", x[i], " elements");
  }
  if (out.is_static()) {
    HEDDLE_ASSIGN_OR_RETURN(out, MakeShape(out, "output"));
  }
  ctx.SetOut("output", out, ctx.InDType("input"));
  return Status::Ok();
}

// Elements of `small` inside `big`, before[i] away from its beginning.
StridedCopy Inner(size_t size, const Shape& small, const Shape& big, const Pads& p) {
  const auto from = RowMajorStrides(small), to = RowMajorStrides(big);
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t offset = 0;
  for (int i = 0; i < small.rank(); ++i) {
    dims[i] = {small[i], from[i], to[i]};
    offset += p.before[i] * to[i];
  }
  return {size, std::span(dims.data(), static_cast<size_t>(small.rank())), 0, offset};
}

Status PadConstant(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  HEDDLE_ASSIGN_OR_RETURN(const Pads p, PadsIn(ctx, x.shape()));
  Tensor& out = ctx.Out("output");
  const Tensor* value = ctx.InOpt("constant_values");
  if (value != nullptr && (value->numel() != 1 || value->dtype() != x.dtype()))
    return InvalidArgument("constant_values is ", Name(value->dtype()), " ",
                           value->shape().ToString(), ", expected one ", Name(x.dtype()));
  if (value == nullptr) {
    ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  } else {
    VisitElementSize(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = static_cast<T*>(out.mutable_raw());
      WatchedFill(to, out.numel(), *static_cast<const T*>(value->raw()));
    });
  }
  if (x.numel() == 0) return Status::Ok();
  Inner(SizeOf(x.dtype()), x.shape(), out.shape(), p).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

// The place in the small tensor of each place of the padded one, along each axis.
using Places = std::pmr::vector<std::pmr::vector<int64_t>>;

Result<Places> MirrorPlaces(const OpContext& ctx, const Shape& small, const Pads& p,
                            CallHeap* heap) {
  const std::string& mode = ctx.Str("mode");
  if (mode != "REFLECT" && mode != "SYMMETRIC")
    return InvalidArgument("mode is '", mode, "', expected REFLECT or SYMMETRIC");
  const int64_t skip = mode == "REFLECT" ? 1 : 0;  // the border itself is not repeated
  Places places(static_cast<size_t>(small.rank()), heap);
  for (int i = 0; i < small.rank(); ++i) {
    const int64_t n = small[i];
    if (p.before[i] > n - skip || p.after[i] > n - skip)
      return InvalidArgument("paddings ", p.before[i], " and ", p.after[i], " of axis ", i,
                             " mirror more than its ", n, " elements have");
    std::pmr::vector<int64_t>& along = places[static_cast<size_t>(i)];
    along.reserve(static_cast<size_t>(p.before[i] + n + p.after[i]));
    for (int64_t k = -p.before[i]; k < n + p.after[i]; ++k)
      along.push_back(k < 0 ? -k - 1 + skip : k < n ? k : 2 * n - k - 1 - skip);
  }
  return places;
}

// fn(offset in the small tensor, offset in the padded one)
template <typename Fn>
void ForEachPlace(const Shape& small, const Shape& big, const Places& places, Fn&& fn) {
  const auto strides = RowMajorStrides(small);
  Walk<1> walk(big, {std::array<int64_t, Shape::kMaxRank>{}});
  for (const auto some : Stretches(big.numel()))
    for (int64_t i = some.begin; i < some.end; ++i, walk.Next()) {
      int64_t at = 0;
      for (int d = 0; d < big.rank(); ++d)
        at += places[static_cast<size_t>(d)][static_cast<size_t>(walk.index(d))] * strides[d];
      fn(at, i);
    }
}

// The rows of the last axis lie in one piece but for their ends.
template <typename T>
void MirrorRows(const T* from, const Shape& small, const Shape& big, const Places& places,
                int64_t before, T* to) {
  const int last = small.rank() - 1;
  const auto strides = RowMajorStrides(small);
  const std::pmr::vector<int64_t>& row = places[static_cast<size_t>(last)];
  const int64_t n = small[last], width = big[last];
  Shape rows = big;
  rows.erase(last);
  Walk<1> walk(rows, {std::array<int64_t, Shape::kMaxRank>{}});
  for (const auto part : Stretches(rows.numel()))
    for (int64_t i = part.begin; i < part.end; ++i, walk.Next(), to += width) {
      int64_t at = 0;
      for (int d = 0; d < last; ++d)
        at += places[static_cast<size_t>(d)][static_cast<size_t>(walk.index(d))] * strides[d];
      for (int64_t k = 0; k < before; ++k) to[k] = from[at + row[static_cast<size_t>(k)]];
      WatchedCopy(from + at, n, to + before);
      for (int64_t k = before + n; k < width; ++k) to[k] = from[at + row[static_cast<size_t>(k)]];
    }
}

Status MirrorPad(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  HEDDLE_ASSIGN_OR_RETURN(const Pads p, PadsIn(ctx, x.shape()));
  CallHeap heap(ctx);
  HEDDLE_ASSIGN_OR_RETURN(const Places places, MirrorPlaces(ctx, x.shape(), p, &heap));
  Tensor& out = ctx.Out("output");
  if (out.numel() == 0) return Status::Ok();
  VisitElementSize(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(x.raw());
    T* to = static_cast<T*>(out.mutable_raw());
    if (x.shape().rank() == 0)
      *to = *from;
    else
      MirrorRows(from, x.shape(), out.shape(), places, p.before[x.shape().rank() - 1], to);
  });
  return Status::Ok();
}

template <typename T>
struct MirrorPadGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    Tensor& out = ctx.Out("output");
    HEDDLE_ASSIGN_OR_RETURN(const Pads p, PadsIn(ctx, x.shape()));
    CallHeap heap(ctx);
    HEDDLE_ASSIGN_OR_RETURN(const Places places, MirrorPlaces(ctx, out.shape(), p, &heap));
    const T* from = x.data<T>();
    T* to = out.template mutable_data<T>();
    WatchedFill(to, out.numel(), T(0));
    ForEachPlace(out.shape(), x.shape(), places,
                 [&](int64_t small, int64_t big) { to[small] += from[big]; });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_pad_v2) {
  op.Doc("input between paddings of a value, or of zeros").Input("input");
  op.Input("paddings", kShapeValue).Input("constant_values", kOptional).Output("output");
  op.InferShape(PadConstantShape<1>).AnyKernel(PadConstant);
}
HEDDLE_OP(tf_mirror_pad) {
  op.Doc("input between its own elements in reverse order, without (REFLECT) or with the border's");
  op.Input("input").Input("paddings", kShapeValue).Output("output").Attr("mode", "REFLECT");
  op.InferShape(PadConstantShape<1>).AnyKernel(MirrorPad);
}
HEDDLE_OP(tf_mirror_pad_grad) {
  op.Doc("gradient of tf_mirror_pad").Input("input").Input("paddings", kShapeValue);
  op.Output("output").Attr("mode", "REFLECT").InferShape(PadConstantShape<-1>).KernelKey("input");
  op.Kernels<MirrorPadGrad, float, double, int32_t, int64_t, std::complex<float>,
             std::complex<double>>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
