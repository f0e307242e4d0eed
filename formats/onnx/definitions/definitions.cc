#include "formats/onnx/definitions/definitions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/tables/packed_rows.h"
#include "formats/lowering/type_list.h"

namespace heddle::onnx {
namespace {

using formats::FileType;
using formats::TakeWord;

constexpr std::string_view kDefinitionsText[][6] = {
// sorted by the first column, then by the opset
#include "formats/onnx/definitions/op_definitions.inc"
};
constexpr PackedRows<std::size(kDefinitionsText), 6, BytesOfRows(kDefinitionsText)> kDefinitions(
    kDefinitionsText);

// Old files have these attributes on many operators, also where the version has lost them.
constexpr std::array<std::string_view, 2> kOldAttributes = {"consumed_inputs", "is_test"};

int NumberIn(std::string_view digits) {
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// An input or output of a definition.
struct Argument {
  std::string_view type;  // a type parameter or a type
  bool optional = false, repeated = false, of_one_type = true;
};

Argument ReadArgument(std::string_view word) {
  Argument a;
  a.optional = word.ends_with('?');
  a.repeated = word.ends_with('+') || word.ends_with('*');
  a.of_one_type = !word.ends_with('*');
  if (a.optional || a.repeated) word.remove_suffix(1);
  a.type = word;
  return a;
}

// Calls fn(k, argument) for as many of the node's inputs or outputs as the definition has.
template <typename Fn>
void EachArgument(std::string_view words, size_t count, Fn&& fn) {
  Argument a;
  for (size_t k = 0; k < count; ++k) {
    if (!words.empty())
      a = ReadArgument(TakeWord(&words));
    else if (!a.repeated)
      return;
    fn(k, a);
  }
}

// The number of names without empty ones at the end of the list.
size_t Given(const std::vector<std::string_view>& names) {
  size_t count = names.size();
  while (count > 0 && names[count - 1].empty()) --count;
  return count;
}

const char* NameOfKind(int kind) {
  constexpr const char* kNames[] = {"of no type",
                                    "a float",
                                    "an integer",
                                    "a text",
                                    "a tensor",
                                    "a graph",
                                    "a list of floats",
                                    "a list of integers",
                                    "a list of texts",
                                    "a list of tensors",
                                    "a list of graphs",
                                    "a sparse tensor",
                                    "a list of sparse tensors",
                                    "a type",
                                    "a list of types"};
  return kind >= 0 && kind < static_cast<int>(std::size(kNames)) ? kNames[kind] : kNames[0];
}

std::string_view NameOfType(int element) { return TypeName(element); }

// Whether a word for a type is a type, no parameter.
bool IsType(std::string_view word) {
  if (word.starts_with('s')) word.remove_prefix(1);
  return !word.empty() && word[0] >= '0' && word[0] <= '9';
}

FileType TypeOfValue(NodeLowering& n, int v) {
  const VarFacts& facts = n.facts(v);
  if (facts.keys != nullptr) return {};
  switch (facts.kind) {
    case Type::Kind::kTensor:
      return {facts.type, false};
    case Type::Kind::kSequence:
      return {facts.type, true};
    case Type::Kind::kOptional:
      return {facts.type, facts.of_sequence};
    default:
      return {};
  }
}
FileType TypeOfInput(NodeLowering& n, size_t i) {
  return n.Has(i) ? TypeOfValue(n, n.Lookup(n.node().inputs[i])) : FileType{};
}

// The types that a node's type parameters stand for, which its inputs decide.
class Parameters {
 public:
  struct Bound {
    std::string_view parameter;
    FileType type;
    size_t input;
  };
  const Bound* Find(std::string_view parameter) const {
    for (const Bound& b : bound_)
      if (b.parameter == parameter) return &b;
    return nullptr;
  }
  void Bind(std::string_view parameter, FileType type, size_t input) {
    bound_.push_back({parameter, type, input});
  }

 private:
  std::vector<Bound> bound_;
};

bool CheckCounts(NodeLowering& n, const OpDefinition& def) {
  const Node& node = n.node();
  bool right = true;
  const auto check = [&](std::string_view words, size_t given, const char* what,
                         const char* takes) {
    size_t most = 0;
    bool any = false;
    while (!words.empty()) {
      any = any || ReadArgument(TakeWord(&words)).repeated;
      ++most;
    }
    if (any || given <= most) return;
    n.Problem("has ", given, " ", what, "; this operator ", takes, " at most ", most);
    right = false;
  };
  check(def.inputs, Given(node.inputs), "inputs", "takes");
  check(def.outputs, Given(node.outputs), "outputs", "gives");
  size_t wanted = 0;
  for (std::string_view words = def.inputs; !words.empty(); ++wanted) {
    const Argument a = ReadArgument(TakeWord(&words));
    if (a.optional || (a.repeated && !a.of_one_type) || n.Has(wanted)) continue;
    n.Problem("input ", wanted, " is not given");
    right = false;
  }
  return right;
}

bool CheckAttributesOf(NodeLowering& n, const OpDefinition& def) {
  const auto word_of = [&](std::string_view name) {
    return formats::AllowedFor(name, def.attributes);
  };
  bool right = true;
  for (const Attribute& a : n.node().attributes) {
    const std::string_view kind = word_of(a.name);
    if (kind.empty() &&
        std::find(kOldAttributes.begin(), kOldAttributes.end(), a.name) == kOldAttributes.end()) {
      n.Problem("has an attribute '", a.name, "', which this operator does not have");
      right = false;
    } else if (!kind.empty() && a.kind != Attribute::kUndefined && NumberIn(kind) != a.kind) {
      n.Problem("attribute '", a.name, "' is ", NameOfKind(a.kind), ", where ",
                NameOfKind(NumberIn(kind)), " is expected");
      right = false;
    }
  }
  for (std::string_view words = def.attributes; !words.empty();) {
    const std::string_view word = TakeWord(&words), name = word.substr(0, word.find(':'));
    if (!word.ends_with('!') || n.Find(name) != nullptr) continue;
    if (std::find(kOldAttributes.begin(), kOldAttributes.end(), name) != kOldAttributes.end())
      continue;
    n.Problem("has no attribute '", name, "'");
    right = false;
  }
  return right;
}

// The constant of a Pad is one number: some files hold a float beside integers, which the onnx
// package's own implementation takes.
bool MayDiffer(const NodeLowering& n, size_t i) {
  return i == 2 && n.node().op_type == "Pad" && n.node().domain.empty();
}

// Checks the known types of inputs; the first one of a parameter decides for the others.
bool CheckTypes(NodeLowering& n, const OpDefinition& def, Parameters* parameters, bool report) {
  bool right = true;
  EachArgument(def.inputs, n.node().inputs.size(), [&](size_t i, const Argument& a) {
    const FileType is = a.type == "-" ? FileType{} : TypeOfInput(n, i);
    if (!is.known()) return;
    const std::string_view allowed =
        IsType(a.type) ? a.type : formats::AllowedFor(a.type, def.types);
    std::string expected;
    const Parameters::Bound* const bound =
        IsType(a.type) || !a.of_one_type ? nullptr : parameters->Find(a.type);
    if (allowed != "-" && !formats::Lists(allowed, is))
      expected = formats::NamesOf(allowed, &NameOfType);
    else if (bound != nullptr && !(bound->type == is) && !MayDiffer(n, i))
      expected = StrCat(formats::NameOf(bound->type, &NameOfType), " as of input ", bound->input);
    if (bound == nullptr && !IsType(a.type) && a.of_one_type && expected.empty())
      parameters->Bind(a.type, is, i);
    if (expected.empty() || !report) return;
    n.Problem("input ", i, " ('", n.node().inputs[i], "') is ", formats::NameOf(is, &NameOfType),
              ", expected ", expected);
    right = false;
  });
  return right;
}

}  // namespace

std::optional<OpDefinition> DefinitionOf(std::string_view domain, std::string_view op_type,
                                         int64_t opset) {
  const std::string key = domain.empty() ? std::string(op_type) : StrCat(domain, ":", op_type);
  std::optional<OpDefinition> found;
  for (size_t row = kDefinitions.LowerBound(key); kDefinitions.Is(row, key); ++row) {
    const auto [name, since, inputs, outputs, types, attributes] = kDefinitions[row];
    if (NumberIn(since) > opset) break;
    found = OpDefinition{inputs, outputs, types, attributes};
  }
  return found;
}

std::vector<std::pair<std::string_view, int64_t>> AllDefinitions() {
  std::vector<std::pair<std::string_view, int64_t>> all;
  for (size_t row = 0; row < kDefinitions.size(); ++row)
    all.emplace_back(kDefinitions.Cell(row, 0), NumberIn(kDefinitions.Cell(row, 1)));
  return all;
}

bool CheckDefinition(NodeLowering& n) {
  const auto def = DefinitionOf(n.node().domain, n.node().op_type, n.opset());
  if (!def) return true;
  const bool counts = CheckCounts(n, *def), attributes = CheckAttributesOf(n, *def);
  Parameters parameters;
  return CheckTypes(n, *def, &parameters, true) && counts && attributes;
}

void SetDefinedTypes(NodeLowering& n) {
  const auto def = DefinitionOf(n.node().domain, n.node().op_type, n.opset());
  if (!def) return;
  Parameters parameters;
  CheckTypes(n, *def, &parameters, false);
  EachArgument(def->outputs, n.node().outputs.size(), [&](size_t i, const Argument& a) {
    if (!n.Wants(i) || a.type == "-" || !a.of_one_type) return;
    const Parameters::Bound* const bound = parameters.Find(a.type);
    const FileType said = bound != nullptr ? bound->type
                          : IsType(a.type) ? formats::OnlyType(a.type)
                                           : FileType{};
    n.SayType(i, said);
  });
}

}  // namespace heddle::onnx
