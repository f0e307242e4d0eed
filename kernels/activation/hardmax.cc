// 1 at the position of the greatest element of a line (the first of equal ones), 0 elsewhere.
#include "kernels/base/along_line.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

template <typename T>
struct Hardmax {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
    AxisLines lines = AxisLines::Of(x.shape(), axis);
    if (ctx.Bool("flatten")) {
      lines.n *= lines.inner;
      lines.inner = 1;
    }
    const T* from = x.data<T>();
    T* to = ctx.Out("Out").template mutable_data<T>();
    lines.ForEach(ctx, 2, [&](int64_t line) {
      const int64_t begin = lines.Begin(line);
      int64_t best = 0;
      AlongLine(lines, line, [&](int64_t i, int64_t at) {
        if (Greater(from[at], from[begin + best * lines.inner])) best = i;
      });
      AlongLine(lines, line, [&](int64_t i, int64_t at) { to[at] = T(i == best ? 1 : 0); });
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(hardmax) {
  op.Doc(
      "1 at the position of the greatest element along an axis (the first of equal ones), 0 "
      "elsewhere; with flatten, axis and all axes after it count as one, as before opset 13");
  op.Input("X").Output("Out").Attr("axis", -1).Attr("flatten", false);
  op.Contract("X: float; axis: axis X; Out: like X").Kernels<Hardmax, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
