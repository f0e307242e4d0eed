// Operators that write variables, by reference or resource: optimizers and scatters.
#include <algorithm>

#include "core/op_registry.h"
#include "formats/tensorflow/direct/ops_direct.h"

namespace heddle::tensorflow {
namespace {

// An update: heddle's slots in TensorFlow's order, those of variables with a star, and attributes
// that this form has. A word name:ours is a flag of the node's.
struct Update {
  std::string_view op, type, slots, attributes;
};
constexpr Update kUpdates[] = {
    {"ApplyAdaMax", "adamax",
     "Param* Moment* InfNorm* Beta1Pow LearningRate Beta1Tensor Beta2Tensor EpsilonTensor Grad",
     "-epsilon_in_norm"},
    {"ApplyAdadelta", "adadelta",
     "Param* AvgSquaredGrad* AvgSquaredUpdate* LearningRate RhoTensor EpsilonTensor Grad", ""},
    {"ApplyAdagrad", "adagrad", "Param* Moment* LearningRate Grad",
     "epsilon=0 update_slots:update_moment"},
    {"ApplyAdagradV2", "adagrad", "Param* Moment* LearningRate EpsilonTensor Grad",
     "update_slots:update_moment"},
    {"ApplyAdam", "adam",
     "Param* Moment1* Moment2* Beta1Pow Beta2Pow LearningRate Beta1Tensor Beta2Tensor "
     "EpsilonTensor Grad",
     "-epsilon_is_corrected +use_global_beta_pow use_nesterov:use_nesterov"},
    {"ApplyAdamWithAmsgrad", "adam",
     "Param* Moment1* Moment2* Moment2Max* Beta1Pow Beta2Pow LearningRate Beta1Tensor "
     "Beta2Tensor EpsilonTensor Grad",
     "-epsilon_is_corrected +use_global_beta_pow"},
    {"ApplyAddSign", "add_sign", "Param* Moment* LearningRate Alpha SignDecay Beta Grad", ""},
    {"ApplyCenteredRMSProp", "rmsprop",
     "Param* MeanGrad* MeanSquare* Moment* LearningRate DecayTensor MomentumTensor EpsilonTensor "
     "Grad",
     "+centered"},
    {"ApplyFtrl", "ftrl",
     "Param* SquaredAccumulator* LinearAccumulator* Grad LearningRate L1Tensor L2Tensor "
     "LrPowerTensor",
     "penalty_offset=0 multiply_linear_by_lr:linear_times_lr"},
    {"ApplyFtrlV2", "ftrl",
     "Param* SquaredAccumulator* LinearAccumulator* Grad LearningRate L1Tensor L2Tensor "
     "L2ShrinkageTensor LrPowerTensor",
     "penalty_offset=0 multiply_linear_by_lr:linear_times_lr"},
    {"ApplyGradientDescent", "sgd", "Param* LearningRate Grad", ""},
    {"ApplyKerasMomentum", "momentum", "Param* Velocity* LearningRate Grad MuTensor",
     "+velocity_of_steps use_nesterov:use_nesterov"},
    {"ApplyMomentum", "momentum", "Param* Velocity* LearningRate Grad MuTensor",
     "use_nesterov:use_nesterov"},
    {"ApplyPowerSign", "power_sign", "Param* Moment* LearningRate LogBase SignDecay Beta Grad", ""},
    {"ApplyProximalAdagrad", "proximal_adagrad",
     "Param* Moment* LearningRate L1Tensor L2Tensor Grad", ""},
    {"ApplyProximalGradientDescent", "proximal_gd", "Param* LearningRate L1Tensor L2Tensor Grad",
     ""},
    {"ApplyRMSProp", "rmsprop",
     "Param* MeanSquare* Moment* LearningRate DecayTensor MomentumTensor EpsilonTensor Grad", ""},
};
template <typename Fn>
void ForWords(std::string_view words, Fn&& fn) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    fn(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

std::string_view WithoutResource(std::string_view op) {
  constexpr std::string_view kPrefix = "Resource";
  return op.starts_with(kPrefix) ? op.substr(kPrefix.size()) : op;
}

Attrs AttributesOf(const NodeLowering& n, const Update& update) {
  Attrs attrs;
  ForWords(update.attributes, [&](std::string_view word) {
    if (const size_t number = word.find('='); number != word.npos)
      attrs.emplace_back(word.substr(0, number), 0.0);
    else if (word[0] == '+' || word[0] == '-')
      attrs.emplace_back(word.substr(1), word[0] == '+');
    else if (const size_t ours = word.find(':'); n.Has(word.substr(0, ours)))
      attrs.emplace_back(word.substr(ours + 1), n.Bool(word.substr(0, ours), false));
  });
  return attrs;
}

// The Sparse form has the rows of indices, which stand behind the gradient.
bool LowerUpdate(NodeLowering& n) {
  constexpr std::string_view kSparse = "Sparse";
  std::string_view name = WithoutResource(n.op());
  const bool rows = name.starts_with(kSparse);
  if (rows) name.remove_prefix(kSparse.size());
  const Update& update = *std::find_if(std::begin(kUpdates), std::end(kUpdates),
                                       [&](const Update& u) { return u.op == name; });
  const OpDef* def = FindOp(update.type);
  if (def == nullptr) return false;
  Attrs attrs = AttributesOf(n, update);
  if (rows) attrs.emplace_back("each_row", true);
  Ins ins;
  Outs outs;
  size_t at = 0;
  const auto add = [&](std::string_view slot, bool state) {
    if (at >= n.inputs()) {
      n.Problem("has ", n.inputs(), " inputs, expected one for '", slot, "', too");
      return;
    }
    const int v = state ? n.Variable(at) : n.In(at);
    ++at;
    ins.emplace_back(slot, std::vector<int>{v});
    if (!state) return;
    for (const OpDef::SlotPair& pair : def->inplace())
      if (def->inputs()[static_cast<size_t>(pair.in)].name == slot)
        outs.emplace_back(def->outputs()[static_cast<size_t>(pair.out)].name, std::vector<int>{v});
  };
  ForWords(update.slots, [&](std::string_view word) {
    const bool state = word.back() == '*';
    if (state) word.remove_suffix(1);
    add(word, state);
    if (rows && word == "Grad") add("GradRows", false);
  });
  if (outs.empty()) return true;
  const int variable = outs.front().second.front();
  n.Emit(update.type, std::move(ins), std::move(attrs), std::move(outs));
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
