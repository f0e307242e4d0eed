#include <algorithm>

#include "formats/tensorflow/direct/ops_direct.h"
#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {
namespace {

using formats::UnsignedEntry;
using formats::UnsignedUse;
using enum formats::UnsignedUse;

constexpr UnsignedEntry kOperators[] = {
    {"AccumulateNV2", kWraps},
    {"Add", kWraps},
    {"AddN", kWraps},
    {"AddV2", kWraps},
    {"ApproximateEqual", kValues},
    {"ArgMax", kOrders},
    {"ArgMin", kOrders},
    {"Assert", kMoves},
    {"Assign", kMoves},
    {"AssignAdd", kWrapsInPlace},
    {"AssignAddVariableOp", kWrapsInPlace},
    {"AssignSub", kWrapsInPlace},
    {"AssignSubVariableOp", kWrapsInPlace},
    {"AssignVariableOp", kMoves},
    {"BatchMatMul", kWraps},
    {"BatchMatMulV2", kWraps},
    {"BatchMatMulV3", kWraps},
    {"BatchToSpace", kMoves},
    {"BatchToSpaceND", kMoves},
    {"BiasAdd", kWraps},
    {"BiasAddGrad", kWraps},
    {"BiasAddV1", kWraps},
    {"Bitcast", kMoves},
    {"BitwiseAnd", kMoves},
    {"BitwiseOr", kMoves},
    {"BitwiseXor", kMoves},
    {"BroadcastTo", kMoves},
    {"Case", kMoves},
    {"Cast", kOwn},
    {"ClipByValue", kOrders},
    {"Concat", kMoves},
    {"ConcatV2", kMoves},
    {"ConjugateTranspose", kMoves},
    {"CropAndResize", kValues},
    {"Cross", kWraps},
    {"Cumprod", kWraps},
    {"Cumsum", kWraps},
    {"DeepCopy", kMoves},
    {"DepthToSpace", kMoves},
    {"Dilation2D", kValues},
    {"Div", kOwn},
    {"DynamicPartition", kMoves},
    {"DynamicStitch", kMoves},
    {"Einsum", kWraps},
    {"EnsureShape", kMoves},
    {"Enter", kMoves},
    {"Equal", kMoves},
    {"EuclideanNorm", kOwn},
    {"Exit", kMoves},
    {"ExpandDims", kMoves},
    {"ExtractImagePatches", kMoves},
    {"Fill", kMoves},
    {"FloorDiv", kOwn},
    {"FloorMod", kOwn},
    {"Gather", kMoves},
    {"GatherNd", kMoves},
    {"GatherV2", kMoves},
    {"Greater", kOrders},
    {"GreaterEqual", kOrders},
    {"GuaranteeConst", kMoves},
    {"Identity", kMoves},
    {"IdentityN", kMoves},
    {"If", kMoves},
    {"InitializeTable", kMoves},
    {"InitializeTableV2", kMoves},
    {"Invert", kWraps},
    {"IsVariableInitialized", kMoves},
    {"LeftShift", kWraps},
    {"Less", kOrders},
    {"LessEqual", kOrders},
    {"ListDiff", kMoves},
    {"LookupTableFind", kMoves},
    {"LookupTableFindV2", kMoves},
    {"LookupTableImport", kMoves},
    {"LookupTableImportV2", kMoves},
    {"LookupTableInsert", kMoves},
    {"LookupTableInsertV2", kMoves},
    {"LowerBound", kOrders},
    {"MatMul", kWraps},
    {"MatrixBandPart", kMoves},
    {"MatrixDiag", kMoves},
    {"MatrixDiagPart", kMoves},
    {"MatrixDiagPartV3", kMoves},
    {"MatrixDiagV3", kMoves},
    {"MatrixSetDiag", kMoves},
    {"MatrixSetDiagV3", kMoves},
    {"Max", kOrders},
    {"MaxPool", kOrders},
    {"MaxPoolGrad", kValues},
    {"MaxPoolV2", kOrders},
    {"MaxPoolWithArgmax", kValues},
    {"Maximum", kOrders},
    {"Mean", kOwn},
    {"Merge", kMoves},
    {"Min", kOrders},
    {"Minimum", kOrders},
    {"MirrorPad", kMoves},
    {"MirrorPadGrad", kWraps},
    {"Mod", kOwn},
    {"Mul", kWraps},
    {"Multinomial", kValues},
    {"NextIteration", kMoves},
    {"NotEqual", kMoves},
    {"NthElement", kOrders},
    {"OneHot", kMoves},
    {"OnesLike", kMoves},
    {"Pack", kMoves},
    {"Pad", kMoves},
    {"PadV2", kMoves},
    {"ParallelDynamicStitch", kMoves},
    {"PartitionedCall", kMoves},
    {"Placeholder", kMoves},
    {"PlaceholderWithDefault", kMoves},
    {"PopulationCount", kMoves},
    {"PreventGradient", kMoves},
    {"Print", kMoves},
    {"PrintV2", kMoves},
    {"Prod", kWraps},
    {"RandomShuffle", kMoves},
    {"Range", kOrders},
    {"Rank", kMoves},
    {"ReadVariableOp", kMoves},
    {"RealDiv", kOwn},
    {"RefIdentity", kMoves},
    {"RefSwitch", kMoves},
    {"Relu", kOwn},
    {"Relu6", kOwn},
    {"Relu6Grad", kValues},
    {"ReluGrad", kValues},
    {"Reshape", kMoves},
    {"ResizeArea", kValues},
    {"ResizeBicubic", kValues},
    {"ResizeBilinear", kValues},
    {"ResizeNearestNeighbor", kMoves},
    {"ResourceGather", kMoves},
    {"ResourceScatterAdd", kWrapsInPlace},
    {"ResourceScatterMul", kWrapsInPlace},
    {"ResourceScatterSub", kWrapsInPlace},
    {"ResourceScatterUpdate", kMoves},
    {"ResourceStridedSliceAssign", kMoves},
    {"Reverse", kMoves},
    {"ReverseSequence", kMoves},
    {"ReverseV2", kMoves},
    {"RightShift", kOwn},
    {"Roll", kMoves},
    {"SaveV2", kMoves},
    {"ScatterAdd", kWrapsInPlace},
    {"ScatterDiv", kValues},
    {"ScatterMul", kWrapsInPlace},
    {"ScatterNd", kWraps},
    {"ScatterNdAdd", kWrapsInPlace},
    {"ScatterNdMax", kValues},
    {"ScatterNdMin", kValues},
    {"ScatterNdNonAliasingAdd", kWraps},
    {"ScatterNdSub", kWrapsInPlace},
    {"ScatterNdUpdate", kMoves},
    {"ScatterSub", kWrapsInPlace},
    {"ScatterUpdate", kMoves},
    {"SegmentMax", kOwn},
    {"SegmentMean", kValues},
    {"SegmentMin", kOwn},
    {"SegmentProd", kWraps},
    {"SegmentSum", kWraps},
    {"Select", kMoves},
    {"SelectV2", kMoves},
    {"Shape", kMoves},
    {"ShapeN", kMoves},
    {"Size", kMoves},
    {"Slice", kMoves},
    {"Snapshot", kMoves},
    {"SpaceToBatch", kMoves},
    {"SpaceToBatchND", kMoves},
    {"SpaceToDepth", kMoves},
    {"SparseFillEmptyRows", kMoves},
    {"SparseSegmentSum", kWraps},
    {"SparseSegmentSumWithNumSegments", kWraps},
    {"SparseTensorDenseMatMul", kWraps},
    {"SparseToDense", kMoves},
    {"Split", kMoves},
    {"SplitV", kMoves},
    {"Square", kWraps},
    {"SquaredDifference", kWraps},
    {"Squeeze", kMoves},
    {"StackPushV2", kMoves},
    {"StatefulPartitionedCall", kMoves},
    {"StatelessCase", kMoves},
    {"StatelessIf", kMoves},
    {"StatelessWhile", kMoves},
    {"StopGradient", kMoves},
    {"StridedSlice", kMoves},
    {"StridedSliceAssign", kMoves},
    {"StridedSliceGrad", kMoves},
    {"Sub", kWraps},
    {"Sum", kWraps},
    {"Switch", kMoves},
    {"TensorArrayScatterV3", kMoves},
    {"TensorArraySplitV3", kMoves},
    {"TensorArrayWriteV3", kMoves},
    {"TensorListFromTensor", kMoves},
    {"TensorListPushBack", kMoves},
    {"TensorListScatter", kMoves},
    {"TensorListScatterIntoExistingList", kMoves},
    {"TensorListScatterV2", kMoves},
    {"TensorListSetItem", kMoves},
    {"TensorListSplit", kMoves},
    {"TensorScatterAdd", kWraps},
    {"TensorScatterMax", kOrders},
    {"TensorScatterMin", kOrders},
    {"TensorScatterSub", kWraps},
    {"TensorScatterUpdate", kMoves},
    {"TensorStridedSliceUpdate", kMoves},
    {"Tile", kMoves},
    {"TopK", kOrders},
    {"TopKV2", kOrders},
    {"Transpose", kMoves},
    {"TruncateDiv", kOwn},
    {"TruncateMod", kOwn},
    {"Unique", kMoves},
    {"UniqueV2", kMoves},
    {"UniqueWithCounts", kMoves},
    {"UniqueWithCountsV2", kMoves},
    {"Unpack", kMoves},
    {"UnsortedSegmentMax", kOrders},
    {"UnsortedSegmentMin", kOrders},
    {"UnsortedSegmentProd", kWraps},
    {"UnsortedSegmentSum", kWraps},
    {"UpperBound", kOrders},
    {"Where", kMoves},
    {"While", kMoves},
    {"ZerosLike", kMoves},
    {"_SwitchN", kMoves},
};

// ONNX's number of uint64, by which heddle's operators identify it.
constexpr int64_t kElemUint64 = 13;

// Division, with the operator told that the operands are unsigned.
bool Quotient(NodeLowering& n, const char* type) {
  const int x = n.In(0);
  ResultLike(n, 0, n.Make(type, {{"X", {x}}, {"Y", {n.In(1)}}}, {{"elem_type", kElemUint64}}), x);
  return true;
}
bool Reduce(NodeLowering& n, const char* type) {
  const int x = n.In(0);
  ResultLike(n, 0,
             n.Make(type, {{"X", {x}}, {"Axes", {n.In(1)}}},
                    {{"keep_dim", n.Bool("keep_dims", false)},
                     {"no_axes", std::string("none")},
                     {"in_double", true},
                     {"elem_type", kElemUint64}}),
             x);
  return true;
}

}  // namespace

std::span<const UnsignedEntry> UnsignedOperators() { return kOperators; }

std::optional<UnsignedUse> UnsignedUseOf(std::string_view op, int type) {
  const UnsignedEntry* const found = formats::FindUnsigned(kOperators, op);
  return found == nullptr ? std::nullopt : formats::UseFor(found->use, type == kUint64);
}

bool LowerUnsigned(NodeLowering& n, int type) {
  const std::string_view op = n.op();
  if (op == "Relu") {  // no element is negative
    const int x = n.In(0);
    ResultLike(n, 0, n.Unary("assign", x), x);
    return true;
  }
  if (type != kUint64) return false;
  if (op == "Relu6") {
    const int x = n.In(0);
    const int most = TurnHighestBit(n, n.IntConstant(6));
    ResultLike(n, 0, TurnHighestBit(n, n.Binary("elementwise_min", TurnHighestBit(n, x), most)), x);
    return true;
  }
  if (op == "Div" || op == "RealDiv" || op == "FloorDiv" || op == "TruncateDiv")
    return Quotient(n, "elementwise_div");
  if (op == "Mod" || op == "FloorMod" || op == "TruncateMod") return Quotient(n, "elementwise_mod");
  if (op == "SegmentMax" || op == "SegmentMin") {  // an empty segment gives 0
    const int x = n.In(0);
    const int made =
        n.Make("segment_pool", {{"X", {TurnHighestBit(n, x)}}, {"SegmentIds", {n.In(1)}}},
               {{"pooltype", std::string(op == "SegmentMax" ? "MAX" : "MIN")},
                {"empty", std::numeric_limits<int64_t>::min()}});
    ResultLike(n, 0, TurnHighestBit(n, made), x);
    return true;
  }
  if (op == "Mean") return Reduce(n, "reduce_mean");
  if (op == "EuclideanNorm") return Reduce(n, "frobenius_norm");
  if (op == "RightShift") {
    const int x = n.In(0);
    ResultLike(n, 0,
               n.Make("bit_shift", {{"X", {x}}, {"Y", {n.In(1)}}},
                      {{"direction", std::string("right")},
                       {"out_of_range", std::string("clamp")},
                       {"elem_type", kElemUint64}}),
               x);
    return true;
  }
  return false;
}

}  // namespace heddle::tensorflow
