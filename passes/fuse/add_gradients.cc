// A sum of tensors whose writers can add to an existing tensor (core/operands/addend.h): such a
// writer adds to the sum of the earlier parts, in place. The sum operator and a tensor per further
// part are saved. Gradients of a variable with several readers are such sums.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/op_registry.h"
#include "core/operands/addend.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

// A part of a sum, with the operator that writes it.
struct Part {
  VarId var = kNoVar;
  int writer = -1;  // -1: none in the block
  int addend = -1;  // the writer's input slot for a tensor to add to; -1: none
};

class SumAbsorber {
 public:
  SumAbsorber(ir::Program& program, PassContext& context)
      : p_(program),
        context_(context),
        view_(program, context),
        ops_(program.blocks[static_cast<size_t>(context.block)].ops),
        gone_(ops_.size(), false) {}

  bool Run() {
    bool changed = false;
    for (size_t i = 0; i < ops_.size(); ++i)
      if (IsSum(ops_[i])) changed = Absorb(static_cast<int>(i)) || changed;
    if (!changed) return false;
    std::vector<ir::Op> kept;
    kept.reserve(ops_.size());
    for (size_t i = 0; i < ops_.size(); ++i)
      if (!gone_[i]) kept.push_back(std::move(ops_[i]));
    ops_ = std::move(kept);
    return true;
  }

 private:
  ir::Op& Op(int at) { return ops_[static_cast<size_t>(at)]; }

  static bool IsSum(const ir::Op& op) {
    return (op.type() == "sum" || op.type() == "grad_add") && op.var_attrs.empty();
  }

  bool IsTensor(VarId v) const {
    return v != kNoVar && p_.vars[v].kind == ir::VarKind::kTensor &&
           p_.vars[v].dtype == DType::kF32;
  }

  // The sum's operands, in the order of their writers; nullopt: some operand is not written before.
  std::optional<std::vector<Part>> PartsOf(int at) {
    const ir::Op& sum = Op(at);
    std::vector<VarId> vars = sum.In("X");
    if (sum.type() == "grad_add") vars.push_back(sum.In("Y")[0]);
    std::unordered_map<VarId, int> times;
    for (VarId v : vars) ++times[v];
    std::vector<Part> parts;
    for (VarId v : vars) {
      if (!IsTensor(v) || !view_.WrittenBefore(v, at)) return std::nullopt;
      Part part{v, view_.writers(v).empty() ? -1 : view_.writers(v)[0], -1};
      if (part.writer >= 0 && view_.OnlyReader(v, context_) == at && times[v] == 1)
        part.addend = AddendOf(Op(part.writer), v);
      parts.push_back(part);
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.writer < b.writer; });
    return parts;
  }

  // The slot for a tensor to add to when `v` is written; -1: none. Sparse gradients have none; and
  // convolutions with channels last are excluded, since they would add in a separate loop, which
  // gains nothing over the sum and may prevent a fusion of the sum.
  static int AddendOf(const ir::Op& op, VarId v) {
    if (!op.var_attrs.empty()) return -1;
    const int sparse = op.def->FindAttr("is_sparse"), layout = op.def->FindAttr("data_format");
    if (sparse >= 0 && std::get<bool>(op.attrs[static_cast<size_t>(sparse)])) return -1;
    if (layout >= 0 && std::get<std::string>(op.attrs[static_cast<size_t>(layout)]).ends_with('C'))
      return -1;
    for (const auto& pair : op.def->inplace()) {
      if ((op.def->inputs()[static_cast<size_t>(pair.in)].flags & kAddend) == 0 ||
          !op.inputs[static_cast<size_t>(pair.in)].empty())
        continue;
      const std::vector<VarId>& outs = op.outputs[static_cast<size_t>(pair.out)];
      if (outs.size() == 1 && outs[0] == v) return pair.in;
    }
    return -1;
  }

  // The first part stays; parts whose writers can add become sums with the parts before them; the
  // operator at `at` adds what is left.
  bool Absorb(int at) {
    std::optional<std::vector<Part>> found = PartsOf(at);
    const VarId out = Op(at).Out("Out")[0];
    if (!found || found->size() < 2 || !IsTensor(out) || !view_.SingleWriter(out)) return false;
    std::vector<Part> left = {found->front()};
    Part* last = nullptr;  // the last part whose writer adds
    for (size_t k = 1; k < found->size(); ++k) {
      Part& part = (*found)[k];
      const VarId sum = left[0].var;
      const bool adds = part.addend >= 0 && part.writer > left[0].writer &&
                        SamePlace(ops_, at, {part.writer}) &&
                        view_.Unchanged(sum, part.writer, at) && p_.vars[sum].shape.known_rank() &&
                        p_.vars[sum].shape == p_.vars[part.var].shape;
      if (!adds) {
        left.push_back(part);
        continue;
      }
      ir::Op& op = Op(part.writer);
      op.inputs[static_cast<size_t>(part.addend)] = {sum};
      left[0] = part;
      last = &part;
    }
    if (last == nullptr) return false;
    if (left.size() > 1) {  // there were more than two parts, so the operator is not grad_add
      ir::Op& sum = Op(at);
      std::vector<VarId>& rest = sum.inputs[static_cast<size_t>(sum.def->FindInput("X"))];
      rest.clear();
      for (const Part& part : left) rest.push_back(part.var);
      return true;
    }
    for (std::vector<VarId>& outs : Op(last->writer).outputs)
      for (VarId& v : outs)
        if (v == last->var) v = out;
    gone_[static_cast<size_t>(at)] = true;
    return true;
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  std::vector<ir::Op>& ops_;
  std::vector<bool> gone_;
};

Result<bool> RunAddGradients(ir::Program& program, PassContext& context) {
  return SumAbsorber(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(add_gradients) {
  pass.doc = "gradients that are added up: later parts are added in the memory of the first one";
  pass.before = "g1 = tanh_grad(y, dy); g2 = matmul_v2_grad(x, w, dz); g = sum(g1, g2)";
  pass.after = "g1 = tanh_grad(y, dy); g = matmul_v2_grad(x, w, dz, addend g1)";
  pass.refuses =
      "parts that are fetched or read elsewhere; selected rows; other dtypes than float32; parts "
      "that no operator writes which can add (the gradients of products, convolutions, layer_norm "
      "and lookup tables can), unless fuse_elementwise takes them; operators of different places";
  pass.level = 2;
  pass.each_block = true;
  pass.tolerance = 1e-5;
  pass.own_forms = {"matmul_v2_grad",
                    "matmul_grad",
                    "mul_grad",
                    "bmm_grad",
                    "conv2d_grad",
                    "depthwise_conv2d_grad",
                    "conv3d_grad",
                    "conv2d_transpose_grad",
                    "conv3d_transpose_grad",
                    "depthwise_conv2d_transpose_grad",
                    "layer_norm_grad",
                    "lookup_table_v2_grad",
                    "lookup_table_grad"};
  pass.seeks = OfTypes({"sum", "grad_add"});
  pass.run = RunAddGradients;
}
