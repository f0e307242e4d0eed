// Operators that copy a variable without a change.
#pragma once

#include "core/shapes.h"
#include "passes/version_view.h"

namespace heddle::passes {

// The variable that `op` copies: the operator has one operand and one result of the same kind and
// dtype, and the result equals the operand. kNoVar: it does something else.
inline ir::VarId CopiedBy(const ir::Program& program, const ir::Op& op) {
  const std::string& type = op.type();
  if (type != "assign" && type != "share_data" && type != "cast") return ir::kNoVar;
  if (!HasOnlyInput(op, "X") || !IsPure(op)) return ir::kNoVar;
  const ir::VarId x = OnlyIn(op, "X"), out = OnlyOut(op, "Out");
  if (x == ir::kNoVar || out == ir::kNoVar || x == out) return ir::kNoVar;
  const ir::Var &from = program.vars[x], &to = program.vars[out];
  if (from.kind != to.kind ||
      (from.dtype != to.dtype && from.dtype != DType::kUnknown && to.dtype != DType::kUnknown))
    return ir::kNoVar;
  if (type == "cast" &&
      (op.Attr<int64_t>("in_dtype") != op.Attr<int64_t>("out_dtype") ||
       from.dtype == DType::kUnknown || DTypeToProto(from.dtype) != op.Attr<int64_t>("out_dtype")))
    return ir::kNoVar;
  return x;
}

}  // namespace heddle::passes
