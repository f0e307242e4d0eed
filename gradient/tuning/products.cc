#include "gradient/tuning/products.h"

namespace heddle::gradient {

using ir::kNoVar;
using ir::Op;
using ir::VarId;

namespace {

VarId OnlyIn(const Op& op, std::string_view slot) {
  const int s = op.def->FindInput(slot);
  if (s < 0 || op.inputs[static_cast<size_t>(s)].size() != 1) return kNoVar;
  return op.inputs[static_cast<size_t>(s)][0];
}

// Follows an operand to the parameter that it is, and its axis with it. False: it is none.
bool FindParameter(const Edit& edit, const ir::Program& program, VarId v, int* axis, VarId* found) {
  for (int steps = 0; v != kNoVar && steps < 8; ++steps) {
    if (program.vars[v].persistable) {
      *found = v;
      return program.vars[v].kind == ir::VarKind::kTensor && edit.WriterOf(v) < 0;
    }
    const int at = edit.WriterOf(v);
    if (at < 0) return false;
    const Op& op = program.blocks[0].ops[static_cast<size_t>(at)];
    if (op.type() == "transpose2" || op.type() == "transpose") {
      const Ints& axes = op.Attr<Ints>("axis");
      if (*axis >= static_cast<int>(axes.size())) return false;
      *axis = static_cast<int>(axes[static_cast<size_t>(*axis)]);
    } else if (op.type() != "assign") {
      return false;
    }
    v = OnlyIn(op, "X");
  }
  return false;
}

}  // namespace

std::optional<Weighted> WeightedAt(const Edit& edit, const ir::Program& program, int at) {
  const Op& op = program.blocks[0].ops[static_cast<size_t>(at)];
  const std::string& type = op.type();
  Weighted w;
  VarId operand = kNoVar;
  w.output_axis = 1;
  if (type == "matmul_v2" || type == "matmul") {
    operand = OnlyIn(op, "Y");
    w.data = OnlyIn(op, "X");
    const char* const transposed = type == "matmul" ? "transpose_Y" : "trans_y";
    if (op.Attr<bool>(transposed)) w.output_axis = 0;
  } else if (type == "mul") {
    operand = OnlyIn(op, "Y");
    w.data = OnlyIn(op, "X");
    if (op.Attr<int64_t>("y_num_col_dims") != 1) return std::nullopt;
  } else if (type == "fc") {
    operand = OnlyIn(op, "W");
    w.data = OnlyIn(op, "Input");
    w.bias = OnlyIn(op, "Bias");
  } else if (type == "conv2d" || type == "conv1d" || type == "conv3d") {
    operand = OnlyIn(op, "Filter");
    w.data = OnlyIn(op, "Input");
    w.bias = OnlyIn(op, "Bias");
    w.output_axis = 0;
    w.convolution = true;
    if (op.Attr<int64_t>("groups") != 1) return std::nullopt;
  } else {
    return std::nullopt;
  }
  if (operand == kNoVar || w.data == kNoVar) return std::nullopt;
  if (!FindParameter(edit, program, operand, &w.output_axis, &w.weight)) return std::nullopt;
  const Shape& shape = program.vars[w.weight].shape;
  if (!shape.is_static() || !IsFloat(program.vars[w.weight].dtype)) return std::nullopt;
  if (w.convolution ? shape.rank() < 3 : shape.rank() != 2) return std::nullopt;
  if (!w.convolution) return w;
  // The kernel as the convolution reads it: [outputs, inputs, …].
  const Shape& kernel = program.vars[operand].shape;
  if (!kernel.is_static() || kernel.rank() < 3) return std::nullopt;
  w.window = kernel.Product(2, kernel.rank());
  return w;
}

}  // namespace heddle::gradient
