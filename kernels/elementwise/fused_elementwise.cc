// heddle's own: a graph of element-wise operators as one loop. The fusion pass makes it.
#include <vector>

#include "core/error.h"
#include "kernels/elementwise/element_loop.h"

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
  op.Doc("a graph of element-wise operators; attributes: kernels/elementwise/element_program.h");
  op.Input("X", kList).Output("Out", kList);
  op.Attr("ops", Strings{}).Attr("values", Floats{}).Attr("code", Ints{}).Attr("outs", Ints{});
  op.Inplace("X", "Out").InferShape(InferElementProgram).Prepare(PrepareFused).Cost(FusedCost);
  op.Kernel({DType::kF32, DType::kF64}, RunFused);
}

HEDDLE_EXAMPLES(fused_elementwise, R"(
example relu of a sum, float32
attr ops STRINGS ["elementwise_add", "relu"]
attr values FLOATS [-1.0, 0.0]
attr code INTS [0, 0, 1, 1, 2]
attr outs INTS [3]
in X float32 [2, 3] 0.4 -0.94 -0.21 0.08 0.28 -0.1
in X float32 [3] -0.21 0.53 0.63
from elementwise_add X=X.0 Y=X.1 -> Out=t
from relu X=t -> Out=Out
out Out float32 [2, 3] 0.19000001 0 0.42000002 0 0.80999994 0.53

example two results, float32
attr ops STRINGS ["elementwise_mul", "tanh"]
attr values FLOATS [-1.0]
attr code INTS [0, 0, 1, 1, 2, 0, 3, 0]
attr outs INTS [4, 2]
in X float32 [2, 2] 0.15 0.7 -0.9 0
in X float32 [2, 2] -0.51 0.82 -0.92 -0.64
from elementwise_mul X=X.0 Y=X.1 -> Out=Out.1
from tanh X=Out.1 -> Out=t
from elementwise_mul X=t Y=X.0 -> Out=Out.0
out Out float32 [2, 2] -0.0114526665 0.3628036 -0.6114606 -0
out Out float32 [2, 2] -0.0765 0.574 0.828 -0

example relu of a sum, float64
attr ops STRINGS ["elementwise_add", "relu"]
attr values FLOATS [-1.0, 0.0]
attr code INTS [0, 0, 1, 1, 2]
attr outs INTS [3]
in X float64 [2, 3] 0.85 -0.06 -0.53 -0.96 -0.41 -0.69
in X float64 [3] -0.69 0.95 0.49
from elementwise_add X=X.0 Y=X.1 -> Out=t
from relu X=t -> Out=Out
out Out float64 [2, 3] 0.16000000000000003 0.8899999999999999 0 0 0.54 0

example two results, float64
attr ops STRINGS ["elementwise_mul", "tanh"]
attr values FLOATS [-1.0]
attr code INTS [0, 0, 1, 1, 2, 0, 3, 0]
attr outs INTS [4, 2]
in X float64 [2, 2] -0.47 -0.41 -0.32 0.64
in X float64 [2, 2] -0.94 -0.35 -0.12 0.52
from elementwise_mul X=X.0 Y=X.1 -> Out=Out.1
from tanh X=Out.1 -> Out=t
from elementwise_mul X=t Y=X.0 -> Out=Out.0
out Out float64 [2, 2] -0.19511361328005916 -0.05843445061905265 -0.012281963762532728
  0.20546205000455214
out Out float64 [2, 2] 0.44179999999999997 0.1435 0.0384 0.33280000000000004

example y along axis 0
attr ops STRINGS ["elementwise_sub", "sigmoid"]
attr values FLOATS [0.0]
attr code INTS [0, 0, 1, 1, 2]
attr outs INTS [3]
in X float32 [2, 3] 0.16 0.61 0.61 -0.01 0.73 0.45
in X float32 [2] 0.4 0.69
from elementwise_sub X=X.0 Y=X.1 -> Out=t
attr axis INT 0
from sigmoid X=t -> Out=Out
out Out float32 [2, 3] 0.4402863 0.5523079 0.5523079 0.33181223 0.5099987 0.4402863
)")
