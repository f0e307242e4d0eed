#include "formats/tensorflow/direct/ops_direct.h"

#include <algorithm>

#include "core/op_registry.h"
#include "core/shapes.h"
#include "formats/tensorflow/direct/words.h"

namespace heddle::tensorflow {
namespace {

// TensorFlow's operators, and heddle's with the same meaning.
constexpr std::pair<std::string_view, std::string_view> kDirect[] = {
    {"AdjustContrastv2", "adjust_contrast"},
    {"AdjustHue", "adjust_hue"},
    {"AdjustSaturation", "adjust_saturation"},
    {"CTCGreedyDecoder", "ctc_greedy_decoder"},
    {"CTCLoss", "ctc_loss"},
    {"CheckNumerics", "assert_finite"},
    {"CombinedNonMaxSuppression", "combined_non_max_suppression"},
    {"CropAndResize", "crop_and_resize"},
    {"Dilation2D", "dilation2d"},
    {"ExtractImagePatches", "extract_image_patches"},
    {"GRUBlockCell", "block_gru"},
    {"HSVToRGB", "hsv_to_rgb"},
    {"ImageProjectiveTransformV3", "projective_transform"},
    {"LSTMBlockCell", "block_lstm"},
    {"MaxPoolWithArgmax", "tf_max_pool_with_argmax"},
    {"NonMaxSuppressionV2", "non_max_suppression"},
    {"NonMaxSuppressionV3", "non_max_suppression"},
    {"RGBToHSV", "rgb_to_hsv"},
};

// Adds the node's attribute `name` in the type that the operator declares.
void AddAttribute(NodeLowering& n, const AttrDef& def, std::string_view name, Attrs* attrs) {
  const Attribute* a = n.Find(name);
  if (a == nullptr) return;
  const AttrValue& like = def.default_value;
  if (a->kind == Attribute::kType)
    attrs->emplace_back(def.name, DTypeToProto(StorageOf(BaseType(a->i))));
  else if (std::holds_alternative<bool>(like))
    attrs->emplace_back(def.name, n.Bool(name, false));
  else if (std::holds_alternative<int64_t>(like))
    attrs->emplace_back(def.name, n.Int(name, 0));
  else if (std::holds_alternative<double>(like))
    attrs->emplace_back(def.name, n.Float(name, 0));
  else if (std::holds_alternative<std::string>(like))
    attrs->emplace_back(def.name, n.Str(name, ""));
  else if (std::holds_alternative<Ints>(like))
    attrs->emplace_back(def.name, n.IntList(name));
  else if (std::holds_alternative<Floats>(like))
    attrs->emplace_back(def.name, n.FloatList(name));
}

bool LowerByName(NodeLowering& n) {
  if (const formats::Words* words = FindWords(n.op())) {
    std::vector<int> inputs = n.AllInputs();
    // Of complex numbers TensorFlow's slopes are not conjugated.
    const bool slope = words->type == "sigmoid_grad" || words->type == "tanh_grad";
    if (slope && !inputs.empty() && IsComplex(n.dtype(inputs[0])))
      inputs[0] = n.Unary("conj", inputs[0]);
    return LowerInWords(n, *words, inputs);
  }
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
  if (def.name() == "philox_random")
    return n.TypeAttr("dtype", n.inputs() == 4 ? DType::kI32 : DType::kF32);
  if (def.name() == "histogram_fixed_width") return n.TypeAttr("dtype", DType::kI32);
  if (def.FindAttr("out_type") >= 0) return n.TypeAttr("out_type", DType::kI32);
  return DType::kUnknown;
}

}  // namespace

void SayDType(NodeLowering& n, int v, DType dtype) { n.draft_var(v).dtype = dtype; }

Attrs AttributesIn(NodeLowering& n, const OpDef& def, const formats::Words& words) {
  Attrs attrs;
  for (const AttrDef& a : def.attrs()) AddAttribute(n, a, words.InFile(a.name), &attrs);
  words.AddMeant(def, &attrs);
  return attrs;
}

bool LowerDirect(NodeLowering& n, std::string_view type) {
  return LowerDirect(n, type, n.AllInputs());
}

bool LowerDirect(NodeLowering& n, std::string_view type, const std::vector<int>& inputs) {
  return LowerInWords(n, formats::Words{type}, inputs);
}

bool LowerInWords(NodeLowering& n, const formats::Words& words, const std::vector<int>& inputs) {
  const OpDef* def = FindOp(words.type);
  if (def == nullptr) return false;
  const std::vector<const SlotDef*> slots = words.Inputs(*def);
  size_t lists = 0;
  for (const SlotDef* slot : slots) lists += (slot->flags & kList) != 0 ? 1 : 0;
  const size_t singles = slots.size() - lists;
  const auto least = std::count_if(slots.begin(), slots.end(), [](const SlotDef* slot) {
    return (slot->flags & (kOptional | kList)) == 0;
  });
  if (inputs.size() < static_cast<size_t>(least))
    n.Problem("has ", inputs.size(), " inputs, expected ", least);
  const size_t each = lists == 0 || inputs.size() < singles ? 0 : (inputs.size() - singles) / lists;
  Ins ins;
  size_t at = 0;
  for (const SlotDef* slot : slots) {
    const size_t take = (slot->flags & kList) != 0 ? each : 1;
    std::vector<int> vars;
    for (size_t k = 0; k < take && at < inputs.size(); ++k) vars.push_back(inputs[at++]);
    if (vars.empty() && (slot->flags & (kOptional | kList)) == 0)
      vars.push_back(n.NewVar(DType::kUnknown));  // the problem is noted
    if (!vars.empty()) ins.emplace_back(slot->name, std::move(vars));
  }
  Attrs attrs = AttributesIn(n, *def, words);
  std::vector<std::string_view> outs;
  for (const SlotDef* slot : words.Outputs(*def)) {
    const int64_t count = (slot->flags & kList) != 0 ? OutputCount(n) : 1;
    if (!n.CheckOutputs(count)) return true;
    for (int64_t k = 0; k < count; ++k) outs.push_back(slot->name);
  }
  const std::vector<int> made = n.MakeMany(words.type, std::move(ins), std::move(attrs), outs);
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

int Permuted(NodeLowering& n, int v, const Ints& perm) {
  return n.Make("transpose2", {{"X", {v}}}, {{"axis", perm}});
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
    for (const WordsEntry& entry : AllWords()) made.push_back({entry.op, &LowerByName});
    return made;
  }();
  return entries;
}

}  // namespace heddle::tensorflow
