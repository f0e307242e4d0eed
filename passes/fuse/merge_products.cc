// Products of one tensor by constant matrices become one operator with one output for each: one
// call instead of several, and one loop that threads share. Results need not be split.
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

// The limit for the matrices of one operator, in bytes. Merging saves the overhead of calls, which
// is negligible for larger products; threads compute those better one each.
constexpr int64_t kMostProductBytes = 256 << 10;
// The most multiplications of one product; more take much longer than a call.
constexpr int64_t kMostWork = 1 << 19;
// The most operators between two products, since results that are read much later leave the cache.
constexpr int kMostApart = 100;
constexpr size_t kMostProducts = 16;

struct MergeableProduct {
  int at = -1;
  VarId x = kNoVar, y = kNoVar, bias = kNoVar, out = kNoVar;
  bool trans_y = false;
  std::string activation;
  double alpha = 0, beta = 0;
  int64_t weight_bytes = 0;
};

class ProductMerger {
 public:
  ProductMerger(ir::Program& program, PassContext& context)
      : p_(program),
        context_(context),
        view_(program, context),
        ops_(program.blocks[static_cast<size_t>(context.block)].ops) {}

  bool Run() {
    std::map<VarId, std::vector<MergeableProduct>> by_x;
    std::vector<VarId> order;
    for (size_t i = 0; i < ops_.size(); ++i) {
      LookForInterrupt();
      const std::optional<MergeableProduct> product = AsProduct(static_cast<int>(i));
      if (!product) continue;
      if (by_x[product->x].empty()) order.push_back(product->x);
      by_x[product->x].push_back(*product);
    }
    std::vector<bool> gone(ops_.size(), false);
    bool changed = false;
    for (VarId x : order) {
      LookForInterrupt();
      std::vector<MergeableProduct>& products = by_x[x];
      for (size_t begin = 0; begin + 1 < products.size();) {
        const size_t end = GroupEnd(products, begin);
        const auto group = std::span<const MergeableProduct>(products).subspan(begin, end - begin);
        if (group.size() > 1 && AreSmall(group)) {
          Merge(group, &gone);
          changed = true;
        }
        begin = std::max(end, begin + 1);
      }
    }
    if (!changed) return false;
    std::vector<ir::Op> kept;
    kept.reserve(ops_.size());
    for (size_t i = 0; i < ops_.size(); ++i)
      if (!gone[i]) kept.push_back(std::move(ops_[i]));
    ops_ = std::move(kept);
    return true;
  }

 private:
  const ir::Op& Op(int at) const { return ops_[static_cast<size_t>(at)]; }

  std::optional<MergeableProduct> AsProduct(int at) const {
    const ir::Op& op = Op(at);
    const bool fused = op.type() == "fused_matmul";
    if ((!fused && op.type() != "matmul_v2") || !op.var_attrs.empty() || op.In("X").size() != 1 ||
        op.Attr<bool>("trans_x"))
      return std::nullopt;
    MergeableProduct p;
    p.at = at;
    p.x = op.In("X")[0], p.y = op.In("Y")[0], p.out = op.Out("Out")[0];
    p.trans_y = op.Attr<bool>("trans_y");
    if (fused) {
      if (!op.In("ResidualData").empty() || op.Attr<double>("alpha") != 1 ||
          op.Attr<bool>("fuse_bf16") || op.Attr<bool>("fuse_int8"))
        return std::nullopt;
      if (!op.In("Bias").empty()) p.bias = op.In("Bias")[0];
      p.activation = op.Attr<std::string>("fuse_activation");
      p.alpha = op.Attr<double>("fuse_alpha"), p.beta = op.Attr<double>("fuse_beta");
    }
    if (p.x == kNoVar || p.out == kNoVar || p_.vars[p.x].dtype != DType::kF32 ||
        !view_.SingleWriter(p.out) || (p.bias != kNoVar && !IsConstant(p.bias)))
      return std::nullopt;
    const Shape& x = p_.vars[p.x].shape;
    if (!x.known_rank() || x.rank() < 2) return std::nullopt;
    const Tensor* const weight =
        IsConstant(p.y) ? context_.Parameter(p_, p.y, false, false) : nullptr;
    if (weight == nullptr || weight->shape().rank() != 2) return std::nullopt;
    p.weight_bytes = static_cast<int64_t>(weight->bytes());
    const int64_t rows = x.Product(0, x.rank() - 1);
    if (x.is_static() && rows > kMostWork / std::max<int64_t>(1, weight->numel()))
      return std::nullopt;
    return p;
  }

  bool IsConstant(VarId v) const {
    if (v == kNoVar || !view_.NeverWritten(v) || context_.fed.count(v) > 0) return false;
    const Tensor* t = context_.Parameter(p_, v, false, false);
    return t != nullptr && t->dtype() == DType::kF32;
  }

  // The end of the longest group that begins with `begin`, all of which can be computed at its
  // position.
  size_t GroupEnd(const std::vector<MergeableProduct>& products, size_t begin) const {
    const MergeableProduct& first = products[begin];
    size_t end = begin + 1;
    for (; end < products.size() && end - begin < kMostProducts; ++end) {
      const MergeableProduct& next = products[end];
      if (next.at - first.at > kMostApart || !view_.Unchanged(first.x, first.at, next.at) ||
          !SamePlace(ops_, first.at, {next.at}))
        break;
    }
    return end;
  }

  static bool AreSmall(std::span<const MergeableProduct> products) {
    int64_t bytes = 0;
    for (const MergeableProduct& p : products) bytes += p.weight_bytes;
    return bytes <= kMostProductBytes;
  }

  void Merge(std::span<const MergeableProduct> products, std::vector<bool>* gone) {
    const ir::Op& first = Op(products[0].at);
    ir::Op op = ir::MakeOp(*FindOp("fused_products"));
    op.index = first.index;
    op.call_stack = first.call_stack;
    TakePlace(first, &op);
    Ints trans_y, biases;
    Strings activations;
    Floats alphas, betas;
    std::vector<VarId> y, bias, out;
    for (const MergeableProduct& p : products) {
      y.push_back(p.y);
      out.push_back(p.out);
      trans_y.push_back(p.trans_y);
      biases.push_back(p.bias == kNoVar ? -1 : static_cast<int64_t>(bias.size()));
      if (p.bias != kNoVar) bias.push_back(p.bias);
      activations.push_back(p.activation);
      alphas.push_back(p.alpha);
      betas.push_back(p.beta);
      (*gone)[static_cast<size_t>(p.at)] = p.at != products[0].at;
    }
    const auto set = [&](const char* name, AttrValue v) {
      op.attrs[op.def->FindAttr(name)] = std::move(v);
    };
    set("trans_y", trans_y), set("biases", biases), set("activations", activations);
    set("alphas", alphas), set("betas", betas);
    op.inputs[op.def->FindInput("X")] = {products[0].x};
    op.inputs[op.def->FindInput("Y")] = {y.begin(), y.end()};
    op.inputs[op.def->FindInput("Bias")] = {bias.begin(), bias.end()};
    op.outputs[op.def->FindOutput("Out")] = {out.begin(), out.end()};
    ops_[static_cast<size_t>(products[0].at)] = std::move(op);
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  std::vector<ir::Op>& ops_;
};

Result<bool> RunMergeProducts(ir::Program& program, PassContext& context) {
  return ProductMerger(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(merge_products) {
  pass.doc = "small products of one tensor by constant matrices -> fused_products";
  pass.before = "a = matmul_v2(x, v); b = fused_matmul(x, w, bias), relu";
  pass.after = "a, b = fused_products(x, [v, w], [bias]), activations [none, relu]";
  pass.refuses =
      "matrices that are not constant float32 parameters, or that together have more than 256 KiB; "
      "products of more than 524,288 multiplications; "
      "products with a residual sum, a factor or a transposed X; products more than 100 operators "
      "apart; bfloat16 and int8; operators of different places; programs for a device";
  pass.level = 2;
  pass.needs = PassNeeds::kHostCaches;
  pass.each_block = true;
  pass.tolerance = 1e-5;
  pass.own_ops = {"fused_products"};
  pass.seeks = OfTypes({"fused_matmul", "matmul_v2"});
  pass.run = RunMergeProducts;
}
