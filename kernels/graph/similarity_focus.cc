// similarity_focus: marks the largest elements of a plane, one per row and column.
#include <numeric>

#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status InferFocus(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const int64_t axis = ctx.Int("axis");
  if (x.known_rank() && x.rank() != 4) return InvalidArgument("X must be 4-D");
  if (axis < 1 || axis > 3) return InvalidArgument("axis must be 1, 2 or 3, not ", axis);
  ctx.SetOut("Out", x, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct SimilarityFocus {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const auto axis = static_cast<int>(ctx.Int("axis"));
    Tensor& out = ctx.Out("Out");
    ZeroAll(out);
    const int row_axis = axis == 1 ? 2 : 1, col_axis = axis == 3 ? 2 : 3;
    int64_t stride[4];
    for (int d = 0; d < 4; ++d) stride[d] = x.shape().Product(d + 1, 4);
    const int64_t rows = x.dim(row_axis), cols = x.dim(col_axis);
    std::vector<int64_t> order(static_cast<size_t>(rows * cols));
    for (const int64_t n : Watched(x.dim(0)))
      for (int64_t index : ctx.IntList("indexes")) {
        if (index < 0 || index >= x.dim(axis))
          return OutOfRange("index ", index, " is not in [0, ", x.dim(axis), ")");
        const int64_t base = n * stride[0];
        const auto place = [&](int64_t i) {
          return base + i / cols * stride[row_axis] + i % cols * stride[col_axis];
        };
        const T* plane = x.data<T>() + index * stride[axis];
        std::iota(order.begin(), order.end(), int64_t{0});
        LookCount looks;
        std::sort(order.begin(), order.end(), looks.In([&](int64_t a, int64_t b) {
          return Greater(plane[place(a)], plane[place(b)]);
        }));
        std::vector<bool> row_used(static_cast<size_t>(rows)), col_used(static_cast<size_t>(cols));
        for (int64_t i : order) {
          const auto r = static_cast<size_t>(i / cols), c = static_cast<size_t>(i % cols);
          if (row_used[r] || col_used[c]) continue;
          row_used[r] = col_used[c] = true;
          for (int64_t k = 0; k < x.dim(axis); ++k)
            out.mutable_data<T>()[place(i) + k * stride[axis]] = T(1);
        }
      }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(similarity_focus) {
  op.Doc("1 where an element is the largest left in its row and column, all along an axis");
  op.Input("X").Output("Out").Attr("axis", 1).Attr("indexes", Ints{});
  op.InferShape(InferFocus).Kernels<SimilarityFocus, float, double>();
}
