#include "formats/tensorflow/ops_direct.h"

#include "core/op_registry.h"
#include "core/shapes.h"

namespace heddle::tensorflow {
namespace {

// TensorFlow's operators, and heddle's with the same meaning.
constexpr std::pair<std::string_view, std::string_view> kDirect[] = {
    {"AdjustContrastv2", "tf_adjust_contrastv2"},
    {"AdjustHue", "tf_adjust_hue"},
    {"AdjustSaturation", "tf_adjust_saturation"},
    {"AvgPool3DGrad", "tf_avg_pool3d_grad"},
    {"AvgPoolGrad", "tf_avg_pool_grad"},
    {"BatchToSpaceND", "tf_batch_to_space_nd"},
    {"BlockLSTM", "tf_block_lstm"},
    {"BroadcastArgs", "tf_broadcast_args"},
    {"BroadcastGradientArgs", "tf_broadcast_gradient_args"},
    {"Bucketize", "tf_bucketize"},
    {"CTCGreedyDecoder", "tf_ctc_greedy_decoder"},
    {"CTCLoss", "tf_ctc_loss"},
    {"CheckNumerics", "tf_check_numerics"},
    {"CombinedNonMaxSuppression", "tf_combined_non_max_suppression"},
    {"Conv2DBackpropFilter", "tf_conv2d_backprop_filter"},
    {"Conv2DBackpropInput", "tf_conv2d_backprop_input"},
    {"Conv3DBackpropFilterV2", "tf_conv3d_backprop_filter_v2"},
    {"Conv3DBackpropInputV2", "tf_conv3d_backprop_input_v2"},
    {"CropAndResize", "tf_crop_and_resize"},
    {"DenseBincount", "tf_dense_bincount"},
    {"DepthToSpace", "tf_depth_to_space"},
    {"DepthwiseConv2dNativeBackpropFilter", "tf_depthwise_conv2d_native_backprop_filter"},
    {"DepthwiseConv2dNativeBackpropInput", "tf_depthwise_conv2d_native_backprop_input"},
    {"Diag", "tf_diag"},
    {"DiagPart", "tf_diag_part"},
    {"Dilation2D", "tf_dilation2d"},
    {"DivNoNan", "tf_div_no_nan"},
    {"DynamicPartition", "tf_dynamic_partition"},
    {"EluGrad", "tf_elu_grad"},
    {"ExtractImagePatches", "tf_extract_image_patches"},
    {"FakeQuantWithMinMaxArgs", "tf_fake_quant_with_min_max_args"},
    {"FakeQuantWithMinMaxVars", "tf_fake_quant_with_min_max_vars"},
    {"FakeQuantWithMinMaxVarsPerChannel", "tf_fake_quant_with_min_max_vars_per_channel"},
    {"Fill", "tf_fill"},
    {"FloorDiv", "tf_floor_div"},
    {"FloorMod", "tf_floor_mod"},
    {"GRUBlockCell", "tf_gru_block_cell"},
    {"GatherNd", "tf_gather_nd"},
    {"GatherV2", "tf_gather_v2"},
    {"HSVToRGB", "tf_hsv_to_rgb"},
    {"HistogramFixedWidth", "tf_histogram_fixed_width"},
    {"Igamma", "tf_igamma"},
    {"Igammac", "tf_igammac"},
    {"ImageProjectiveTransformV3", "tf_image_projective_transform_v3"},
    {"InvGrad", "tf_reciprocal_grad"},
    {"InvertPermutation", "tf_invert_permutation"},
    {"L2Loss", "tf_l2_loss"},
    {"LSTMBlockCell", "tf_lstm_block_cell"},
    {"LeakyReluGrad", "tf_leaky_relu_grad"},
    {"LeftShift", "tf_left_shift"},
    {"LinSpace", "tf_lin_space"},
    {"ListDiff", "tf_list_diff"},
    {"LowerBound", "tf_lower_bound"},
    {"MatrixBandPart", "tf_matrix_band_part"},
    {"MatrixDiag", "tf_matrix_diag_v3"},
    {"MatrixDiagPart", "tf_matrix_diag_part_v3"},
    {"MatrixDiagPartV3", "tf_matrix_diag_part_v3"},
    {"MatrixDiagV3", "tf_matrix_diag_v3"},
    {"MatrixSetDiag", "tf_matrix_set_diag_v3"},
    {"MatrixSetDiagV3", "tf_matrix_set_diag_v3"},
    {"MaxPool3DGrad", "tf_max_pool3d_grad"},
    {"MaxPoolGrad", "tf_max_pool_grad"},
    {"MaxPoolWithArgmax", "tf_max_pool_with_argmax"},
    {"MirrorPad", "tf_mirror_pad"},
    {"MirrorPadGrad", "tf_mirror_pad_grad"},
    {"Mod", "tf_truncate_mod"},
    {"MulNoNan", "tf_mul_no_nan"},
    {"NonMaxSuppressionV2", "tf_non_max_suppression_v5"},
    {"NonMaxSuppressionV3", "tf_non_max_suppression_v5"},
    {"NthElement", "tf_nth_element"},
    {"OneHot", "tf_one_hot"},
    {"Pad", "tf_pad_v2"},
    {"PadV2", "tf_pad_v2"},
    {"PopulationCount", "tf_population_count"},
    {"QuantizeAndDequantizeV2", "tf_quantize_and_dequantize_v2"},
    {"RGBToHSV", "tf_rgb_to_hsv"},
    {"RaggedRange", "tf_ragged_range"},
    {"Range", "tf_range"},
    {"ReciprocalGrad", "tf_reciprocal_grad"},
    {"Relu6Grad", "tf_relu6_grad"},
    {"ReluGrad", "tf_relu_grad"},
    {"ResizeArea", "tf_resize_area"},
    {"ResizeBicubic", "tf_resize_bicubic"},
    {"ResizeBicubicGrad", "tf_resize_bicubic_grad"},
    {"ResizeBilinear", "tf_resize_bilinear"},
    {"ResizeBilinearGrad", "tf_resize_bilinear_grad"},
    {"ResizeNearestNeighbor", "tf_resize_nearest_neighbor"},
    {"ResizeNearestNeighborGrad", "tf_resize_nearest_neighbor_grad"},
    {"Reverse", "tf_reverse"},
    {"ReverseSequence", "tf_reverse_sequence"},
    {"ReverseV2", "tf_reverse_v2"},
    {"RightShift", "tf_right_shift"},
    {"Roll", "tf_roll"},
    {"RsqrtGrad", "tf_rsqrt_grad"},
    {"ScatterNd", "tf_scatter_nd"},
    {"SegmentMax", "tf_segment_max"},
    {"SegmentMean", "tf_segment_mean"},
    {"SegmentMin", "tf_segment_min"},
    {"SegmentProd", "tf_segment_prod"},
    {"SegmentSum", "tf_segment_sum"},
    {"SeluGrad", "tf_selu_grad"},
    {"SigmoidGrad", "tf_sigmoid_grad"},
    {"Slice", "tf_slice"},
    {"SoftmaxCrossEntropyWithLogits", "tf_softmax_cross_entropy_with_logits"},
    {"SoftplusGrad", "tf_softplus_grad"},
    {"SoftsignGrad", "tf_softsign_grad"},
    {"SpaceToBatchND", "tf_space_to_batch_nd"},
    {"SpaceToDepth", "tf_space_to_depth"},
    {"SparseFillEmptyRows", "tf_sparse_fill_empty_rows"},
    {"SparseReshape", "tf_sparse_reshape"},
    {"SparseSegmentMean", "tf_sparse_segment_mean"},
    {"SparseSegmentMeanGrad", "tf_sparse_segment_mean_grad"},
    {"SparseSegmentMeanWithNumSegments", "tf_sparse_segment_mean"},
    {"SparseSegmentSqrtN", "tf_sparse_segment_sqrt_n"},
    {"SparseSegmentSqrtNGrad", "tf_sparse_segment_sqrt_n_grad"},
    {"SparseSegmentSqrtNWithNumSegments", "tf_sparse_segment_sqrt_n"},
    {"SparseSegmentSum", "tf_sparse_segment_sum"},
    {"SparseSegmentSumWithNumSegments", "tf_sparse_segment_sum"},
    {"SparseSoftmaxCrossEntropyWithLogits", "tf_sparse_softmax_cross_entropy_with_logits"},
    {"SparseTensorDenseMatMul", "tf_sparse_tensor_dense_mat_mul"},
    {"SparseToDense", "tf_sparse_to_dense"},
    {"SqrtGrad", "tf_sqrt_grad"},
    {"StatelessRandomNormal", "tf_stateless_random_normal"},
    {"StatelessRandomUniform", "tf_stateless_random_uniform"},
    {"StatelessRandomUniformInt", "tf_stateless_random_uniform_int"},
    {"StatelessTruncatedNormal", "tf_stateless_truncated_normal"},
    {"StridedSlice", "tf_strided_slice"},
    {"StridedSliceGrad", "tf_strided_slice_grad"},
    {"TanhGrad", "tf_tanh_grad"},
    {"TensorScatterAdd", "tf_tensor_scatter_add"},
    {"TensorScatterMax", "tf_tensor_scatter_max"},
    {"TensorScatterMin", "tf_tensor_scatter_min"},
    {"TensorScatterSub", "tf_tensor_scatter_sub"},
    {"TensorScatterUpdate", "tf_tensor_scatter_update"},
    {"TensorStridedSliceUpdate", "tf_tensor_strided_slice_update"},
    {"TruncateDiv", "tf_truncate_div"},
    {"TruncateMod", "tf_truncate_mod"},
    {"UnravelIndex", "tf_unravel_index"},
    {"UnsortedSegmentMax", "tf_unsorted_segment_max"},
    {"UnsortedSegmentMin", "tf_unsorted_segment_min"},
    {"UnsortedSegmentProd", "tf_unsorted_segment_prod"},
    {"UnsortedSegmentSum", "tf_unsorted_segment_sum"},
    {"UpperBound", "tf_upper_bound"},
    {"Xdivy", "tf_xdivy"},
    {"Xlog1py", "tf_xlog1py"},
    {"Xlogy", "tf_xlogy"},
};

// Adds the node's attribute in the type that the operator declares.
void AddAttribute(NodeLowering& n, const AttrDef& def, Attrs* attrs) {
  const Attribute* a = n.Find(def.name);
  if (a == nullptr) return;
  const AttrValue& like = def.default_value;
  if (a->kind == Attribute::kType)
    attrs->emplace_back(def.name, DTypeToProto(StorageOf(BaseType(a->i))));
  else if (std::holds_alternative<bool>(like))
    attrs->emplace_back(def.name, n.Bool(def.name, false));
  else if (std::holds_alternative<int64_t>(like))
    attrs->emplace_back(def.name, n.Int(def.name, 0));
  else if (std::holds_alternative<double>(like))
    attrs->emplace_back(def.name, n.Float(def.name, 0));
  else if (std::holds_alternative<std::string>(like))
    attrs->emplace_back(def.name, n.Str(def.name, ""));
  else if (std::holds_alternative<Ints>(like))
    attrs->emplace_back(def.name, n.IntList(def.name));
  else if (std::holds_alternative<Floats>(like))
    attrs->emplace_back(def.name, n.FloatList(def.name));
}

bool LowerByName(NodeLowering& n) {
  for (const auto& [op, type] : kDirect)
    if (op == n.op()) return LowerDirect(n, type);
  return false;
}

// The length of an output that is a list.
int64_t OutputCount(const NodeLowering& n) {
  for (const std::string_view name : {"num_partitions", "num_split", "num", "N"})
    if (n.Has(name)) return n.Int(name, 0);
  return 1;
}

// The dtype of an output that holds positions or counts; kUnknown for others.
DType IndexTypeOf(const NodeLowering& n, const OpDef& def, std::string_view output) {
  if (output == "idx") return n.TypeAttr("out_idx", DType::kI32);
  if (output == "argmax") return n.TypeAttr("Targmax", DType::kI64);
  if (output == "selected_indices" || output == "valid_detections") return DType::kI32;
  for (const std::string_view name : {"output_indices", "output_shape", "reverse_index_map",
                                      "decoded_indices", "decoded_values", "decoded_shape"})
    if (output == name) return DType::kI64;
  if (output == "empty_row_indicator") return DType::kBool;
  if (output == "rt_nested_splits") return n.TypeAttr("Tsplits", DType::kI64);
  if (def.name() == "tf_histogram_fixed_width") return n.TypeAttr("dtype", DType::kI32);
  if (def.name().starts_with("tf_stateless_") && def.FindAttr("dtype") >= 0)
    return n.TypeAttr("dtype", DType::kF32);
  if (def.FindAttr("out_type") >= 0) return n.TypeAttr("out_type", DType::kI32);
  return DType::kUnknown;
}

}  // namespace

void SayDType(NodeLowering& n, int v, DType dtype) { n.draft_var(v).dtype = dtype; }

bool LowerDirect(NodeLowering& n, std::string_view type) {
  return LowerDirect(n, type, n.AllInputs());
}

bool LowerDirect(NodeLowering& n, std::string_view type, const std::vector<int>& inputs) {
  const OpDef* def = FindOp(type);
  if (def == nullptr) return false;
  size_t lists = 0;
  for (const SlotDef& slot : def->inputs()) lists += (slot.flags & kList) != 0 ? 1 : 0;
  const size_t singles = def->inputs().size() - lists;
  const size_t each = lists == 0 || inputs.size() < singles ? 0 : (inputs.size() - singles) / lists;
  Ins ins;
  size_t at = 0;
  for (const SlotDef& slot : def->inputs()) {
    const size_t take = (slot.flags & kList) != 0 ? each : 1;
    std::vector<int> vars;
    for (size_t k = 0; k < take && at < inputs.size(); ++k) vars.push_back(inputs[at++]);
    if (vars.empty() && (slot.flags & (kOptional | kList)) == 0) {
      n.Problem("has ", inputs.size(), " inputs, expected one for '", slot.name, "', too");
      vars.push_back(n.NewVar(DType::kUnknown));
    }
    if (!vars.empty()) ins.emplace_back(slot.name, std::move(vars));
  }
  Attrs attrs;
  for (const AttrDef& a : def->attrs()) AddAttribute(n, a, &attrs);
  std::vector<std::string_view> outs;
  for (const SlotDef& slot : def->outputs()) {
    const int64_t count = (slot.flags & kList) != 0 ? OutputCount(n) : 1;
    if (count < 0 || count > 1 << 16) {
      n.Problem("says that it has ", count, " outputs");
      return true;
    }
    for (int64_t k = 0; k < count; ++k) outs.push_back(slot.name);
  }
  const std::vector<int> made = n.MakeMany(type, std::move(ins), std::move(attrs), outs);
  for (size_t i = 0; i < made.size(); ++i)
    if (const DType dtype = IndexTypeOf(n, *def, outs[i]); dtype != DType::kUnknown)
      SayDType(n, made[i], dtype);
  for (size_t i = 0; i < made.size(); ++i) {
    if (inputs.empty())
      n.Result(i, made[i]);
    else
      ResultLike(n, i, made[i], inputs[0]);
  }
  return true;
}

void ResultLike(NodeLowering& n, size_t output, int v, int like) {
  const int type = n.type(like);
  if (type != kNoType && StorageOf(type) != DType::kUnknown && n.dtype(v) == StorageOf(type) &&
      TypeOf(StorageOf(type)) != type && v != like)
    n.SetType(v, type);
  n.Result(output, v);
}

std::span<const HandlerEntry> DirectHandlers() {
  static const std::vector<HandlerEntry> entries = [] {
    std::vector<HandlerEntry> made;
    for (const auto& [op, type] : kDirect) made.push_back({op, &LowerByName});
    return made;
  }();
  return entries;
}

}  // namespace heddle::tensorflow
