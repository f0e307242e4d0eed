// A matrix product and what follows it (a factor, a bias along the last dimension, a residual sum,
// an activation) become one fused_matmul.
#include <optional>

#include "core/op_registry.h"
#include "passes/fuse/fused_activation.h"
#include "passes/fuse/replace_chains.h"
#include "passes/graph_view.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

using ir::VarId;

// The attributes and operands of a product, in the terms of fused_matmul.
struct Product {
  bool trans_x = false, trans_y = false;
  double alpha = 1;
};

class MatmulFuser {
 public:
  MatmulFuser(const ir::Program& program, const PassContext& context, const GraphView& view, int at)
      : p_(program),
        context_(context),
        view_(view),
        ops_(program.blocks[static_cast<size_t>(view.block())].ops),
        at_(at) {}

  // Absorbs followers; returns whether there is something to replace. An operator that another
  // product has taken (`gone`) ends the chain.
  bool Grow(const TakenOps& gone) {
    const ir::Op& op = ops_[static_cast<size_t>(at_)];
    const auto product = AsProduct(op);
    if (!product || !op.var_attrs.empty()) return false;
    product_ = *product;
    x_ = op.In("X")[0], y_ = op.In("Y")[0], out_ = op.Out("Out")[0];
    for (int r; (r = view_.OnlyReader(out_, context_)) >= 0 && !gone[static_cast<size_t>(r)] &&
                Absorb(ops_[static_cast<size_t>(r)]);)
      absorbed.push_back(r);
    return !absorbed.empty();
  }

  ir::Op Make() const {
    const ir::Op& op = ops_[static_cast<size_t>(at_)];
    ir::Op fused = ir::MakeOp(*FindOp("fused_matmul"));
    fused.index = op.index;
    fused.call_stack = op.call_stack;
    auto set = [&](const char* name, AttrValue v) { fused.attrs[fused.def->FindAttr(name)] = v; };
    set("trans_x", product_.trans_x);
    set("trans_y", product_.trans_y);
    set("alpha", product_.alpha);
    if (activation_) SetActivation(*activation_, &fused);
    auto in = [&](const char* slot) -> auto& { return fused.inputs[fused.def->FindInput(slot)]; };
    in("X") = {x_};
    in("Y") = {y_};
    if (bias_) in("Bias") = {*bias_};
    if (residual_) in("ResidualData") = {*residual_};
    fused.outputs[fused.def->FindOutput("Out")] = {out_};
    return fused;
  }

  std::vector<int> absorbed;

 private:
  const Shape& ShapeOf(VarId v) const { return p_.vars[v].shape; }

  std::optional<Product> AsProduct(const ir::Op& op) const {
    const std::string& t = op.type();
    if (t != "matmul_v2" && t != "matmul" && t != "mul") return std::nullopt;
    const VarId x = op.In("X")[0], y = op.In("Y")[0], out = op.Out("Out")[0];
    const DType dtype = p_.vars[out].dtype;
    if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) return std::nullopt;
    for (VarId v : {x, y, out})
      if (p_.vars[v].dtype != dtype || !ShapeOf(v).known_rank() || ShapeOf(v).rank() < 2)
        return std::nullopt;
    if (t == "matmul_v2") return Product{op.Attr<bool>("trans_x"), op.Attr<bool>("trans_y"), 1};
    if (t == "matmul") {
      if (op.Attr<int64_t>("head_number") > 1) return std::nullopt;
      return Product{op.Attr<bool>("transpose_X"), op.Attr<bool>("transpose_Y"),
                     op.Attr<double>("alpha")};
    }
    // mul folds leading dimensions, as fused_matmul does; trailing ones must not be folded.
    if (op.Attr<int64_t>("x_num_col_dims") != ShapeOf(x).rank() - 1 || ShapeOf(y).rank() != 2)
      return std::nullopt;
    return Product{};
  }

  bool Absorb(const ir::Op& op) {
    const std::string& t = op.type();
    if (!op.var_attrs.empty() || activation_) return false;
    bool done = false;
    if (t == "elementwise_add") done = Bias(op) || Residual(op);
    if (t == "scale") done = Factor(op);
    if (!done) {
      activation_ = AsActivation(op);
      done = activation_.has_value();
    }
    if (done) out_ = op.outputs[0][0];
    return done;
  }

  bool Factor(const ir::Op& op) {
    if (bias_ || residual_ || op.Attr<double>("bias") != 0 || !op.In("ScaleTensor").empty())
      return false;
    product_.alpha *= op.Attr<double>("scale");
    return true;
  }

  bool Bias(const ir::Op& op) {
    const VarId y = op.In("Y")[0];
    if (bias_ || residual_ || op.In("X")[0] != out_ || y == out_) return false;
    const Shape &s = ShapeOf(y), &to = ShapeOf(out_);
    const int64_t axis = op.Attr<int64_t>("axis");
    if (!s.known_rank() || s.rank() != 1 || s[0] < 1 || p_.vars[y].dtype != p_.vars[out_].dtype ||
        to[to.rank() - 1] != s[0] || (axis != -1 && axis != to.rank() - 1))
      return false;
    bias_ = y;
    return true;
  }

  // Absorbs the sum with a tensor of the same shape. Open dimensions might differ and broadcast, so
  // only the batch may be open.
  bool Residual(const ir::Op& op) {
    const VarId x = op.In("X")[0], y = op.In("Y")[0], other = x == out_ ? y : x;
    if (residual_ || x == y || p_.vars[other].dtype != p_.vars[out_].dtype) return false;
    const Shape &a = ShapeOf(out_), &b = ShapeOf(other);
    if (!b.known_rank() || !(a == b)) return false;
    for (int i = 1; i < a.rank(); ++i)
      if (a[i] < 0) return false;
    residual_ = other;
    return true;
  }

  const ir::Program& p_;
  const PassContext& context_;
  const GraphView& view_;
  const std::vector<ir::Op>& ops_;
  const int at_;
  Product product_;
  std::optional<VarId> bias_, residual_;
  std::optional<FusedActivation> activation_;
  VarId x_ = ir::kNoVar, y_ = ir::kNoVar, out_ = ir::kNoVar;
};

Result<bool> RunFuseMatmul(ir::Program& program, PassContext& context) {
  return ReplaceChains<MatmulFuser>(program, context);
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_matmul) {
  pass.doc = "matmul_v2/matmul/mul + factor + bias + residual + activation -> fused_matmul";
  pass.level = 2;
  pass.each_block = true;
  pass.tolerance = 1e-5;
  pass.own_ops = {"fused_matmul"};
  pass.before = "p = matmul_v2(x, w); q = p + bias; r = gelu(q)";
  pass.after = "r = fused_matmul(x, w, bias), fuse_activation gelu";
  pass.refuses =
      "other dtypes than float32, float16 and bfloat16; results in the middle that are read "
      "elsewhere, fetched or "
      "written again; operands written after the product; sums that might broadcast the product";
  pass.seeks = OfTypes({"matmul_v2", "matmul", "mul"});
  pass.run = RunFuseMatmul;
}
