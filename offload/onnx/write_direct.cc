// Operators with slots and attributes of ONNX: slot by slot. Their slots and attributes are
// those of the newest version; what opset 17 has otherwise is said here.
#include <algorithm>

#include "offload/onnx/handlers.h"

namespace heddle::offload::to_onnx {
namespace {

// What an operator may be beside a copy of its slots and attributes.
enum Special : unsigned {
  kPlain = 0,
  kNoCell = 4,     // a recurrent network without a cell's state
  kOneResult = 8,  // ONNX has the first output alone
};

struct Direct {
  std::string_view type, onnx, attributes;  // separated by spaces
  Special special = kPlain;
};

constexpr Direct kDirect[] = {
    {"hardmax", "Hardmax", "axis"},
    {"mean_variance_norm", "MeanVarianceNormalization", "axes"},
    {"onnx_average_pool", "AveragePool", "auto_pad kernel_shape pads strides count_include_pad"},
    {"compress", "Compress", ""},
    {"onnx_conv", "Conv", "group auto_pad kernel_shape pads strides dilations"},
    {"onnx_conv_transpose", "ConvTranspose",
     "group auto_pad kernel_shape pads strides dilations output_padding output_shape"},
    {"einsum", "Einsum", "equation", kOneResult},
    {"onnx_max_pool", "MaxPool", "auto_pad kernel_shape pads strides dilations storage_order"},
    {"onnx_resize", "Resize",
     "mode coordinate_transformation_mode nearest_mode cubic_coeff_a exclude_outside "
     "extrapolation_value"},
    {"onnx_shape", "Shape", ""},
    {"onnx_size", "Size", ""},
};

// recurrent_network by its attribute cell.
constexpr std::pair<std::string_view, Direct> kCells[] = {
    {"gru",
     {"recurrent_network", "GRU",
      "linear_before_reset direction hidden_size layout clip activations activation_alpha "
      "activation_beta",
      kNoCell}},
    {"lstm",
     {"recurrent_network", "LSTM",
      "input_forget direction hidden_size layout clip activations activation_alpha "
      "activation_beta"}},
    {"rnn",
     {"recurrent_network", "RNN",
      "direction hidden_size layout clip activations activation_alpha activation_beta", kNoCell}},
};

// Attributes that must be what they are when a file says nothing, since opset 17 does not have
// them, or has them in another meaning.
struct Unsaid {
  std::string_view type, attribute;
};
constexpr Unsaid kUnsaid[] = {
    {"onnx_average_pool", "ceil_mode"},
    {"compress", "has_axis"},
    {"hardmax", "flatten"},
    {"onnx_max_pool", "ceil_mode"},
    {"onnx_resize", "antialias"},
    {"onnx_resize", "axes"},
    {"onnx_resize", "keep_aspect_ratio_policy"},
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
    if (d.special == kNoCell && (slot.name == "initial_c" || slot.name == "P")) continue;
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
  size_t outputs = 0;
  const auto& slots = n.definition().outputs();
  const bool list = !slots.empty() && (slots[0].flags & kList) != 0;
  if (list)
    outputs = n.Outputs(slots[0].name);
  else
    for (size_t s = 0; s < slots.size(); ++s)
      if (n.Wants(slots[s].name)) outputs = s + 1;
  if (outputs == 0) return n.Refuse("nothing reads its results");
  if (d.special == kOneResult && outputs > 1) return n.Refuse("ONNX's ", d.onnx, " has one result");
  const Names made = n.MakeMany(d.onnx, std::move(inputs), outputs, std::move(attributes));
  for (size_t k = 0; k < outputs; ++k) n.Out(slots[list ? 0 : k].name, made[k], list ? k : 0);
}

// Between types that heddle has: as ONNX's own.
void WriteElementCast(NodeWriter& n) {
  const int64_t from = n.Int("from"), to = n.Int("to");
  const DType made = n.out_dtype("Out");
  if (from != ElementType(n.dtype("X")) || to != ElementType(made))
    return n.Refuse("it casts types that heddle holds in others");
  n.Out("Out", n.CastTo(n.In("X"), made));
}

}  // namespace

bool WriteDirect(NodeWriter& n) {
  if (n.type() == "cast_element_type") {
    WriteElementCast(n);
    return true;
  }
  if (n.type() == "recurrent_network") {
    for (const auto& [cell, direct] : kCells)
      if (cell == n.Text("cell")) WriteAs(n, direct);
    return true;
  }
  const auto* const found = std::find_if(std::begin(kDirect), std::end(kDirect),
                                         [&](const Direct& d) { return d.type == n.type(); });
  if (found == std::end(kDirect)) return false;
  WriteAs(n, *found);
  return true;
}

}  // namespace heddle::offload::to_onnx
