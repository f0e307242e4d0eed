#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/sort/pick_grad.h"

namespace heddle {
namespace {

// Equal elements keep their order; NaN counts as the greatest value.
template <typename T, typename Before>
void SortLine(const T* x, int64_t stride, int64_t n, int64_t* order, Before before) {
  std::iota(order, order + n, int64_t{0});
  // (std::stable_sort would take memory of its own.)
  {
    LookCount looks;
    std::sort(order, order + n, looks.In([=](int64_t a, int64_t b) {
      const T va = x[a * stride], vb = x[b * stride];
      return before(va, vb) || (a < b && !before(vb, va));
    }));
  }
}

template <typename T>
struct Argsort {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(xt.shape(), ctx.Int("axis")));
    const T* x = xt.data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    int64_t* indices = ctx.Out("Indices").template mutable_data<int64_t>();
    const bool descending = ctx.Bool("descending");
    const int64_t grain = std::max<int64_t>(1, (1 << 11) / std::max<int64_t>(1, lines.n));
    ctx.ParallelFor(lines.lines(), grain, [&](int64_t begin, int64_t end) {
      Tensor scratch = ctx.Scratch(DType::kI64, Shape{lines.n});
      int64_t* order = scratch.mutable_data<int64_t>();
      for (int64_t l = begin; l < end; ++l) {
        const int64_t first = lines.Begin(l);
        if (descending)
          SortLine(x + first, lines.inner, lines.n, order, [](T a, T b) { return Greater(a, b); });
        else
          SortLine(x + first, lines.inner, lines.n, order, [](T a, T b) { return Less(a, b); });
        for (int64_t i = 0; i < lines.n; ++i) {
          out[first + i * lines.inner] = x[first + order[i] * lines.inner];
          indices[first + i * lines.inner] = order[i];
        }
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(argsort) {
  op.Doc("elements sorted along an axis, and where they came from").Input("X").Output("Out");
  op.Output("Indices").Attr("axis", -1).Attr("descending", false);
  op.Contract("axis: axis X; Out: like X; Indices: int64 like X");
  op.Kernels<Argsort, float, double, int32_t, int64_t, int16_t, uint8_t, float16, bfloat16>();
}

HEDDLE_OP(argsort_grad) {
  op.Doc("gradient of argsort");
  DefinePickGradSlots(op);
  op.Attr("axis", -1).Attr("descending", false);
  op.Kernels<PickGrad, float, double, int32_t, int64_t, float16, bfloat16>();
}
