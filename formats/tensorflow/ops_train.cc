// Operators that write variables, by reference or resource: optimizers and scatters.
#include <algorithm>

#include "core/op_registry.h"
#include "formats/tensorflow/direct/ops_direct.h"

namespace heddle::tensorflow {
namespace {

// An update. The slots of variables have a star.
struct Update {
  std::string_view op;
  formats::Words words;
};
constexpr Update kUpdates[] = {
    {"ApplyAdaMax",
     {"adamax",
      "Param* Moment* InfNorm* Beta1Pow LearningRate Beta1Tensor Beta2Tensor EpsilonTensor Grad",
      {},
      "epsilon_in_norm=false"}},
    {"ApplyAdadelta",
     {"adadelta",
      "Param* AvgSquaredGrad* AvgSquaredUpdate* LearningRate RhoTensor EpsilonTensor Grad"}},
    {"ApplyAdagrad",
     {"adagrad", "Param* Moment* LearningRate Grad", {}, "epsilon=0 update_moment<update_slots"}},
    {"ApplyAdagradV2",
     {"adagrad",
      "Param* Moment* LearningRate EpsilonTensor Grad",
      {},
      "update_moment<update_slots"}},
    {"ApplyAdam",
     {"adam",
      "Param* Moment1* Moment2* Beta1Pow Beta2Pow LearningRate Beta1Tensor Beta2Tensor "
      "EpsilonTensor Grad",
      {},
      "epsilon_is_corrected=false use_global_beta_pow=true use_nesterov"}},
    {"ApplyAdamWithAmsgrad",
     {"adam",
      "Param* Moment1* Moment2* Moment2Max* Beta1Pow Beta2Pow LearningRate Beta1Tensor Beta2Tensor "
      "EpsilonTensor Grad",
      {},
      "epsilon_is_corrected=false use_global_beta_pow=true"}},
    {"ApplyAddSign", {"add_sign", "Param* Moment* LearningRate Alpha SignDecay Beta Grad"}},
    {"ApplyCenteredRMSProp",
     {"rmsprop",
      "Param* MeanGrad* MeanSquare* Moment* LearningRate DecayTensor MomentumTensor EpsilonTensor "
      "Grad",
      {},
      "centered=true"}},
    {"ApplyFtrl",
     {"ftrl",
      "Param* SquaredAccumulator* LinearAccumulator* Grad LearningRate L1Tensor L2Tensor "
      "LrPowerTensor",
      {},
      "penalty_offset=0 linear_times_lr<multiply_linear_by_lr"}},
    {"ApplyFtrlV2",
     {"ftrl",
      "Param* SquaredAccumulator* LinearAccumulator* Grad LearningRate L1Tensor L2Tensor "
      "L2ShrinkageTensor LrPowerTensor",
      {},
      "penalty_offset=0 linear_times_lr<multiply_linear_by_lr"}},
    {"ApplyGradientDescent", {"sgd", "Param* LearningRate Grad"}},
    {"ApplyKerasMomentum",
     {"momentum",
      "Param* Velocity* LearningRate Grad MuTensor",
      {},
      "velocity_of_steps=true use_nesterov"}},
    {"ApplyMomentum",
     {"momentum", "Param* Velocity* LearningRate Grad MuTensor", {}, "use_nesterov"}},
    {"ApplyPowerSign", {"power_sign", "Param* Moment* LearningRate LogBase SignDecay Beta Grad"}},
    {"ApplyProximalAdagrad",
     {"proximal_adagrad", "Param* Moment* LearningRate L1Tensor L2Tensor Grad"}},
    {"ApplyProximalGradientDescent", {"proximal_gd", "Param* LearningRate L1Tensor L2Tensor Grad"}},
    {"ApplyRMSProp",
     {"rmsprop",
      "Param* MeanSquare* Moment* LearningRate DecayTensor MomentumTensor EpsilonTensor Grad"}},
};
std::string_view WithoutResource(std::string_view op) {
  constexpr std::string_view kPrefix = "Resource";
  return op.starts_with(kPrefix) ? op.substr(kPrefix.size()) : op;
}

// The Sparse form has the rows of indices, which stand behind the gradient.
bool LowerUpdate(NodeLowering& n) {
  constexpr std::string_view kSparse = "Sparse";
  std::string_view name = WithoutResource(n.op());
  const bool rows = name.starts_with(kSparse);
  if (rows) name.remove_prefix(kSparse.size());
  const Update& update = *std::find_if(std::begin(kUpdates), std::end(kUpdates),
                                       [&](const Update& u) { return u.op == name; });
  const OpDef* def = FindOp(update.words.type);
  if (def == nullptr) return false;
  Attrs attrs = AttributesIn(n, *def, update.words);
  if (rows) attrs.emplace_back("each_row", true);
  Ins ins;
  Outs outs;
  size_t at = 0;
  const auto add = [&](std::string_view slot, bool state) {
    if (at++ >= n.inputs()) return;
    const int v = state ? n.Variable(at - 1) : n.In(at - 1);
    ins.emplace_back(slot, std::vector<int>{v});
    if (!state) return;
    for (const OpDef::SlotPair& pair : def->inplace())
      if (def->inputs()[static_cast<size_t>(pair.in)].name == slot)
        outs.emplace_back(def->outputs()[static_cast<size_t>(pair.out)].name, std::vector<int>{v});
  };
  formats::ForEachWord(update.words.inputs, [&](std::string_view word) {
    const bool state = word.back() == '*';
    if (state) word.remove_suffix(1);
    add(word, state);
    if (rows && word == "Grad") add("GradRows", false);
  });
  if (at > n.inputs()) n.Problem("has ", n.inputs(), " inputs, expected ", at);
  if (outs.empty()) return true;
  const int variable = outs.front().second.front();
  n.Emit(update.words.type, std::move(ins), std::move(attrs), std::move(outs));
  n.ResultVariable(variable);
  return true;
}

// Scatters to rows, or to slices given by index tuples: how they change what is there.
constexpr std::pair<std::string_view, std::string_view> kScatter[] = {
    {"ScatterAdd", "add"},       {"ScatterDiv", "div"},   {"ScatterMax", "max"},
    {"ScatterMin", "min"},       {"ScatterMul", "mul"},   {"ScatterSub", "sub"},
    {"ScatterUpdate", "assign"}, {"ScatterNdAdd", "add"}, {"ScatterNdMax", "max"},
    {"ScatterNdMin", "min"},     {"ScatterNdSub", "sub"}, {"ScatterNdUpdate", "assign"},
};

bool LowerScatter(NodeLowering& n) {
  const std::string_view op = WithoutResource(n.op());
  const auto* found = std::find_if(std::begin(kScatter), std::end(kScatter),
                                   [&](const auto& s) { return s.first == op; });
  const int v = n.Variable(0);
  n.Emit("scatter_nd", {{"X", {v}}, {"Index", {n.In(1)}}, {"Updates", {n.In(2)}}},
         {{"reduce", std::string(found->second)}, {"rows", !op.starts_with("ScatterNd")}},
         {{"Out", {v}}});
  n.ResultVariable(v);
  return true;
}

bool LowerResourceGather(NodeLowering& n) {
  const int v = n.Variable(0);
  if (n.op() == "ResourceGatherNd") {
    n.Result(0, n.Make("gather_nd", {{"X", {v}}, {"Index", {n.In(1)}}}, {{"wrap", false}}));
    return true;
  }
  const int64_t batch = n.Int("batch_dims", 0);
  n.Result(0, n.Make("gather", {{"X", {v}}, {"Index", {n.In(1)}}},
                     {{"axis", batch}, {"batch_dims", batch}, {"index_shape", true}}));
  return true;
}

bool LowerCountUpTo(NodeLowering& n) {
  const int v = n.Variable(0), before = n.NewVar(n.dtype(v));
  n.SetShape(before, n.shape(v));
  n.Emit("count_up_to", {{"ref", {v}}}, {{"limit", n.Int("limit", 1)}},
         {{"output", {before}}, {"ref_out", {v}}});
  n.Result(0, before);
  return true;
}

bool LowerSliceAssign(NodeLowering& n) {
  const int v = n.Variable(0);
  Attrs masks;
  for (const std::string_view name :
       {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
    masks.emplace_back(name, n.Int(name, 0));
  n.Emit("masked_slice_update",
         {{"input", {v}},
          {"begin", {n.In(1)}},
          {"end", {n.In(2)}},
          {"strides", {n.In(3)}},
          {"value", {n.In(4)}}},
         std::move(masks), {{"output", {v}}});
  n.ResultVariable(v);
  return true;
}

// Operators with variables by reference; those by resource begin with Resource.
constexpr HandlerEntry kByReference[] = {
    {"ApplyAdaMax", &LowerUpdate},
    {"ApplyAdadelta", &LowerUpdate},
    {"ApplyAdagrad", &LowerUpdate},
    {"ApplyAdagradV2", &LowerUpdate},
    {"ApplyAdam", &LowerUpdate},
    {"ApplyAdamWithAmsgrad", &LowerUpdate},
    {"ApplyAddSign", &LowerUpdate},
    {"ApplyCenteredRMSProp", &LowerUpdate},
    {"ApplyFtrl", &LowerUpdate},
    {"ApplyFtrlV2", &LowerUpdate},
    {"ApplyGradientDescent", &LowerUpdate},
    {"ApplyKerasMomentum", &LowerUpdate},
    {"ApplyMomentum", &LowerUpdate},
    {"ApplyPowerSign", &LowerUpdate},
    {"ApplyProximalAdagrad", &LowerUpdate},
    {"ApplyProximalGradientDescent", &LowerUpdate},
    {"ApplyRMSProp", &LowerUpdate},
    {"ScatterAdd", &LowerScatter},
    {"ScatterDiv", &LowerScatter},
    {"ScatterMax", &LowerScatter},
    {"ScatterMin", &LowerScatter},
    {"ScatterMul", &LowerScatter},
    {"ScatterNdAdd", &LowerScatter},
    {"ScatterNdMax", &LowerScatter},
    {"ScatterNdMin", &LowerScatter},
    {"ScatterNdSub", &LowerScatter},
    {"ScatterNdUpdate", &LowerScatter},
    {"ScatterSub", &LowerScatter},
    {"ScatterUpdate", &LowerScatter},
    {"SparseApplyAdadelta", &LowerUpdate},
    {"SparseApplyAdagrad", &LowerUpdate},
    {"SparseApplyAdagradV2", &LowerUpdate},
    {"SparseApplyCenteredRMSProp", &LowerUpdate},
    {"SparseApplyFtrl", &LowerUpdate},
    {"SparseApplyFtrlV2", &LowerUpdate},
    {"SparseApplyKerasMomentum", &LowerUpdate},
    {"SparseApplyMomentum", &LowerUpdate},
    {"SparseApplyProximalAdagrad", &LowerUpdate},
    {"SparseApplyProximalGradientDescent", &LowerUpdate},
    {"SparseApplyRMSProp", &LowerUpdate},
};

}  // namespace

std::span<const HandlerEntry> TrainHandlers() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (const HandlerEntry& e : kByReference) made.push_back("Resource" + std::string(e.op));
    return made;
  }();
  static const std::vector<HandlerEntry> entries = [] {
    std::vector<HandlerEntry> made{{"CountUpTo", &LowerCountUpTo},
                                   {"ResourceGather", &LowerResourceGather},
                                   {"ResourceGatherNd", &LowerResourceGather},
                                   {"ResourceStridedSliceAssign", &LowerSliceAssign},
                                   {"StridedSliceAssign", &LowerSliceAssign}};
    size_t at = 0;
    for (const HandlerEntry& e : kByReference) {
      made.push_back(e);
      made.push_back({names[at++], e.handler});
    }
    return made;
  }();
  return entries;
}

}  // namespace heddle::tensorflow
