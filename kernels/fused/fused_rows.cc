// heddle's own: element-wise operators and reductions of the same rows as one loop over the rows.
// The pass fuse_rows makes it.
#include <algorithm>
#include <vector>

#include "core/error.h"
#include "kernels/fused/element_loop.h"
#include "kernels/fused/row_loop.h"

namespace heddle {
namespace {

struct FusedRowsState : KernelState {
  std::unique_ptr<RowLoop> rows;
  std::unique_ptr<ElementLoops> loops;  // if the shapes permit no loop over rows
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
      "kernels/fused/element_program.h");
  op.Input("X", kList).Output("Out", kList);
  op.Attr("ops", Strings{}).Attr("values", Floats{}).Attr("code", Ints{}).Attr("outs", Ints{});
  op.Attr("axes", 1);
  op.Inplace("X", "Out")
      .InferShape(InferElementProgram)
      .Prepare(PrepareFusedRows)
      .Cost(FusedRowsCost);
  op.Kernel({DType::kF32, DType::kF64}, RunFusedRows);
}
