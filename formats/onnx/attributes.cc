// The allowed attributes of operators with handlers. LowerDirect checks those of all others.
#include <algorithm>
#include <string>

#include "core/error.h"
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

struct Known {
  std::string_view domain, op_type;
  std::string_view attributes;  // of all versions of the operator, separated by spaces
};

constexpr Known kKnown[] = {
    {"", "Add", "axis broadcast"},
    {"", "AffineGrid", "align_corners"},
    {"", "And", "axis broadcast"},
    {"", "AveragePool", "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
    {"", "BatchNormalization", "epsilon momentum spatial training_mode"},
    {"", "Bernoulli", "dtype seed"},
    {"", "BitCast", "to"},
    {"", "BitShift", "direction"},
    {"", "Cast", "round_mode saturate to"},
    {"", "CastLike", "round_mode saturate"},
    {"", "Celu", "alpha"},
    {"", "Clip", "max min"},
    {"", "Concat", "axis"},
    {"", "ConcatFromSequence", "axis new_axis"},
    {"", "Constant",
     "sparse_value value value_float value_floats value_int value_ints value_string value_strings"},
    {"", "ConstantOfShape", "value"},
    {"", "Conv", "auto_pad dilations group kernel_shape pads strides"},
    {"", "ConvTranspose",
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
    {"", "CumProd", "exclusive reverse"},
    {"", "CumSum", "exclusive reverse"},
    {"", "DequantizeLinear", "axis block_size output_dtype"},
    {"", "Div", "axis broadcast"},
    {"", "Dropout", "ratio seed"},
    {"", "Elu", "alpha"},
    {"", "Equal", "axis broadcast"},
    {"", "EyeLike", "dtype k"},
    {"", "Flatten", "axis"},
    {"", "Gather", "axis"},
    {"", "Gelu", "approximate"},
    {"", "Gemm", "alpha beta broadcast transA transB"},
    {"", "GlobalLpPool", "p"},
    {"", "Greater", "axis broadcast"},
    {"", "GroupNormalization", "epsilon num_groups stash_type"},
    {"", "HardSigmoid", "alpha beta"},
    {"", "If", "else_branch then_branch"},
    {"", "InstanceNormalization", "epsilon"},
    {"", "IsInf", "detect_negative detect_positive"},
    {"", "LRN", "alpha beta bias size"},
    {"", "LayerNormalization", "axis epsilon stash_type"},
    {"", "LeakyRelu", "alpha"},
    {"", "Less", "axis broadcast"},
    {"", "LogSoftmax", "axis"},
    {"", "Loop", "body"},
    {"", "LpNormalization", "axis p"},
    {"", "MaxPool", "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
    {"", "MaxRoiPool", "pooled_shape spatial_scale"},
    {"", "MaxUnpool", "kernel_shape pads strides"},
    {"", "Mod", "fmod"},
    {"", "Mul", "axis broadcast"},
    {"", "Multinomial", "dtype sample_size seed"},
    {"", "NegativeLogLikelihoodLoss", "ignore_index reduction"},
    {"", "NonMaxSuppression", "center_point_box"},
    {"", "Optional", "type"},
    {"", "Or", "axis broadcast"},
    {"", "Pad", "mode paddings pads value"},
    {"", "Pow", "axis broadcast"},
    {"", "QuantizeLinear", "axis block_size output_dtype precision saturate"},
    {"", "RandomNormal", "dtype mean scale seed shape"},
    {"", "RandomNormalLike", "dtype mean scale seed"},
    {"", "RandomUniform", "dtype high low seed shape"},
    {"", "RandomUniformLike", "dtype high low seed"},
    {"", "ReduceL1", "axes keepdims noop_with_empty_axes"},
    {"", "ReduceL2", "axes keepdims noop_with_empty_axes"},
    {"", "ReduceLogSum", "axes keepdims noop_with_empty_axes"},
    {"", "ReduceLogSumExp", "axes keepdims noop_with_empty_axes"},
    {"", "ReduceMax", "axes keepdims noop_with_empty_axes"},
    {"", "ReduceMean", "axes keepdims noop_with_empty_axes"},
    {"", "ReduceMin", "axes keepdims noop_with_empty_axes"},
    {"", "ReduceProd", "axes keepdims noop_with_empty_axes"},
    {"", "ReduceSum", "axes keepdims noop_with_empty_axes"},
    {"", "ReduceSumSquare", "axes keepdims noop_with_empty_axes"},
    {"", "RegexFullMatch", "pattern"},
    {"", "Reshape", "allowzero shape"},
    {"", "Resize",
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
     "extrapolation_value keep_aspect_ratio_policy mode nearest_mode"},
    {"", "RoiAlign",
     "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale"},
    {"", "Scan",
     "body directions num_scan_inputs scan_input_axes scan_input_directions scan_output_axes "
     "scan_output_directions"},
    {"", "Scatter", "axis"},
    {"", "ScatterElements", "axis reduction"},
    {"", "ScatterND", "reduction"},
    {"", "Selu", "alpha gamma"},
    {"", "SequenceEmpty", "dtype"},
    {"", "SequenceMap", "body"},
    {"", "Shape", "end start"},
    {"", "Shrink", "bias lambd"},
    {"", "Slice", "axes ends starts"},
    {"", "Softmax", "axis"},
    {"", "SoftmaxCrossEntropyLoss", "ignore_index reduction"},
    {"", "Split", "axis num_outputs split"},
    {"", "SplitToSequence", "axis keepdims"},
    {"", "Squeeze", "axes"},
    {"", "StringNormalizer", "case_change_action is_case_sensitive locale stopwords"},
    {"", "StringSplit", "delimiter maxsplit"},
    {"", "Sub", "axis broadcast"},
    {"", "Swish", "alpha"},
    {"", "TfIdfVectorizer",
     "max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes pool_int64s "
     "pool_strings weights"},
    {"", "ThresholdedRelu", "alpha"},
    {"", "TopK", "axis k largest sorted"},
    {"", "Transpose", "perm"},
    {"", "Trilu", "upper"},
    {"", "Unique", "axis sorted"},
    {"", "Unsqueeze", "axes"},
    {"", "Upsample", "height_scale mode scales width_scale"},
    {"", "Xor", "axis broadcast"},
    {"ai.onnx.ml", "LabelEncoder",
     "classes_strings default_float default_int64 default_string default_tensor keys_floats "
     "keys_int64s keys_strings keys_tensor values_floats values_int64s values_strings "
     "values_tensor"},
    {"ai.onnx.ml", "LinearClassifier",
     "classlabels_ints classlabels_strings coefficients intercepts multi_class post_transform"},
    {"ai.onnx.ml", "OneHotEncoder", "cats_int64s cats_strings zeros"},
    {"ai.onnx.ml", "SVMClassifier",
     "classlabels_ints classlabels_strings coefficients kernel_params kernel_type post_transform "
     "prob_a prob_b rho support_vectors vectors_per_class"},
    {"ai.onnx.ml", "TreeEnsembleClassifier",
     "base_values base_values_as_tensor class_ids class_nodeids class_treeids class_weights "
     "class_weights_as_tensor classlabels_int64s classlabels_strings nodes_falsenodeids "
     "nodes_featureids nodes_hitrates nodes_hitrates_as_tensor nodes_missing_value_tracks_true "
     "nodes_modes nodes_nodeids nodes_treeids nodes_truenodeids nodes_values "
     "nodes_values_as_tensor post_transform"},
    {"ai.onnx.ml", "ZipMap", "classlabels_int64s classlabels_strings"},
    {"ai.onnx.preview", "FlexAttention", "prob_mod scale score_mod softmax_precision"},
    {"ai.onnx.preview.training", "Adagrad", "decay_factor epsilon norm_coefficient"},
    {"ai.onnx.preview.training", "Adam",
     "alpha beta epsilon norm_coefficient norm_coefficient_post"},
    {"ai.onnx.preview.training", "Momentum", "alpha beta mode norm_coefficient"},
    {"com.microsoft", "CDist", "metric"},
    {"com.microsoft", "DequantizeLinear", "axis"},
    {"com.microsoft", "EmbedLayerNormalization", "epsilon mask_index_type"},
    {"com.microsoft", "FusedGemm",
     "activation activation_alpha activation_beta activation_gamma alpha beta transA transB"},
    {"com.microsoft", "GridSample", "align_corners mode padding_mode"},
    {"com.microsoft", "MatMulNBits", "K N accuracy_level bits block_size weight_prepacked"},
    {"com.microsoft", "NhwcMaxPool", "auto_pad ceil_mode dilations kernel_shape pads strides"},
    {"com.microsoft", "Pad", "mode"},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", "epsilon"},
    {"com.microsoft", "TransposeMatMul", "alpha transA transB"},
    {"com.microsoft", "Trilu", "upper"},
    {"com.microsoft", "FusedConv",
     "activation activation_params auto_pad dilations group kernel_shape pads strides"},
    {"com.microsoft", "FusedMatMul", "alpha transA transB transBatchA transBatchB"},
    {"com.microsoft", "QLinearAveragePool",
     "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides"},
    {"com.microsoft", "QLinearSoftmax", "axis opset"},
    {"com.microsoft", "QuantizeLinear", "axis"},
    {"com.microsoft", "QuickGelu", "alpha"},
    {"com.microsoft", "SkipLayerNormalization", "epsilon"},
    {"com.microsoft", "Tokenizer", "mark mincharnum pad_value separators tokenexp"},
};

// Old files have these on many operators; the handlers concerned read is_test.
constexpr std::string_view kOld = "consumed_inputs is_test";

bool Contains(std::string_view list, std::string_view name) {
  return name.find(' ') == std::string_view::npos &&
         StrCat(" ", list, " ").find(StrCat(" ", name, " ")) != std::string::npos;
}

}  // namespace

bool CheckAttributes(NodeLowering& n) {
  const Node& node = n.node();
  const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) {
    return k.domain == node.domain && k.op_type == node.op_type;
  });
  bool all = true;
  for (const Attribute& a : node.attributes) {
    if ((known != std::end(kKnown) && Contains(known->attributes, a.name)) ||
        Contains(kOld, a.name))
      continue;
    n.Problem("has an attribute '", a.name, "', which this operator does not have");
    all = false;
  }
  return all;
}

}  // namespace heddle::onnx
