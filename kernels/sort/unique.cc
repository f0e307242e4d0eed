// unique, unique_consecutive and unique_with_counts.
#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"

namespace heddle {
namespace {

// Groups of equal items among n.
struct Groups {
  std::pmr::vector<int64_t> first;    // position of each group's first item
  std::pmr::vector<int64_t> inverse;  // group of each item
  std::pmr::vector<int64_t> counts;
  explicit Groups(CallHeap* heap) : first(heap), inverse(heap), counts(heap) {}
};

// Items that are slices along an axis (or single elements) of a tensor, compared element by
// element.
template <typename T>
struct Items {
  const T* x;
  AxisLines s;
  bool nan_differs = false;  // NaN equals nothing
  // Whether items a and b, of which a stands before b in the order, are of one group.
  bool Same(int64_t a, int64_t b) const {
    return Compare(a, b) == 0 && !(nan_differs && HasNan(b));
  }
  bool HasNan(int64_t a) const {
    if constexpr (!std::is_integral_v<T>)
      for (const int64_t o : Watched(s.outer))
        for (int64_t k = 0; k < s.inner; ++k)
          if (IsNan(x[(o * s.n + a) * s.inner + k])) return true;
    return false;
  }
  int Compare(int64_t a, int64_t b) const {
    for (const int64_t o : Watched(s.outer)) {
      for (int64_t k = 0; k < s.inner; ++k) {
        const T va = x[(o * s.n + a) * s.inner + k], vb = x[(o * s.n + b) * s.inner + k];
        if (Less(va, vb)) return -1;
        if (Less(vb, va)) return 1;
      }
    }
    return 0;
  }
};

template <typename T>
Groups SortedGroups(const Items<T>& items, CallHeap* heap) {
  const int64_t n = items.s.n;
  std::pmr::vector<int64_t> order(static_cast<size_t>(n), heap);
  std::iota(order.begin(), order.end(), int64_t{0});
  LookCount looks;
  std::sort(order.begin(), order.end(), looks.In([&](int64_t a, int64_t b) {
    const int compared = items.Compare(a, b);
    return compared < 0 || (compared == 0 && a < b);
  }));
  Groups g(heap);
  g.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    LookForInterrupt();
    if (i == 0 || !items.Same(order[i - 1], order[i])) {
      g.first.push_back(order[i]);
      g.counts.push_back(0);
    }
    ++g.counts.back();
    g.inverse[static_cast<size_t>(order[i])] = std::ssize(g.first) - 1;
  }
  return g;
}

// In the order in which they first appear.
template <typename T>
Groups GroupsByAppearance(const Items<T>& items, CallHeap* heap) {
  Groups g = SortedGroups(items, heap);
  std::pmr::vector<int64_t> order(g.first.size(), heap), rank(g.first.size(), heap);
  std::iota(order.begin(), order.end(), int64_t{0});
  LookCount looks;
  std::sort(order.begin(), order.end(),
            looks.In([&](int64_t a, int64_t b) { return g.first[a] < g.first[b]; }));
  Groups out(heap);
  for (int64_t old : order) {
    LookForInterrupt();
    rank[static_cast<size_t>(old)] = std::ssize(out.first);
    out.first.push_back(g.first[static_cast<size_t>(old)]);
    out.counts.push_back(g.counts[static_cast<size_t>(old)]);
  }
  for (int64_t i : g.inverse) out.inverse.push_back(rank[static_cast<size_t>(i)]);
  return out;
}

template <typename T>
Groups RunsOf(const Items<T>& items, CallHeap* heap) {
  Groups g(heap);
  for (const int64_t i : Watched(items.s.n)) {
    if (i == 0 || items.Compare(i - 1, i) != 0) {
      g.first.push_back(i);
      g.counts.push_back(0);
    }
    ++g.counts.back();
    g.inverse.push_back(std::ssize(g.first) - 1);
  }
  return g;
}

struct Wanted {
  Shape x;
  bool flat = true;
  int axis = 0;
  AxisLines lines;
};

Result<Wanted> ReadAxis(const KernelContext& ctx) {
  Wanted w;
  w.x = ctx.In("X").shape();
  w.lines = AxisLines{1, w.x.numel(), 1};
  if (ctx.def().FindAttr("axis") < 0) return w;
  IntArgs axes;
  if (ctx.def().FindInput("Axis") >= 0)
    HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "Axis", "axis", &axes));
  else if (!ctx.IntList("axis").empty())
    axes.n = 1, axes[0] = ctx.IntList("axis")[0];
  if (axes.n > 1) return InvalidArgument("Axis has ", axes.n, " elements, expected at most one");
  if (axes.n == 0) return w;
  w.flat = false;
  HEDDLE_ASSIGN_OR_RETURN(w.axis, NormalAxis(axes[0], w.x.rank()));
  w.lines = AxisLines::Of(w.x, w.axis);
  return w;
}

void Emit(const KernelContext& ctx, Key key, DType dtype, std::span<const int64_t> values) {
  if (!ctx.HasOut(key)) return;
  Tensor& t = ctx.Alloc(key, dtype, Shape{std::ssize(values)});
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kI32)
      t.mutable_data<int32_t>()[i] = static_cast<int32_t>(values[i]);
    else
      t.mutable_data<int64_t>()[i] = values[i];
  }
}

template <typename T>
void EmitItems(const KernelContext& ctx, const Wanted& w, const Items<T>& items, const Groups& g) {
  const int64_t n = std::ssize(g.first);
  Shape shape{n};
  if (!w.flat) {
    shape = w.x;
    if (shape.rank() > 0) shape[w.axis] = n;
  }
  Tensor& out = ctx.Alloc("Out", kDTypeOf<T>, shape);
  T* to = out.mutable_data<T>();
  const AxisLines& s = items.s;
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < n; ++i)
      WatchedCopy(items.x + (o * s.n + g.first[static_cast<size_t>(i)]) * s.inner, s.inner,
                  to + (o * n + i) * s.inner);
}

Result<DType> IndexType(const KernelContext& ctx) {
  const DType dtype = DTypeFromProto(ctx.Int("dtype"));
  if (dtype == DType::kI32 || dtype == DType::kI64) return dtype;
  return InvalidArgument("attribute dtype is ", ctx.Int("dtype"),
                         ", expected 2 (int32) or 3 (int64)");
}

template <typename T>
struct Unique {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Wanted w, ReadAxis(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const DType dtype, IndexType(ctx));
    const Tensor x = ctx.In("X");  // holds the memory while outputs are allocated
    const Items<T> items{x.data<T>(), w.lines, ctx.Bool("nan_differs")};
    const bool sorted = ctx.Bool("is_sorted");
    CallHeap heap(ctx);
    const Groups g = sorted ? SortedGroups(items, &heap) : GroupsByAppearance(items, &heap);
    EmitItems(ctx, w, items, g);
    if (!sorted || ctx.Bool("return_inverse")) Emit(ctx, "Index", dtype, g.inverse);
    if (ctx.Bool("return_index")) Emit(ctx, "Indices", dtype, g.first);
    if (ctx.Bool("return_counts")) Emit(ctx, "Counts", dtype, g.counts);
    return Status::Ok();
  }
};

template <typename T>
struct Consecutive {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Wanted w, ReadAxis(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const DType dtype, IndexType(ctx));
    const Tensor x = ctx.In("X");
    const Items<T> items{x.data<T>(), w.lines};
    CallHeap heap(ctx);
    const Groups g = RunsOf(items, &heap);
    EmitItems(ctx, w, items, g);
    if (ctx.Bool("return_inverse")) Emit(ctx, "Index", dtype, g.inverse);
    if (ctx.Bool("return_counts")) Emit(ctx, "Counts", dtype, g.counts);
    return Status::Ok();
  }
};

template <typename T>
struct WithCounts {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const DType dtype, IndexType(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const Wanted w, ReadAxis(ctx));
    const Tensor x = ctx.In("X");
    const Items<T> items{x.data<T>(), w.lines};
    CallHeap heap(ctx);
    const Groups g = GroupsByAppearance(items, &heap);
    EmitItems(ctx, w, items, g);
    Emit(ctx, "Index", dtype, g.inverse);
    Emit(ctx, "Count", dtype, g.counts);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(unique) {
  op.Doc("distinct elements, or slices along an axis: sorted, or as they first appear");
  op.Input("X").Input("Axis", kOptional).Output("Out");
  op.Output("Indices", kOptional).Output("Index", kOptional).Output("Counts", kOptional);
  op.Attr("return_index", false).Attr("return_inverse", false).Attr("return_counts", false);
  op.Attr("axis", Ints{}).Attr("dtype", 3).Attr("is_sorted", false).Attr("nan_differs", false);
  op.Kernels<Unique, float, double, int32_t, int64_t, bool, uint8_t, int8_t, int16_t, float16,
             bfloat16>();
  op.KernelKey("X");
}

HEDDLE_OP(unique_consecutive) {
  op.Doc("elements (or slices) unlike the one before").Input("X").Output("Out");
  op.Output("Index", kOptional).Output("Counts", kOptional).Attr("axis", Ints{});
  op.Attr("return_inverse", false).Attr("return_counts", false).Attr("dtype", 3);
  op.Kernels<Consecutive, float, double, int32_t, int64_t>();
}

HEDDLE_OP(unique_with_counts) {
  op.Doc("distinct elements in the order of their appearance").Input("X").Output("Out");
  op.Output("Index", kOptional).Output("Count", kOptional).Attr("dtype", 3);
  op.Kernels<WithCounts, float, double, int32_t, int64_t>();
}
