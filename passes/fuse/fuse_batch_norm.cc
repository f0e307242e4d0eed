// An inference batch_norm that no convolution absorbed, the factors and offsets per channel after
// it, and a following activation become one fused_batch_norm: one factor and one offset per
// channel, computed in double.
#include <cmath>
#include <vector>

#include "core/op_registry.h"
#include "core/programs/kept_outputs.h"
#include "passes/fuse/fused_activation.h"
#include "passes/fuse/replace_chains.h"
#include "passes/graph_view.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

using ir::VarId;

class BatchNormFuser {
 public:
  BatchNormFuser(ir::Program& program, PassContext& context, const GraphView& view, int at)
      : p_(program),
        context_(context),
        view_(view),
        ops_(program.blocks[static_cast<size_t>(view.block())].ops),
        at_(at) {}

  bool Grow(const TakenOps& gone) {
    const ir::Op& norm = ops_[at_];
    if (norm.type() != "batch_norm" || !IsPlain(norm)) return false;
    const VarId x = norm.In("X")[0];
    if (p_.vars[x].dtype != DType::kF32 || p_.vars[x].shape.rank() < 2) return false;
    const char* slots[4] = {"Scale", "Bias", "Mean", "Variance"};
    for (int i = 0; i < 4; ++i) {
      constant_[i] =
          norm.In(slots[i]).empty() ? nullptr : context_.Constant(p_, view_, norm.In(slots[i])[0]);
      if (constant_[i] == nullptr || constant_[i]->numel() != constant_[0]->numel()) return false;
    }
    for (VarId y = norm.Out("Y")[0];;) {
      const int reader = view_.OnlyReader(y, context_);
      if (reader < 0 || gone[reader] || !ops_[reader].var_attrs.empty()) break;
      const auto activation = AsActivation(ops_[reader]);
      if (activation) {
        activation_ = *activation;
      } else if (!TakeStep(ops_[reader], y)) {
        break;
      }
      absorbed.push_back(reader);
      if (activation) break;
      y = ops_[reader].outputs[0][0];
    }
    return !absorbed.empty() && Fold();
  }

  ir::Op Make() {
    const ir::Op& norm = ops_[at_];
    const std::string stem = p_.vars[norm.In("Scale")[0]].name;
    ir::Op fused = ir::MakeOp(*FindOp("fused_batch_norm"));
    fused.index = norm.index;
    fused.call_stack = norm.call_stack;
    fused.attrs[fused.def->FindAttr("data_layout")] = norm.Attr<std::string>("data_layout");
    SetActivation(activation_, &fused);
    fused.inputs[fused.def->FindInput("X")] = norm.In("X");
    fused.inputs[fused.def->FindInput("Scale")] = {
        context_.AddConstant(p_, stem, std::move(scale_))};
    fused.inputs[fused.def->FindInput("Bias")] = {
        context_.AddConstant(p_, stem + ".bias", std::move(bias_))};
    fused.outputs[fused.def->FindOutput("Y")] = {ops_[absorbed.back()].outputs[0][0]};
    return fused;
  }

  std::vector<int> absorbed;

 private:
  // A factor or an offset per channel.
  struct Step {
    bool multiplies;
    const Tensor* values;
  };

  // Takes the operator if it is a factor or an offset per channel of `y`; else false.
  bool TakeStep(const ir::Op& op, VarId y) {
    const bool multiplies = op.type() == "elementwise_mul";
    if ((!multiplies && op.type() != "elementwise_add") || op.In("X").size() != 1 ||
        op.In("X")[0] != y || op.In("Y").size() != 1 || op.Attr<int64_t>("axis") != -1)
      return false;
    const Tensor* values = context_.Constant(p_, view_, op.In("Y")[0]);
    if (values == nullptr || values->dtype() != DType::kF32) return false;
    const int rank = p_.vars[ops_[at_].In("X")[0]].shape.rank();
    if (values->rank() > rank) return false;
    // One value per channel, in the dimension of the channels.
    const bool last = ops_[at_].Attr<std::string>("data_layout") == "NHWC";
    const int channel = (last ? rank - 1 : 1) - (rank - values->rank());
    const bool fits =
        values->numel() == 1 || (channel >= 0 && values->numel() == constant_[0]->numel() &&
                                 values->shape()[channel] == values->numel());
    if (fits) steps_.push_back({multiplies, values});
    return fits;
  }

  // Computes one factor and one offset per channel. False: one is infinite or NaN, and would give
  // NaN for other elements than the operators do.
  bool Fold() {
    const int64_t channels = constant_[0]->numel();
    scale_ = Tensor::Empty(DType::kF32, {channels});
    bias_ = Tensor::Empty(DType::kF32, {channels});
    const double epsilon = ops_[at_].Attr<double>("epsilon");
    bool finite = true;
    for (int64_t c = 0; c < channels; ++c) {
      const auto value = [&](int i) { return static_cast<double>(constant_[i]->data<float>()[c]); };
      double k = value(0) / std::sqrt(value(3) + epsilon), b = value(1) - value(2) * k;
      for (const Step& step : steps_) {
        const double number = step.values->data<float>()[step.values->numel() == 1 ? 0 : c];
        k *= step.multiplies ? number : 1;
        b = step.multiplies ? b * number : b + number;
      }
      const auto factor = static_cast<float>(k), offset = static_cast<float>(b);
      finite = finite && std::isfinite(factor) && std::isfinite(offset);
      scale_.mutable_data<float>()[c] = factor;
      bias_.mutable_data<float>()[c] = offset;
    }
    return finite;
  }

  // Whether the statistics are fixed, and only Y is read.
  bool IsPlain(const ir::Op& norm) const {
    if (!ir::IsInference(norm) || !norm.var_attrs.empty()) return false;
    const auto y = static_cast<size_t>(norm.def->FindOutput("Y"));
    for (size_t slot = 0; slot < norm.outputs.size(); ++slot)
      for (VarId v : norm.outputs[slot])
        if (slot != y && v != ir::kNoVar &&
            (!view_.SingleWriter(v) || !view_.readers(v).empty() || context_.fetched.count(v) > 0))
          return false;
    return true;
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView& view_;
  const std::vector<ir::Op>& ops_;
  const int at_;
  const Tensor* constant_[4] = {};
  std::vector<Step> steps_;
  Tensor scale_, bias_;
  FusedActivation activation_;
};

Result<bool> RunFuseBatchNorm(ir::Program& program, PassContext& context) {
  return ReplaceChains<BatchNormFuser>(program, context);
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_batch_norm) {
  pass.doc =
      "inference batch_norm + factors and offsets per channel + activation -> fused_batch_norm";
  pass.before = "y = batch_norm(x, scale, bias, mean, variance); z = relu(y * factor + offset)";
  pass.after = "z = fused_batch_norm(x, factor, offset, relu)";
  pass.refuses =
      "batch_norm that uses the batch's statistics; parameters that are fed or written; an "
      "intermediate result that is fetched or read elsewhere; saved statistics that are read";
  pass.level = 2;
  pass.each_block = true;
  pass.tolerance = 1e-5;
  pass.own_ops = {"fused_batch_norm"};
  pass.seeks = OfTypes({"batch_norm"});
  pass.run = RunFuseBatchNorm;
}
