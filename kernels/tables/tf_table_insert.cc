#include <utility>

#include "core/operands/slot_kinds.h"
#include "kernels/tables/table_operand.h"

namespace heddle {
namespace {

Status Insert(KernelContext& ctx) {
  const Value *keys = ctx.InVar("keys"), *values = ctx.InVar("values");
  if (keys == nullptr || values == nullptr)
    return InvalidArgument("'keys' and 'values' must be given");
  LookupTable table;
  if (ctx.InVar("table") != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(const SharedTable given, TableOf(ctx));
    table = *given;
  }
  HEDDLE_RETURN_IF_ERROR(table.Insert(*keys, *values, ctx.Bool("replaces")));
  *ctx.OutVar("Out") = ValueOf(std::move(table));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_table_insert) {
  op.Doc(
      "table, or one without keys, with more keys and their values. `replaces`: keys that it has "
      "get "
      "other values, which is an error else");
  op.Input("table", kAnyKind | kOtherOnly | kOptional)
      .Input("keys", kAnyKind | kTakesOther)
      .Input("values", kAnyKind | kTakesOther);
  op.Output("Out", kOtherOnly).Attr("replaces", true).AnyKernel(Insert);
}
