#include "formats/tensorflow/functions/library.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/error.h"
#include "formats/tensorflow/functions/values.h"
#include "formats/tensorflow/handlers.h"
#include "formats/tensorflow/types.h"
#include "formats/tensorflow/types/op_types.h"

namespace heddle::tensorflow {
namespace {

FunctionNode FunctionNodeOf(const Node& node) {
  FunctionNode made;
  made.name = node.name;
  made.op = node.op;
  made.inputs.assign(node.inputs.begin(), node.inputs.end());
  made.attributes = ValuesOf(node.attributes);
  return made;
}

std::vector<FunctionArgument> ArgumentsOf(const std::vector<Argument>& arguments) {
  std::vector<FunctionArgument> made;
  for (const Argument& a : arguments) {
    FunctionArgument& argument = made.emplace_back();
    argument.name = a.name;
    argument.type = static_cast<int>(a.type);
    argument.type_attribute = a.type_attribute;
    argument.number = a.number_attribute;
    argument.types = a.type_list_attribute;
  }
  return made;
}

FunctionDefinition DefinitionOf(const Function& f) {
  FunctionDefinition made;
  made.name = f.name;
  made.arguments = ArgumentsOf(f.inputs);
  made.results = ArgumentsOf(f.outputs);
  for (FunctionArgument& result : made.results)
    for (const auto& [name, from] : f.results)
      if (name == result.name) result.from = from;
  for (const DeclaredAttribute& a : f.attributes)
    made.attributes.push_back(
        {std::string(a.name), std::string(a.type), ValueOf(a.default_value), false});
  made.nodes.reserve(f.nodes.size());
  for (const Node& node : f.nodes) made.nodes.push_back(FunctionNodeOf(node));
  made.control_results.assign(f.control_results.begin(), f.control_results.end());
  return made;
}

// The number of values of each output argument of an operator of TensorFlow.
std::vector<int> CountsOf(const FunctionNode& node, size_t arguments, const FunctionBody& in) {
  const std::vector<NamedFunctionValue> values = in.AttributesOf(node);
  std::deque<std::string> held;
  std::deque<Attribute> attributes;
  return DefinedCounts(node.op, arguments, [&](std::string_view name) -> const Attribute* {
    for (const NamedFunctionValue& value : values) {
      if (value.name != name) continue;
      auto a = AttributeOf(value, &held);
      return a.ok() ? &attributes.emplace_back(*std::move(a)) : nullptr;
    }
    return nullptr;
  });
}

}  // namespace

std::optional<OutputRange> OutputsOf(FunctionLibrary* library, const FunctionBody& in,
                                     const FunctionNode& node, std::string_view argument) {
  std::vector<std::string_view> names;
  std::vector<int> counts;
  if (FindHandler(node.op) == nullptr && library->Has(node.op)) {
    const auto called = library->Instantiate(node.op, in.AttributesOf(node));
    if (!called.ok()) return std::nullopt;  // the error is reported at its call
    const FunctionBody& body = library->Body(*called);
    for (size_t i = 0; i < body.result_sizes.size(); ++i) {
      names.push_back(body.definition->results[i].name);
      counts.push_back(static_cast<int>(body.result_sizes[i]));
    }
  } else {
    for (std::string_view rest = OutputNames(node.op); !rest.empty();) {
      names.push_back(rest.substr(0, rest.find(' ')));
      rest.remove_prefix(std::min(names.back().size() + 1, rest.size()));
    }
    // The table of names leaves out operators with one output argument.
    if (names.empty()) names.push_back(argument);
    counts = CountsOf(node, names.size(), in);
  }
  OutputRange range;
  for (size_t i = 0; i < names.size(); ++i) {
    range.count = counts[i];
    if (names[i] == argument) return range;
    range.first += std::max(counts[i], 0);
  }
  return std::nullopt;
}

FunctionLibrary LibraryOf(const Model& model) {
  FunctionLibrary library(kFormatName, [](int type) { return TypeName(type); });
  for (const Function& f : model.graph.functions)
    if (!library.Has(f.name))
      (void)library.Add(std::string(f.name), [&f] { return DefinitionOf(f); });
  return library;
}

Result<FunctionLibrary> LibraryOf(std::string bytes, std::string_view signature) {
  struct Kept {
    std::string bytes;
    Model model;
  };
  auto kept = std::make_shared<Kept>();
  kept->bytes = std::move(bytes);
  HEDDLE_ASSIGN_OR_RETURN(kept->model, ReadModel(kept->bytes, signature));
  FunctionLibrary library = LibraryOf(kept->model);
  for (const Node& node : kept->model.graph.nodes) library.CountCalls(FunctionNodeOf(node));
  library.Keep(std::move(kept));
  return library;
}

}  // namespace heddle::tensorflow
