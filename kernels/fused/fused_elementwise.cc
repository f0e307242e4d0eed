// heddle's own: a graph of element-wise operators as one loop. The fusion pass makes it.
#include <vector>

#include "core/error.h"
#include "kernels/fused/element_loop.h"

namespace heddle {
namespace {

Result<std::unique_ptr<KernelState>> PrepareFused(PrepareContext& ctx) {
  FusedMemory memory;
  HEDDLE_ASSIGN_OR_RETURN(const ElementProgram program, ReadElementProgram(ctx, &memory.resource));
  std::vector<const Shape*> inputs;
  for (int i = 0; i < static_cast<int>(program.inputs); ++i) inputs.push_back(&ctx.InShape("X", i));
  HEDDLE_ASSIGN_OR_RETURN(const ElementShapes shapes,
                          InferElementShapes(program, inputs, &memory.resource));
  HEDDLE_ASSIGN_OR_RETURN(auto loops, MakeElementLoops(program, shapes, ctx.InDType("X")));
  std::string& name = loops->facts().implementation;
  for (const ElementLoop& loop : loops->loops)
    name +=
        StrCat(name.empty() ? "" : ", ", "loop of ", loop.steps.size(), " steps by ", loop.tile);
  return std::unique_ptr<KernelState>(std::move(loops));
}

Status RunFused(KernelContext& ctx) {
  RunElementLoops(ctx, ctx.State<ElementLoops>());
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
  op.Doc("a graph of element-wise operators; attributes: kernels/fused/element_program.h");
  op.Input("X", kList).Output("Out", kList);
  op.Attr("ops", Strings{}).Attr("values", Floats{}).Attr("code", Ints{}).Attr("outs", Ints{});
  op.Inplace("X", "Out").InferShape(InferElementProgram).Prepare(PrepareFused).Cost(FusedCost);
  op.Kernel({DType::kF32, DType::kF64}, RunFused);
}
