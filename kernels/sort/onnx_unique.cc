// Distinct elements, or distinct slices along an axis.
#include <numeric>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// X as rows whose equality counts: its elements, or its slices along the axis.
struct Slices {
  int64_t n = 0;
  AxisLines lines;  // with an axis
  bool along_axis = false;
};

template <typename T>
class UniqueRows {
 public:
  UniqueRows(const T* x, const Slices& s) : x_(x), s_(s) {}

  bool Equal(int64_t a, int64_t b) const { return Compare(a, b) == 0; }
  int Compare(int64_t a, int64_t b) const {
    if (!s_.along_axis) return CompareOne(x_[a], x_[b]);
    for (const int64_t o : Watched(s_.lines.outer))
      for (int64_t k = 0; k < s_.lines.inner; ++k) {
        const int64_t row = o * s_.lines.n;
        const int c =
            CompareOne(x_[(row + a) * s_.lines.inner + k], x_[(row + b) * s_.lines.inner + k]);
        if (c != 0) return c;
      }
    return 0;
  }

 private:
  static int CompareOne(T p, T q) {
    if (heddle::Less(p, q)) return -1;
    return heddle::Less(q, p) ? 1 : 0;
  }
  const T* x_;
  const Slices& s_;
};

struct Found {
  explicit Found(CallHeap* heap) : first(heap), inverse(heap), counts(heap) {}
  std::pmr::vector<int64_t> first, inverse, counts;
};

// Groups of equal rows, in the order of their values or of their first occurrence.
template <typename T>
Found FindUnique(const T* x, const Slices& s, bool sorted, CallHeap* heap) {
  const UniqueRows<T> rows(x, s);
  const auto n = static_cast<size_t>(s.n);
  std::pmr::vector<int64_t> order(n, heap);
  std::iota(order.begin(), order.end(), int64_t{0});
  LookCount looks;
  std::sort(order.begin(), order.end(), looks.In([&](int64_t a, int64_t b) {
    const int c = rows.Compare(a, b);
    return c != 0 ? c < 0 : a < b;
  }));
  Found found(heap);
  found.inverse.resize(n);
  found.first.reserve(n);
  found.counts.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    if (i == 0 || !rows.Equal(order[i - 1], order[i])) {
      found.first.push_back(order[i]);
      found.counts.push_back(0);
    }
    found.inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(found.first.size()) - 1;
    ++found.counts.back();
  }
  if (sorted) return found;
  std::pmr::vector<int64_t> by_first(found.first.size(), heap), rank(found.first.size(), heap);
  std::iota(by_first.begin(), by_first.end(), int64_t{0});
  std::sort(by_first.begin(), by_first.end(), looks.In([&](int64_t a, int64_t b) {
    return found.first[static_cast<size_t>(a)] < found.first[static_cast<size_t>(b)];
  }));
  Found ordered(heap);
  ordered.first.reserve(by_first.size());
  ordered.counts.reserve(by_first.size());
  ordered.inverse.reserve(n);
  for (size_t i = 0; i < by_first.size(); ++i) {
    const auto g = static_cast<size_t>(by_first[i]);
    ordered.first.push_back(found.first[g]);
    ordered.counts.push_back(found.counts[g]);
    rank[g] = static_cast<int64_t>(i);
  }
  for (const int64_t g : found.inverse) ordered.inverse.push_back(rank[static_cast<size_t>(g)]);
  return ordered;
}

void PutInts(const KernelContext& ctx, Key key, const std::pmr::vector<int64_t>& values) {
  if (!ctx.HasOut(key)) return;
  Tensor& out = ctx.Alloc(key, DType::kI64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), out.mutable_data<int64_t>());
}

template <typename T>
struct OnnxUnique {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    Slices s;
    s.along_axis = ctx.Bool("has_axis");
    s.n = x.numel();
    Shape shape{0};
    int axis = 0;
    if (s.along_axis) {
      HEDDLE_ASSIGN_OR_RETURN(axis, NormalAxis(ctx.Int("axis"), x.rank()));
      s.lines = AxisLines::Of(x.shape(), axis);
      s.n = s.lines.n;
      if (x.rank() > 0) shape = x.shape();
    }
    CallHeap heap(ctx);
    const Found found = FindUnique(x.data<T>(), s, ctx.Int("sorted") != 0, &heap);
    PutInts(ctx, "indices", found.first);
    PutInts(ctx, "inverse_indices", found.inverse);
    PutInts(ctx, "counts", found.counts);
    if (!ctx.HasOut("Y")) return Status::Ok();
    const auto groups = static_cast<int64_t>(found.first.size());
    shape[axis] = groups;
    T* to = ctx.Alloc("Y", x.dtype(), shape).template mutable_data<T>();
    const int64_t outer = s.along_axis ? s.lines.outer : 1,
                  inner = s.along_axis ? s.lines.inner : 1;
    for (const int64_t o : Watched(outer))
      for (const int64_t row : found.first)
        to = WatchedCopy(x.data<T>() + (o * s.n + row) * inner, inner, to);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_unique) {
  op.Doc("distinct elements, or slices along an axis: sorted, or as they first occur");
  op.Input("X").Output("Y", kOptional).Output("indices", kOptional);
  op.Output("inverse_indices", kOptional).Output("counts", kOptional);
  op.Attr("has_axis", false).Attr("axis", 0).Attr("sorted", 1);
  op.Kernels<OnnxUnique, float, double, bool, int8_t, uint8_t, int16_t, int32_t, int64_t, float16,
             bfloat16>();
}
