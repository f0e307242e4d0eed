#include "kernels/reduce/reduce_op.h"

#include "core/error.h"

namespace heddle {
namespace {

bool HasAxisTensors(const OpContext& ctx) {
  return ctx.def().FindInput("AxisTensor") >= 0 &&
         (ctx.InVar("AxisTensor") != nullptr || ctx.InCount("AxisTensorList") > 0);
}

const Ints& AxesAttribute(const OpContext& ctx) {
  return ctx.def().FindAttr("dim") >= 0 ? ctx.IntList("dim") : ctx.IntList("axis");
}

void ReadFlags(const OpContext& ctx, ReduceAttrs* attrs) {
  const OpDef& def = ctx.def();
  attrs->keep_dim = def.FindAttr("keep_dim") >= 0 ? ctx.Bool("keep_dim") : ctx.Bool("keepdim");
  attrs->all = def.FindAttr("reduce_all") >= 0 && ctx.Bool("reduce_all");
}

ReduceAttrs AttributesOnly(const OpContext& ctx) {
  ReduceAttrs attrs;
  attrs.axes = AxesAttribute(ctx);
  ReadFlags(ctx, &attrs);
  return attrs;
}

// Replaces the axes by those of AxisTensor or AxisTensorList. `value` gives an operand's tensor or
// nullptr; false while one is not known.
template <typename Value>
bool AxesFromTensors(const OpContext& ctx, Value&& value, ReduceAttrs* attrs) {
  if (!HasAxisTensors(ctx)) return true;
  if (ctx.InVar("AxisTensor") != nullptr) {
    const Tensor* t = value("AxisTensor", 0);
    if (t == nullptr) return false;
    attrs->axes = ToInts(*t);
    return true;
  }
  attrs->axes.clear();
  for (int i = 0; i < ctx.InCount("AxisTensorList"); ++i) {
    const Tensor* t = value("AxisTensorList", i);
    if (t == nullptr) return false;
    for (int64_t a : ToInts(*t)) attrs->axes.push_back(a);
  }
  return true;
}

}  // namespace

ReduceAttrs ReadReduceAttrs(const KernelContext& ctx) {
  ReduceAttrs attrs = AttributesOnly(ctx);
  AxesFromTensors(
      ctx, [&](Key key, int i) { return ctx.InOpt(key, i); }, &attrs);
  return attrs;
}

Result<uint32_t> ReadReduceMask(const KernelContext& ctx, int rank) {
  if (HasAxisTensors(ctx)) {
    const ReduceAttrs attrs = ReadReduceAttrs(ctx);
    return AxisMask(attrs.axes, attrs.all, rank);
  }
  const bool all = ctx.def().FindAttr("reduce_all") >= 0 && ctx.Bool("reduce_all");
  return AxisMask(AxesAttribute(ctx), all, rank);
}

Result<uint32_t> AxisMask(const Ints& axes, bool all, int rank) {
  const uint32_t every = (1u << rank) - 1;
  if (all || axes.empty()) return every;
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
  ReduceAttrs attrs;
  const bool by_tensors = HasAxisTensors(ctx);
  if (by_tensors && !AxesFromTensors(
                        ctx, [&](Key key, int i) { return ctx.InValue(key, i); }, &attrs))
    return ctx.Defer();
  const Ints& axes = by_tensors ? attrs.axes : AxesAttribute(ctx);
  ReadFlags(ctx, &attrs);
  if (!x.known_rank()) {
    ctx.SetOut("Out", Shape::Unknown(), dtype);
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, AxisMask(axes, attrs.all, x.rank()));
  ctx.SetOut("Out", ReducedShape(x, mask, attrs.keep_dim), dtype);
  if (x.rank() > 0 && (mask & 1u) == 0) ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> PrepareReduce(PrepareContext& ctx) {
  if (HasAxisTensors(ctx)) return std::unique_ptr<KernelState>();
  const ReduceAttrs attrs = AttributesOnly(ctx);
  const Shape& x = ctx.InShape("X");
  auto state = std::make_unique<ReduceState>();
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, AxisMask(attrs.axes, attrs.all, x.rank()));
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
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReadReduceMask(ctx, x.rank()));
  RunReduce(ctx, MakeReducePlan(x.shape().dims(), mask), loops, x.raw(), out.mutable_raw());
  return Status::Ok();
}

namespace {

void DefineReduceAttrs(OpDef& op, bool axis_tensors) {
  if (axis_tensors) {
    op.Input("AxisTensor", kOptional | kShapeValue);
    op.Input("AxisTensorList", kOptional | kList | kShapeValue);
  }
  op.Attr("dim", Ints{0}).Attr("keep_dim", false).Attr("reduce_all", false);
  op.Attr("in_dtype", -1).Attr("out_dtype", -1);
}

}  // namespace

void DefineReduceSlots(OpDef& op, bool axis_tensors) {
  op.Input("X").Output("Out");
  DefineReduceAttrs(op, axis_tensors);
}

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
