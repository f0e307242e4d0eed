// heddle's own: a graph of element-wise operators as one loop. The fusion pass makes it.
#include "core/error.h"
#include "kernels/elementwise/element_loop.h"

namespace heddle {
namespace {

// The value in X that a value gets its sequence offsets from: its first operand's, and so on.
std::vector<uint32_t> LoDSources(const ElementProgram& program) {
  std::vector<uint32_t> source;
  source.reserve(program.values());
  for (uint32_t v = 0; v < program.inputs; ++v) source.push_back(v);
  for (const auto& step : program.steps) source.push_back(source[step.in[0]]);
  return source;
}

Status InferFused(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const ElementProgram program, ReadElementProgram(ctx));
  std::vector<const Shape*> inputs;
  bool any_lod = false;
  for (int i = 0; i < static_cast<int>(program.inputs); ++i) {
    if (!ctx.HasIn("X", i)) return InvalidArgument("input X[", i, "] is missing");
    if (ctx.InDType("X", i) != ctx.InDType("X", 0))
      return InvalidArgument("inputs X[0] and X[", i, "] must have one dtype, got ",
                             Name(ctx.InDType("X", 0)), " and ", Name(ctx.InDType("X", i)));
    inputs.push_back(&ctx.InShape("X", i));
    any_lod = any_lod || !ctx.InLoD("X", i).empty();
  }
  HEDDLE_ASSIGN_OR_RETURN(const ElementShapes shapes, InferElementShapes(program, inputs));
  for (size_t o = 0; o < program.outs.size(); ++o)
    ctx.SetOut("Out", shapes.Of(program.outs[o]), ctx.InDType("X", 0), static_cast<int>(o));
  if (!any_lod) return Status::Ok();
  const std::vector<uint32_t> source = LoDSources(program);
  for (size_t o = 0; o < program.outs.size(); ++o)
    if (const LoD& lod = ctx.InLoD("X", static_cast<int>(source[program.outs[o]])); !lod.empty())
      ctx.SetOutLoD("Out", lod, static_cast<int>(o));
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> PrepareFused(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const ElementProgram program, ReadElementProgram(ctx));
  std::vector<const Shape*> inputs;
  for (int i = 0; i < static_cast<int>(program.inputs); ++i) inputs.push_back(&ctx.InShape("X", i));
  HEDDLE_ASSIGN_OR_RETURN(const ElementShapes shapes, InferElementShapes(program, inputs));
  HEDDLE_ASSIGN_OR_RETURN(auto loops, MakeElementLoops(program, shapes, ctx.InDType("X")));
  std::string& name = loops->facts.implementation;
  for (const ElementLoop& loop : loops->loops)
    name +=
        StrCat(name.empty() ? "" : ", ", "loop of ", loop.steps.size(), " steps by ", loop.tile);
  return std::unique_ptr<KernelState>(std::move(loops));
}

Status RunFused(KernelContext& ctx) {
  const auto& state = ctx.State<ElementLoops>();
  const DType dtype = ctx.In("X").dtype();
  std::vector<Tensor> between;
  for (const Shape& shape : state.between) between.push_back(ctx.Scratch(dtype, shape));
  for (const ElementLoop& loop : state.loops) RunElementLoop(ctx, loop, dtype, &between);
  return Status::Ok();
}

double FusedCost(const ShapeContext& ctx) {
  constexpr double kNsPerStep = 3, kNsPerElement = 0.1;
  const double elements = static_cast<double>(ctx.OutVar("Out")->tensor().shape().numel());
  const double steps = static_cast<double>(ctx.IntList("code").size()) / 3;
  return 30 + steps * (kNsPerStep + kNsPerElement * elements);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_elementwise) {
  op.Doc("a graph of element-wise operators; attributes: kernels/elementwise/element_program.h");
  op.Input("X", kList).Output("Out", kList);
  op.Attr("ops", Strings{}).Attr("values", Floats{}).Attr("code", Ints{}).Attr("outs", Ints{});
  op.Inplace("X", "Out").InferShape(InferFused).Prepare(PrepareFused).Cost(FusedCost);
  op.Kernel({DType::kF32, DType::kF64}, RunFused);
}
