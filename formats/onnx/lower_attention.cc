// FlexAttention: attention whose scores and probabilities are modified by graphs of the model.
#include <cmath>

#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// Applies the graph in an attribute to a value; without one, returns the value.
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

// Dimension `i` of `v` as a vector of one element.
int DimensionOf(NodeLowering& n, int v, int64_t i) {
  return n.Make("slice", {{"Input", {n.ShapeOf(v)}}},
                {{"axes", Ints{0}}, {"starts", Ints{i}}, {"ends", Ints{i + 1}}});
}

// Whether the number of heads, axis 1, is known.
bool HeadsAreKnown(NodeLowering& n, int v) { return n.rank(v) == 4 && n.shape(v)[1] > 0; }

// Repeats each head of keys or values for all heads of queries that share it (grouped-query
// attention).
int RepeatHeads(NodeLowering& n, int v, int q) {
  const bool known = HeadsAreKnown(n, v) && HeadsAreKnown(n, q) && n.shape(v)[3] > 0;
  if (known && n.shape(v)[1] == n.shape(q)[1]) return v;
  const int apart = n.Unsqueeze(v, {2});
  if (known) {
    const int64_t heads = n.shape(q)[1], own = n.shape(v)[1];
    const int repeated = n.Unary("tile", apart, {{"repeat_times", Ints{1, 1, heads / own, 1, 1}}});
    return n.Reshape(repeated, {0, heads, -1, n.shape(v)[3]});
  }
  const auto joined = [&](std::vector<int> dims) {
    return n.Make("concat", {{"X", std::move(dims)}}, {{"axis", int64_t{0}}});
  };
  const auto dim = [&](int of, int64_t i) { return DimensionOf(n, of, i); };
  const int times = n.Binary("elementwise_floordiv", dim(q, 1), dim(v, 1));
  const int wanted = joined({dim(v, 0), dim(v, 1), times, dim(v, 2), dim(v, 3)});
  const int repeated =
      n.Make("expand_v2", {{"X", {apart}}, {"Shape", {wanted}}}, {{"mutual", true}});
  return n.Make("reshape2", {{"X", {repeated}},
                             {"Shape", {joined({dim(v, 0), dim(q, 1), dim(v, 2), dim(v, 3)})}}});
}

bool LowerFlexAttention(NodeLowering& n) {
  const int q = n.Required(0), k = n.Required(1), v = n.Required(2);
  for (int x : {q, k, v}) {
    const bool divides =
        !HeadsAreKnown(n, x) || !HeadsAreKnown(n, q) || n.shape(q)[1] % n.shape(x)[1] == 0;
    if ((n.rank(x) < 0 || n.rank(x) == 4) && n.dtype(x) != DType::kUnknown && divides) continue;
    n.Problem("needs operands of rank 4, whose heads divide those of the queries");
    n.Result(0, q);
    return true;
  }
  // Queries and keys are each multiplied by the square root of the scale.
  int root = kNoDraft;
  double factor = 1;
  if (n.Find("scale") != nullptr) {
    factor = std::sqrt(n.Float("scale", 1));
  } else if (n.rank(q) == 4 && n.shape(q)[3] > 0) {
    factor = std::pow(static_cast<double>(n.shape(q)[3]), -0.25);
  } else {
    const int size = n.Cast(DimensionOf(n, q, 3), DType::kF64);
    root = n.Cast(n.Unary("pow", size, {{"factor", -0.25}}), n.dtype(q));
  }
  const auto scaled = [&](int x) {
    return root == kNoDraft ? n.Times(x, factor) : n.Binary("elementwise_mul", x, root);
  };
  int scores = n.Make("matmul_v2", {{"X", {scaled(q)}}, {"Y", {scaled(RepeatHeads(n, k, q))}}},
                      {{"trans_x", false}, {"trans_y", true}});
  const int precision = static_cast<int>(n.Int("softmax_precision", 0));
  const DType wide = precision != kUndefinedType ? StorageOf(precision)
                     : n.dtype(q) == DType::kF64 ? DType::kF64
                                                 : DType::kF32;
  scores = Modified(n, "score_mod", n.Cast(scores, wide));
  const int weights = Modified(n, "prob_mod", n.Unary("softmax", scores, {{"axis", int64_t{-1}}}));
  const int values = n.Cast(RepeatHeads(n, v, q), wide);
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
