// A transpose of the last two dimensions before a matrix product is absorbed: the product reads the
// operand untransposed, with an attribute that says so.
#include "core/interrupts.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

// The largest matrices that a product reads transposed, in elements. It packs larger ones column by
// column, which took 1.1 to 1.7 times as long as transpose and product if there are few rows to
// make up for it (16 x 512 x 512; 128 x 1024 x 128, both transposed), and saved nothing elsewhere.
// A vector times a matrix never packs: it took 0.3 of the time.
constexpr int64_t kMostElements[] = {16 << 10, 64 << 10};

struct Operand {
  const char* slot;
  const char* flag;
};

// The number of elements of the last two dimensions; -1: unknown.
int64_t MatrixElements(const Shape& s) {
  if (!s.known_rank() || s.rank() < 2 || s[s.rank() - 2] < 0 || s[s.rank() - 1] < 0) return -1;
  return s[s.rank() - 2] * s[s.rank() - 1];
}

// Whether a left operand, if it is not transposed itself, has a single row.
bool IsRow(const Shape& s, bool transposed) {
  return s.known_rank() && (s.rank() == 1 || (s.rank() > 1 && !transposed && s[s.rank() - 2] == 1));
}

// The operands of a product; nullptr: `op` is not a product, or not one of known form.
const Operand* OperandsOf(const ir::Op& op) {
  static constexpr Operand kNow[] = {{"X", "trans_x"}, {"Y", "trans_y"}};
  static constexpr Operand kBefore[] = {{"X", "transpose_X"}, {"Y", "transpose_Y"}};
  if (op.type() == "matmul_v2") return kNow;
  return op.type() == "matmul" && op.Attr<int64_t>("head_number") <= 1 ? kBefore : nullptr;
}

// Whether the transpose swaps the last two dimensions and keeps the others.
bool SwapsLastTwo(const ir::Op& op) {
  if ((op.type() != "transpose2" && op.type() != "transpose") || !op.var_attrs.empty())
    return false;
  const Ints& axis = op.Attr<Ints>("axis");
  const auto rank = static_cast<int64_t>(axis.size());
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t from = axis[d] < 0 ? axis[d] + rank : axis[d];
    if (from != (d < rank - 2 ? d : 2 * rank - 3 - d)) return false;
  }
  return rank >= 2;
}

// The transpose that writes `v` and whose own operand has the same value at `at`; nullptr: none.
const ir::Op* TransposeOf(const GraphView& view, const std::vector<ir::Op>& ops, VarId v, int at) {
  if (v == kNoVar || !view.SingleWriter(v)) return nullptr;
  const int writer = view.writers(v)[0];
  const ir::Op& op = ops[static_cast<size_t>(writer)];
  if (writer >= at || !SwapsLastTwo(op) || !SamePlace(ops, writer, {at})) return nullptr;
  const VarId source = op.In("X")[0];
  return view.Unchanged(source, writer, at) ? &op : nullptr;
}

Result<bool> RunAbsorbTranspose(ir::Program& program, PassContext& context) {
  const GraphView view(program, context);
  std::vector<ir::Op>& ops = program.blocks[static_cast<size_t>(context.block)].ops;
  bool changed = false;
  for (size_t i = 0; i < ops.size(); ++i) {
    LookForInterrupt();
    ir::Op& op = ops[i];
    const Operand* operands = OperandsOf(op);
    if (operands == nullptr || !op.var_attrs.empty()) continue;
    for (int k = 0; k < 2; ++k) {
      auto& slot = op.inputs[op.def->FindInput(operands[k].slot)];
      if (slot.size() != 1) continue;
      const ir::Op* transpose = TransposeOf(view, ops, slot[0], static_cast<int>(i));
      if (transpose == nullptr) continue;
      const VarId source = transpose->In("X")[0];
      const int64_t elements = MatrixElements(program.vars[source].shape);
      const bool small = elements >= 0 && elements <= kMostElements[k];
      if (!small &&
          (k == 0 || !IsRow(program.vars[op.In("X")[0]].shape, op.Attr<bool>(operands[0].flag))))
        continue;
      slot[0] = source;
      auto& flag = std::get<bool>(op.attrs[op.def->FindAttr(operands[k].flag)]);
      flag = !flag;
      changed = true;
    }
  }
  return changed;
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(absorb_transpose) {
  pass.doc = "a transpose of the last two dimensions in front of a matrix product becomes its flag";
  pass.before = "t = transpose2(y, [0, 2, 1]); z = matmul_v2(x, t)";
  pass.after = "z = matmul_v2(x, y, trans_y = true)";
  pass.refuses =
      "other orders of dimensions; large operands, unless a single row is multiplied; an operand "
      "that is written again between transpose and product; "
      "operators of different places";
  pass.level = 2;
  pass.each_block = true;
  pass.tolerance = 1e-5;
  pass.seeks = OfTypes({"matmul_v2", "matmul"});
  pass.run = RunAbsorbTranspose;
}
