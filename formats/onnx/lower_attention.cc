// Attention whose scores and probabilities graphs of the model change.
#include <cmath>

#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// Applies the graph of an attribute to a value. Without one, the value stays as it is.
int Modified(NodeLowering& n, std::string_view attribute, int v) {
  const Attribute* a = n.Find(attribute);
  if (a == nullptr || a->graph == nullptr) return v;
  if (a->graph->inputs.size() != 1 || a->graph->outputs.size() != 1) {
    n.Problem("needs a graph with one input and one output as '", attribute, "'");
    return v;
  }
  NameScope names;
  names.vars.emplace(a->graph->inputs[0].name, v);
  return n.LowerBody(*a->graph, &names, static_cast<int>(n.block()))[0];
}

// Every head of keys or values as often as there are heads of queries for it.
int RepeatHeads(NodeLowering& n, int v, int64_t heads) {
  const Shape& shape = n.shape(v);
  if (shape[1] == heads) return v;
  const int apart = n.Unsqueeze(v, {2});
  const int repeated =
      n.Unary("tile", apart, {{"repeat_times", Ints{1, 1, heads / shape[1], 1, 1}}});
  return n.Reshape(repeated, {0, heads, -1, shape[3]});
}

bool LowerFlexAttention(NodeLowering& n) {
  const int q = n.Required(0), k = n.Required(1), v = n.Required(2);
  for (int x : {q, k, v}) {
    if (n.rank(x) == 4 && n.shape(x)[1] > 0 && n.shape(x)[3] > 0 &&
        n.shape(q)[1] % n.shape(x)[1] == 0)
      continue;
    n.Problem("needs operands of rank 4 with heads and sizes of heads that are known");
    n.Result(0, q);
    return true;
  }
  const int64_t heads = n.shape(q)[1];
  const double scale = n.Find("scale") != nullptr
                           ? n.Float("scale", 1)
                           : 1 / std::sqrt(static_cast<double>(n.shape(q)[3]));
  const auto scaled = [&](int x) { return n.Unary("scale", x, {{"scale", std::sqrt(scale)}}); };
  int scores = n.Make("matmul_v2", {{"X", {scaled(q)}}, {"Y", {scaled(RepeatHeads(n, k, heads))}}},
                      {{"trans_x", false}, {"trans_y", true}});
  const int precision = static_cast<int>(n.Int("softmax_precision", 0));
  const DType wide = precision != kUndefinedType ? StorageOf(precision)
                     : n.dtype(q) == DType::kF64 ? DType::kF64
                                                 : DType::kF32;
  scores = Modified(n, "score_mod", n.Cast(scores, wide));
  const int weights = Modified(n, "prob_mod", n.Unary("softmax", scores, {{"axis", int64_t{-1}}}));
  const int values = n.Cast(RepeatHeads(n, v, heads), wide);
  const int made = n.Binary("matmul_v2", weights, values);
  n.Result(0, n.Cast(made, n.dtype(q)));
  return true;
}

constexpr HandlerEntry kAttentionEntries[] = {
    {"ai.onnx.preview", "FlexAttention", &LowerFlexAttention},
};

}  // namespace

std::span<const HandlerEntry> AttentionHandlers() { return kAttentionEntries; }

}  // namespace heddle::onnx
