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
  n.Result(0, One(n, "RMSNormalization", {sum, n.Required(2)}, Taken(n, {"epsilon"}), 23));
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

// Elements of 4 bits lie two in a byte, the first one in the lower bits, along the last axis.
int Unpacked(NodeLowering& n, int bytes) {
  const int wide = n.Cast(bytes, DType::kI32), sixteen = n.IntConstant(16, DType::kI32);
  const int high = n.Binary("elementwise_floordiv", wide, sixteen);
  const int low = n.Binary("elementwise_mod", wide, sixteen);
  return n.Make("stack", {{"X", {low, high}}}, {{"axis", int64_t{-1}}}, "Y");
}

// A product with the transpose of a matrix of 4 or 8 bits: blocks along its rows have a factor and
// a zero point.
bool LowerMatMulNBits(NodeLowering& n) {
  const int x = n.Required(0);
  const int64_t rows = n.Int("N", 0), columns = n.Int("K", 0), bits = n.Int("bits", 4);
  const int64_t block = n.Int("block_size", 0);
  if (rows < 1 || columns < 1 || block < 16 || (block & (block - 1)) != 0 ||
      (bits != 4 && bits != 8) || n.Has(4)) {
    n.Problem("has N ", rows, ", K ", columns, ", block_size ", block, ", bits ", bits,
              n.Has(4) ? " and g_idx" : "",
              "; 4 or 8 bits in blocks of a power of two are read, without g_idx");
    n.Result(0, x);
    return true;
  }
  const int64_t blocks = (columns + block - 1) / block;
  const auto in_blocks = [&](int bytes, int64_t width) {  // as int32
    const int all = bits == 4 ? Unpacked(n, bytes) : n.Cast(bytes, DType::kI32);
    return n.Reshape(all, {rows, -1, width});
  };
  const int type_of = n.Required(2);  // the factors, of the product's type
  const DType dtype = n.dtype(type_of);
  int matrix = in_blocks(n.Required(1), block);
  int zero = kNoDraft;
  if (!n.Has(3)) {
    zero = n.IntConstant(int64_t{1} << (bits - 1), DType::kI32);
  } else if (n.dtype(n.In(3)) == DType::kU8) {
    const int64_t packed = bits == 4 ? (blocks + 1) / 2 : blocks;  // bytes of a row
    zero = One(n, "Slice",
               {in_blocks(n.Reshape(n.In(3), {rows, packed}), 1), n.IntsConstant({0}),
                n.IntsConstant({blocks}), n.IntsConstant({1})});
  }
  const int factors = n.Reshape(type_of, {rows, blocks, 1});
  if (zero != kNoDraft) {
    matrix = n.Cast(n.Binary("elementwise_sub", matrix, zero), dtype);
  } else {
    matrix =
        n.Binary("elementwise_sub", n.Cast(matrix, dtype), n.Reshape(n.In(3), {rows, blocks, 1}));
  }
  matrix = n.Reshape(n.Binary("elementwise_mul", matrix, factors), {rows, blocks * block});
  if (blocks * block != columns)
    matrix = One(n, "Slice",
                 {matrix, n.IntsConstant({0}), n.IntsConstant({columns}), n.IntsConstant({1})});
  int y = n.Make("matmul_v2", {{"X", {x}}, {"Y", {matrix}}}, {{"trans_y", true}});
  if (n.Has(5)) y = n.Binary("elementwise_add", y, n.In(5));
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
