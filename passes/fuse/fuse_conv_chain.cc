// Consecutive pointwise and depthwise convolutions become one operator that computes the
// intermediate results a few rows at a time, if these exceed a core's cache. In bfloat16 two
// pointwise ones are fused likewise: the intermediate result is rounded as it is computed, and is
// never in memory.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/op_registry.h"
#include "kernels/conv/conv_stripes.h"
#include "passes/fuse/replace_chains.h"
#include "passes/graph_view.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

using ir::VarId;

class ChainFuser {
 public:
  ChainFuser(ir::Program& program, PassContext& context, const GraphView& view, int at)
      : p_(program),
        context_(context),
        view_(view),
        ops_(program.blocks[static_cast<size_t>(view.block())].ops),
        at_(at) {}

  bool Grow(const TakenOps& gone) {
    if (ops_[at_].type() == "fused_conv2d") bf16_ = ops_[at_].Attr<bool>("fuse_bf16");
    if (!IsPart(at_, false)) return false;
    chain_ = {at_};
    if (bf16_) {
      if (!Append(gone, false)) return false;
    } else {
      if (!Append(gone, true)) return false;
      const bool project = Append(gone, false);
      if (!Pays(project)) return false;
    }
    absorbed.assign(chain_.begin() + 1, chain_.end());
    return true;
  }

  ir::Op Make() {
    ir::Op fused = ir::MakeOp(*FindOp("fused_conv_chain"));
    const ir::Op &first = ops_[chain_.front()], &last = ops_[chain_.back()];
    fused.index = last.index;
    fused.call_stack = last.call_stack;
    auto in = [&](const char* slot) -> auto& { return fused.inputs[fused.def->FindInput(slot)]; };
    in("Input") = first.In("Input");
    in("ResidualData") = last.In("ResidualData");
    Ints strides, paddings;
    Strings activations;
    std::vector<Floats> numbers(4);
    const char* names[4] = {"fuse_alpha", "fuse_beta", "fuse_scale", "fuse_shift"};
    for (const int at : chain_) {
      const ir::Op& op = ops_[at];
      in("Filters").push_back(op.In("Filter")[0]);
      in("Biases").push_back(op.In("Bias")[0]);
      const Ints &steps = op.Attr<Ints>("strides"), &pads = op.Attr<Ints>("paddings");
      strides.insert(strides.end(), steps.begin(), steps.end());
      for (size_t i = 0; i < 4; ++i) paddings.push_back(pads[pads.size() == 2 ? i / 2 : i]);
      activations.push_back(op.Attr<std::string>("fuse_activation"));
      for (size_t i = 0; i < 4; ++i) numbers[i].push_back(op.Attr<double>(names[i]));
    }
    auto set = [&](const char* name, AttrValue v) {
      fused.attrs[fused.def->FindAttr(name)] = std::move(v);
    };
    set("strides", std::move(strides));
    set("paddings", std::move(paddings));
    set("fuse_activation", std::move(activations));
    for (size_t i = 0; i < 4; ++i) set(names[i], std::move(numbers[i]));
    set("fuse_bf16", bf16_);
    set("fuse_int8", bf16_ && context_.options().precision == Precision::kInt8Products);
    fused.outputs[fused.def->FindOutput("Output")] = last.Out("Output");
    return fused;
  }

  std::vector<int> absorbed;

 private:
  // Appends the only reader of the chain's result, if it is a convolution of the wanted kind.
  bool Append(const TakenOps& gone, bool depthwise) {
    const ir::Op& last = ops_[chain_.back()];
    const VarId between = last.Out("Output")[0];
    const int next = view_.OnlyReader(between, context_);
    if (!last.In("ResidualData").empty() || next < 0 || gone[static_cast<size_t>(next)] ||
        !IsPart(next, depthwise) || ops_[next].In("Input")[0] != between)
      return false;
    const auto& residual = ops_[next].In("ResidualData");
    if (!residual.empty() && residual[0] == between) return false;
    chain_.push_back(next);
    return true;
  }

  const Tensor* Constant(int at, const char* slot) {
    return context_.Constant(p_, view_, ops_[at].In(slot)[0], false);
  }

  bool IsPart(int at, bool depthwise) {
    const ir::Op& op = ops_[at];
    if (op.type() != "fused_conv2d" || !op.var_attrs.empty() || op.In("Bias").empty() ||
        op.Attr<std::string>("data_format") != "NHWC" || op.Attr<bool>("fuse_bf16") != bf16_ ||
        op.Attr<std::string>("padding_algorithm") != "EXPLICIT" ||
        op.Attr<Ints>("dilations") != Ints{1, 1})
      return false;
    const Tensor* filter = Constant(at, "Filter");
    if (filter == nullptr || filter->rank() != 4 || filter->dim(2) != filter->dim(3) ||
        Constant(at, "Bias") == nullptr)
      return false;
    const Ints &strides = op.Attr<Ints>("strides"), &pads = op.Attr<Ints>("paddings");
    if (strides.size() != 2 || strides[0] != strides[1] || (pads.size() != 2 && pads.size() != 4))
      return false;
    if (std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad < 0; })) return false;
    const int64_t groups = op.Attr<int64_t>("groups"), kernel = filter->dim(2);
    if (depthwise)
      return (kernel == 3 || kernel == 5) && groups > 1 && groups == filter->dim(0) &&
             filter->dim(1) == 1 && strides[0] <= 2 && op.In("ResidualData").empty();
    return kernel == 1 && groups == 1 && strides[0] == 1 &&
           std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; });
  }

  // For open sizes the kernel decides at run time. Then the pass takes only chains like those of
  // the first layers, whose images have so many pixels that stripes nearly always pay.
  bool Pays(bool project) {
    const Shape& between = p_.vars[ops_[chain_[0]].Out("Output")[0]].shape;
    const Shape& rows = p_.vars[ops_[chain_[1]].Out("Output")[0]].shape;
    ConvStripes stripes{.project = project};
    for (size_t i = 0; i < chain_.size(); i += 2)
      stripes.largest =
          std::max(stripes.largest, static_cast<int64_t>(Constant(chain_[i], "Filter")->bytes()));
    constexpr int64_t kUnknown = int64_t{1} << 40, kLargestEarly = 8 << 10;
    const bool known = between[1] >= 0 && between[2] >= 0;
    if (!known && stripes.largest > kLargestEarly) return false;
    stripes.between =
        known ? between.Product(1, 4) * static_cast<int64_t>(sizeof(float)) : kUnknown;
    stripes.rows = rows[1] >= 0 ? rows[1] : kUnknown;
    return StripesPay(stripes);
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView& view_;
  std::vector<ir::Op>& ops_;
  const int at_;
  bool bf16_ = false;       // whether they multiply in bfloat16
  std::vector<int> chain_;  // positions
};

Result<bool> RunFuseConvChain(ir::Program& program, PassContext& context) {
  return ReplaceChains<ChainFuser>(program, context);
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_conv_chain) {
  pass.doc =
      "pointwise + depthwise (+ pointwise) convolutions -> fused_conv_chain, which keeps only the "
      "rows in between that are needed next; so do two pointwise ones that multiply in bfloat16 or "
      "8-bit integers";
  pass.level = 2;
  pass.each_block = true;
  pass.needs = PassNeeds::kHostCaches;
  pass.tolerance = 1e-5;
  pass.own_ops = {"fused_conv_chain"};
  pass.before =
      "b = fused_conv2d(a, w1, bias1), 1x1; c = fused_conv2d(b, w2, bias2), depthwise 3x3; d = "
      "fused_conv2d(c, w3, bias3, a), 1x1";
  pass.after = "d = fused_conv_chain(a, [w1, w2, w3], [bias1, bias2, bias3], a)";
  pass.refuses =
      "convolutions that are not channels last or have no constant filter and bias; depthwise ones "
      "beside others that multiply in bfloat16; dilations, kernels other than 3x3 and 5x5; results "
      "in between that are read "
      "elsewhere or fetched; few rows or bytes in between, filters too large to stay in a core's "
      "cache along with the rows; without the last convolution, less than 1 MiB in between; "
      "programs for a device";
  pass.seeks = OfTypes({"fused_conv2d"});
  pass.run = RunFuseConvChain;
}
