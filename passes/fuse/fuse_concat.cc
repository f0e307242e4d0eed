// A product with a constant matrix reads the inputs of a concat one by one, and the concat is
// erased.
#include <algorithm>

#include "core/op_registry.h"
#include "passes/fuse/replace_chains.h"
#include "passes/pass.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

class ConcatFuser {
 public:
  ConcatFuser(const ir::Program& program, const PassContext& context, const GraphView& view, int at)
      : p_(program),
        context_(context),
        view_(view),
        ops_(program.blocks[static_cast<size_t>(view.block())].ops),
        at_(at) {}

  bool Grow(const TakenOps& gone) {
    const ir::Op& concat = ops_[static_cast<size_t>(at_)];
    if (concat.type() != "concat" || !concat.var_attrs.empty() || !concat.In("AxisTensor").empty())
      return false;
    const VarId whole = concat.Out("Out")[0];
    const int reader = view_.OnlyReader(whole, context_);
    if (reader < 0 || gone[static_cast<size_t>(reader)] || !Pieces(concat.In("X")) ||
        !IsLast(concat.Attr<int64_t>("axis"), whole) ||
        !Takes(ops_[static_cast<size_t>(reader)], whole))
      return false;
    absorbed = {reader};
    return true;
  }

  ir::Op Make() const {
    ir::Op fused = ops_[static_cast<size_t>(absorbed[0])];
    fused.inputs[fused.def->FindInput("X")] = ops_[static_cast<size_t>(at_)].In("X");
    return fused;
  }

  std::vector<int> absorbed;

 private:
  bool IsLast(int64_t axis, VarId v) const {
    const Shape& shape = p_.vars[v].shape;
    return shape.known_rank() && shape.rank() > 1 && (axis == -1 || axis == shape.rank() - 1);
  }

  // Whether there are several inputs, of float32 and not too many.
  bool Pieces(const std::vector<VarId>& list) const {
    constexpr size_t kMost = 64;
    return list.size() > 1 && list.size() <= kMost &&
           std::all_of(list.begin(), list.end(),
                       [&](VarId v) { return v != kNoVar && p_.vars[v].dtype == DType::kF32; });
  }

  bool Takes(const ir::Op& op, VarId whole) const {
    if (op.type() != "fused_matmul" || !op.var_attrs.empty() || op.Attr<bool>("trans_x") ||
        op.In("X") != std::vector<VarId>{whole} || op.Attr<double>("alpha") != 1)
      return false;
    for (const char* slot : {"Y", "Bias", "ResidualData"})
      for (VarId v : op.In(slot))
        if (v == whole) return false;
    const VarId matrix = op.In("Y")[0];
    return p_.vars[matrix].persistable && view_.writers(matrix).empty() &&
           context_.fed.count(matrix) == 0 && p_.vars[matrix].shape.known_rank() &&
           p_.vars[matrix].shape.rank() == 2;
  }

  const ir::Program& p_;
  const PassContext& context_;
  const GraphView& view_;
  const std::vector<ir::Op>& ops_;
  const int at_;
};

Result<bool> RunFuseConcat(ir::Program& program, PassContext& context) {
  return !UsesLoD(program, context) && ReplaceChains<ConcatFuser>(program, context);
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_concat) {
  pass.doc =
      "concat along the last dimension + fused_matmul with a constant matrix -> fused_matmul of "
      "the pieces";
  pass.before = "c = concat([a, b], axis=1); y = fused_matmul(c, w, bias)";
  pass.after = "y = fused_matmul([a, b], w, bias)";
  pass.refuses =
      "a result of concat that is fetched or read elsewhere; inputs that are not float32 or are "
      "written before the product; products with a transposed X, a factor, or a matrix that is not "
      "constant; programs with sequence offsets";
  pass.level = 2;
  pass.each_block = true;
  pass.tolerance = 1e-5;
  pass.own_ops = {"fused_matmul"};
  pass.seeks = OfTypes({"concat"});
  pass.run = RunFuseConcat;
}
