// Normalisation over chosen axes.
#include <cmath>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status SameAsX(ShapeContext& ctx) {
  ctx.SetOut("Out", ctx.InShape("X"), ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct MeanVariance {
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
    T* to = ctx.Out("Out").template mutable_data<T>();
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

}  // namespace
}  // namespace heddle

HEDDLE_OP(mean_variance_norm) {
  op.Doc("X to mean 0 and variance 1 over axes, those beyond its rank passed over")
      .Input("X")
      .Output("Out");
  op.Attr("axes", Ints{0, 2, 3}).InferShape(SameAsX).Kernels<MeanVariance, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
