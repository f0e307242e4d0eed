#include "engines/openvino/takes.h"

#include <string_view>
#include <utility>

namespace heddle_openvino {
namespace {

// Operators of docs/ops.md, each with a space behind it.
constexpr std::string_view kTypes =
    "abs acos addmm asin atan batch_norm bilinear_interp bilinear_interp_v2 bmm brelu ceil "
    "celu channel_shuffle clip concat conv2d conv2d_transpose conv3d cos cosh crop_tensor "
    "cumsum depthwise_conv2d depthwise_conv2d_transpose dropout einsum "
    "elementwise_add elementwise_div elementwise_max elementwise_min elementwise_mul "
    "elementwise_pow elementwise_sub elu equal erf exp expand_v2 fc flatten flatten2 "
    "flatten_contiguous_range floor frobenius_norm gather gather_nd gelu greater_equal "
    "greater_than group_norm hard_sigmoid hard_swish index_select instance_norm layer_norm "
    "leaky_relu less_equal less_than log log_softmax logical_and logical_not logical_or "
    "logsigmoid lookup_table lookup_table_v2 lrn masked_slice matmul matmul_v2 mean "
    "mean_variance_norm mish mul nearest_interp nearest_interp_v2 norm not_equal "
    "onnx_average_pool onnx_conv onnx_conv_transpose "
    "onnx_max_pool onnx_resize p_norm pad pad2d pad3d "
    "pixel_shuffle pixel_unshuffle pool2d pool3d pow prelu reciprocal reduce_max reduce_mean "
    "reduce_min "
    "reduce_prod reduce_sum relu relu6 reshape reshape2 resize_images round rsqrt scale selu "
    "shuffle_channel sigmoid sign silu sin sinh slice softmax softplus softsign "
    "split sqrt square squeeze squeeze2 stack stanh strided_slice sum swish "
    "tan tanh tanh_shrink tile transpose transpose2 unbind unsqueeze unsqueeze2 unstack where ";

static_assert(kTypes.front() != ' ' && kTypes.back() == ' ' && kTypes.find("  ") == kTypes.npos);

// Slots whose integers name places, sizes or axes.
constexpr std::string_view kPlaces =
    " Axes AxesTensor Axis AxisTensor Diagonal EndsTensor Ids Index K Lengths Offsets Paddings "
    "Perm RepeatTimes SectionsTensor Shape ShapeTensor StartsTensor StridesTensor axes axis "
    "begin end ends indices k paddings pads perm repeats shape size sizes split starts steps "
    "strides ";
// Slots that nothing is written to where operators are as in inference, or that hold no contents.
constexpr std::string_view kUnwritten = " XShape Mask ReserveSpace ";

bool IsIn(std::string_view words, const char* word) {
  return words.find(" " + std::string(word) + " ") != std::string_view::npos;
}

// Of these OpenVINO reads no axes, and reduces all.
constexpr std::string_view kMisread = " logsumexp ";
// Slots that must hold constants. OpenVINO moves a normalisation into the filter of a convolution
// before it and keeps what it made in the first run, whatever later runs bring.
constexpr std::string_view kConstant =
    " Filter W Scale Bias Mean Variance scale B input_mean input_var ";

bool WantsConstants(std::string_view type) {
  return type.find("conv") != std::string_view::npos ||
         type.find("batch_norm") != std::string_view::npos;
}

std::string WhyNotConstant(const heddle_engine_group& group, const heddle_engine_operator& op) {
  if (!WantsConstants(op.type)) return "";
  for (size_t s = 0; s < op.num_inputs; ++s)
    for (size_t k = 0; k < op.inputs[s]->count; ++k) {
      const int32_t v = op.inputs[s]->values[k];
      if (v >= 0 && IsIn(kConstant, op.inputs[s]->name) && group.values[v]->data == nullptr)
        return std::string(op.inputs[s]->name) + " '" + group.values[v]->name + "' is no constant";
    }
  return "";
}

std::string WhyNotSlots(const heddle_engine_group& group, const heddle_engine_slot* const* slots,
                        size_t count) {
  for (size_t s = 0; s < count; ++s) {
    for (size_t k = 0; k < slots[s]->count; ++k) {
      const int32_t v = slots[s]->values[k];
      if (v < 0 || IsIn(kUnwritten, slots[s]->name)) continue;
      const heddle_engine_value& value = *group.values[v];
      for (int32_t i = 0; i < value.rank; ++i)
        if (value.dims[i] == 0) return std::string("'") + value.name + "' is empty";
      const int32_t dtype = value.dtype;
      if (dtype == HEDDLE_ENGINE_F32 || dtype == HEDDLE_ENGINE_BOOL) continue;
      const bool whole = dtype == HEDDLE_ENGINE_I32 || dtype == HEDDLE_ENGINE_I64;
      if (whole && IsIn(kPlaces, slots[s]->name)) continue;
      return std::string(slots[s]->name) + " '" + value.name +
             "' is neither float32 nor bool, and names no places";
    }
  }
  return "";
}

}  // namespace

std::string TargetText() {
  std::string text = R"({"name": "openvino", "version": 1, "objective": "cover", )"
                     R"("units": [{"name": "graph", "ops": [)";
  bool first = true;
  for (std::string_view rest = kTypes; !rest.empty(); rest.remove_prefix(rest.find(' ') + 1)) {
    if (!std::exchange(first, false)) text += ", ";
    text += R"({"type": ")";
    text += rest.substr(0, rest.find(' '));
    text += R"("})";
  }
  return text +
         R"(]}], "links": [["graph", "graph"]], "start": ["graph"], "limits": {"min_group": 2}})";
}

std::string WhyNot(const heddle_engine_group& group) {
  for (size_t k = 0; k < group.num_operators; ++k) {
    const heddle_engine_operator& op = *group.operators[k];
    if (IsIn(kMisread, op.type)) return std::string(op.type) + " is read without its axes";
    std::string why = WhyNotSlots(group, op.inputs, op.num_inputs);
    if (why.empty()) why = WhyNotSlots(group, op.outputs, op.num_outputs);
    if (why.empty()) why = WhyNotConstant(group, op);
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace heddle_openvino
