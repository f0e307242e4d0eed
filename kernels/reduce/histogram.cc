// Counting and placing: histogram, bincount, searchsorted.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/shapes.h"

namespace heddle {
namespace {

constexpr int64_t kMaxCounts = int64_t{1} << 40;

// Integers are widened, so that no difference overflows.
template <typename T>
struct Histogram {
  using Wide = std::conditional_t<std::is_integral_v<T>, __int128, T>;
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    int64_t* count = ctx.Out("Out").template mutable_data<int64_t>();
    const T* x = xt.data<T>();
    const int64_t n = xt.numel(), bins = ctx.Int("bins");
    std::fill_n(count, bins, int64_t{0});
    auto low = static_cast<Wide>(ctx.Int("min")), high = static_cast<Wide>(ctx.Int("max"));
    if (n == 0) return Status::Ok();
    if (low == high) {
      low = *std::min_element(x, x + n);
      high = *std::max_element(x, x + n);
    }
    if (low == high) {
      --low;
      ++high;
    }
    if (!std::isfinite(static_cast<double>(low)) || !std::isfinite(static_cast<double>(high)))
      return InvalidArgument("the range of the histogram is not finite");
    if (high < low) return InvalidArgument("attribute max is below attribute min");
    for (int64_t i = 0; i < n; ++i) {
      if (!(x[i] >= low && x[i] <= high)) continue;
      const Wide bin = (x[i] - low) * static_cast<Wide>(bins) / (high - low);
      ++count[bin < static_cast<Wide>(bins) ? static_cast<int64_t>(bin) : bins - 1];
    }
    return Status::Ok();
  }
};

Status InferHistogram(ShapeContext& ctx) {
  const int64_t bins = ctx.Int("bins");
  if (bins < 1 || bins > kMaxCounts)
    return InvalidArgument("attribute bins is ", bins, ", expected 1 to ", kMaxCounts);
  ctx.SetOut("Out", Shape{bins}, DType::kI64);
  return Status::Ok();
}

template <typename T, typename Count>
void AddUp(const Tensor& x, const Tensor* weights, Tensor& out) {
  Count* count = out.mutable_data<Count>();
  std::fill_n(count, out.numel(), Count(0));
  const auto add = [&](auto weight) {
    for (int64_t i = 0, n = x.numel(); i < n; ++i)
      count[x.data<T>()[i]] += static_cast<Count>(weight(i));
  };
  if (weights == nullptr) {
    add([](int64_t) { return 1; });
    return;
  }
  VisitDType<float, double, int32_t, int64_t>(weights->dtype(), [&](auto tag) {
    const auto* w = weights->data<typename decltype(tag)::type>();
    add([=](int64_t i) { return w[i]; });
  });
}

template <typename T>
struct Bincount {
  static Status Run(KernelContext& ctx) {
    const Tensor x = ctx.In("X");
    const Tensor* weights = ctx.InOpt("Weights");
    if (weights != nullptr && weights->numel() != x.numel())
      return InvalidArgument("Weights has shape ", weights->shape().ToString(), ", X has ",
                             x.shape().ToString());
    int64_t size = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      const int64_t v = x.data<T>()[i];
      if (v < 0 || v >= kMaxCounts)
        return OutOfRange("X holds ", v, ", expected 0 to ", kMaxCounts - 1);
      size = std::max(size, v);
    }
    size = std::max(x.numel() > 0 ? size + 1 : 0, ctx.Int("minlength"));
    if (size > kMaxCounts)
      return InvalidArgument("attribute minlength is ", size, ", expected at most ", kMaxCounts);
    if (weights == nullptr)
      AddUp<T, int64_t>(x, nullptr, ctx.Alloc("Out", DType::kI64, Shape{size}));
    else if (weights->dtype() == DType::kF32)
      AddUp<T, float>(x, weights, ctx.Alloc("Out", DType::kF32, Shape{size}));
    else
      AddUp<T, double>(x, weights, ctx.Alloc("Out", DType::kF64, Shape{size}));
    return Status::Ok();
  }
};

// The position where a value would go into its sorted row: before equal ones, or behind them.
template <typename T, typename Index>
void Place(const KernelContext& ctx, const Tensor& sorted, const Tensor& values, Tensor& out) {
  const int64_t n = sorted.rank() == 0 ? 1 : sorted.dim(-1);
  const int64_t per_row = sorted.rank() <= 1 ? values.numel() : values.dim(-1);
  const bool right = ctx.Bool("right");
  const T* rows = sorted.data<T>();
  const T* v = values.data<T>();
  Index* to = out.mutable_data<Index>();
  ctx.ParallelFor(values.numel(), 1 << 11, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = rows + i / per_row * n;
      const T* at =
          right ? std::upper_bound(row, row + n, v[i]) : std::lower_bound(row, row + n, v[i]);
      to[i] = static_cast<Index>(at - row);
    }
  });
}

template <typename T>
struct Searchsorted {
  static Status Run(KernelContext& ctx) {
    const Tensor& sorted = ctx.In("SortedSequence");
    const Tensor& values = ctx.In("Values");
    if (values.dtype() != sorted.dtype())
      return InvalidArgument("Values is ", Name(values.dtype()), ", SortedSequence is ",
                             Name(sorted.dtype()));
    if (ctx.Bool("out_int32"))
      Place<T, int32_t>(ctx, sorted, values, ctx.Out("Out"));
    else
      Place<T, int64_t>(ctx, sorted, values, ctx.Out("Out"));
    return Status::Ok();
  }
};

Status InferSearchsorted(ShapeContext& ctx) {
  const Shape& sorted = ctx.InShape("SortedSequence");
  const Shape& values = ctx.InShape("Values");
  if (sorted.is_static() && values.is_static() && sorted.rank() > 1) {
    bool fits = sorted.rank() == values.rank();
    for (int i = 0; fits && i + 1 < sorted.rank(); ++i) fits = sorted[i] == values[i];
    if (!fits)
      return InvalidArgument("SortedSequence ", sorted.ToString(), " and Values ",
                             values.ToString(), " must agree in all dimensions but the last");
  }
  ctx.SetOut("Out", values, ctx.Bool("out_int32") ? DType::kI32 : DType::kI64);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(histogram) {
  op.Doc("number of elements in each of some equal bins").Input("X").Output("Out");
  op.Attr("bins", 100).Attr("min", 0).Attr("max", 0).InferShape(&InferHistogram);
  op.Kernels<Histogram, float, double, int32_t, int64_t>();
}

HEDDLE_OP(bincount) {
  op.Doc("how often each number from 0 on occurs").Input("X").Input("Weights", kOptional);
  op.Output("Out").Attr("minlength", 0).KernelKey("X").Kernels<Bincount, int32_t, int64_t>();
}

HEDDLE_OP(searchsorted) {
  op.Doc("where values go into sorted rows").Input("SortedSequence").Input("Values").Output("Out");
  op.Attr("out_int32", false).Attr("right", false).InferShape(&InferSearchsorted);
  op.Kernels<Searchsorted, float, double, int32_t, int64_t>();
}

HEDDLE_EXAMPLES(histogram, R"(
example int64 2x3, bins 5, max 5, min 1
attr bins LONG 5
attr max INT 5
attr min INT 1
in X int64 [2, 3] 4 4 5 5 3 5
out Out int64 [5] 0 0 1 2 3

example float32 4, bins 10, max 2, min -2
attr bins LONG 10
attr max INT 2
attr min INT -2
in X float32 [4] -1.06 1.11 0.39 -0.34
out Out int64 [10] 0 0 1 0 1 1 0 1 0 0

example float64 scalar, bins 5, max 5, min 1
attr bins LONG 5
attr max INT 5
attr min INT 1
in X float64 [] 13.9
out Out int64 [5] 0*5
)")

HEDDLE_EXAMPLES(bincount, R"(
example int64 7
in Weights int64 [7] 2 1 1 0 1 1 0
in X int64 [7] 7 1 3 0 5 4 6
out Out float64 [8] 0 1 0 1 1 1 0 2

example int64 4, minlength 9
attr minlength INT 9
in X int64 [4] 4 6 2 4
out Out int64 [9] 0 0 1 0 2 0 1 0 0

example int64 10, minlength 20
attr minlength INT 20
in X int64 [10] 5 7 5 6 9 9 1 4 8 3
out Out int64 [20] 0 1 0 1 1 2 1 1 1 2 0*10
)")

HEDDLE_EXAMPLES(searchsorted, R"(
example float32 2x3
in SortedSequence float32 [5] 1 2 4 8 8
in Values float32 [2, 3] 6 3 6 6 3 6
out Out int64 [2, 3] 3 2 3 3 2 3

example int64 2x3
in SortedSequence int64 [5] 1 4 5 7 9
in Values int64 [2, 3] 4 5 5 3 4 7
out Out int64 [2, 3] 1 2 2 1 1 3

example float64 2x3
in SortedSequence float64 [5] 1 2 4 8 8
in Values float64 [2, 3] 6 3 6 6 3 6
out Out int64 [2, 3] 3 2 3 3 2 3

example int32 2x3
in SortedSequence int32 [5] 8 8 5 5 4
in Values int32 [2, 3] 4 3 6 3 4 6
out Out int64 [2, 3] 0 0 5 0 0 5
)")
