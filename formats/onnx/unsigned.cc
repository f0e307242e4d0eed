#include "formats/onnx/unsigned.h"

#include <algorithm>

#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

using formats::UnsignedEntry;
using formats::UnsignedUse;
using enum formats::UnsignedUse;

constexpr UnsignedEntry kOperators[] = {
    {"Abs", kOwn},
    {"Add", kWraps},
    {"ArgMax", kOrders},
    {"ArgMin", kOrders},
    {"BitCast", kOwn},
    {"BitShift", kOwn},
    {"BitwiseAnd", kMoves},
    {"BitwiseNot", kWraps},
    {"BitwiseOr", kMoves},
    {"BitwiseXor", kMoves},
    {"Cast", kOwn},
    {"CastLike", kOwn},
    {"CenterCropPad", kMoves},
    {"Clip", kOrders},
    {"Col2Im", kWraps},
    {"Compress", kMoves},
    {"Concat", kMoves},
    {"ConcatFromSequence", kMoves},
    {"Constant", kMoves},
    {"ConstantOfShape", kMoves},
    {"CumProd", kWraps},
    {"CumSum", kWraps},
    {"DepthToSpace", kMoves},
    {"DequantizeLinear", kOwn},
    {"Div", kOwn},
    {"Einsum", kWraps},
    {"Equal", kMoves},
    {"Erf", kValues},
    {"Expand", kMoves},
    {"EyeLike", kMoves},
    {"Flatten", kMoves},
    {"Gather", kMoves},
    {"GatherElements", kMoves},
    {"GatherND", kMoves},
    {"Gemm", kWraps},
    {"Greater", kOrders},
    {"GreaterOrEqual", kOrders},
    {"GridSample", kValues},
    {"Identity", kMoves},
    {"If", kMoves},
    {"Less", kOrders},
    {"LessOrEqual", kOrders},
    {"Loop", kMoves},
    {"MatMul", kWraps},
    {"Max", kOrders},
    {"Min", kOrders},
    {"Mod", kOwn},
    {"Mul", kWraps},
    {"NonZero", kMoves},
    {"OneHot", kOwn},
    {"Optional", kMoves},
    {"OptionalGetElement", kMoves},
    {"OptionalHasElement", kMoves},
    {"PRelu", kOwn},
    {"Pad", kMoves},
    {"Pow", kOwn},
    {"QuantizeLinear", kOwn},
    {"RandomNormalLike", kMoves},
    {"RandomUniformLike", kMoves},
    {"ReduceL1", kOwn},
    {"ReduceL2", kOwn},
    {"ReduceLogSum", kOwn},
    {"ReduceLogSumExp", kOwn},
    {"ReduceMax", kOrders},
    {"ReduceMean", kOwn},
    {"ReduceMin", kOrders},
    {"ReduceProd", kOwn},
    {"ReduceSum", kOwn},
    {"ReduceSumSquare", kOwn},
    {"Reshape", kMoves},
    {"Resize", kValues},
    {"ReverseSequence", kMoves},
    {"Scan", kMoves},
    {"Scatter", kMoves},
    {"ScatterElements", kOwn},
    {"ScatterND", kOwn},
    {"SequenceAt", kMoves},
    {"SequenceConstruct", kMoves},
    {"SequenceEmpty", kMoves},
    {"SequenceErase", kMoves},
    {"SequenceInsert", kMoves},
    {"SequenceLength", kMoves},
    {"SequenceMap", kMoves},
    {"Shape", kMoves},
    {"Shrink", kValues},
    {"Sign", kOwn},
    {"Size", kMoves},
    {"Slice", kMoves},
    {"SpaceToDepth", kMoves},
    {"Split", kMoves},
    {"SplitToSequence", kMoves},
    {"Squeeze", kMoves},
    {"Sub", kWraps},
    {"TensorScatter", kMoves},
    {"Tile", kMoves},
    {"TopK", kOrders},
    {"Transpose", kMoves},
    {"Trilu", kMoves},
    {"Unique", kOrders},
    {"Unsqueeze", kMoves},
    {"Upsample", kValues},
    {"Where", kMoves},
};

bool IsNearest(const NodeLowering& n) { return n.Str("mode", "nearest") == "nearest"; }

// OneHot of uint64: indices from 2^63 on must count as beyond any depth, not as negative.
bool LowerOneHotOf(NodeLowering& n) {
  if (n.type(n.In(0)) != kUint64) return false;
  const int far = n.IntConstant(std::numeric_limits<int64_t>::max());
  const int at = n.In(0);
  const int beyond = n.Binary("less_than", at, n.IntConstant(0));
  const int most = n.Make("where", {{"Condition", {beyond}}, {"X", {far}}, {"Y", {at}}});
  n.SetType(most, kInt64);
  const int made =
      n.Make("one_hot_v2", {{"X", {most}}, {"depth_tensor", {n.In(1)}}, {"Values", {n.In(2)}}},
             {{"axis", n.Int("axis", -1)}, {"out_of_range", std::string("off")}, {"wrap", true}});
  if (n.dtype(made) == n.dtype(n.In(2))) n.SetType(made, n.type(n.In(2)));
  n.Result(0, made);
  return true;
}

// Pow where only the exponents are unsigned.
bool LowerPowOf(NodeLowering& n) {
  const int x = n.In(0), y = n.In(1);
  if (n.type(y) != kUint64 || !IsFloat(n.dtype(x))) return false;
  const int exponents = n.Unary("cast_element_type", y,
                                {{"from", int64_t{kUint64}}, {"to", int64_t{TypeOf(n.dtype(x))}}});
  n.SetType(exponents, TypeOf(n.dtype(x)));
  n.Result(0, n.Binary("elementwise_pow", x, exponents));
  return true;
}

}  // namespace

std::span<const UnsignedEntry> UnsignedOperators() { return kOperators; }

std::optional<UnsignedUse> UnsignedUseOf(const NodeLowering& n, int type) {
  const std::string_view op = n.node().op_type;
  if (!n.node().domain.empty()) return std::nullopt;
  const UnsignedEntry* const entry = formats::FindUnsigned(kOperators, op);
  if (entry == nullptr) return std::nullopt;
  // Nearest-neighbour modes move elements; others compute weighted sums.
  if ((op == "Resize" || op == "Upsample" || op == "GridSample") && IsNearest(n)) return kMoves;
  if (op == "ScatterElements" || op == "ScatterND") {
    const std::string reduction = n.Str("reduction", "none");
    return reduction == "none"                        ? kMoves
           : reduction == "add" || reduction == "mul" ? kWraps
                                                      : kOrders;
  }
  return formats::UseFor(entry->use, type == kUint64);
}

bool LowerUnsigned(NodeLowering& n, int type) {
  const std::string_view op = n.node().op_type;
  if (op == "Abs" || op == "PRelu") {  // no element is negative
    n.Result(0, n.Unary("assign", n.In(0)));
    return true;
  }
  const bool wraps =
      op == "ReduceL1" || op == "ReduceProd" || op == "ReduceSum" || op == "ReduceSumSquare";
  if (wraps) n.SetUnsigned(kWraps, type);
  if (wraps || (type == kUint64 && (op == "ReduceMean" || op == "ReduceL2" ||
                                    op == "ReduceLogSum" || op == "ReduceLogSumExp"))) {
    LowerUnsignedReduction(n);
    return true;
  }
  if (type != kUint64) return false;
  if (op == "Sign") {
    const int x = n.In(0);
    const int made = n.Cast(n.Binary("not_equal", x, n.IntConstant(0)), DType::kI64);
    n.SetType(made, type);
    n.Result(0, made);
    return true;
  }
  if (op == "Div" || op == "Mod") {
    const int made = n.Make(op == "Div" ? "elementwise_div" : "elementwise_mod",
                            {{"X", {n.In(0)}}, {"Y", {n.In(1)}}}, {{"elem_type", int64_t{type}}});
    n.SetType(made, type);
    n.Result(0, made);
    return true;
  }
  if (op == "OneHot") return LowerOneHotOf(n);
  if (op == "Pow") return LowerPowOf(n);
  return false;
}

}  // namespace heddle::onnx
