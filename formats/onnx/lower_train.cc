// Optimizers of ai.onnx.preview.training: a node updates several tensors, each by an operator.
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// A node's inputs: the rate, the number of steps so far, then tensors, their gradients and what is
// remembered of earlier ones, each kind for all tensors.
struct Update {
  int x, gradient;
  std::vector<int> states;
};

// The tensors of a node with so many states for each; none where their number does not fit.
std::vector<Update> UpdatesOf(NodeLowering& n, size_t states) {
  const size_t all = n.inputs() < 2 ? 0 : n.inputs() - 2, count = all / (states + 2);
  const size_t outputs = n.node().outputs.size();
  if (count == 0 || all % (states + 2) != 0 || outputs != count * (states + 1)) {
    n.Problem("has ", all, " tensors and ", outputs, " outputs, expected ", states + 2, " and ",
              states + 1, " for each that it updates");
    return {};
  }
  std::vector<Update> updates;
  const double norm = n.Float("norm_coefficient", 0);
  for (size_t i = 0; i < count; ++i) {
    Update u{n.Required(2 + i), n.Required(2 + count + i), {}};
    if (norm != 0) u.gradient = n.Binary("elementwise_add", n.Times(u.x, norm), u.gradient);
    for (size_t k = 0; k < states; ++k) u.states.push_back(n.Required(2 + (k + 2) * count + i));
    updates.push_back(std::move(u));
  }
  return updates;
}

// The results of tensor `i` of `count`.
void Give(NodeLowering& n, size_t i, size_t count, const std::vector<int>& made) {
  for (size_t k = 0; k < made.size(); ++k) n.Result(k * count + i, made[k]);
}

// 1 after the first step, 0 in it.
int IsLater(NodeLowering& n, DType dtype) {
  const int step = n.Required(1);
  return n.Cast(n.Binary("greater_than", step, n.IntConstant(0)), dtype);
}

bool LowerAdagrad(NodeLowering& n) {
  const std::vector<Update> updates = UpdatesOf(n, 1);
  int rate = n.Required(0);
  if (const double decay = n.Float("decay_factor", 0); decay != 0) {
    const int steps = n.Cast(n.Required(1), n.dtype(rate));
    rate = n.Binary("elementwise_div", rate,
                    n.Unary("scale", steps, {{"scale", decay}, {"bias", 1.0}}));
  }
  for (size_t i = 0; i < updates.size(); ++i) {
    const Update& u = updates[i];
    Give(n, i, updates.size(),
         n.MakeMany("adagrad",
                    {{"Param", {u.x}},
                     {"Grad", {u.gradient}},
                     {"Moment", {u.states[0]}},
                     {"LearningRate", {rate}}},
                    {{"epsilon", n.Float("epsilon", 1e-6)}}, {"ParamOut", "MomentOut"}));
  }
  return true;
}

bool LowerAdam(NodeLowering& n) {
  const std::vector<Update> updates = UpdatesOf(n, 2);
  const double betas[] = {n.Float("alpha", 0.9), n.Float("beta", 0.999)};
  // The means are corrected by powers of their factors, but not in step 0.
  int powers[2];
  const int steps = n.Cast(n.Required(1), DType::kF64), later = IsLater(n, DType::kF64);
  for (size_t k = 0; k < 2; ++k)
    powers[k] =
        n.Binary("elementwise_mul", later,
                 n.Binary("elementwise_pow", n.FloatConstant(betas[k], DType::kF64), steps));
  const double after = n.Float("norm_coefficient_post", 0);
  for (size_t i = 0; i < updates.size(); ++i) {
    const Update& u = updates[i];
    std::vector<int> made = n.MakeMany("adam",
                                       {{"Param", {u.x}},
                                        {"Grad", {u.gradient}},
                                        {"Moment1", {u.states[0]}},
                                        {"Moment2", {u.states[1]}},
                                        {"Beta1Pow", {powers[0]}},
                                        {"Beta2Pow", {powers[1]}},
                                        {"LearningRate", {n.Required(0)}}},
                                       {{"beta1", betas[0]},
                                        {"beta2", betas[1]},
                                        {"epsilon", n.Float("epsilon", 1e-6)},
                                        {"epsilon_is_corrected", false},
                                        {"use_global_beta_pow", true}},
                                       {"ParamOut", "Moment1Out", "Moment2Out"});
    if (after != 0) made[0] = n.Times(made[0], 1 - after);
    Give(n, i, updates.size(), made);
  }
  return true;
}

// From the second step on the gradient counts by `beta` in the velocity, and whole in Nesterov's
// step.
bool LowerMomentum(NodeLowering& n) {
  const std::vector<Update> updates = UpdatesOf(n, 1);
  const std::string mode = n.Str("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    n.Problem("has the mode '", mode, "', expected standard or nesterov");
  const double alpha = n.Float("alpha", 0), beta = n.Float("beta", 0);
  const bool ahead = mode == "nesterov", whole = beta == 1;
  const int rate = n.Required(0);
  for (size_t i = 0; i < updates.size(); ++i) {
    const Update& u = updates[i];
    int part = u.gradient;
    if (!whole) {
      const int factor =
          n.Unary("scale", IsLater(n, n.dtype(u.gradient)), {{"scale", beta - 1}, {"bias", 1.0}});
      part = n.Binary("elementwise_mul", part, factor);
    }
    std::vector<int> made = n.MakeMany(
        "momentum",
        {{"Param", {u.x}}, {"Grad", {part}}, {"Velocity", {u.states[0]}}, {"LearningRate", {rate}}},
        {{"mu", alpha}, {"use_nesterov", ahead && whole}}, {"ParamOut", "VelocityOut"});
    if (ahead && !whole) {
      const int step = n.Binary("elementwise_add", u.gradient, n.Times(made[1], alpha));
      const int scaled = n.Binary("elementwise_mul", step, n.Cast(rate, n.dtype(u.x)));
      made[0] = n.Binary("elementwise_sub", u.x, scaled);
    }
    Give(n, i, updates.size(), made);
  }
  return true;
}

constexpr HandlerEntry kTrainEntries[] = {
    {"ai.onnx.preview.training", "Adagrad", &LowerAdagrad},
    {"ai.onnx.preview.training", "Adam", &LowerAdam},
    {"ai.onnx.preview.training", "Momentum", &LowerMomentum},
};

}  // namespace

std::span<const HandlerEntry> TrainHandlers() { return kTrainEntries; }

}  // namespace heddle::onnx
