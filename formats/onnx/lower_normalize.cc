// Normalisation and softmax.
#include <algorithm>

#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// Softmax along one axis from opset 13 on; before, over all axes from `axis` on together.
bool LowerSoftmaxBy(NodeLowering& n, const char* type) {
  const int x = n.Required(0);
  const bool old = n.opset() < 13;
  int64_t axis = n.Int("axis", old ? 1 : -1);
  const int rank = n.rank(x);
  if (rank == 0) return false;
  if (rank > 0 && n.shape(x).is_static() && n.shape(x).numel() == 0) {
    n.Result(0, n.Unary("assign", x));
    return true;
  }
  if (rank > 0 && axis < 0) axis += rank;
  if (!old || axis == -1 || (rank > 0 && axis == rank - 1)) {
    n.Result(0, n.Unary(type, x, {{"axis", axis}}));
    return true;
  }
  const int flat = n.Unary(type, n.Unary("flatten2", x, {{"axis", axis}}), {{"axis", int64_t{-1}}});
  if (n.shape(x).is_static()) {
    n.Result(0, n.Reshape(flat, Ints(n.shape(x).begin(), n.shape(x).end())));
  } else {
    // allowzero: a dimension of 0 in the shape means 0, not "as in `flat`".
    const int made = n.Make("onnx_reshape", {{"data", {flat}}, {"shape", {n.ShapeOf(x)}}},
                            {{"allowzero", int64_t{1}}}, "reshaped");
    n.draft_var(made).dtype = n.dtype(x);
    n.facts(made).shape = n.shape(x);
    n.Result(0, made);
  }
  return true;
}
bool LowerSoftmax(NodeLowering& n) { return LowerSoftmaxBy(n, "softmax"); }
bool LowerLogSoftmax(NodeLowering& n) { return LowerSoftmaxBy(n, "log_softmax"); }

bool LowerBatchNormalization(NodeLowering& n) {
  const int x = n.Required(0);
  const size_t outputs = n.node().outputs.size();
  bool more = false;
  for (size_t i = 1; i < outputs; ++i) more = more || n.Wants(i);
  const bool trains = n.opset() >= 14  ? n.Int("training_mode", 0) != 0
                      : n.opset() >= 7 ? more
                                       : n.Int("is_test", 0) == 0;
  if (n.Int("spatial", 1) == 0) return false;
  if (trains) {
    if (!NodeLowering::HasOperator("onnx_batch_normalization")) return false;
    std::vector<std::string_view> outs = {"Y"};
    if (more) outs = {"Y", "running_mean", "running_var"};
    const std::vector<int> made = n.MakeMany("onnx_batch_normalization",
                                             {{"X", {x}},
                                              {"scale", {n.Required(1)}},
                                              {"B", {n.Required(2)}},
                                              {"input_mean", {n.Required(3)}},
                                              {"input_var", {n.Required(4)}}},
                                             {{"training_mode", int64_t{1}},
                                              {"epsilon", n.Float("epsilon", 1e-5)},
                                              {"momentum", n.Float("momentum", 0.9)}},
                                             outs);
    for (size_t i = 0; i < made.size(); ++i) n.Result(i, made[i]);
    if (outputs > 5) n.Problem("has ", outputs, " outputs; at most 5 are expected");
    for (size_t i = made.size(); i < std::min<size_t>(outputs, 5); ++i)
      // The batch's statistics, which are not used afterwards.
      if (n.Wants(i)) n.Result(i, made[i - 2]);
    return true;
  }
  if (n.dtype(x) != DType::kF32 && n.dtype(x) != DType::kF64) return false;
  if (n.rank(x) < 2 || n.rank(x) > 5) return false;
  for (size_t i = 1; i < 5; ++i)
    if (n.dtype(n.Required(i)) != n.dtype(x)) return false;
  const bool plane = n.IsPlane(x);
  const int y = n.Make("batch_norm",
                       {{"X", {plane ? n.AsPlane(x) : x}},
                        {"Scale", {n.Required(1)}},
                        {"Bias", {n.Required(2)}},
                        {"Mean", {n.Required(3)}},
                        {"Variance", {n.Required(4)}}},
                       {{"is_test", true}, {"epsilon", n.Float("epsilon", 1e-5)}}, "Y");
  n.Result(0, plane ? n.AsLine(y) : y);
  return true;
}

bool LowerLayerNormalization(NodeLowering& n) {
  const int x = n.Required(0), scale = n.Required(1), bias = n.In(2);
  const int rank = n.rank(x);
  int64_t axis = n.Int("axis", -1);
  if (rank < 2 || n.Wants(1) || n.Wants(2) || n.dtype(x) != DType::kF32) return false;
  if (axis < 0) axis += rank;
  const bool is_last =
      axis == rank - 1 && n.rank(scale) == 1 && (bias == kNoDraft || n.rank(bias) == 1);
  const bool fits = is_last && n.shape(scale)[0] == n.shape(x)[rank - 1] && n.shape(scale)[0] > 0;
  if (!fits && !(is_last && n.facts(scale).data != nullptr && n.shape(scale)[0] > 1)) return false;
  n.Result(0, n.Make("layer_norm", {{"X", {x}}, {"Scale", {scale}}, {"Bias", {bias}}},
                     {{"begin_norm_axis", axis}, {"epsilon", n.Float("epsilon", 1e-5)}}, "Y"));
  return true;
}

bool LowerInstanceNormalization(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.rank(x) < 3 || n.opset() < 6) return false;
  n.Result(0, n.Make("instance_norm",
                     {{"X", {x}}, {"Scale", {n.Required(1)}}, {"Bias", {n.Required(2)}}},
                     {{"epsilon", n.Float("epsilon", 1e-5)}}, "Y"));
  return true;
}

bool LowerLrn(NodeLowering& n) {
  const int x = n.Required(0);
  const int64_t size = n.Int("size", 0);
  if (n.rank(x) != 4 || size < 1 || size % 2 == 0) return false;
  n.Result(0, n.Make("lrn", {{"X", {x}}},
                     {{"n", size},
                      {"alpha", n.Float("alpha", 1e-4) / static_cast<double>(size)},
                      {"beta", n.Float("beta", 0.75)},
                      {"k", n.Float("bias", 1)}}));
  return true;
}

// In inference Dropout returns its input, with a mask that keeps all elements.
bool LowerDropout(NodeLowering& n) {
  const int x = n.Required(0);
  bool trains = n.opset() < 7 && n.Int("is_test", 0) == 0;
  if (n.Has(2)) {
    const auto mode = n.ConstantInts(n.In(2));
    if (!mode || mode->size() != 1) return false;
    trains = (*mode)[0] != 0;
  }
  if (trains && n.opset() >= 12 && n.Has(1)) {
    const auto ratio = n.ConstantFloats(n.In(1));
    if (ratio && ratio->size() == 1 && (*ratio)[0] == 0) trains = false;
  }
  if (trains) return false;
  n.Result(0, x);
  if (!n.Wants(1)) return true;
  // Before opset 10 the mask has the input's type. Before opset 12 its value in inference is
  // undefined, and ONNX Runtime's is zero.
  const bool is_bool = n.opset() >= 10;
  const double kept = n.opset() >= 12 ? 1.0 : 0.0;
  const int mask =
      n.Unary("fill_any_like", x, {{"value", kept}, {"dtype", int64_t{is_bool ? 0 : -1}}});
  if (is_bool) n.SetType(mask, kBool);
  n.Result(1, mask);
  return true;
}

constexpr HandlerEntry kNormalizeEntries[] = {
    {"", "BatchNormalization", &LowerBatchNormalization},
    {"", "Dropout", &LowerDropout},
    {"", "InstanceNormalization", &LowerInstanceNormalization},
    {"", "LRN", &LowerLrn},
    {"", "LayerNormalization", &LowerLayerNormalization},
    {"", "LogSoftmax", &LowerLogSoftmax},
    {"", "Softmax", &LowerSoftmax},
};

}  // namespace

std::span<const HandlerEntry> NormalizeHandlers() { return kNormalizeEntries; }

}  // namespace heddle::onnx
