// merge_selected_rows: adds up repeated rows.
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status MergeKernel(KernelContext& ctx) {
  const Value* in = ctx.InVar("X");
  if (in == nullptr || !in->is_rows()) return InvalidArgument("X must hold selected rows");
  const SelectedRows& x = in->rows();
  HEDDLE_ASSIGN_OR_RETURN(const MergedRows merged, MergeRows(x));
  Shape shape = x.value.shape();
  const int64_t count = shape[0], width = count == 0 ? 0 : x.value.numel() / count;
  shape[0] = static_cast<int64_t>(merged.rows.size());
  SelectedRows result{merged.rows, x.height, ctx.Scratch(x.value.dtype(), shape)};
  const bool known = VisitDType<float, double, int32_t, int64_t>(x.value.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    AddMerged<T>(x, merged, width, result.value.mutable_data<T>());
  });
  if (!known) return Unimplemented("merge_selected_rows does not add values of this dtype");
  Value* out = ctx.OutVar("Out");
  if (out == nullptr) return InvalidArgument("Out is missing");
  out->mutable_rows() = std::move(result);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(merge_selected_rows) {
  op.Doc("adds up repeated rows")
      .Input("X", kAnyKind | kTakesRows)
      .Output("Out", kTakesRows)
      .AnyKernel(MergeKernel);
}
