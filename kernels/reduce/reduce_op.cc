#include "kernels/reduce/reduce_op.h"

#include "core/error.h"

namespace heddle {
namespace {

const Ints& AxesAttribute(const OpContext& ctx) {
  return ctx.def().FindAttr("dim") >= 0 ? ctx.IntList("dim") : ctx.IntList("axis");
}

bool KeepsDims(const OpContext& ctx) {
  return ctx.def().FindAttr("keep_dim") >= 0 ? ctx.Bool("keep_dim") : ctx.Bool("keepdim");
}

}  // namespace

Result<uint32_t> ReadReduceMask(const OpContext& ctx, int rank) {
  const bool all = ctx.def().FindAttr("reduce_all") >= 0 && ctx.Bool("reduce_all");
  const bool none = ctx.def().FindAttr("no_axes") >= 0 && ctx.Str("no_axes") == "none";
  return AxisMask(AxesAttribute(ctx), all, rank, none);
}

bool HasAxesOperand(const OpContext& ctx) {
  return ctx.def().FindInput("Axes") >= 0 && ctx.InCount("Axes") > 0 &&
         ctx.InVar("Axes") != nullptr;
}

Result<uint32_t> AxisMask(std::span<const int64_t> axes, bool all, int rank, bool none_if_empty) {
  const uint32_t every = (1u << rank) - 1;
  if (all || (axes.empty() && !none_if_empty)) return every;
  uint32_t mask = 0;
  for (int64_t axis : axes) {
    HEDDLE_ASSIGN_OR_RETURN(const int a, NormalAxis(axis, rank));
    mask |= 1u << a;
  }
  return mask & every;
}

Shape ReducedShape(const Shape& x, uint32_t mask, bool keep_dim) {
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if ((mask >> i & 1u) == 0)
      out.push_back(x[i]);
    else if (keep_dim)
      out.push_back(1);
  }
  return out;
}

Status InferReduce(ShapeContext& ctx, DType dtype) {
  const Shape& x = ctx.InShape("X");
  if (dtype == DType::kUnknown) dtype = ctx.InDType("X");
  if (ctx.def().FindAttr("no_axes") >= 0)
    if (const std::string& means = ctx.Str("no_axes"); means != "all" && means != "none")
      return InvalidArgument("attribute no_axes is '", means, "', expected 'all' or 'none'");
  const bool operand = HasAxesOperand(ctx);
  if (operand && !(x.known_rank() && Known(ctx, "Axes"))) return ctx.Defer();
  if (!x.known_rank()) {
    ctx.SetOut("Out", Shape::Unknown(), dtype);
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReducedAxes(ctx, x.rank()));
  ctx.SetOut("Out", ReducedShape(x, mask, KeepsDims(ctx)), dtype);
  if (x.rank() > 0 && (mask & 1u) == 0) ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> PrepareReduce(PrepareContext& ctx) {
  if (HasAxesOperand(ctx)) return std::unique_ptr<KernelState>();
  const Shape& x = ctx.InShape("X");
  auto state = std::make_unique<ReduceState>();
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReadReduceMask(ctx, x.rank()));
  state->plan = MakeReducePlan(x.dims(), mask);
  return std::unique_ptr<KernelState>(std::move(state));
}

Status RunReduceOp(KernelContext& ctx, const ReduceLoops& loops) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  if (ctx.has_state()) {
    RunReduce(ctx, ctx.State<ReduceState>().plan, loops, x.raw(), out.mutable_raw());
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReducedAxes(ctx, x.rank()));
  RunReduce(ctx, MakeReducePlan(x.shape().dims(), mask), loops, x.raw(), out.mutable_raw());
  return Status::Ok();
}

namespace {

void DefineReduceAttrs(OpDef& op, bool axis_tensors) {
  if (axis_tensors) {  // Paddle declares them and goes by dim, even where they are given
    op.Input("AxisTensor", kOptional | kNoBuffer);
    op.Input("AxisTensorList", kOptional | kList | kNoBuffer);
  }
  op.Attr("dim", Ints{0}).Attr("keep_dim", false).Attr("reduce_all", false);
  op.Attr("in_dtype", -1).Attr("out_dtype", -1);
}

}  // namespace

void DefineReduceSlots(OpDef& op, bool axis_tensors) {
  op.Input("X").Output("Out");
  DefineReduceAttrs(op, axis_tensors);
}

void DefineAxesOperand(OpDef& op) {
  op.Input("Axes", kOptional | kShapeValue).Attr("no_axes", "all").KernelKey("X");
}

void DefineInDouble(OpDef& op) { op.Attr("in_double", false).Attr("elem_type", 0); }

Result<BroadcastPlan> ReduceGradPlan(const KernelContext& ctx) {
  const Shape& x = ctx.In("X").shape();
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReadReduceMask(ctx, x.rank()));
  const Shape kept = ReducedShape(x, mask, true);
  if (ctx.In("Out@GRAD").numel() != kept.numel())
    return InvalidArgument("input Out@GRAD has shape ", ctx.In("Out@GRAD").shape().ToString(),
                           ", expected the elements of ", kept.ToString());
  return MakeBroadcastPlan(x, kept, -1);
}

void DefineReduceGradSlots(OpDef& op, bool reads_values, bool axis_tensors) {
  op.Input("X", reads_values ? 0u : unsigned{kNoBuffer});
  if (reads_values) op.Input("Out");
  op.Input("Out@GRAD").Output("X@GRAD").KernelKey("Out@GRAD");
  DefineReduceAttrs(op, axis_tensors);
}

}  // namespace heddle
