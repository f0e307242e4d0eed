#include "formats/onnx/functions/library.h"

#include <memory>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

using Kind = FunctionValue::Kind;

FunctionValue TextOf(Kind kind, std::string_view text) {
  FunctionValue value;
  value.kind = kind;
  value.text = text;
  return value;
}

FunctionValue NumberOf(int64_t number) {
  FunctionValue value;
  value.kind = Kind::kInt;
  value.i = number;
  return value;
}

FunctionValue NumberOf(double number) {
  FunctionValue value;
  value.kind = Kind::kFloat;
  value.f = number;
  return value;
}

template <typename T, typename Make>
FunctionValue ListOf(const std::vector<T>& items, const Make& make) {
  FunctionValue value;
  value.kind = Kind::kList;
  for (const T& item : items) value.items.push_back(make(item));
  return value;
}

FunctionValue ValueOf(const Attribute& a) {
  const auto message = [&](std::string_view what) {
    FunctionValue value = TextOf(Kind::kMessage, what);
    value.message = a.message;
    return value;
  };
  if (!a.reference.empty()) return TextOf(Kind::kPlaceholder, a.reference);
  switch (a.kind) {
    case Attribute::kFloat:
      return NumberOf(double{a.f});
    case Attribute::kInt:
      return NumberOf(a.i);
    case Attribute::kString:
      return TextOf(Kind::kString, a.s);
    case Attribute::kFloats:
      return ListOf(a.floats, [](double v) { return NumberOf(v); });
    case Attribute::kInts:
      return ListOf(a.ints, [](int64_t v) { return NumberOf(v); });
    case Attribute::kStrings:
      return ListOf(a.strings, [](std::string_view v) { return TextOf(Kind::kString, v); });
    case Attribute::kTensor:
      return message("tensor");
    case Attribute::kGraph:
      return message("graph");
    case Attribute::kSparse:
      return message("sparse tensor");
    case Attribute::kType:
      return message("type");
    default:
      return message("value");
  }
}

// Calls fn(node) for each node, then for the nodes of its graphs.
template <typename Fn>
void EachNode(const std::vector<Node>& nodes, const Fn& fn) {
  for (const Node& node : nodes) {
    fn(node);
    for (const Attribute& a : node.attributes)
      if (a.graph != nullptr) EachNode(a.graph->nodes, fn);
  }
}

FunctionNode FunctionNodeOf(const Node& node) {
  FunctionNode made;
  made.name = node.name;
  // A handler takes precedence over a function of the same name.
  const bool handled = FindHandler(node.domain, node.op_type) != nullptr;
  made.op = handled ? StrCat(node.domain.empty() ? "ai.onnx" : "", node.domain.empty() ? "." : "",
                             node.FullName())
                    : CalledBy(node);
  made.inputs.assign(node.inputs.begin(), node.inputs.end());
  made.outputs.assign(node.outputs.begin(), node.outputs.end());
  made.attributes = ValuesOf(node.attributes);
  return made;
}

FunctionDefinition DefinitionOf(const Function& f) {
  FunctionDefinition made;
  made.name = FunctionNameOf(f);
  for (std::string_view input : f.inputs) made.arguments.emplace_back().name = input;
  for (std::string_view output : f.outputs) {
    made.results.emplace_back().name = output;
    made.results.back().from = output;
  }
  std::unordered_set<std::string_view> declared;
  const auto declare = [&](std::string_view name, FunctionValue value) {
    if (declared.insert(name).second)
      made.attributes.push_back({std::string(name), "", std::move(value), true});
  };
  for (std::string_view name : f.attributes) declare(name, {});
  for (const Attribute& a : f.defaults) declare(a.name, ValueOf(a));
  EachNode(f.nodes, [&](const Node& node) {
    made.nodes.push_back(FunctionNodeOf(node));
    for (const Attribute& a : node.attributes)
      if (!a.reference.empty()) declare(a.reference, {});
  });
  return made;
}

std::string NameOf(std::string_view domain, std::string_view name, std::string_view overload) {
  return StrCat(domain, domain.empty() ? "" : ".", name, overload.empty() ? "" : ":", overload);
}

}  // namespace

std::string FunctionNameOf(const Function& f) { return NameOf(f.domain, f.name, f.overload); }
std::string CalledBy(const Node& node) { return NameOf(node.domain, node.op_type, node.overload); }

std::vector<NamedFunctionValue> ValuesOf(const std::vector<Attribute>& attributes) {
  std::vector<NamedFunctionValue> values;
  values.reserve(attributes.size());
  for (const Attribute& a : attributes) values.push_back({std::string(a.name), ValueOf(a)});
  return values;
}

FunctionLibrary LibraryOf(const Model& model) {
  FunctionLibrary library("onnx");
  for (const Function& f : model.functions)
    if (std::string name = FunctionNameOf(f); !library.Has(name))
      (void)library.Add(std::move(name), [&f] { return DefinitionOf(f); });
  return library;
}

Result<FunctionLibrary> LibraryOf(std::string bytes) {
  struct Kept {
    std::string bytes;
    Model model;
  };
  auto kept = std::make_shared<Kept>();
  kept->bytes = std::move(bytes);
  HEDDLE_ASSIGN_OR_RETURN(kept->model, ReadModel(kept->bytes));
  FunctionLibrary library = LibraryOf(kept->model);
  EachNode(kept->model.graph.nodes,
           [&](const Node& node) { library.CountCalls(FunctionNodeOf(node)); });
  library.Keep(std::move(kept));
  return library;
}

}  // namespace heddle::onnx
