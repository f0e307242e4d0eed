// heddle's own: element-wise operators and reductions of the same rows as one loop over the rows.
// The pass fuse_rows makes it.
#include <algorithm>
#include <vector>

#include "core/error.h"
#include "kernels/elementwise/element_loop.h"
#include "kernels/rows/row_loop.h"

namespace heddle {
namespace {

struct FusedRowsState : KernelState {
  std::unique_ptr<RowLoop> rows;
  std::unique_ptr<ElementLoops> loops;  // where shapes are such that no loop over rows is possible
};

Result<std::unique_ptr<KernelState>> PrepareFusedRows(PrepareContext& ctx) {
  FusedMemory memory;
  HEDDLE_ASSIGN_OR_RETURN(const ElementProgram program, ReadElementProgram(ctx, &memory.resource));
  std::vector<const Shape*> inputs;
  for (int i = 0; i < static_cast<int>(program.inputs); ++i) inputs.push_back(&ctx.InShape("X", i));
  HEDDLE_ASSIGN_OR_RETURN(const ElementShapes shapes,
                          InferElementShapes(program, inputs, &memory.resource));
  auto state = std::make_unique<FusedRowsState>();
  if (auto rows = MakeRowLoop(program, shapes, ctx.InDType("X")); rows.ok()) {
    state->rows = std::move(*rows);
    state->facts().implementation =
        StrCat(program.steps.size(), " steps by ", state->rows->block,
               state->rows->block == 1 ? " row of " : " rows of ", state->rows->cols);
  } else {
    HEDDLE_ASSIGN_OR_RETURN(state->loops, MakeElementLoops(program, shapes, ctx.InDType("X")));
    state->facts().implementation = StrCat(state->loops->loops.size(), " loops");
  }
  return std::unique_ptr<KernelState>(std::move(state));
}

Status RunFusedRows(KernelContext& ctx) {
  const auto& state = ctx.State<FusedRowsState>();
  if (state.rows)
    RunRowLoop(ctx, *state.rows);
  else
    RunElementLoops(ctx, *state.loops);
  return Status::Ok();
}

double FusedRowsCost(const ShapeContext& ctx) {
  constexpr double kNsPerStep = 5, kNsPerElement = 0.1;
  double elements = 0;
  for (int i = 0; i < ctx.InCount("X"); ++i)
    elements = std::max(elements, static_cast<double>(ctx.InShape("X", i).numel()));
  const double steps = static_cast<double>(ctx.IntList("code").size()) / 3;
  return 40 + steps * (kNsPerStep + kNsPerElement * elements);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_rows) {
  op.Doc(
      "element-wise operators and reductions of rows; attributes: "
      "kernels/elementwise/element_program.h");
  op.Input("X", kList).Output("Out", kList);
  op.Attr("ops", Strings{}).Attr("values", Floats{}).Attr("code", Ints{}).Attr("outs", Ints{});
  op.Attr("axes", 1);
  op.Inplace("X", "Out")
      .InferShape(InferElementProgram)
      .Prepare(PrepareFusedRows)
      .Cost(FusedRowsCost);
  op.Kernel({DType::kF32, DType::kF64}, RunFusedRows);
}

HEDDLE_EXAMPLES(fused_rows, R"(
example distance from the mean, float32
attr ops STRINGS ["reduce_mean", "elementwise_sub"]
attr values FLOATS [1.0, 0.0, -1.0, -1.0, -1.0]
attr code INTS [0, 0, 1, 0, 1]
attr outs INTS [2]
in X float32 [2, 4] 1 2 4 -3 0.5 0.25 -0.5 1.75
from reduce_mean X=X.0 -> Out=t
attr dim INTS [1]
attr keep_dim BOOLEAN true
from elementwise_sub X=X.0 Y=t -> Out=Out
out Out float32 [2, 4] 0 1 3 -4 0 -0.25 -1 1.25

example means without the dimension stand at the columns
attr ops STRINGS ["reduce_mean", "elementwise_sub"]
attr values FLOATS [0.0, 0.0, -1.0, -1.0, -1.0]
attr code INTS [0, 0, 1, 0, 1]
attr outs INTS [2]
in X float32 [2, 2] 1 3 5 9
from reduce_mean X=X.0 -> Out=t
attr dim INTS [1]
from elementwise_sub X=X.0 Y=t -> Out=Out
out Out float32 [2, 2] -1 -4 3 2

example sum of squares, float64
attr ops STRINGS ["square", "reduce_sum"]
attr values FLOATS [0.0, 0.0, -1.0, -1.0]
attr code INTS [0, 0, 1, 1]
attr outs INTS [2]
in X float64 [2, 3] 1 -2 3 0.5 0 -4
from square X=X.0 -> Out=t
from reduce_sum X=t -> Out=Out
attr dim INTS [1]
out Out float64 [2] 14 16.25
)")
