// Shapes given when the model runs, as ONNX has them.
#include <algorithm>
#include <cstring>

#include "core/memory/watched_bytes.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Result<Shape> Reshaped(const Shape& x, std::span<const int64_t> wanted, bool zeros_stay) {
  if (wanted.size() > static_cast<size_t>(Shape::kMaxRank))
    return InvalidArgument("'shape' has ", wanted.size(), " dimensions; the limit is ",
                           Shape::kMaxRank);
  Shape shape;
  int open = -1;
  int64_t product = 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    int64_t d = wanted[i];
    if (d == 0 && !zeros_stay) {
      if (static_cast<int>(i) >= x.rank())
        return InvalidArgument("'shape' keeps dimension ", i, " of a tensor of rank ", x.rank());
      d = x[static_cast<int>(i)];
    }
    if (d < -1 || (d == -1 && open >= 0))
      return InvalidArgument("'shape' has ", d, " as dimension ", i,
                             "; one -1 and sizes are expected");
    if (d == -1) open = static_cast<int>(i);
    if (d >= 0 && __builtin_mul_overflow(product, d, &product))
      return InvalidArgument("'shape' has more elements than can be stored");
    shape.push_back(d);
  }
  if (open >= 0 && product > 0) shape[open] = x.numel() / product;
  if (shape.numel() != x.numel() || (open >= 0 && product == 0))
    return InvalidArgument("X of shape ", x.ToString(), " cannot be given the shape ",
                           Shape(wanted).ToString());
  return shape;
}

Status CopyZerosShape(ShapeContext& ctx) {
  if (ctx.InValue("shape") == nullptr || !ctx.InShape("data").is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts wanted, IntsIn(ctx, "shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape,
                          Reshaped(ctx.InShape("data"), wanted, ctx.Int("allowzero") != 0));
  ctx.SetOut("reshaped", shape, ctx.InDType("data"));
  return Status::Ok();
}

Result<Shape> Squeezed(const Shape& x, std::span<const int64_t> axes) {
  bool gone[Shape::kMaxRank] = {};
  for (int64_t a : axes) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(a, x.rank()));
    if (x.rank() == 0 || x[axis] != 1)
      return InvalidArgument("'axes' names ", a, ", and 'data' has the shape ", x.ToString());
    gone[axis] = true;
  }
  Shape shape;
  for (int i = 0; i < x.rank(); ++i)
    if (!gone[i]) shape.push_back(x[i]);
  return shape;
}

Status SqueezeAxesShape(ShapeContext& ctx) {
  if (ctx.InValue("axes") == nullptr || !ctx.InShape("data").is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts axes, IntsIn(ctx, "axes"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, Squeezed(ctx.InShape("data"), axes));
  ctx.SetOut("squeezed", shape, ctx.InDType("data"));
  return Status::Ok();
}

Result<Shape> Unsqueezed(const Shape& x, std::span<const int64_t> axes) {
  const int rank = x.rank() + static_cast<int>(std::min<size_t>(axes.size(), Shape::kMaxRank));
  if (rank > Shape::kMaxRank) return InvalidArgument("too many dimensions to add ", axes.size());
  bool made[Shape::kMaxRank] = {};
  for (int64_t a : axes) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(a, rank));
    if (made[axis]) return InvalidArgument("'axes' names ", a, " twice");
    made[axis] = true;
  }
  Shape shape;
  for (int i = 0, from = 0; i < rank; ++i) shape.push_back(made[i] ? 1 : x[from++]);
  return shape;
}

Status UnsqueezeShape(ShapeContext& ctx) {
  if (ctx.InValue("axes") == nullptr || !ctx.InShape("data").is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts axes, IntsIn(ctx, "axes"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, Unsqueezed(ctx.InShape("data"), axes));
  ctx.SetOut("expanded", shape, ctx.InDType("data"));
  return Status::Ok();
}

// Two dimensions: those before `axis`, and the others.
Status OnnxFlattenShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("data");
  if (!x.known_rank()) return ctx.Defer();
  const int64_t axis = ctx.Int("axis") + (ctx.Int("axis") < 0 ? x.rank() : 0);
  if (axis < 0 || axis > x.rank())
    return OutOfRange("'axis' is ", ctx.Int("axis"), ", but 'data' has rank ", x.rank());
  Shape out{1, 1};
  for (int i = 0; i < x.rank(); ++i) {
    int64_t& d = out[i < axis ? 0 : 1];
    d = d < 0 || x[i] < 0 ? -1 : d * x[i];
  }
  ctx.SetOut("flattened", out, ctx.InDType("data"));
  return Status::Ok();
}

Status CopyTo(KernelContext& ctx, Key output) {
  const Tensor& x = ctx.In("data");
  Tensor& out = ctx.Out(output);
  if (x.numel() > 0 && out.raw() != x.raw()) WatchedMemcpy(out.mutable_raw(), x.raw(), x.bytes());
  return Status::Ok();
}
Status CopyReshaped(KernelContext& ctx) { return CopyTo(ctx, "reshaped"); }
Status CopySqueezed(KernelContext& ctx) { return CopyTo(ctx, "squeezed"); }
Status CopyUnsqueezed(KernelContext& ctx) { return CopyTo(ctx, "expanded"); }
Status CopyFlattened(KernelContext& ctx) { return CopyTo(ctx, "flattened"); }

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_reshape) {
  op.Doc(
      "data with another shape; 0 keeps a dimension unless allowzero is set, -1 is what is left");
  op.Input("data").Input("shape", kShapeValue).Output("reshaped");
  op.Attr("allowzero", 0).View("data", "reshaped").InferShape(CopyZerosShape);
  op.AnyKernel(CopyReshaped);
}

HEDDLE_OP(onnx_squeeze) {
  op.Doc("data without the named dimensions, which are 1");
  op.Input("data").Input("axes", kShapeValue).Output("squeezed");
  op.View("data", "squeezed").InferShape(SqueezeAxesShape).AnyKernel(CopySqueezed);
}

HEDDLE_OP(onnx_unsqueeze) {
  op.Doc("data with dimensions of 1 at axes, which count in the result, in any order");
  op.Input("data").Input("axes", kShapeValue).Output("expanded");
  op.View("data", "expanded").InferShape(UnsqueezeShape).AnyKernel(CopyUnsqueezed);
}

HEDDLE_OP(onnx_flatten) {
  op.Doc("data as a matrix: dimensions before axis are its rows; of a scalar, one of one element");
  op.Input("data").Output("flattened").Attr("axis", 1);
  op.View("data", "flattened").InferShape(OnnxFlattenShape).AnyKernel(CopyFlattened);
}
