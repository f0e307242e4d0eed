// Unsigned integers in signed ones: every operator whose definition allows them says what it does.
#include "formats/onnx/unsigned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "formats/tensorflow/handlers.h"
#include "tests/formats/onnx/onnx_runs.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

void ExpectAll(std::span<const formats::UnsignedEntry> table, const char* names) {
  EXPECT_TRUE(std::is_sorted(table.begin(), table.end(),
                             [](const auto& a, const auto& b) { return a.op < b.op; }));
  std::istringstream list(names);
  for (std::string name; list >> name;)
    EXPECT_NE(formats::FindUnsigned(table, name), nullptr) << name;
}

// Those with an input that the definitions of opset 1 to 26 allow uint32 or uint64 for; but for the
// mask of Attention, which is refused.
TEST(UnsignedOperators, OfOnnxAreAllThere) {
  ExpectAll(onnx::UnsignedOperators(), R"(
Abs Add ArgMax ArgMin BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike
CenterCropPad Clip Col2Im Compress Concat ConcatFromSequence CumProd CumSum DepthToSpace Div
Einsum Equal Erf Expand EyeLike Flatten Gather GatherElements GatherND Gemm Greater GreaterOrEqual
GridSample Identity Less LessOrEqual Loop MatMul Max Min Mod Mul NonZero OneHot Optional
OptionalGetElement OptionalHasElement PRelu Pad Pow RandomNormalLike RandomUniformLike ReduceL1
ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
ReduceSumSquare Reshape Resize ReverseSequence Scan Scatter ScatterElements ScatterND SequenceAt
SequenceConstruct SequenceErase SequenceInsert SequenceLength SequenceMap Shape Shrink Sign Size
Slice SpaceToDepth Split SplitToSequence Squeeze Sub TensorScatter Tile TopK Transpose Trilu
Unique Unsqueeze Upsample Where
)");
}

// Those that have a handler and an input that TensorFlow registers uint32 or uint64 for, or any
// type; but for optimizers and gradients of normalisation, which have no kernels for integers.
TEST(UnsignedOperators, OfTensorFlowAreAllThere) {
  ExpectAll(tensorflow::UnsignedOperators(), R"(
AccumulateNV2 AddN AddV2 ApproximateEqual ArgMax ArgMin Assign AssignAdd AssignAddVariableOp
AssignSub AssignSubVariableOp AssignVariableOp BatchMatMulV2 
BatchToSpace BatchToSpaceND BiasAdd BiasAddGrad BiasAddV1 Bitcast BitwiseAnd BitwiseOr BitwiseXor
BroadcastTo Cast ClipByValue Concat ConcatV2 ConjugateTranspose Cross Cumprod Cumsum DeepCopy
DepthToSpace Dilation2D Div DynamicPartition DynamicStitch Einsum EnsureShape Enter Equal
EuclideanNorm Exit ExpandDims ExtractImagePatches Fill FloorDiv FloorMod Gather GatherNd GatherV2
Greater GreaterEqual GuaranteeConst Identity If InitializeTable InitializeTableV2 Invert
IsVariableInitialized LeftShift Less LessEqual ListDiff LookupTableFind LookupTableFindV2
LookupTableImport LookupTableImportV2 LookupTableInsert LookupTableInsertV2 LowerBound MatMul
MatrixBandPart MatrixDiag MatrixDiagPart MatrixDiagPartV3 MatrixDiagV3 MatrixSetDiag
MatrixSetDiagV3 Max MaxPoolGrad MaxPoolWithArgmax Maximum Mean Merge Min Minimum MirrorPad
MirrorPadGrad Mul Multinomial NextIteration NotEqual NthElement OneHot OnesLike Pack Pad PadV2
ParallelDynamicStitch PlaceholderWithDefault PopulationCount PreventGradient Print Prod
RandomShuffle Range Rank RealDiv RefIdentity RefSwitch Relu Relu6 Relu6Grad ReluGrad Reshape
ResourceStridedSliceAssign Reverse ReverseSequence ReverseV2 RightShift Roll ScatterAdd ScatterDiv
ScatterMul ScatterNd ScatterNdAdd ScatterNdMax ScatterNdMin ScatterNdNonAliasingAdd ScatterNdSub
ScatterNdUpdate ScatterSub ScatterUpdate SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum
Select SelectV2 Shape ShapeN Size Slice Snapshot SpaceToBatch SpaceToBatchND SpaceToDepth
SparseFillEmptyRows SparseSegmentSum SparseSegmentSumWithNumSegments SparseTensorDenseMatMul
SparseToDense Split SplitV Square Squeeze StackPushV2 StatelessIf StopGradient StridedSlice
StridedSliceAssign StridedSliceGrad Sub Sum Switch TensorArrayScatterV3 TensorArraySplitV3
TensorArrayWriteV3 TensorListFromTensor TensorListPushBack TensorListScatter
TensorListScatterIntoExistingList TensorListScatterV2 TensorListSetItem TensorListSplit
TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate
TensorStridedSliceUpdate Tile TopK TopKV2 Transpose TruncateDiv Unique UniqueV2 UniqueWithCounts
UniqueWithCountsV2 Unpack UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd
UnsortedSegmentSum UpperBound Where ZerosLike _SwitchN
)");
}

TEST(UnsignedOperators, WithoutAFormAreRefused) {
  using formats::UnsignedUse;
  EXPECT_EQ(tensorflow::UnsignedUseOf("SegmentMean", tensorflow::kUint64), std::nullopt);
  EXPECT_EQ(tensorflow::UnsignedUseOf("SegmentMean", tensorflow::kUint32), UnsignedUse::kOwn);
  EXPECT_EQ(tensorflow::UnsignedUseOf("AssignAdd", tensorflow::kUint32), std::nullopt);
  EXPECT_EQ(tensorflow::UnsignedUseOf("AssignAdd", tensorflow::kUint64), UnsignedUse::kMoves);
  EXPECT_EQ(tensorflow::UnsignedUseOf("NoSuchOperator", tensorflow::kUint32), std::nullopt);
}

}  // namespace
}  // namespace heddle::testing
