// Operators of com.microsoft that can be said in operators of ONNX itself: older names of these,
// and several of them in one. docs/com-microsoft.md lists the domain.
#include <algorithm>
#include <array>

#include "core/error.h"
#include "formats/onnx/handlers.h"
#include "formats/onnx/own_nodes.h"

namespace heddle::onnx {
namespace {

int Vector(NodeLowering& n, int v) { return One(n, "Reshape", {v, n.IntsConstant({-1})}); }

bool LowerExpandDims(NodeLowering& n) {
  n.Result(0, One(n, "Unsqueeze", {n.Required(0), Vector(n, n.Required(1))}));
  return true;
}

bool LowerGatherNd(NodeLowering& n) {
  n.Result(0, One(n, "GatherND", {n.Required(0), n.Required(1)}));
  return true;
}

bool LowerGridSample(NodeLowering& n) {
  n.Result(0, One(n, "GridSample", {n.Required(0), n.Required(1)},
                  Taken(n, {"align_corners", "mode", "padding_mode"})));
  return true;
}

bool LowerPadAround(NodeLowering& n) {
  n.Result(0,
           One(n, "Pad", {n.Required(0), Vector(n, n.Required(1)), n.In(2)}, Taken(n, {"mode"})));
  return true;
}

bool LowerRange(NodeLowering& n) {
  const int start = n.Required(0);
  int step = n.In(2);
  if (step == kNoDraft) step = One(n, "CastLike", {n.IntConstant(1), start});
  n.Result(0, One(n, "Range", {start, n.Required(1), step}));
  return true;
}

bool LowerTriangle(NodeLowering& n) {
  n.Result(0, One(n, "Trilu", {n.Required(0), n.In(1)}, Taken(n, {"upper"})));
  return true;
}

bool LowerInverse(NodeLowering& n) {
  const int x = n.Required(0);
  const int wide = n.dtype(x) == DType::kF16 ? n.Cast(x, DType::kF32) : x;
  const int made = n.Make("inverse", {{"Input", {wide}}}, {}, "Output");
  n.Result(0, wide == x ? made : n.Cast(made, DType::kF16));
  return true;
}

// In the order of their first occurrence.
bool LowerUniqueItems(NodeLowering& n) {
  const auto made = Several(n, "Unique", {n.Required(0)}, {IntAttribute("sorted", 0)}, 4);
  n.Result(0, made[0]);
  if (n.Wants(1)) n.Result(1, made[2]);
  if (n.Wants(2)) n.Result(2, made[3]);
  return true;
}

bool LowerFusedGemm(NodeLowering& n) {
  int y = One(n, "Gemm", {n.Required(0), n.Required(1), n.In(2)},
              Taken(n, {"alpha", "beta", "transA", "transB"}));
  static constexpr std::pair<std::string_view, std::string_view> kParameters[] = {
      {"activation_alpha", "alpha"}, {"activation_beta", "beta"}, {"activation_gamma", "gamma"}};
  Attributes attributes;
  for (const auto& [name, meant] : kParameters)
    if (const Attribute* a = n.Find(name)) attributes.push_back(FloatAttribute(meant, a->f));
  static constexpr std::array kKnown = {
      "Relu", "LeakyRelu", "Tanh",     "Sigmoid",  "HardSigmoid",
      "Elu",  "Selu",      "Softplus", "Softsign", "ThresholdedRelu"};
  const std::string activation = n.Str("activation", "");
  const auto known = std::find(kKnown.begin(), kKnown.end(), activation);
  if (known == kKnown.end())
    n.Problem("has the activation '", activation, "', which heddle does not know");
  else
    y = One(n, *known, {y}, std::move(attributes));
  n.Result(0, y);
  return true;
}

bool LowerSkipRmsNormalization(NodeLowering& n) {
  int sum = n.Binary("elementwise_add", n.Required(0), n.Required(1));
  if (n.Has(3)) sum = n.Binary("elementwise_add", sum, n.In(3));
  // ONNX's own operator has another default.
  const auto epsilon = FloatAttribute("epsilon", n.Float("epsilon", 1e-12));
  n.Result(0, One(n, "RMSNormalization", {sum, n.Required(2)}, {epsilon}, 23));
  if (n.Wants(3)) n.Result(3, sum);
  return true;
}

// The former name of FusedMatMul.
bool LowerTransposeMatMul(NodeLowering& n) {
  int y = n.Make("matmul_v2", {{"X", {n.Required(0)}}, {"Y", {n.Required(1)}}},
                 {{"trans_x", n.Int("transA", 0) != 0}, {"trans_y", n.Int("transB", 0) != 0}});
  if (const double alpha = n.Float("alpha", 1); alpha != 1) y = n.Times(y, alpha);
  n.Result(0, y);
  return true;
}

// Distances between the rows of two matrices.
bool LowerCDist(NodeLowering& n) {
  const int a = n.Unsqueeze(n.Required(0), {1}), b = n.Unsqueeze(n.Required(1), {0});
  const int difference = n.Binary("elementwise_sub", a, b);
  const int squares =
      One(n, "ReduceSumSquare", {difference, n.IntsConstant({2})}, {IntAttribute("keepdims", 0)});
  const std::string metric = n.Str("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean")
    n.Problem("has the metric '", metric, "'; euclidean or sqeuclidean is expected");
  n.Result(0, metric == "euclidean" ? n.Unary("sqrt", squares) : squares);
  return true;
}

// A product with the transpose of a matrix of 2, 4 or 8 bits: blocks along its rows have a factor
// and a zero point.
bool LowerMatMulNBits(NodeLowering& n) {
  const int x = n.Required(0);
  const int64_t columns = n.Int("N", 0), terms = n.Int("K", 0), bits = n.Int("bits", 4);
  const int64_t block = n.Int("block_size", 0);
  if (columns < 1 || terms < 1 || block < 1 || (bits != 2 && bits != 4 && bits != 8) ||
      block * bits % 8 != 0 || n.Has(4)) {
    n.Problem("has N ", columns, ", K ", terms, ", block_size ", block, ", bits ", bits,
              n.Has(4) ? " and g_idx" : "",
              "; 2, 4 or 8 bits in blocks of whole bytes are read, without g_idx");
    n.Result(0, x);
    return true;
  }
  const int y =
      n.Make("nbit_matmul",
             {{"X", {x}},
              {"W", {n.Required(1)}},
              {"Scale", {n.Required(2)}},
              {"Zero", {n.In(3)}},
              {"Bias", {n.In(5)}}},
             {{"terms", terms}, {"columns", columns}, {"bits", bits}, {"block_size", block}});
  n.Result(0, y);
  return true;
}

bool LowerQLinearWhere(NodeLowering& n) {
  const auto real = [&](size_t at) {
    return One(n, "DequantizeLinear", {n.Required(at), n.Required(at + 1), n.In(at + 2)});
  };
  const int chosen = One(n, "Where", {n.Required(0), real(1), real(4)});
  n.Result(0, One(n, "QuantizeLinear", {chosen, n.Required(7), n.In(8)}));
  return true;
}

// Applies `op` to the dequantised input 0 (scale and zero point: inputs 1 and 2), and quantises the
// result by inputs 3 and 4.
bool LowerQLinearFunction(NodeLowering& n, std::string_view op, Attributes attributes) {
  const int x = One(n, "DequantizeLinear", {n.Required(0), n.Required(1), n.In(2)});
  const int y = One(n, op, {x}, std::move(attributes));
  n.Result(0, One(n, "QuantizeLinear", {y, n.Required(3), n.In(4)}));
  return true;
}
bool LowerQLinearSoftmax(NodeLowering& n) {
  constexpr int64_t kAlongOneAxis = 13;
  if (n.Int("opset", kAlongOneAxis) < kAlongOneAxis && n.Int("axis", -1) != -1)
    n.Problem("has opset ", n.Int("opset", 0), " and axis ", n.Int("axis", -1),
              "; before opset 13 only the last axis is read");
  return LowerQLinearFunction(n, "Softmax", Taken(n, {"axis"}));
}
bool LowerQLinearAveragePool(NodeLowering& n) {
  if (n.Int("channels_last", 0) != 0) n.Problem("has channels_last, which heddle does not read");
  return LowerQLinearFunction(
      n, "AveragePool",
      Taken(n, {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"}));
}

// Words, places and segments of a text as sums of rows, normalised.
bool LowerEmbedLayerNormalization(NodeLowering& n) {
  const int ids = n.Required(0);
  const auto rows = [&](size_t table, int at) {
    return One(n, "Gather", {n.Required(table), at}, {IntAttribute("axis", 0)});
  };
  const int shape = n.ShapeOf(ids);
  const auto dim = [&](int64_t k) {
    return One(n, "Gather", {shape, n.IntConstant(k)}, {IntAttribute("axis", 0)});
  };
  int places = n.In(8);
  if (places == kNoDraft) places = One(n, "Range", {n.IntConstant(0), dim(1), n.IntConstant(1)});
  int sum = n.Binary("elementwise_add", rows(2, ids), rows(3, places));
  if (n.Has(1) && n.Has(4)) sum = n.Binary("elementwise_add", sum, rows(4, n.In(1)));
  n.Result(0,
           One(n, "LayerNormalization", {sum, n.Required(5), n.Required(6)},
               {IntAttribute("axis", -1), FloatAttribute("epsilon", n.Float("epsilon", 1e-12))}));
  if (n.Wants(1)) {
    int counts = kNoDraft;
    if (n.Has(7))
      counts = One(n, "ReduceSum", {n.In(7), n.IntsConstant({1})}, {IntAttribute("keepdims", 0)});
    else
      counts = n.Cast(One(n, "Expand", {n.IntConstant(0), Vector(n, dim(0))}), DType::kI32);
    n.Result(1, counts);
  }
  if (n.Wants(2)) n.Result(2, sum);
  return true;
}

// A pool of bytes whose channels lie behind.
bool LowerNhwcMaxPool(NodeLowering& n) {
  const int x = n.Required(0);
  const int rank = n.rank(x);
  if (rank < 3) {
    n.Problem("has an operand of ", rank < 0 ? "unknown rank" : "too few dimensions");
    n.Result(0, x);
    return true;
  }
  Ints forth = {0, rank - 1}, back = {0};
  for (int d = 1; d < rank - 1; ++d) forth.push_back(d);
  for (int d = 2; d < rank; ++d) back.push_back(d);
  back.push_back(1);
  const int planes = One(n, "Transpose", {x}, {IntsAttribute("perm", forth)});
  const int pooled =
      One(n, "MaxPool", {planes},
          Taken(n, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"}));
  n.Result(0, One(n, "Transpose", {pooled}, {IntsAttribute("perm", back)}));
  return true;
}

constexpr HandlerEntry kMicrosoftEntries[] = {
    {"com.microsoft", "CDist", &LowerCDist},
    {"com.microsoft", "EmbedLayerNormalization", &LowerEmbedLayerNormalization},
    {"com.microsoft", "ExpandDims", &LowerExpandDims},
    {"com.microsoft", "FusedGemm", &LowerFusedGemm},
    {"com.microsoft", "GatherND", &LowerGatherNd},
    {"com.microsoft", "GridSample", &LowerGridSample},
    {"com.microsoft", "Inverse", &LowerInverse},
    {"com.microsoft", "MatMulNBits", &LowerMatMulNBits},
    {"com.microsoft", "NhwcMaxPool", &LowerNhwcMaxPool},
    {"com.microsoft", "Pad", &LowerPadAround},
    {"com.microsoft", "QLinearAveragePool", &LowerQLinearAveragePool},
    {"com.microsoft", "QLinearSoftmax", &LowerQLinearSoftmax},
    {"com.microsoft", "QLinearWhere", &LowerQLinearWhere},
    {"com.microsoft", "Range", &LowerRange},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", &LowerSkipRmsNormalization},
    {"com.microsoft", "TransposeMatMul", &LowerTransposeMatMul},
    {"com.microsoft", "Trilu", &LowerTriangle},
    {"com.microsoft", "Unique", &LowerUniqueItems},
};

}  // namespace

std::span<const HandlerEntry> MicrosoftHandlers() { return kMicrosoftEntries; }

}  // namespace heddle::onnx
