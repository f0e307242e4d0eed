// Running results along an axis: cumsum and its relatives.
#pragma once

#include "core/shapes.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/index_args.h"

namespace heddle {

// axis (or AxisTensor), flatten, exclusive, reverse. With copies_single an exclusive scan of a
// tensor of one element is that element, as in Paddle.
inline void DefineScanAttrs(OpDef& op) {
  op.Input("AxisTensor", kOptional);
  op.Attr("axis", -1).Attr("flatten", false).Attr("exclusive", false).Attr("reverse", false);
  op.Attr("copies_single", true);
}

inline bool IsExclusive(const OpContext& ctx, const Tensor& x) {
  return ctx.Bool("exclusive") && (x.numel() != 1 || !ctx.Bool("copies_single"));
}

inline Result<AxisLines> ScanLines(const OpContext& ctx, const Shape& x) {
  if (ctx.Bool("flatten")) return AxisLines{1, x.numel(), 1};
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadInt(ctx, "AxisTensor", "axis", &axis));
  return AxisLines::At(x, axis.value);
}

// Out like X, of one dimension when flattened.
inline Status InferScan(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  Shape out = x;
  if (ctx.Bool("flatten")) {
    out = Shape{x.is_static() ? x.numel() : -1};
  } else if (x.known_rank() && !Holds(ctx.InVar("AxisTensor"))) {
    HEDDLE_RETURN_IF_ERROR(NormalAxis(ctx.Int("axis"), x.rank()).status());
  }
  ctx.SetOut("Out", out, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

// Positions along a line in the order of the scan.
struct ScanOrder {
  int64_t begin, step;
  ScanOrder(const AxisLines& lines, int64_t line, bool reverse)
      : begin(lines.Begin(line) + (reverse ? (lines.n - 1) * lines.inner : 0)),
        step(reverse ? -lines.inner : lines.inner) {}
  int64_t operator[](int64_t i) const { return begin + i * step; }
};

}  // namespace heddle
