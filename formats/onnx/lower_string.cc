// Strings. Operators that only move, compare or order elements work on codes in place of the
// strings (string_encode); their results are decoded.
#include <map>

#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// An operator that works on codes, and whether its outputs are strings.
struct Mover {
  std::string_view op_type;
  bool makes_strings;
};
constexpr Mover kMovers[] = {
    {"Compress", true},        {"Concat", true},
    {"DepthToSpace", true},    {"Equal", false},
    {"Expand", true},          {"Flatten", true},
    {"Gather", true},          {"GatherElements", true},
    {"GatherND", true},        {"Pad", true},
    {"Reshape", true},         {"ReverseSequence", true},
    {"ScatterElements", true}, {"Scatter", true},
    {"ScatterND", true},       {"Shape", false},
    {"Size", false},           {"Slice", true},
    {"SpaceToDepth", true},    {"Split", true},
    {"Squeeze", true},         {"Tile", true},
    {"Transpose", true},       {"Unique", true},
    {"Unsqueeze", true},       {"Where", true},
    {"CenterCropPad", true},   {"ArrayFeatureExtractor", true},
};

const Mover* MoverOf(const Node& node) {
  for (const Mover& m : kMovers)
    if ((node.domain.empty() || node.domain == "ai.onnx.ml") && node.op_type == m.op_type)
      return &m;
  return nullptr;
}

}  // namespace

bool LowerStringMover(NodeLowering& n) {
  const Mover* mover = MoverOf(n.node());
  if (mover == nullptr) return false;
  std::vector<size_t> places;
  std::vector<int> strings;
  for (size_t i = 0; i < n.inputs(); ++i) {
    if (!n.Has(i) || !n.IsString(n.In(i))) continue;
    places.push_back(i);
    strings.push_back(n.In(i));
  }
  if (strings.empty()) return false;
  std::vector<std::string_view> outs(strings.size(), "Codes");
  outs.push_back("Texts");
  const std::vector<int> made = n.MakeMany("string_encode", {{"X", strings}}, {}, outs);
  n.SetType(made.back(), kString);
  // Lowers the same node on the codes, under names that no file can have.
  NameScope names;
  names.outer = n.around().names;
  Node& node = n.lowering().OwnNode(n.node());
  for (size_t k = 0; k < strings.size(); ++k) {
    n.SetType(made[k], kInt64);
    n.facts(made[k]).shape = n.shape(strings[k]);
    node.inputs[places[k]] = n.lowering().OwnName(k);
    names.vars.emplace(node.inputs[places[k]], made[k]);
  }
  // The file's output names are those of the decoded strings.
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (n.Wants(i)) node.outputs[i] = n.lowering().OwnName(node.inputs.size() + i);
  Surroundings around = n.around();
  around.names = &names;
  n.lowering().LowerNode(node, around);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!n.Wants(i)) continue;
    const int result = names.vars.at(node.outputs[i]);
    if (!mover->makes_strings || (i > 0 && node.op_type == "Unique")) {
      n.Result(i, result);
      continue;
    }
    const int text = n.Make("string_decode", {{"Texts", {made.back()}}, {"Codes", {result}}});
    n.SetType(text, kString);
    n.facts(text).shape = n.shape(result);
    n.Result(i, text);
  }
  return true;
}

namespace {

int StringResult(NodeLowering& n, int v) {
  n.SetType(v, kString);
  return v;
}

bool LowerStringConcat(NodeLowering& n) {
  const int made =
      n.Make("string_concat", {{"X", {n.Required(0)}}, {"Y", {n.Required(1)}}}, {}, "Z");
  n.Result(0, StringResult(n, made));
  return true;
}

bool LowerStringSplit(NodeLowering& n) {
  const std::vector<int> made = n.MakeMany(
      "string_split", {{"X", {n.Required(0)}}},
      {{"delimiter", n.Str("delimiter", "")}, {"maxsplit", n.Int("maxsplit", -1)}}, {"Y", "Z"});
  n.Result(0, StringResult(n, made[0]));
  n.draft_var(made[1]).dtype = DType::kI64;
  n.SetType(made[1], kInt64);
  n.Result(1, made[1]);
  return true;
}

bool LowerNormalizer(NodeLowering& n) {
  const Attribute* words = n.Find("stopwords");
  const int made = n.Make(
      "string_normalizer", {{"X", {n.Required(0)}}},
      {{"case_change_action", n.Str("case_change_action", "NONE")},
       {"is_case_sensitive", n.Int("is_case_sensitive", 0)},
       {"stopwords",
        words == nullptr ? Strings() : Strings(words->strings.begin(), words->strings.end())}},
      "Y");
  n.Result(0, StringResult(n, made));
  return true;
}

bool LowerRegex(NodeLowering& n) {
  const int made = n.Make("regex_full_match", {{"X", {n.Required(0)}}},
                          {{"pattern", n.Str("pattern", "")}}, "Y");
  n.draft_var(made).dtype = DType::kBool;
  n.SetType(made, kBool);
  n.Result(0, made);
  return true;
}

// Lowers a node on codes in place of strings: `node`, with `input` for its first
// input if given. Returns its first output; the others are bound to their names.
int LowerOverNumbers(NodeLowering& n, Node& node, int input) {
  NameScope names;
  names.outer = n.around().names;
  if (input != kNoDraft) {
    node.inputs[0] = n.lowering().OwnName(0);
    names.vars.emplace(node.inputs[0], input);
  }
  Surroundings around = n.around();
  around.names = &names;
  NodeLowering inner(n.lowering(), node, around, n.opset());
  if (!LowerDirect(inner)) {
    n.Problem("heddle does not have this operator");
    return n.NewVar(DType::kUnknown);
  }
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (const auto made = names.vars.find(node.outputs[i]); n.Wants(i) && made != names.vars.end())
      n.Result(i, made->second);
  return names.vars.at(node.outputs[0]);
}

// Words of a pool that are texts become their places among the distinct ones; all other words are
// -1, which is no word of the pool.
bool LowerTfIdf(NodeLowering& n) {
  const Attribute* pool = n.Find("pool_strings");
  const int x = n.Required(0);
  const bool has_texts = pool != nullptr && !pool->strings.empty();
  if (has_texts != n.IsString(x))
    n.Problem("has ", n.IsString(x) ? "texts" : "integers", ", and a pool of ",
              has_texts ? "texts" : "integers");
  if (!has_texts || !n.IsString(x)) return false;
  Strings keys;
  std::map<std::string_view, int64_t> places;
  Node& node = n.lowering().OwnNode(n.node());
  std::erase_if(node.attributes, [](const Attribute& a) { return a.name == "pool_strings"; });
  Attribute& numbers = node.attributes.emplace_back();
  numbers.name = "pool_int64s";
  numbers.kind = Attribute::kInts;
  for (const std::string_view word : pool->strings) {
    const auto [place, added] = places.emplace(word, static_cast<int64_t>(keys.size()));
    if (added) keys.emplace_back(word);
    numbers.ints.push_back(place->second);
  }
  const int found = n.Make("string_find", {{"X", {x}}}, {{"keys", std::move(keys)}});
  n.draft_var(found).dtype = DType::kI64;
  n.SetType(found, kInt64);
  node.outputs[0] = n.lowering().OwnName(1);
  n.Result(0, LowerOverNumbers(n, node, found));
  return true;
}

bool LowerTokenizer(NodeLowering& n) {
  const Attribute* separators = n.Find("separators");
  const int made =
      n.Make("string_tokenize", {{"X", {n.Required(0)}}},
             {{"mark", n.Int("mark", 0) != 0},
              {"pad_value", n.Str("pad_value", "")},
              {"mincharnum", n.Int("mincharnum", 1)},
              {"separators", separators == nullptr
                                 ? Strings()
                                 : Strings(separators->strings.begin(), separators->strings.end())},
              {"tokenexp", n.Str("tokenexp", "")}},
             "Y");
  n.Result(0, StringResult(n, made));
  return true;
}

// --- ai.onnx.ml

// Keys or values of a LabelEncoder: an attribute of one of three kinds, or a tensor.
struct Labels {
  Strings strings;
  Ints ints;
  Floats floats;
  int type = kUndefinedType;
  size_t size() const { return strings.size() + ints.size() + floats.size(); }
};

Labels LabelsOf(NodeLowering& n, std::string_view stem) {
  Labels made;
  const auto find = [&](std::string_view end) {
    return n.Find(std::string(stem) + std::string(end));
  };
  if (const Attribute* a = find("_strings")) {
    made.strings.assign(a->strings.begin(), a->strings.end());
    made.type = kString;
  } else if (const Attribute* a = find("_int64s")) {
    made.ints = a->ints;
    made.type = kInt64;
  } else if (const Attribute* a = find("_floats")) {
    made.floats = a->floats;
    made.type = kFloat;
  } else if (const Attribute* a = find("_tensor"); a != nullptr && a->tensor != nullptr) {
    made.type = a->tensor->type;
    if (made.type == kString) {
      made.strings.assign(a->tensor->strings.begin(), a->tensor->strings.end());
      return made;
    }
    const auto t = MakeTensor(*a->tensor);
    if (!t.ok()) return {};
    const int v = n.HoldConstant(*t, made.type);
    if (const auto ints = n.ConstantInts(v))
      made.ints = *ints;
    else if (const auto floats = n.ConstantFloats(v))
      made.floats = *floats;
  }
  return made;
}

// A constant of the values, followed by the default value.
int ValuesWithDefault(NodeLowering& n, Labels values) {
  const Attribute* tensor = n.Find("default_tensor");
  Labels other;
  if (tensor != nullptr && tensor->tensor != nullptr) {
    if (const auto t = MakeTensor(*tensor->tensor); t.ok()) {
      const int v = n.HoldConstant(*t, tensor->tensor->type);
      if (const auto ints = n.ConstantInts(v))
        other.ints = *ints;
      else if (const auto floats = n.ConstantFloats(v))
        other.floats = *floats;
    } else if (!tensor->tensor->strings.empty()) {
      other.strings.assign(1, std::string(tensor->tensor->strings[0]));
    }
  }
  if (values.type == kString) {
    values.strings.push_back(other.strings.empty() ? n.Str("default_string", "_Unused")
                                                   : other.strings[0]);
    return n.StringsConstant(values.strings, kString);
  }
  if (!values.floats.empty() || IsFloat(StorageOf(values.type))) {
    values.floats.push_back(other.floats.empty() ? n.Float("default_float", -0.0)
                                                 : other.floats[0]);
    return n.FloatsConstant(values.floats, StorageOf(values.type));
  }
  values.ints.push_back(other.ints.empty() ? n.Int("default_int64", -1) : other.ints[0]);
  const int all = n.IntsConstant(values.ints);
  return StorageOf(values.type) == DType::kI64 ? all : n.Cast(all, StorageOf(values.type));
}

// Looks up the index of each element of X among the keys (-1: absent), then gathers the value
// there; index -1 is the default, the last one.
bool LowerLabelEncoder(NodeLowering& n) {
  const int x = n.Required(0);
  Labels keys = LabelsOf(n, "keys"), values = LabelsOf(n, "values");
  if (const Attribute* classes = n.Find("classes_strings")) {  // the first version
    keys = values = {};
    const Strings texts(classes->strings.begin(), classes->strings.end());
    Ints numbers;
    for (size_t i = 0; i < texts.size(); ++i) numbers.push_back(static_cast<int64_t>(i));
    (n.IsString(x) ? keys : values).strings = texts;
    (n.IsString(x) ? keys : values).type = kString;
    (n.IsString(x) ? values : keys).ints = numbers;
    (n.IsString(x) ? values : keys).type = kInt64;
  }
  if (keys.size() == 0 || keys.size() != values.size()) {
    n.Problem("has ", keys.size(), " keys and ", values.size(), " values");
    n.Result(0, x);
    return true;
  }
  int place = 0;
  if (n.IsString(x)) {
    place = n.Make("string_find", {{"X", {x}}}, {{"keys", keys.strings}});
  } else {
    Attrs attrs = {{"default_int64", int64_t{-1}}};
    Ints numbers;
    for (size_t i = 0; i < keys.size(); ++i) numbers.push_back(static_cast<int64_t>(i));
    attrs.emplace_back("values_int64s", numbers);
    if (keys.floats.empty())
      attrs.emplace_back("keys_int64s", keys.ints);
    else
      attrs.emplace_back("keys_floats", keys.floats);
    place = n.Make("onnx_ml_label_encoder", {{"X", {x}}}, std::move(attrs), "Y");
  }
  n.draft_var(place).dtype = DType::kI64;
  n.SetType(place, kInt64);
  const int all = ValuesWithDefault(n, values);
  if (values.type == kString) {
    n.Result(0, StringResult(n, n.Make("string_decode", {{"Texts", {all}}, {"Codes", {place}}})));
    return true;
  }
  const int made =
      n.Make("gather", {{"X", {all}}, {"Index", {place}}}, {{"index_shape", true}, {"wrap", true}});
  n.SetType(made, values.type);
  n.Result(0, made);
  return true;
}

// A classifier whose classes are strings: its class indices are decoded.
bool LowerClassifier(NodeLowering& n) {
  const Attribute* labels = n.Find("classlabels_strings");
  if (labels == nullptr || labels->strings.empty()) return false;
  Node& node = n.lowering().OwnNode(n.node());
  node.outputs[0] = n.lowering().OwnName(1);
  const int number = LowerOverNumbers(n, node, kNoDraft);
  n.draft_var(number).dtype = DType::kI64;
  const int texts =
      n.StringsConstant(Strings(labels->strings.begin(), labels->strings.end()), kString);
  n.Result(0, StringResult(n, n.Make("string_decode", {{"Texts", {texts}}, {"Codes", {number}}})));
  return true;
}

// Categories that are strings are replaced by their indices in the list, which may be empty where
// elements are numbers.
bool LowerOneHotEncoder(NodeLowering& n) {
  const Attribute* cats = n.Find("cats_strings");
  if (cats == nullptr) return false;
  const int x = n.Required(0);
  const Strings keys(cats->strings.begin(), cats->strings.end());
  Node& node = n.lowering().OwnNode(n.node());
  node.outputs[0] = n.lowering().OwnName(1);
  std::erase_if(node.attributes, [](const Attribute& a) { return a.name == "cats_strings"; });
  int places = kNoDraft;
  if (n.IsString(x)) {
    places = n.Make("string_find", {{"X", {x}}}, {{"keys", keys}});
    n.draft_var(places).dtype = DType::kI64;
    n.SetType(places, kInt64);
    Attribute& numbers = node.attributes.emplace_back();
    numbers.name = "cats_int64s";
    numbers.kind = Attribute::kInts;
    for (size_t i = 0; i < keys.size(); ++i) numbers.ints.push_back(static_cast<int64_t>(i));
  } else if (!keys.empty()) {
    n.Problem("has categories that are texts, and elements that are numbers");
  }
  n.Result(0, LowerOverNumbers(n, node, places));
  return true;
}

// ZipMap makes a sequence of maps: the program computes the values, and the maps are made when
// outputs leave it (formats/onnx/value_file.cc).
bool LowerZipMap(NodeLowering& n) {
  auto keys = std::make_shared<MapKeys>();
  keys->ints = n.IntList("classlabels_int64s");
  if (const Attribute* a = n.Find("classlabels_strings"))
    keys->strings.assign(a->strings.begin(), a->strings.end());
  const int made = n.Unary("assign", n.Required(0));
  n.facts(made).keys = std::move(keys);
  n.Result(0, made);
  return true;
}

constexpr HandlerEntry kStringEntries[] = {
    {"", "RegexFullMatch", &LowerRegex},
    {"", "StringConcat", &LowerStringConcat},
    {"", "StringNormalizer", &LowerNormalizer},
    {"", "StringSplit", &LowerStringSplit},
    {"", "TfIdfVectorizer", &LowerTfIdf},
    {"ai.onnx.ml", "LabelEncoder", &LowerLabelEncoder},
    {"ai.onnx.ml", "LinearClassifier", &LowerClassifier},
    {"ai.onnx.ml", "OneHotEncoder", &LowerOneHotEncoder},
    {"ai.onnx.ml", "SVMClassifier", &LowerClassifier},
    {"ai.onnx.ml", "TreeEnsembleClassifier", &LowerClassifier},
    {"ai.onnx.ml", "ZipMap", &LowerZipMap},
    {"com.microsoft", "Tokenizer", &LowerTokenizer},
};

}  // namespace

std::span<const HandlerEntry> StringHandlers() { return kStringEntries; }

}  // namespace heddle::onnx
