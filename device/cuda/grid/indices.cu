// Operators that look for positions or go by them: rows of tables, extremes, running sums,
// accuracy. An index out of range is no error on a card, where nobody could be told in time: it
// stands for zeros.
#include "core/shapes.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"

namespace heddle::HEDDLE_GRID {
namespace {

// Integers of either size.
struct Ids {
  const int64_t* wide = nullptr;
  const int32_t* narrow = nullptr;
  explicit Ids(const Tensor& t)
      : wide(t.dtype() == DType::kI64 ? t.data<int64_t>() : nullptr),
        narrow(t.dtype() == DType::kI64 ? nullptr : t.data<int32_t>()) {}
  HEDDLE_BODY int64_t operator[](int64_t i) const { return wide != nullptr ? wide[i] : narrow[i]; }
};
bool AreIds(DType t) { return t == DType::kI64 || t == DType::kI32; }

// --- rows of a table ---

struct GatherBody {  // element i of [outer, ids, inner]
  const float* table;
  Ids ids;
  float* out;
  int64_t rows, inner, count, padding;
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t outer = i / inner / count, id = ids[i / inner % count];
    const bool there = id >= 0 && id < rows && id != padding;
    out[i] = there ? table[(outer * rows + id) * inner + i % inner] : 0;
  }
};

Status Lookup(Queue& queue, KernelContext& ctx) {
  const Tensor &w = ctx.In("W"), &ids = ctx.In("Ids");
  Tensor& out = ctx.Out("Out");
  return Each(queue, out.numel(),
              GatherBody{w.data<float>(), Ids(ids), out.mutable_data<float>(), w.dim(0), w.dim(1),
                         ids.numel(), ctx.Int("padding_idx")});
}
bool CoversLookup(const CallView& call) {
  return AreIds(call.InDType("Ids")) && call.InDType("W") == DType::kF32 &&
         call.InShape("W").rank() == 2;
}

constexpr int64_t kNoPadding = -1;  // is no row anyway

Status Gather(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &index = ctx.In("Index");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  return Each(queue, out.numel(),
              GatherBody{x.data<float>(), Ids(index), out.mutable_data<float>(), x.dim(axis),
                         x.shape().Product(axis + 1, x.rank()), index.numel(), kNoPadding});
}
bool CoversGather(const CallView& call) {
  return AreIds(call.InDType("Index")) && !call.HasIn("Axis");
}

// The first position of an id gathers what all equal ones bring, in their order: the sums do not
// depend on who comes first.
struct ScatterAddBody {
  const float* grad;
  Ids ids;
  float* table;
  int64_t rows, width, count, padding;
  HEDDLE_BODY void operator()(Group& group, int64_t at) const {
    const int64_t id = ids[at];
    if (id < 0 || id >= rows || id == padding) return;
    for (int64_t i = 0; i < at; ++i)
      if (ids[i] == id) return;
    for (int64_t k = group.rank(); k < width; k += group.size()) {
      float sum = 0;
      for (int64_t i = at; i < count; ++i)
        if (ids[i] == id) sum += grad[i * width + k];
      table[id * width + k] = sum;
    }
  }
};

Status LookupGrad(Queue& queue, KernelContext& ctx) {
  const Tensor &grad = ctx.In("Out@GRAD"), &ids = ctx.In("Ids");
  Tensor& out = ctx.Out("W@GRAD");
  HEDDLE_RETURN_IF_ERROR(queue.Zero(out.mutable_raw(), out.bytes()));
  return Groups(queue, ids.numel(), out.dim(1),
                ScatterAddBody{grad.data<float>(), Ids(ids), out.mutable_data<float>(), out.dim(0),
                               out.dim(1), ids.numel(), ctx.Int("padding_idx")});
}
bool CoversLookupGrad(const CallView& call) {
  return CoversLookup(call) && !call.Bool("is_sparse");
}

// --- extremes along an axis ---

struct Found {
  float value;
  int64_t at;
};

// The greater value, or the smaller for sign -1; of equal ones the first. NaN is no extreme.
struct BetterFound {
  float sign;
  HEDDLE_BODY bool Before(const Found& a, const Found& b) const {
    if (a.at < 0 || b.at < 0) return b.at < 0;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan || b_nan) return a_nan != b_nan ? b_nan : a.at < b.at;
    if (a.value != b.value) return sign * a.value > sign * b.value;
    return a.at < b.at;
  }
  HEDDLE_BODY Found operator()(const Found& a, const Found& b) const {
    return Before(a, b) ? a : b;
  }
};

// Lines of n elements, `inner` apart.
template <typename Out>
struct ExtremeBody {
  const float* x;
  Out* out;
  int64_t n, inner;
  float sign;
  HEDDLE_BODY void operator()(Group& group, int64_t line) const {
    const float* const from = x + line / inner * n * inner + line % inner;
    const BetterFound better{sign};
    Found best{0, -1};
    for (int64_t i = group.rank(); i < n; i += group.size())
      best = better(best, Found{from[i * inner], i});
    best = group.Reduce(best, better);
    if (group.rank() == 0) out[line] = static_cast<Out>(best.at);
  }
};

struct Lines {
  int64_t outer = 1, n = 1, inner = 1;
};
Result<Lines> LinesOf(const Shape& x, int64_t axis_attr, bool flatten) {
  if (flatten || x.rank() == 0) return Lines{1, x.numel(), 1};
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(axis_attr, x.rank()));
  return Lines{x.Product(0, axis), x[axis], x.Product(axis + 1, x.rank())};
}

template <int kSign>
Status ArgExtreme(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Lines l, LinesOf(x.shape(), ctx.Int("axis"), ctx.Bool("flatten")));
  if (out.numel() == 0) return Status::Ok();
  if (l.n == 0) return InvalidArgument("the axis of X ", x.shape().ToString(), " is empty");
  if (out.dtype() == DType::kI32)
    return Groups(
        queue, l.outer * l.inner, l.n,
        ExtremeBody<int32_t>{x.data<float>(), out.mutable_data<int32_t>(), l.n, l.inner, kSign});
  return Groups(
      queue, l.outer * l.inner, l.n,
      ExtremeBody<int64_t>{x.data<float>(), out.mutable_data<int64_t>(), l.n, l.inner, kSign});
}

// One after the other: the best of those behind the last one in order.
struct TopKBody {
  const float* x;
  float* out;
  int64_t* indices;
  int64_t n, inner, k;
  float sign;
  HEDDLE_BODY void operator()(Group& group, int64_t line) const {
    const int64_t outer = line / inner, column = line % inner;
    const float* const from = x + outer * n * inner + column;
    const BetterFound better{sign};
    Found last{0, -1};
    for (int64_t round = 0; round < k; ++round) {
      Found best{0, -1};
      for (int64_t i = group.rank(); i < n; i += group.size()) {
        const Found f{from[i * inner], i};
        if (round == 0 || better.Before(last, f)) best = better(best, f);
      }
      last = group.Reduce(best, better);
      if (group.rank() != 0) continue;
      const int64_t to = (outer * k + round) * inner + column;
      out[to] = last.value;
      indices[to] = last.at;
    }
  }
};

Status TopK(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const bool v2 = ctx.def().FindAttr("axis") >= 0;
  HEDDLE_ASSIGN_OR_RETURN(const Lines l, LinesOf(x.shape(), v2 ? ctx.Int("axis") : -1, false));
  const int64_t k = ctx.Int("k");
  if (k < 1 || k > l.n) return InvalidArgument("k is ", k, ", expected 1 to ", l.n);
  return Groups(queue, l.outer * l.inner, l.n,
                TopKBody{x.data<float>(), ctx.Out("Out").mutable_data<float>(),
                         ctx.Out("Indices").mutable_data<int64_t>(), l.n, l.inner, k,
                         v2 && !ctx.Bool("largest") ? -1.0f : 1.0f});
}
// Which of several NaN comes first is the host's secret; it is asked for many elements, too.
bool CoversTopK(const CallView& call) { return !call.HasIn("K") && call.Int("k") <= 64; }

// --- accuracy ---

struct AccuracyBody {
  Ids indices, label;
  int64_t rows, k;
  float* accuracy;
  int32_t* correct;
  int32_t* total;
  struct Add {
    HEDDLE_BODY int64_t operator()(int64_t a, int64_t b) const { return a + b; }
  };
  HEDDLE_BODY void operator()(Group& group, int64_t) const {
    int64_t hits = 0;
    for (int64_t i = group.rank(); i < rows; i += group.size()) {
      bool hit = false;
      for (int64_t j = 0; j < k; ++j) hit = hit || indices[i * k + j] == label[i];
      hits += hit;
    }
    hits = group.Reduce(hits, Add());
    if (group.rank() != 0) return;
    *accuracy = rows == 0 ? 0.0f : static_cast<float>(hits) / static_cast<float>(rows);
    if (correct != nullptr) *correct = static_cast<int32_t>(hits);
    if (total != nullptr) *total = static_cast<int32_t>(rows);
  }
};

Status Accuracy(Queue& queue, KernelContext& ctx) {
  const Tensor& indices = ctx.In("Indices");
  Tensor *correct = ctx.OutOpt("Correct"), *total = ctx.OutOpt("Total");
  return Groups(queue, 1, indices.dim(0),
                AccuracyBody{Ids(indices), Ids(ctx.In("Label")), indices.dim(0), indices.dim(1),
                             ctx.Out("Accuracy").mutable_data<float>(),
                             correct ? correct->mutable_data<int32_t>() : nullptr,
                             total ? total->mutable_data<int32_t>() : nullptr});
}
bool CoversAccuracy(const CallView& call) {
  return AreIds(call.InDType("Indices")) && AreIds(call.InDType("Label")) &&
         call.InShape("Indices").rank() == 2;
}

// --- running sums: a thread for each line ---

template <typename T>
struct CumsumBody {
  const T* x;
  T* out;
  int64_t n, inner;
  bool reverse, exclusive;
  HEDDLE_BODY void operator()(int64_t line) const {
    const int64_t begin = line / inner * n * inner + line % inner;
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = begin + (reverse ? n - 1 - i : i) * inner;
      const T next = sum + x[at];
      out[at] = exclusive ? sum : next;
      sum = next;
    }
  }
};
template <typename T>
Status CumsumAs(Queue& queue, const Lines& l, const Tensor& x, Tensor& out, bool reverse,
                bool exclusive) {
  return Each(queue, l.outer * l.inner,
              CumsumBody<T>{x.data<T>(), out.mutable_data<T>(), l.n, l.inner, reverse, exclusive});
}
Status Cumsum(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Lines l, LinesOf(x.shape(), ctx.Int("axis"), ctx.Bool("flatten")));
  const bool reverse = ctx.Bool("reverse"), exclusive = ctx.Bool("exclusive") && x.numel() != 1;
  switch (x.dtype()) {
    case DType::kF32:
      return CumsumAs<float>(queue, l, x, out, reverse, exclusive);
    case DType::kI32:
      return CumsumAs<int32_t>(queue, l, x, out, reverse, exclusive);
    case DType::kI64:
      return CumsumAs<int64_t>(queue, l, x, out, reverse, exclusive);
    default:
      return Unimplemented("cumsum has no CUDA kernel for ", Name(x.dtype()));
  }
}

}  // namespace

void AddIndexKernels(KernelList* list) {
  constexpr uint32_t kFloatOrIds = Of(DType::kF32) | Of(DType::kI32) | Of(DType::kI64);
  list->insert(list->end(), {
                                {"lookup_table_v2", Lookup, CoversLookup, kFloatOrIds},
                                {"lookup_table", Lookup, CoversLookup, kFloatOrIds},
                                {"lookup_table_v2_grad", LookupGrad, CoversLookupGrad, kFloatOrIds},
                                {"lookup_table_grad", LookupGrad, CoversLookupGrad, kFloatOrIds},
                                {"gather", Gather, CoversGather},
                                {"arg_max", ArgExtreme<1>},
                                {"arg_min", ArgExtreme<-1>},
                                {"top_k", TopK, CoversTopK},
                                {"top_k_v2", TopK, CoversTopK},
                                {"accuracy", Accuracy, CoversAccuracy, kFloatOrIds},
                                {"cumsum", Cumsum, nullptr, kFloatOrIds},
                            });
}

}  // namespace heddle::HEDDLE_GRID
