// Calls of functions. The nodes of an instance are analysed once, and lowered at each of its calls.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/programs/function_library.h"
#include "formats/tensorflow/functions/library.h"
#include "formats/tensorflow/functions/values.h"
#include "formats/tensorflow/lower.h"
#include "formats/tensorflow/node_lowering.h"

namespace heddle::tensorflow {

const Attribute* AttributeIn(const Instance& instance, const Node& node, std::string_view name) {
  const Attribute* a = node.Find(name);
  if (a == nullptr || a->kind != Attribute::kPlaceholder) return a;
  if (instance.attributes == nullptr || instance.body == nullptr) return nullptr;
  const size_t at = instance.body->Place(a->s);  // of the same attributes
  return at < instance.attributes->size() ? &(*instance.attributes)[at] : nullptr;
}

Result<FunctionLibrary::Handle> Lowering::InstanceFor(NodeLowering& n,
                                                      const FunctionName& function) {
  return library_.Instantiate(
      function.name, WithoutPlaceholders(ValuesOf(function.attributes), n.instance().body));
}

NodeGraph Lowering::GraphOf(const FunctionBody& instance) {
  return {*functions_.at(instance.definition->name), instance.argument_sizes,
          [this, &instance](const Node& node, std::string_view argument) {
            return OutputsOf(&library_, instance,
                             instance.definition->nodes[static_cast<size_t>(node.index)], argument);
          }};
}

std::optional<NodeGraph> Lowering::GraphOf(const FunctionName& function) {
  const auto called = library_.Instantiate(function.name, ValuesOf(function.attributes));
  if (!called.ok()) return std::nullopt;  // the error is reported at its call
  return GraphOf(library_.Body(*called));
}

Lowering::Body* Lowering::BodyOf(FunctionLibrary::Handle handle) {
  auto& body = bodies_[handle];
  if (body != nullptr) return body.get();
  const FunctionBody& instance = library_.Body(handle);
  body = std::make_unique<Body>(*functions_.at(instance.definition->name), instance,
                                GraphOf(instance));
  FindRegion(body.get());
  return body.get();
}

void Lowering::FindRegion(Body* body) {
  const Function& f = *body->function;
  const auto broken = [&](const std::string& why) {
    builder_.Problem("function '", f.name, "': ", why);
    body->broken = true;
  };
  for (const NamedFunctionValue& value : body->instance->attributes) {
    auto attribute = AttributeOf(value, &body->held);
    if (!attribute.ok()) return broken(attribute.status().message());
    body->attributes.push_back(*std::move(attribute));
  }
  if (!body->graph.duplicate().empty())
    broken(StrCat("two nodes are called '", body->graph.duplicate(), "'"));
  const FunctionDefinition& definition = *body->instance->definition;
  for (size_t i = 0; i < definition.results.size(); ++i) {
    const FunctionArgument& output = definition.results[i];
    const size_t wanted = body->instance->result_sizes[i];
    std::vector<Source> values;
    if (!output.from.empty()) values = body->graph.ResolveAll(output.from);
    const bool missing = output.from.empty() ||
                         std::any_of(values.begin(), values.end(),
                                     [](const Source& s) { return s.node == Source::kMissing; });
    if (missing)
      broken(StrCat("nothing makes its output '", output.name, "'"));
    else if (values.size() != wanted)
      broken(StrCat("its output '", output.name, "' is '", output.from, "', which are ",
                    values.size(), " values; ", wanted, " are expected"));
    values.resize(wanted);
    body->results.insert(body->results.end(), values.begin(), values.end());
  }
  std::vector<int> controls;
  for (std::string_view control : f.control_results) {
    controls.push_back(body->graph.Find(control));
    if (controls.back() < 0) broken(StrCat("it has no node '", control, "', which is to run"));
  }
  const std::vector<bool> needed = body->graph.Ancestors(body->results, controls);
  body->graph.NoteUses(needed, body->results);
  // A node may also call functions that the attributes of this function name.
  const MayWrite may_write = [&](const Node& node) {
    bool writes = may_write_(node);
    for (const Attribute& a : node.attributes) {
      if (a.kind != Attribute::kPlaceholder) continue;
      for (const Attribute& given : body->attributes)
        if (given.name == a.s)
          EachNamed(given, [&](std::string_view called) {
            writes = writes || writing_functions_.contains(called);
          });
    }
    return writes;
  };
  auto region = Structure(body->graph, needed, may_write);
  if (region.ok())
    body->region = *std::move(region);
  else
    broken(region.status().message());
}

std::vector<int> Lowering::Call(NodeLowering& n, const FunctionName& function,
                                const std::vector<int>& arguments, std::vector<bool> given_away) {
  if (!library_.Has(function.name)) {
    n.Problem("calls '", function.name, "', a function that the file does not have");
    return {};
  }
  std::vector<int> results;
  const auto give_up = [&](size_t count) {
    for (size_t k = 0; k < count; ++k)
      results.push_back(NewVar(FreshName(function.name), DType::kUnknown));
    return results;
  };
  const auto handle = InstanceFor(n, function);
  if (!handle.ok()) {
    n.Problem(handle.status().message());
    return give_up(functions_.at(function.name)->outputs.size());
  }
  Body* body = BodyOf(*handle);
  if (body->broken) return give_up(body->results.size());
  if (n.instance().depth >= kMostDepth) {
    n.Problem("functions call each other more than ", kMostDepth, " deep");
    return give_up(body->results.size());
  }
  if (arguments.size() != body->instance->arguments.size()) {
    n.Problem("gives ", arguments.size(), " values to function '", function.name, "', which takes ",
              body->instance->arguments.size());
    return give_up(body->results.size());
  }
  // Unneeded nodes count a little too, since they take memory.
  nodes_lowered_ += body->graph.size() / 64;
  Instance inside;
  inside.graph = &body->graph;
  inside.values.resize(body->graph.size());
  inside.arguments = arguments;
  inside.given_away = std::move(given_away);
  inside.body = body->instance;
  inside.attributes = &body->attributes;
  inside.function = body->function->name;
  inside.depth = n.instance().depth + 1;
  LowerRegion(body->region, inside);
  for (size_t k = 0; k < body->results.size(); ++k)
    results.push_back(ValueOf(inside, body->results[k], n.node(), body->instance->results[k].name));
  return results;
}

bool Lowering::HandsOn(NodeLowering& n, const FunctionName& function, size_t k) {
  const auto handle = InstanceFor(n, function);
  const Body* body = handle.ok() ? BodyOf(*handle) : nullptr;
  if (body == nullptr || body->broken || k >= body->results.size()) return false;
  Source s = body->results[k];
  for (size_t steps = 0; s.is_node() && steps <= body->graph.size(); ++steps) {
    const Node& node = body->graph.node(s.node);
    const auto& inputs = body->graph.links(s.node).inputs;
    if (node.op != "Identity" || inputs.empty()) return false;
    s = inputs[0];
  }
  return s == Source{Source::kArgument, static_cast<int>(k)};
}

}  // namespace heddle::tensorflow
