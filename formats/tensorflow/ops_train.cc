// Operators that write variables, by reference or resource: optimizers and scatters.
#include <algorithm>

#include "core/op_registry.h"
#include "formats/tensorflow/ops_direct.h"

namespace heddle::tensorflow {
namespace {

// heddle's update operators have TensorFlow's slots in order, and an output <slot>_out for each
// variable that they write.
bool LowerApply(NodeLowering& n, std::string_view type) {
  const OpDef* def = FindOp(type);
  if (def == nullptr) return false;
  Ins ins;
  Outs outs;
  std::vector<int> written;
  for (size_t i = 0; i < def->inputs().size(); ++i) {
    const SlotDef& slot = def->inputs()[i];
    const bool state = def->FindOutput(slot.name + "_out") >= 0;
    if (i >= n.inputs()) {
      n.Problem("has ", n.inputs(), " inputs, expected one for '", slot.name, "', too");
      return true;
    }
    const int v = state ? n.Variable(i) : n.In(i);
    ins.emplace_back(slot.name, std::vector<int>{v});
    if (state) written.push_back(v);
  }
  size_t at = 0;
  for (const SlotDef& slot : def->outputs())
    if (at < written.size()) outs.emplace_back(slot.name, std::vector<int>{written[at++]});
  Attrs attrs;
  for (const AttrDef& a : def->attrs())
    if (std::holds_alternative<bool>(a.default_value) && n.Has(a.name))
      attrs.emplace_back(a.name, n.Bool(a.name, false));
  n.Emit(type, std::move(ins), std::move(attrs), std::move(outs));
  n.ResultVariable(written.front());
  return true;
}

// The operator's type by name: ResourceSparseApplyAdam is tf_sparse_apply_adam.
struct ApplyName {
  std::string_view op, type;
};
constexpr ApplyName kApply[] = {
    {"ApplyAdaMax", "tf_apply_ada_max"},
    {"ApplyAdadelta", "tf_apply_adadelta"},
    {"ApplyAdagrad", "tf_apply_adagrad"},
    {"ApplyAdagradV2", "tf_apply_adagrad_v2"},
    {"ApplyAdam", "tf_apply_adam"},
    {"ApplyAdamWithAmsgrad", "tf_apply_adam_with_amsgrad"},
    {"ApplyAddSign", "tf_apply_add_sign"},
    {"ApplyCenteredRMSProp", "tf_apply_centered_rms_prop"},
    {"ApplyFtrl", "tf_apply_ftrl"},
    {"ApplyFtrlV2", "tf_apply_ftrl_v2"},
    {"ApplyGradientDescent", "tf_apply_gradient_descent"},
    {"ApplyKerasMomentum", "tf_apply_keras_momentum"},
    {"ApplyMomentum", "tf_apply_momentum"},
    {"ApplyPowerSign", "tf_apply_power_sign"},
    {"ApplyProximalAdagrad", "tf_apply_proximal_adagrad"},
    {"ApplyProximalGradientDescent", "tf_apply_proximal_gradient_descent"},
    {"ApplyRMSProp", "tf_apply_rms_prop"},
    {"SparseApplyAdadelta", "tf_sparse_apply_adadelta"},
    {"SparseApplyAdagrad", "tf_sparse_apply_adagrad"},
    {"SparseApplyAdagradV2", "tf_sparse_apply_adagrad_v2"},
    {"SparseApplyCenteredRMSProp", "tf_sparse_apply_centered_rms_prop"},
    {"SparseApplyFtrl", "tf_sparse_apply_ftrl"},
    {"SparseApplyFtrlV2", "tf_sparse_apply_ftrl_v2"},
    {"SparseApplyKerasMomentum", "tf_sparse_apply_keras_momentum"},
    {"SparseApplyMomentum", "tf_sparse_apply_momentum"},
    {"SparseApplyProximalAdagrad", "tf_sparse_apply_proximal_adagrad"},
    {"SparseApplyProximalGradientDescent", "tf_sparse_apply_proximal_gradient_descent"},
    {"SparseApplyRMSProp", "tf_sparse_apply_rms_prop"},
};

std::string_view WithoutResource(std::string_view op) {
  constexpr std::string_view kPrefix = "Resource";
  return op.starts_with(kPrefix) ? op.substr(kPrefix.size()) : op;
}

bool LowerApplyByName(NodeLowering& n) {
  const std::string_view op = WithoutResource(n.op());
  for (const ApplyName& a : kApply)
    if (a.op == op) return LowerApply(n, a.type);
  return false;
}

// Scatters to rows, or to slices given by index tuples.
constexpr ApplyName kScatter[] = {
    {"ScatterAdd", "tf_scatter_add"},          {"ScatterDiv", "tf_scatter_div"},
    {"ScatterMax", "tf_scatter_max"},          {"ScatterMin", "tf_scatter_min"},
    {"ScatterMul", "tf_scatter_mul"},          {"ScatterSub", "tf_scatter_sub"},
    {"ScatterUpdate", "tf_scatter_update"},    {"ScatterNdAdd", "tf_tensor_scatter_add"},
    {"ScatterNdMax", "tf_tensor_scatter_max"}, {"ScatterNdMin", "tf_tensor_scatter_min"},
    {"ScatterNdSub", "tf_tensor_scatter_sub"}, {"ScatterNdUpdate", "tf_tensor_scatter_update"},
};

bool LowerScatter(NodeLowering& n) {
  const std::string_view op = WithoutResource(n.op());
  const auto* found = std::find_if(std::begin(kScatter), std::end(kScatter),
                                   [&](const ApplyName& a) { return a.op == op; });
  const bool rows = found->type.starts_with("tf_scatter");
  const int v = n.Variable(0);
  n.Emit(found->type,
         {{rows ? "ref" : "tensor", {v}}, {"indices", {n.In(1)}}, {"updates", {n.In(2)}}}, {},
         {{rows ? "output_ref" : "output", {v}}});
  n.ResultVariable(v);
  return true;
}

bool LowerResourceGather(NodeLowering& n) {
  const int v = n.Variable(0);
  if (n.op() == "ResourceGatherNd") {
    n.Result(0, n.Make("tf_gather_nd", {{"params", {v}}, {"indices", {n.In(1)}}}, {}, "output"));
    return true;
  }
  const int64_t batch = n.Int("batch_dims", 0);
  n.Result(0, n.Make("tf_gather_v2",
                     {{"params", {v}}, {"indices", {n.In(1)}}, {"axis", {n.IntConstant(batch)}}},
                     {{"batch_dims", batch}}, "output"));
  return true;
}

bool LowerCountUpTo(NodeLowering& n) {
  const int v = n.Variable(0), before = n.NewVar(n.dtype(v));
  n.SetShape(before, n.shape(v));
  n.Emit("tf_count_up_to", {{"ref", {v}}}, {{"limit", n.Int("limit", 1)}},
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
  n.Emit("tf_tensor_strided_slice_update",
         {{"input", {v}},
          {"begin", {n.In(1)}},
          {"end", {n.In(2)}},
          {"strides", {n.In(3)}},
          {"value", {n.In(4)}}},
         std::move(masks), {{"output", {v}}});
  n.ResultVariable(v);
  return true;
}

}  // namespace

std::span<const HandlerEntry> TrainHandlers() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (const ApplyName& a : kApply) made.push_back("Resource" + std::string(a.op));
    for (const ApplyName& a : kScatter) made.push_back("Resource" + std::string(a.op));
    return made;
  }();
  static const std::vector<HandlerEntry> entries = [] {
    std::vector<HandlerEntry> made{{"CountUpTo", &LowerCountUpTo},
                                   {"ResourceGather", &LowerResourceGather},
                                   {"ResourceGatherNd", &LowerResourceGather},
                                   {"ResourceStridedSliceAssign", &LowerSliceAssign},
                                   {"StridedSliceAssign", &LowerSliceAssign}};
    for (const ApplyName& a : kApply) made.push_back({a.op, &LowerApplyByName});
    for (const ApplyName& a : kScatter) made.push_back({a.op, &LowerScatter});
    for (const std::string& name : names)
      made.push_back(
          {name, name.find("Scatter") != std::string::npos ? &LowerScatter : &LowerApplyByName});
    return made;
  }();
  return entries;
}

}  // namespace heddle::tensorflow
