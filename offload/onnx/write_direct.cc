// heddle's operators of ONNX's names (kernels/onnx*): slot by slot. Their slots and attributes are
// those of the newest version; what opset 17 has otherwise is said here.
#include <algorithm>

#include "offload/onnx/handlers.h"

namespace heddle::offload::to_onnx {
namespace {

// What an operator may be beside a copy of its slots and attributes.
enum Special : unsigned {
  kPlain = 0,
  kAxesAttribute = 1,  // input `axes` is an attribute
  kSections = 2,       // Split without a count of outputs
};

struct Direct {
  std::string_view type, onnx, attributes;  // separated by spaces
  Special special = kPlain;
};

constexpr Direct kDirect[] = {
    {"onnx_arg_max", "ArgMax", "axis keepdims select_last_index"},
    {"onnx_arg_min", "ArgMin", "axis keepdims select_last_index"},
    {"onnx_average_pool", "AveragePool", "auto_pad kernel_shape pads strides count_include_pad"},
    {"onnx_batch_normalization", "BatchNormalization", "epsilon momentum"},
    {"onnx_clip", "Clip", ""},
    {"onnx_compress", "Compress", ""},
    {"onnx_conv", "Conv", "group auto_pad kernel_shape pads strides dilations"},
    {"onnx_conv_transpose", "ConvTranspose",
     "group auto_pad kernel_shape pads strides dilations output_padding output_shape"},
    {"onnx_cum_sum", "CumSum", "exclusive reverse"},
    {"onnx_depth_to_space", "DepthToSpace", "blocksize mode"},
    {"onnx_div", "Div", ""},
    {"onnx_einsum", "Einsum", "equation"},
    {"onnx_expand", "Expand", ""},
    {"onnx_flatten", "Flatten", "axis"},
    {"onnx_gather", "Gather", "axis"},
    {"onnx_gather_elements", "GatherElements", "axis"},
    {"onnx_gather_nd", "GatherND", "batch_dims"},
    {"onnx_gemm", "Gemm", "alpha beta transA transB"},
    {"onnx_global_average_pool", "GlobalAveragePool", ""},
    {"onnx_global_max_pool", "GlobalMaxPool", ""},
    {"onnx_gru", "GRU",
     "linear_before_reset direction hidden_size layout clip activations activation_alpha "
     "activation_beta"},
    {"onnx_hardmax", "Hardmax", "axis"},
    {"onnx_instance_normalization", "InstanceNormalization", "epsilon"},
    {"onnx_is_inf", "IsInf", "detect_negative detect_positive"},
    {"onnx_layer_normalization", "LayerNormalization", "axis epsilon"},
    {"onnx_lp_normalization", "LpNormalization", "axis p"},
    {"onnx_lrn", "LRN", "size alpha beta bias"},
    {"onnx_lstm", "LSTM",
     "input_forget direction hidden_size layout clip activations activation_alpha "
     "activation_beta"},
    {"onnx_mat_mul", "MatMul", ""},
    {"onnx_max", "Max", ""},
    {"onnx_max_pool", "MaxPool", "auto_pad kernel_shape pads strides dilations storage_order"},
    {"onnx_mean", "Mean", ""},
    {"onnx_mean_variance_normalization", "MeanVarianceNormalization", "axes"},
    {"onnx_min", "Min", ""},
    {"onnx_mod", "Mod", "fmod"},
    {"onnx_non_zero", "NonZero", ""},
    {"onnx_one_hot", "OneHot", "axis"},
    {"onnx_p_relu", "PRelu", ""},
    {"onnx_pad", "Pad", "mode"},
    {"onnx_pow", "Pow", ""},
    {"onnx_range", "Range", ""},
    {"onnx_reduce_l1", "ReduceL1", "keepdims", kAxesAttribute},
    {"onnx_reduce_l2", "ReduceL2", "keepdims", kAxesAttribute},
    {"onnx_reduce_log_sum", "ReduceLogSum", "keepdims", kAxesAttribute},
    {"onnx_reduce_log_sum_exp", "ReduceLogSumExp", "keepdims", kAxesAttribute},
    {"onnx_reduce_max", "ReduceMax", "keepdims", kAxesAttribute},
    {"onnx_reduce_mean", "ReduceMean", "keepdims", kAxesAttribute},
    {"onnx_reduce_min", "ReduceMin", "keepdims", kAxesAttribute},
    {"onnx_reduce_prod", "ReduceProd", "keepdims", kAxesAttribute},
    {"onnx_reduce_sum", "ReduceSum", "keepdims noop_with_empty_axes"},
    {"onnx_reduce_sum_square", "ReduceSumSquare", "keepdims", kAxesAttribute},
    {"onnx_reshape", "Reshape", "allowzero"},
    {"onnx_resize", "Resize",
     "mode coordinate_transformation_mode nearest_mode cubic_coeff_a exclude_outside "
     "extrapolation_value"},
    {"onnx_reverse_sequence", "ReverseSequence", "batch_axis time_axis"},
    {"onnx_rnn", "RNN",
     "direction hidden_size layout clip activations activation_alpha activation_beta"},
    {"onnx_round", "Round", ""},
    {"onnx_scatter_elements", "ScatterElements", "axis reduction"},
    {"onnx_scatter_nd", "ScatterND", "reduction"},
    {"onnx_shape", "Shape", ""},
    {"onnx_size", "Size", ""},
    {"onnx_slice", "Slice", ""},
    {"onnx_space_to_depth", "SpaceToDepth", "blocksize"},
    {"onnx_split", "Split", "axis", kSections},
    {"onnx_squeeze", "Squeeze", ""},
    {"onnx_sum", "Sum", ""},
    {"onnx_tile", "Tile", ""},
    {"onnx_top_k", "TopK", "axis largest sorted"},
    {"onnx_transpose", "Transpose", "perm"},
    {"onnx_trilu", "Trilu", "upper"},
    {"onnx_unsqueeze", "Unsqueeze", ""},
    {"onnx_where", "Where", ""},
};

// Attributes that must be what they are when a file says nothing, since opset 17 does not have
// them, or has them in another meaning.
struct Unsaid {
  std::string_view type, attribute;
};
constexpr Unsaid kUnsaid[] = {
    {"onnx_average_pool", "ceil_mode"},
    {"onnx_batch_normalization", "training_mode"},
    {"onnx_compress", "has_axis"},
    {"onnx_hardmax", "flatten"},
    {"onnx_max_pool", "ceil_mode"},
    {"onnx_p_relu", "channels"},
    {"onnx_resize", "antialias"},
    {"onnx_resize", "axes"},
    {"onnx_resize", "keep_aspect_ratio_policy"},
    {"onnx_space_to_depth", "mode"},
};

template <typename Fn>
void ForWords(std::string_view words, Fn&& fn) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    fn(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

bool IsSayable(NodeWriter& n) {
  for (const Unsaid& u : kUnsaid) {
    if (n.type() != u.type || n.Find(u.attribute) == nullptr) continue;
    const auto& defs = n.definition().attrs();
    const int a = n.definition().FindAttr(u.attribute);
    if (*n.Find(u.attribute) == defs[static_cast<size_t>(a)].default_value) continue;
    n.Refuse("opset ", kOpset, " has no attribute ", u.attribute, " of such a value");
    return false;
  }
  // A type that heddle holds in another one.
  if (const AttrValue* held = n.Find("elem_type");
      held != nullptr && *held != AttrValue(int64_t{0})) {
    n.Refuse("its operands stand for another element type");
    return false;
  }
  // Factors of integers that are none themselves.
  if (n.type() == "onnx_gemm") n.IsFloat("A");
  // Spread windows of a mean are newer.
  if (n.type() == "onnx_average_pool") {
    const Ints& spread = n.IntList("dilations");
    if (std::any_of(spread.begin(), spread.end(), [](int64_t d) { return d != 1; }))
      n.Refuse("opset ", kOpset, " has no means of spread windows");
  }
  return n.why().empty();
}

void AddAttribute(NodeWriter& n, std::string_view name, Attributes* to) {
  const AttrValue* value = n.Find(name);
  if (value == nullptr) return n.Refuse("it has no attribute ", name);
  if (const auto* i = std::get_if<int64_t>(value)) {
    if (name == "hidden_size" && *i == 0) return;
    to->push_back({name, *i});
  } else if (const auto* b = std::get_if<bool>(value)) {
    to->push_back({name, int64_t{*b}});
  } else if (const auto* d = std::get_if<double>(value)) {
    if (name == "clip" && *d == 0) return;  // none
    const std::string& first = n.definition().inputs()[0].name;
    to->push_back({name, n.Float(*d, n.dtype(first))});
  } else if (const auto* s = std::get_if<std::string>(value)) {
    to->push_back({name, *s});
  } else if (const auto* ints = std::get_if<Ints>(value)) {
    if (!ints->empty()) to->push_back({name, *ints});
  } else if (const auto* floats = std::get_if<Floats>(value)) {
    if (!floats->empty()) to->push_back({name, *floats});
  } else if (const auto* texts = std::get_if<Strings>(value)) {
    if (!texts->empty()) to->push_back({name, *texts});
  }
}

Names InputsOf(NodeWriter& n, const Direct& d) {
  Names inputs;
  for (const SlotDef& slot : n.definition().inputs()) {
    const bool list = (slot.flags & kList) != 0;
    if (d.special == kAxesAttribute && slot.name == "axes") continue;
    if (!list && !n.Has(slot.name)) {
      inputs.emplace_back();
      continue;
    }
    for (size_t k = 0; k < n.Count(slot.name); ++k) inputs.push_back(n.In(slot.name, k));
  }
  return inputs;
}

void WriteAs(NodeWriter& n, const Direct& d) {
  if (!IsSayable(n)) return;
  Attributes attributes;
  ForWords(d.attributes, [&](std::string_view name) { AddAttribute(n, name, &attributes); });
  Names inputs = InputsOf(n, d);
  if (d.special == kAxesAttribute) {
    if (n.Has("axes")) {
      const Ints axes = n.RequiredInts("axes");
      if (axes.empty() && n.Int("noop_with_empty_axes") != 0)
        return n.Refuse("opset ", kOpset, " reduces all axes where none is named");
      if (!axes.empty()) attributes.push_back({"axes", axes});
    } else if (n.Int("noop_with_empty_axes") != 0) {
      return n.Refuse("opset ", kOpset, " reduces all axes where none is named");
    }
  }
  size_t outputs = 0;
  const auto& slots = n.definition().outputs();
  const bool list = !slots.empty() && (slots[0].flags & kList) != 0;
  if (list)
    outputs = n.Outputs(slots[0].name);
  else
    for (size_t s = 0; s < slots.size(); ++s)
      if (n.Wants(slots[s].name)) outputs = s + 1;
  if (d.special == kSections && !n.Has("input", 0)) return n.Refuse("it has no input");
  if (d.special == kSections && !n.Has("split")) {
    const Shape& x = n.shape("input");
    const int64_t axis = n.Axis(n.Int("axis"), "input");
    const auto count = static_cast<int64_t>(outputs);
    if (!x.known_rank() || x[static_cast<int>(axis)] < 0 || x[static_cast<int>(axis)] % count != 0)
      return n.Refuse("its parts may not be equal");
  }
  if (outputs == 0) return n.Refuse("nothing reads its results");
  const Names made = n.MakeMany(d.onnx, std::move(inputs), outputs, std::move(attributes));
  for (size_t k = 0; k < outputs; ++k) n.Out(slots[list ? 0 : k].name, made[k], list ? k : 0);
}

// Between types that heddle has: as ONNX's own.
void WriteOnnxCast(NodeWriter& n) {
  const int64_t from = n.Int("from"), to = n.Int("to");
  const DType made = n.out_dtype("output");
  if (from != ElementType(n.dtype("input")) || to != ElementType(made))
    return n.Refuse("it casts types that heddle holds in others");
  n.Out("output", n.CastTo(n.In("input"), made));
}

}  // namespace

bool WriteDirect(NodeWriter& n) {
  if (n.type() == "onnx_cast") {
    WriteOnnxCast(n);
    return true;
  }
  const auto* const found = std::find_if(std::begin(kDirect), std::end(kDirect),
                                         [&](const Direct& d) { return d.type == n.type(); });
  if (found == std::end(kDirect)) return false;
  WriteAs(n, *found);
  return true;
}

}  // namespace heddle::offload::to_onnx
