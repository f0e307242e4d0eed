// The projections of one tensor to queries, keys and values become one product with concatenated
// weights. Attention reads its operands inside the result, without a copy. This saves calls, not
// arithmetic, and is therefore limited to small products.
#include <algorithm>
#include <optional>

#include "core/interrupts.h"
#include "core/memory/lazy_buffer.h"
#include "core/op_registry.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

// The limit for the concatenated weights in bytes. Above it, one product was never faster than
// three (BERT-base: 0.97 to 0.99; Swin-like: 0.94), and the concatenation slowed down loading.
constexpr int64_t kMostWeightBytes = 256 << 10;

// matmul -> (bias) -> reshape2 to [.., .., heads, depth] -> an operand of attention.
struct Branch {
  const char* operand = nullptr;  // Q, K or V
  size_t index = 0;               // of the operand, among Q, K and V
  int matmul = -1, add = -1, reshape = -1;
  VarId x = kNoVar, weight = kNoVar, bias = kNoVar;
  int64_t heads = 0, depth = 0;
};

class ProjectionMerger {
 public:
  ProjectionMerger(ir::Program& program, PassContext& context)
      : p_(program),
        context_(context),
        view_(program, context),
        ops_(program.blocks[static_cast<size_t>(context.block)].ops),
        gone_(ops_.size(), false),
        before_(ops_.size()) {}

  bool Run() {
    bool changed = false;
    for (size_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].type() == "scaled_dot_attention") changed = Merge(static_cast<int>(i)) || changed;
    if (!changed) return false;
    std::vector<ir::Op> kept;
    kept.reserve(ops_.size());
    for (size_t i = 0; i < ops_.size(); ++i) {
      LookForInterrupt();
      for (ir::Op& op : before_[i]) kept.push_back(std::move(op));
      if (!gone_[i]) kept.push_back(std::move(ops_[i]));
    }
    ops_ = std::move(kept);
    return true;
  }

 private:
  ir::Op& Op(int at) { return ops_[static_cast<size_t>(at)]; }
  const Shape& ShapeOf(VarId v) const { return p_.vars[v].shape; }

  bool Merge(int at) {
    std::vector<Branch> branches;
    const char* const operands[] = {"Q", "K", "V"};
    for (size_t i = 0; i < 3; ++i)
      if (auto branch = BranchOf(at, operands[i], i)) branches.push_back(*branch);
    // Finds the largest set of projections of one tensor: keys and values may come from another
    // tensor than the queries.
    std::vector<Branch> chosen;
    for (const Branch& like : branches) {
      std::vector<Branch> group;
      for (const Branch& b : branches)
        if (Alike(b, like) && (b.matmul != like.matmul || b.index == like.index))
          group.push_back(b);
      if (group.size() > chosen.size()) chosen = std::move(group);
    }
    if (chosen.size() < 2 || WeightBytes(chosen) > kMostWeightBytes) return false;
    Replace(at, chosen);
    return true;
  }

  std::optional<Branch> BranchOf(int attention, const char* operand, size_t index) {
    const ir::Op& op = Op(attention);
    if (op.Attr<Ints>("layouts")[index] != 1 || op.In(operand).size() != 1) return std::nullopt;
    Branch b;
    b.operand = operand;
    b.index = index;
    VarId v = op.In(operand)[0];
    b.reshape = OnlyWriter(v, attention);
    if (b.reshape < 0 || Op(b.reshape).type() != "reshape2" || !PartsHeads(Op(b.reshape), &b))
      return std::nullopt;
    v = Op(b.reshape).In("X")[0];
    int reader = b.reshape;
    if (const int add = OnlyWriter(v, reader); add >= 0 && Op(add).type() == "elementwise_add") {
      if (!TakeBias(Op(add), &b)) return std::nullopt;
      b.add = reader = add;
      v = Op(add).In("X")[0];
    }
    b.matmul = OnlyWriter(v, reader);
    return b.matmul >= 0 && TakeProduct(Op(b.matmul), &b) ? std::optional(b) : std::nullopt;
  }

  // The position of the operator that writes `v`, if `reader` is the only reader; else -1.
  int OnlyWriter(VarId v, int reader) {
    if (v == kNoVar || view_.OnlyReader(v, context_) != reader) return -1;
    const int at = view_.writers(v)[0];
    return Op(at).var_attrs.empty() && !gone_[static_cast<size_t>(at)] ? at : -1;
  }

  // Whether the operator reshapes to [a, b, heads, depth], with heads and depth made of the whole
  // last dimension.
  bool PartsHeads(const ir::Op& op, Branch* b) const {
    for (const char* slot : {"Shape", "ShapeTensor"})
      if (!op.In(slot).empty()) return false;
    for (VarId v : op.Out("XShape"))
      if (v != kNoVar && (!view_.readers(v).empty() || context_.fetched.count(v) > 0)) return false;
    const Ints& shape = op.Attr<Ints>("shape");
    if (shape.size() != 4 || shape[2] <= 0 || shape[3] <= 0) return false;
    b->heads = shape[2];
    b->depth = shape[3];
    return ShapeOf(op.In("X")[0]).rank() == 3;
  }

  bool TakeBias(const ir::Op& op, Branch* b) const {
    const VarId bias = op.In("Y")[0];
    const int64_t axis = op.Attr<int64_t>("axis");
    if (!IsConstant(bias, {b->heads * b->depth}) || (axis != -1 && axis != 2)) return false;
    b->bias = bias;
    return true;
  }

  bool TakeProduct(const ir::Op& op, Branch* b) const {
    if (op.type() != "matmul_v2" || op.Attr<bool>("trans_x") || op.Attr<bool>("trans_y"))
      return false;
    b->x = op.In("X")[0];
    b->weight = op.In("Y")[0];
    const Shape& x = ShapeOf(b->x);
    if (p_.vars[b->x].dtype != DType::kF32 || !x.known_rank() || x.rank() != 3 || x[2] <= 0)
      return false;
    return IsConstant(b->weight, {x[2], b->heads * b->depth});
  }

  int64_t WeightBytes(const std::vector<Branch>& branches) const {
    int64_t bytes = 0;
    for (const Branch& b : branches) bytes += ShapeOf(b.x)[2] * b.heads * b.depth * 4;
    return bytes;
  }

  bool IsConstant(VarId v, const Shape& shape) const {
    if (v == kNoVar || !view_.writers(v).empty()) return false;
    const Tensor* t = context_.Parameter(p_, v, false, false);
    return t != nullptr && t->dtype() == DType::kF32 && t->shape() == shape;
  }

  // Whether both projections can be part of one product, at the position of the first.
  bool Alike(const Branch& a, const Branch& b) {
    return a.x == b.x && a.heads == b.heads && a.depth == b.depth &&
           view_.Unchanged(a.x, std::min(a.matmul, b.matmul), std::max(a.matmul, b.matmul)) &&
           SamePlaces(a, b) &&
           Op(a.reshape).Attr<Ints>("shape") == Op(b.reshape).Attr<Ints>("shape");
  }

  bool SamePlaces(const Branch& a, const Branch& b) {
    std::vector<int> others = {a.reshape, b.matmul, b.reshape};
    for (int add : {a.add, b.add})
      if (add >= 0) others.push_back(add);
    return SamePlace(ops_, a.matmul, others);
  }

  void Replace(int attention, const std::vector<Branch>& branches) {
    const auto first =
        std::min_element(branches.begin(), branches.end(), [](const Branch& a, const Branch& b) {
          return a.matmul < b.matmul;
        })->matmul;
    auto& made = before_[static_cast<size_t>(first)];
    const auto count = static_cast<int64_t>(branches.size());
    const int64_t width = count * branches[0].heads * branches[0].depth;
    Shape wide = ShapeOf(Op(first).Out("Out")[0]);
    wide = {wide.rank() == 3 ? wide[0] : -1, wide.rank() == 3 ? wide[1] : -1, width};
    VarId last = NewVar("projections", wide);
    made.push_back(Make("matmul_v2", first, {{"X", branches[0].x}, {"Y", JoinWeights(branches)}},
                        {{"Out", last}}));
    const bool biased = std::any_of(branches.begin(), branches.end(),
                                    [](const Branch& b) { return b.bias != kNoVar; });
    if (biased) {
      const VarId sum = NewVar("projections", wide);
      made.push_back(Make("elementwise_add", first, {{"X", last}, {"Y", JoinBiases(branches)}},
                          {{"Out", sum}}));
      last = sum;
    }
    Ints shape = Op(branches[0].reshape).Attr<Ints>("shape");
    shape.insert(shape.begin() + 2, count);
    const VarId parts = NewVar("projections", {wide[0], wide[1], count, shape[3], shape[4]});
    made.push_back(Make("reshape2", first, {{"X", last}}, {{"Out", parts}}));
    made.back().attrs[made.back().def->FindAttr("shape")] = shape;

    ir::Op& op = Op(attention);
    auto& layouts = std::get<Ints>(op.attrs[op.def->FindAttr("layouts")]);
    auto& which = std::get<Ints>(op.attrs[op.def->FindAttr("parts")]);
    for (size_t i = 0; i < branches.size(); ++i) {
      const Branch& b = branches[i];
      for (int at : {b.matmul, b.add, b.reshape})
        if (at >= 0) gone_[static_cast<size_t>(at)] = true;
      op.inputs[op.def->FindInput(b.operand)] = {parts};
      layouts[b.index] = 2;
      which[b.index] = static_cast<int64_t>(i);
    }
  }

  using Operands = std::vector<std::pair<const char*, VarId>>;
  ir::Op Make(const char* type, int like, const Operands& in, const Operands& out) {
    ir::Op op = ir::MakeOp(*FindOp(type));
    op.index = Op(like).index;
    op.call_stack = Op(like).call_stack;
    TakePlace(Op(like), &op);
    for (const auto& [slot, v] : in) op.inputs[op.def->FindInput(slot)] = {v};
    for (const auto& [slot, v] : out) op.outputs[op.def->FindOutput(slot)] = {v};
    return op;
  }
  VarId NewVar(const std::string& stem, const Shape& shape) {
    ir::Var var;
    var.block = view_.block();
    var.name = p_.FreshName(stem);
    var.dtype = DType::kF32;
    var.shape = shape;
    return p_.AddVar(std::move(var));
  }

  VarId JoinWeights(const std::vector<Branch>& branches) {
    const int64_t rows = ShapeOf(branches[0].x)[2], part = branches[0].heads * branches[0].depth;
    const int64_t width = part * static_cast<int64_t>(branches.size());
    Tensor joined = Tensor::Empty(DType::kF32, {rows, width});
    float* to = joined.mutable_data<float>();
    for (const Branch& b : branches) {
      const BorrowedContents weight(*context_.Constant(p_, view_, b.weight, false));
      const float* from = weight.tensor().data<float>();
      for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * part, part, to + r * width);
      to += part;
    }
    return context_.AddConstant(p_, p_.vars[branches[0].weight].name, std::move(joined));
  }
  VarId JoinBiases(const std::vector<Branch>& branches) {
    const int64_t part = branches[0].heads * branches[0].depth;
    Tensor joined = Tensor::Zeros(DType::kF32, {part * static_cast<int64_t>(branches.size())});
    float* to = joined.mutable_data<float>();
    for (const Branch& b : branches) {
      if (b.bias != kNoVar)
        std::copy_n(context_.Constant(p_, view_, b.bias)->data<float>(), part, to);
      to += part;
    }
    return context_.AddConstant(p_, p_.vars[branches[0].weight].name + ".bias", std::move(joined));
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  std::vector<ir::Op>& ops_;
  std::vector<bool> gone_;
  std::vector<std::vector<ir::Op>> before_;  // new operators, by the operator that they precede
};

Result<bool> RunMergeMatmul(ir::Program& program, PassContext& context) {
  return ProjectionMerger(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(merge_matmul) {
  pass.doc =
      "the projections of one tensor to attention's queries, keys and values: one product with "
      "the weights side by side";
  pass.before =
      "q = reshape2(matmul_v2(x, wq) + bq, [0, 0, 12, 64]); k, v likewise; y = "
      "scaled_dot_attention(q, k, v)";
  pass.after =
      "p = reshape2(matmul_v2(x, w) + b, [0, 0, 3, 12, 64]); y = scaled_dot_attention(p, p, p), "
      "parts 0, 1, 2";
  pass.refuses =
      "weights and biases that are not constant parameters; weights that together have more than "
      "256 KiB; results in the middle that are read elsewhere or fetched; projections of "
      "different tensors (keys and values of one still go together) or with different numbers of "
      "heads";
  pass.level = 2;
  pass.each_block = true;
  pass.tolerance = 1e-5;
  pass.seeks = OfTypes({"scaled_dot_attention"});
  pass.run = RunMergeMatmul;
}
