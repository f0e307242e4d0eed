// Lowers nodes to heddle's operators that have ONNX's slots (many are called onnx_…), or to those
// that mean the same (words.h): input by input, output by output, in the order of the newest
// version's definition.
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <variant>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/own_ops/own_registry.h"
#include "formats/onnx/node_lowering.h"
#include "formats/onnx/words.h"

namespace heddle::onnx {
namespace {

// "RMSNormalization" -> "rms_normalization", "ReduceL1" -> "reduce_l1".
std::string SnakeCase(std::string_view name) {
  std::string text;
  const auto is = [&](size_t i, int (*kind)(int)) {
    return i < name.size() && kind(static_cast<unsigned char>(name[i])) != 0;
  };
  for (size_t i = 0; i < name.size(); ++i) {
    const bool begins =
        i > 0 && is(i, std::isupper) &&
        (is(i - 1, std::islower) || (is(i - 1, std::isupper) && is(i + 1, std::islower)));
    if (begins) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return text;
}

std::string OperatorName(const Node& node) {
  static constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
      {"", "onnx_"},
      {"ai.onnx.ml", "onnx_ml_"},
      {"com.microsoft", "onnx_ms_"},
      {"ai.onnx.preview", "onnx_preview_"},
      {"ai.onnx.preview.training", "onnx_training_"}};
  for (const auto& [domain, prefix] : kPrefixes)
    if (node.domain == domain) return StrCat(prefix, SnakeCase(node.op_type));
  return {};
}

// Attributes of old files that mean nothing for inference.
constexpr std::array kIgnored = {"consumed_inputs", "is_test", "output_sequence", "stash_type"};

// Converts an attribute to the type that the operator declares.
Result<AttrValue> ValueOf(const Attribute& a, const AttrValue& like) {
  const auto strings = [&] { return Strings(a.strings.begin(), a.strings.end()); };
  switch (a.kind) {
    case Attribute::kInt:
      return AttrValue(a.i);
    case Attribute::kFloat:
      return AttrValue(double{a.f});
    case Attribute::kString:
      return std::holds_alternative<Strings>(like) ? AttrValue(Strings{std::string(a.s)})
                                                   : AttrValue(std::string(a.s));
    case Attribute::kInts:
      return AttrValue(a.ints);
    case Attribute::kFloats:
      return AttrValue(a.floats);
    case Attribute::kStrings:
      return AttrValue(strings());
    default:
      break;
  }
  if (a.kind != Attribute::kTensor || a.tensor == nullptr)
    return InvalidArgument("attribute '", a.name, "' is of a kind that is not expected");
  if (a.tensor->type == kString)
    return AttrValue(Strings(a.tensor->strings.begin(), a.tensor->strings.end()));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor t, MakeTensor(*a.tensor));
  Ints ints;
  Floats floats;
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (t.dtype() == DType::kF32) floats.push_back(t.data<float>()[i]);
    if (t.dtype() == DType::kF64) floats.push_back(t.data<double>()[i]);
    if (t.dtype() == DType::kI64) ints.push_back(t.data<int64_t>()[i]);
    if (t.dtype() == DType::kI32) ints.push_back(t.data<int32_t>()[i]);
    if (t.dtype() == DType::kU8) ints.push_back(t.data<uint8_t>()[i]);
  }
  if (static_cast<int64_t>(ints.size() + floats.size()) != t.numel())
    return Unimplemented("attribute '", a.name, "': a tensor of ", TypeName(a.tensor->type));
  if (!floats.empty() && t.numel() == 1 && std::holds_alternative<double>(like))
    return AttrValue(floats[0]);
  return floats.empty() ? AttrValue(std::move(ints)) : AttrValue(std::move(floats));
}

// A constant input from an attribute of an old version that is an input in the newest one.
int AsInput(NodeLowering& n, const Attribute& a) {
  const bool is_k = n.node().op_type == "TopK";
  const DType like = n.dtype(n.In(0));
  const bool of_input = n.node().op_type == "Clip" || n.node().op_type == "Pad";
  switch (a.kind) {
    case Attribute::kInt:
      return is_k ? n.IntsConstant({a.i}) : n.IntConstant(a.i);
    case Attribute::kInts:
      return n.IntsConstant(a.ints);
    case Attribute::kFloat:
      return n.FloatConstant(double{a.f}, of_input && like != DType::kUnknown ? like : DType::kF32);
    case Attribute::kFloats:
      return n.FloatsConstant(a.floats, DType::kF32);
    default:
      return kNoDraft;
  }
}

// An operator whose meaning changed with an opset: for nodes before it, heddle's operator gets this
// attribute.
struct OldMeaning {
  std::string_view op;
  int64_t before;
  std::string_view attribute;
  std::variant<bool, int64_t> value;
};
constexpr OldMeaning kOldMeanings[] = {
    {"Hardmax", 13, "axis", int64_t{1}},
    {"Hardmax", 13, "flatten", true},
};

AttrValue ValueOf(const OldMeaning& old) {
  if (const auto* number = std::get_if<int64_t>(&old.value)) return AttrValue(*number);
  return AttrValue(std::get<bool>(old.value));
}

// Outputs that are int64 for inputs of any type.
bool IsIndex(std::string_view op, size_t output) {
  if (op == "ArgMax" || op == "ArgMin" || op == "NonZero" || op == "NonMaxSuppression") return true;
  if (op == "TopK" || op == "MaxPool") return output == 1;
  return op == "Unique" && output > 0;
}

// The index of the attribute, also where heddle's lacks the suffix "_as_tensor".
int FindAttr(const OpDef& def, std::string_view name) {
  int a = def.FindAttr(name);
  constexpr std::string_view kAsTensor = "_as_tensor";
  if (a < 0 && name.ends_with(kAsTensor))
    a = def.FindAttr(name.substr(0, name.size() - kAsTensor.size()));
  return a;
}

// An operator of heddle's and its slots in the order of a node's inputs and outputs.
struct Said {
  const OpDef* def = nullptr;
  formats::Words words;
  std::vector<const SlotDef*> ins, outs;
};

// `own`: by an operator that was added from outside.
Said SaidAs(const Node& node, bool own) {
  Said said;
  if (const formats::Words* words = FindWords(node)) said.words = *words;
  said.def =
      own ? FindOwnOpOfFile(node.FullName())
          : FindOp(said.words.type.empty() ? OperatorName(node) : std::string(said.words.type));
  if (said.def == nullptr) return said;
  said.ins = said.words.Inputs(*said.def);
  said.outs = said.words.Outputs(*said.def);
  return said;
}

// heddle's name of a node's attribute; empty: it has none.
std::string_view NameOf(const Said& said, std::string_view attribute) {
  return said.words.inputs.empty() ? attribute : said.words.Named(attribute);
}

Ins InputsOf(NodeLowering& n, const Said& said) {
  Ins ins;
  const auto& slots = said.ins;
  for (size_t i = 0; i < n.inputs(); ++i) {
    const size_t slot = std::min(i, slots.size() - 1);
    if (slots.empty() || (i > slot && (slots[slot]->flags & kList) == 0)) {
      n.Problem("has ", n.inputs(), " inputs; at most ", slots.size(), " are expected");
      break;
    }
    if (i > slot)
      ins.back().second.push_back(n.In(i));
    else
      ins.emplace_back(slots[slot]->name, std::vector<int>{n.In(i)});
  }
  return ins;
}

// Converts the attributes; those that newer versions have as inputs go to `ins`.
Attrs AttributesOf(NodeLowering& n, const Said& said, Ins* ins) {
  const OpDef& def = *said.def;
  Attrs attrs;
  for (const Attribute& a : n.node().attributes) {
    const std::string_view name = NameOf(said, a.name);
    const int at = FindAttr(def, name);
    if (at >= 0) {
      const AttrDef& wanted = def.attrs()[static_cast<size_t>(at)];
      auto value = ValueOf(a, wanted.default_value);
      if (!value.ok()) {
        n.Problem(value.status().message());
        continue;
      }
      attrs.emplace_back(wanted.name, *std::move(value));
      if (const int has = def.FindAttr(StrCat("has_", a.name)); has >= 0)
        attrs.emplace_back(def.attrs()[static_cast<size_t>(has)].name, true);
    } else if (const int slot = def.FindInput(name == "k" ? "K" : name); slot >= 0) {
      if (const int v = AsInput(n, a); v != kNoDraft)
        ins->emplace_back(def.inputs()[static_cast<size_t>(slot)].name, std::vector<int>{v});
    } else if (std::find(kIgnored.begin(), kIgnored.end(), a.name) == kIgnored.end()) {
      n.Problem("has an attribute '", a.name, "', which this operator does not have");
    }
  }
  said.words.AddMeant(def, &attrs);
  for (const OldMeaning& old : kOldMeanings) {
    if (n.node().domain.empty() && n.node().op_type == old.op && n.opset() < old.before &&
        n.Find(old.attribute) == nullptr)
      attrs.emplace_back(old.attribute, ValueOf(old));
  }
  if (def.FindAttr("elem_type") >= 0 && n.Has(0)) {
    const int v = n.In(0);
    if (n.type(v) != TypeOf(n.dtype(v))) attrs.emplace_back("elem_type", int64_t{n.type(v)});
  }
  return attrs;
}

bool LowerAs(NodeLowering& n, const Said& said) {
  const OpDef* const def = said.def;
  if (def == nullptr) return false;
  Ins ins = InputsOf(n, said);
  Attrs attrs = AttributesOf(n, said, &ins);
  std::vector<std::string_view> outs;
  std::vector<size_t> places;
  const auto& out_slots = said.outs;
  for (size_t i = 0; i < n.node().outputs.size(); ++i) {
    const size_t slot = std::min(i, out_slots.size() - 1);
    const bool is_list = (out_slots[slot]->flags & kList) != 0;
    if (i > slot && !is_list) {
      n.Problem("has ", n.node().outputs.size(), " outputs; at most ", out_slots.size(),
                " are expected");
      break;
    }
    if (!n.Wants(i) && ((out_slots[slot]->flags & kOptional) != 0) && !is_list) continue;
    outs.push_back(out_slots[slot]->name);
    places.push_back(i);
  }
  const std::vector<int> made = n.MakeMany(def->name(), std::move(ins), std::move(attrs), outs);
  for (size_t k = 0; k < made.size(); ++k) {
    if (IsIndex(n.node().op_type, places[k])) n.SetType(made[k], kInt64);
    n.Result(places[k], made[k]);
  }
  return true;
}

}  // namespace

bool LowerDirect(NodeLowering& n) { return LowerAs(n, SaidAs(n.node(), false)); }

bool LowerOwn(NodeLowering& n) { return LowerAs(n, SaidAs(n.node(), true)); }

}  // namespace heddle::onnx
