#include "formats/tensorflow/direct/words.h"

namespace heddle::tensorflow {
namespace {

constexpr WordsEntry kWords[] = {
    {"BatchToSpaceND", {"batch_to_space_nd"}},
    {"BroadcastArgs", {"broadcast_args"}},
    {"BroadcastGradientArgs", {"broadcast_gradient_args"}},
    {"DepthToSpace", {"depth_to_space"}},
    {"Diag", {"tensor_diag"}},
    {"DiagPart", {"tensor_diag_part"}},
    {"DivNoNan", {"div_no_nan", "X Y", "Out"}},
    {"DynamicPartition", {"dynamic_partition"}},
    {"EluGrad", {"elu_grad", "Out@GRAD X", "X@GRAD", "of_result=true alpha=1.0"}},
    {"FloorDiv", {"elementwise_floordiv", "X Y", "Out"}},
    {"FloorMod", {"elementwise_mod", "X Y", "Out"}},
    {"GatherNd", {"gather_nd", "X Index", "Out", "wrap=false"}},
    {"GatherV2", {"gather", "X Index Axis", "Out", "index_shape=true"}},
    {"HistogramFixedWidth", {"histogram_fixed_width"}},
    {"Igamma", {"igamma", "A X", "Out"}},
    {"Igammac", {"igamma", "A X", "Out", "upper=true"}},
    {"InvGrad", {"reciprocal_grad", "Out Out@GRAD", "X@GRAD"}},
    {"InvertPermutation", {"invert_permutation"}},
    {"LeakyReluGrad",
     {"leaky_relu_grad", "Out@GRAD X", "X@GRAD", "alpha=0.20000000298023224 alpha_at_zero=true"}},
    {"LeftShift", {"bit_shift", "X Y", "Out", "direction=left out_of_range=clamp"}},
    {"LinSpace", {"linspace", "Start Stop Num", "Out", "dtype=-1 from_start=true"}},
    {"ListDiff", {"setdiff1d"}},
    {"MatrixBandPart", {"matrix_band_part"}},
    {"MatrixDiag", {"matrix_diag"}},
    {"MatrixDiagPart", {"matrix_diag_part"}},
    {"MatrixDiagPartV3", {"matrix_diag_part"}},
    {"MatrixDiagV3", {"matrix_diag"}},
    {"MatrixSetDiag", {"matrix_set_diag"}},
    {"MatrixSetDiagV3", {"matrix_set_diag"}},
    {"Mod", {"elementwise_mod", "X Y", "Out", "truncate=true"}},
    {"MulNoNan", {"mul_no_nan", "X Y", "Out"}},
    {"NthElement", {"nth_element"}},
    {"PopulationCount", {"population_count", "X", "Out"}},
    {"QuantizeAndDequantizeV2", {"quantize_and_dequantize", "X Min Max", "Out"}},
    {"RaggedRange", {"ragged_range"}},
    {"Range", {"range", "Start End Step", "Out", "wide_count=true"}},
    {"ReciprocalGrad", {"reciprocal_grad", "Out Out@GRAD", "X@GRAD"}},
    {"Relu6Grad", {"relu6_grad", "Out@GRAD Out", "X@GRAD", "keep_nan=true"}},
    {"ReluGrad", {"relu_grad", "Out@GRAD Out", "X@GRAD", "keep_nan=true"}},
    {"ReverseSequence",
     {"reverse_sequence", "X Lengths", "Out",
      "seq_axis<seq_dim batch_axis<batch_dim batch_axis=0"}},
    {"RightShift", {"bit_shift", "X Y", "Out", "direction=right out_of_range=clamp"}},
    {"Roll", {"roll", "X ShiftsTensor AxisTensor", "Out"}},
    {"RsqrtGrad", {"rsqrt_grad", "Out Out@GRAD", "X@GRAD"}},
    {"ScatterNd", {"scatter_nd", "Index Updates Shape", "Out", "reduce=add"}},
    {"SeluGrad",
     {"selu_grad", "Out@GRAD Out", "X@GRAD",
      "alpha=1.6732632423543772848170429916717 scale=1.0507009873554804934193349852946 "
      "scale_at_zero=true"}},
    {"SigmoidGrad", {"sigmoid_grad", "Out Out@GRAD", "X@GRAD"}},
    {"Slice", {"crop_tensor", "X Offsets Shape", "Out"}},
    {"SoftplusGrad", {"softplus_grad", "Out@GRAD X", "X@GRAD", "threshold=40.0"}},
    {"SoftsignGrad", {"softsign_grad", "Out@GRAD X", "X@GRAD"}},
    {"SpaceToBatchND", {"space_to_batch_nd"}},
    {"SpaceToDepth", {"space_to_depth"}},
    {"SparseFillEmptyRows", {"coo_fill_empty_rows"}},
    {"SparseReshape", {"coo_reshape"}},
    {"SparseTensorDenseMatMul", {"coo_matmul"}},
    {"SparseToDense", {"coo_to_dense"}},
    {"SqrtGrad", {"sqrt_grad", "Out Out@GRAD", "X@GRAD"}},
    {"StatelessRandomNormal", {"philox_random", "Shape Seed", "Out", "distribution=normal"}},
    {"StatelessRandomUniform", {"philox_random", "Shape Seed", "Out", "distribution=uniform"}},
    {"StatelessRandomUniformInt",
     {"philox_random", "Shape Seed Min Max", "Out", "distribution=integers"}},
    {"StatelessTruncatedNormal",
     {"philox_random", "Shape Seed", "Out", "distribution=truncated_normal"}},
    {"StridedSlice", {"masked_slice"}},
    {"StridedSliceGrad", {"masked_slice_grad"}},
    {"TanhGrad", {"tanh_grad", "Out Out@GRAD", "X@GRAD"}},
    {"TensorScatterAdd", {"scatter_nd", "X Index Updates", "Out", "reduce=add"}},
    {"TensorScatterMax", {"scatter_nd", "X Index Updates", "Out", "reduce=max"}},
    {"TensorScatterMin", {"scatter_nd", "X Index Updates", "Out", "reduce=min"}},
    {"TensorScatterSub", {"scatter_nd", "X Index Updates", "Out", "reduce=sub"}},
    {"TensorScatterUpdate", {"scatter_nd", "X Index Updates", "Out", "reduce=assign"}},
    {"TensorStridedSliceUpdate", {"masked_slice_update"}},
    {"TruncateMod", {"elementwise_mod", "X Y", "Out", "truncate=true"}},
    {"UnravelIndex", {"unravel_index"}},
    {"Xdivy", {"xdivy", "X Y", "Out"}},
    {"Xlog1py", {"xlog1py", "X Y", "Out"}},
    {"Xlogy", {"xlogy", "X Y", "Out"}},
};

}  // namespace

std::span<const WordsEntry> AllWords() { return kWords; }

const formats::Words* FindWords(std::string_view op) {
  for (const WordsEntry& entry : kWords)
    if (entry.op == op) return &entry.words;
  return nullptr;
}

}  // namespace heddle::tensorflow
