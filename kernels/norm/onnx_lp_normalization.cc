// Normalisation along lines, over chosen axes, and by neighbouring channels.
#include <cmath>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/along_line.h"
#include "kernels/base/call_heap.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxLpNormShape(ShapeContext& ctx) {
  ctx.SetOut("output", ctx.InShape("input"), ctx.InDType("input"));
  return Status::Ok();
}
Status SameAsX(ShapeContext& ctx) {
  ctx.SetOut("Y", ctx.InShape("X"), ctx.InDType("X"));
  return Status::Ok();
}

// A line of zeros stays one.
template <typename T>
struct OnnxLpNorm {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    const int64_t p = ctx.Int("p");
    if (p != 1 && p != 2) return InvalidArgument("p is ", p, ", expected 1 or 2");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x.shape(), ctx.Int("axis")));
    const T* from = x.data<T>();
    T* to = ctx.Out("output").template mutable_data<T>();
    lines.ForEach(ctx, 2, [&](int64_t line) {
      double sum = 0;
      AlongLine(lines, line, [&](int64_t, int64_t at) {
        const auto v = static_cast<double>(from[at]);
        sum += p == 1 ? std::fabs(v) : v * v;
      });
      const double norm = p == 1 ? sum : std::sqrt(sum);
      AlongLine(lines, line, [&](int64_t, int64_t at) {
        to[at] = norm == 0 ? T(0) : static_cast<T>(static_cast<double>(from[at]) / norm);
      });
    });
    return Status::Ok();
  }
};

template <typename T>
struct OnnxMeanVariance {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    // The usual axes are those of images; an X of lower rank lacks the last ones.
    ShortInts axes;
    for (const int64_t axis : ctx.IntList("axes"))
      if (axis < x.rank()) axes.push_back(axis);
    HEDDLE_ASSIGN_OR_RETURN(axes, NormalAxes(axes, x.rank(), "axes"));
    // Each element belongs to one of the sets that share all other indices.
    Walk<1>::Strides set{};
    int64_t sets = 1;
    for (int i = x.rank() - 1; i >= 0; --i)
      if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
        set[i] = sets;
        sets *= x.shape()[i];
      }
    const int64_t n = x.numel();
    if (n == 0) return Status::Ok();
    const double count = static_cast<double>(n) / static_cast<double>(sets);
    CallHeap heap(ctx);
    std::pmr::vector<double> mean(static_cast<size_t>(sets), &heap), square(mean, &heap);
    const T* from = x.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    const auto each = [&](auto fn) {
      Walk<1> walk(x.shape(), {set});
      for (const auto part : Stretches(n))
        for (int64_t i = part.begin; i < part.end; ++i, walk.Next())
          fn(i, static_cast<size_t>(walk.at(0)));
    };
    each([&](int64_t i, size_t s) { mean[s] += static_cast<double>(from[i]) / count; });
    each([&](int64_t i, size_t s) {
      const double d = static_cast<double>(from[i]) - mean[s];
      square[s] += d * d / count;
    });
    each([&](int64_t i, size_t s) {
      to[i] =
          static_cast<T>((static_cast<double>(from[i]) - mean[s]) / (std::sqrt(square[s]) + 1e-9));
    });
    return Status::Ok();
  }
};

template <typename T>
struct OnnxLrn {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const int64_t size = ctx.Int("size");
    if (x.rank() < 2 || size < 1)
      return InvalidArgument("size is ", size, " for X ", x.shape().ToString(),
                             ", expected at least 1 and [N, C, …]");
    const double alpha = ctx.Float("alpha") / static_cast<double>(size), beta = ctx.Float("beta");
    const double bias = ctx.Float("bias");
    const AxisLines lines = AxisLines::Of(x.shape(), 1);
    const T* from = x.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    lines.ForEach(ctx, 2 * std::min(size, lines.n) + 16, [&](int64_t line) {
      const int64_t begin = lines.Begin(line);
      for (const int64_t c : Watched(lines.n)) {
        double sum = 0;
        const int64_t first = std::max<int64_t>(0, c - (size - 1) / 2);
        const int64_t last = std::min(lines.n - 1, c + size / 2);
        for (int64_t k = first; k <= last; ++k) {
          const auto v = static_cast<double>(from[begin + k * lines.inner]);
          sum += v * v;
        }
        const int64_t at = begin + c * lines.inner;
        to[at] = static_cast<T>(static_cast<double>(from[at]) / std::pow(bias + alpha * sum, beta));
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_lp_normalization) {
  op.Doc("lines along an axis divided by their norm").Input("input").Output("output");
  op.Attr("axis", -1).Attr("p", 2).InferShape(OnnxLpNormShape);
  op.Kernels<OnnxLpNorm, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_mean_variance_normalization) {
  op.Doc("X to mean 0 and variance 1 over axes, those beyond its rank passed over")
      .Input("X")
      .Output("Y");
  op.Attr("axes", Ints{0, 2, 3}).InferShape(SameAsX).Kernels<OnnxMeanVariance, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_lrn) {
  op.Doc("X divided by a power of the squares of `size` neighbouring channels");
  op.Input("X").Output("Y").Attr("size", 1).Attr("alpha", 0.0001).Attr("beta", 0.75);
  op.Attr("bias", 1.0).InferShape(SameAsX).Kernels<OnnxLrn, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
