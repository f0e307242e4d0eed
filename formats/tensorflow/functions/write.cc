// Writes functions as TensorFlow's messages.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/error.h"
#include "formats/tensorflow/functions/library.h"
#include "formats/tensorflow/functions/values.h"
#include "formats/tensorflow/node_graph.h"
#include "formats/wire_fields.h"

namespace heddle {
namespace tensorflow {
namespace {

using Named = std::vector<NamedFunctionValue>;
using wire::AppendBytesField;

// The version of GraphDef that is written.
constexpr uint64_t kProducer = 1882;

void AppendEntry(uint32_t field, std::string_view key, std::string_view value, std::string* out) {
  std::string entry;
  AppendBytesField(1, key, &entry);
  AppendBytesField(2, value, &entry);
  AppendBytesField(field, entry, out);
}

std::string EncodeNode(const std::string& name, const std::string& op,
                       const std::vector<std::string>& inputs, const Named& attributes) {
  std::string out;
  AppendBytesField(1, name, &out);
  AppendBytesField(2, op, &out);
  for (const std::string& input : inputs) AppendBytesField(3, input, &out);
  for (const NamedFunctionValue& a : attributes) AppendEntry(5, a.name, EncodeValue(a.value), &out);
  return out;
}

std::string EncodeArgument(const FunctionArgument& a) {
  std::string out;
  AppendBytesField(1, a.name, &out);
  if (a.type != 0) wire::AppendVarintField(3, static_cast<uint64_t>(a.type), &out);
  if (!a.type_attribute.empty()) AppendBytesField(4, a.type_attribute, &out);
  if (!a.number.empty()) AppendBytesField(5, a.number, &out);
  if (!a.types.empty()) AppendBytesField(6, a.types, &out);
  return out;
}

std::string EncodeDefinition(const FunctionDefinition& f) {
  std::string signature, out;
  AppendBytesField(1, f.name, &signature);
  for (const FunctionArgument& a : f.arguments) AppendBytesField(2, EncodeArgument(a), &signature);
  for (const FunctionArgument& a : f.results) AppendBytesField(3, EncodeArgument(a), &signature);
  for (const FunctionAttribute& a : f.attributes) {
    std::string declared;
    AppendBytesField(1, a.name, &declared);
    AppendBytesField(2, a.type, &declared);
    if (a.default_value.kind != FunctionValue::Kind::kNone)
      AppendBytesField(3, EncodeValue(a.default_value), &declared);
    AppendBytesField(4, declared, &signature);
  }
  for (const std::string& control : f.control_results) AppendBytesField(20, control, &signature);
  AppendBytesField(1, signature, &out);
  for (const FunctionNode& n : f.nodes)
    AppendBytesField(3, EncodeNode(n.name, n.op, n.inputs, n.attributes), &out);
  for (const FunctionArgument& a : f.results) AppendEntry(4, a.name, a.from, &out);
  for (const std::string& control : f.control_results) AppendEntry(6, control, control, &out);
  return out;
}

NamedFunctionValue TypeValue(std::string name, int type) {
  NamedFunctionValue value;
  value.name = std::move(name);
  value.value.kind = FunctionValue::Kind::kType;
  value.value.i = type;
  return value;
}

// Writes an instance as a graph.
class GraphWriter {
 public:
  GraphWriter(FunctionLibrary* library, const FunctionBody& body)
      : library_(*library), body_(body), graph_(ViewOf(body), body.argument_sizes, Finder()) {}

  Result<std::string> Write() {
    const FunctionDefinition& d = *body_.definition;
    for (const FunctionNode& node : d.nodes) taken_.insert(node.name);
    for (const FunctionPort& port : body_.arguments) {
      arguments_.push_back(FreeName(port.name));
      AddNode(arguments_.back(), "Placeholder", {}, {TypeValue("dtype", port.type)});
    }
    for (size_t i = 0; i < d.nodes.size(); ++i) {
      std::vector<std::string> inputs;
      const Links& links = graph_.links(static_cast<int>(i));
      for (size_t k = 0; k < links.inputs.size(); ++k) {
        if (links.inputs[k].node == Source::kMissing)
          return InvalidArgument("function '", d.name, "', node '", d.nodes[i].name, "' (",
                                 d.nodes[i].op, "): there is no '", links.names[k], "'");
        inputs.push_back(TextOf(links.inputs[k]));
      }
      for (std::string_view control : links.control_names)
        inputs.push_back(StrCat("^", ControlOf(control)));
      AddNode(d.nodes[i].name, d.nodes[i].op, inputs, body_.AttributesOf(d.nodes[i]));
      FindCalled(d.nodes[i].op, body_.AttributesOf(d.nodes[i]));
    }
    if (const Status status = AddResults(); !status.ok()) return status;
    std::string functions;
    for (const std::string& name : called_)
      AppendBytesField(1, EncodeDefinition(*library_.Find(name)), &functions);
    if (!functions.empty()) AppendBytesField(2, functions, &out_);
    std::string versions;
    wire::AppendVarintField(1, kProducer, &versions);
    AppendBytesField(4, versions, &out_);
    return std::move(out_);
  }

 private:
  // The definition's nodes in the form of a file's.
  const Function& ViewOf(const FunctionBody& body) {
    for (const FunctionArgument& a : body.definition->arguments)
      view_.inputs.emplace_back().name = a.name;
    for (const FunctionNode& node : body.definition->nodes) {
      Node& made = view_.nodes.emplace_back();
      made.name = node.name;
      made.op = node.op;
      made.index = static_cast<int>(view_.nodes.size() - 1);
      made.inputs.assign(node.inputs.begin(), node.inputs.end());
    }
    return view_;
  }
  FindOutputs Finder() {
    return [this](const Node& node, std::string_view argument) {
      return OutputsOf(&library_, body_, body_.definition->nodes[static_cast<size_t>(node.index)],
                       argument);
    };
  }

  std::string FreeName(std::string name) {
    std::replace(name.begin(), name.end(), ':', '_');
    std::string free = name;
    for (int k = 1; !taken_.insert(free).second; ++k) free = StrCat(name, "_", k);
    return free;
  }
  void AddNode(const std::string& name, const std::string& op,
               const std::vector<std::string>& inputs, const Named& attributes) {
    AppendBytesField(1, EncodeNode(name, op, inputs, attributes), &out_);
  }
  std::string TextOf(const Source& source) const {
    const auto port = static_cast<size_t>(source.port);
    if (source.node == Source::kArgument) return arguments_[port];
    const std::string_view name = graph_.node(source.node).name;
    return port == 0 ? std::string(name) : StrCat(name, ":", port);
  }
  // A control edge may also come from an argument.
  std::string ControlOf(std::string_view name) const {
    if (graph_.Find(name) >= 0) return std::string(name);
    const Source source = graph_.Resolve(name);
    return source.node == Source::kArgument ? TextOf(source) : std::string(name);
  }

  Status AddResults() {
    const FunctionDefinition& d = *body_.definition;
    std::vector<std::string> controls;
    for (const std::string& control : d.control_results) controls.push_back(StrCat("^", control));
    size_t port = 0;
    for (size_t i = 0; i < d.results.size(); ++i) {
      const std::vector<Source> sources = graph_.ResolveAll(d.results[i].from);
      if (sources.size() != body_.result_sizes[i])
        return InvalidArgument("function '", d.name, "': its output '", d.results[i].name, "' is '",
                               d.results[i].from, "', which are ", sources.size(), " values; ",
                               body_.result_sizes[i], " are expected");
      for (const Source& source : sources) {
        if (source.node == Source::kMissing)
          return InvalidArgument("function '", d.name, "': nothing makes its output '",
                                 d.results[i].name, "'");
        std::vector<std::string> inputs = {TextOf(source)};
        inputs.insert(inputs.end(), controls.begin(), controls.end());
        AddNode(FreeName(body_.results[port].name), "Identity", inputs,
                {TypeValue("T", body_.results[port].type)});
        ++port;
      }
    }
    if (port == 0 && !controls.empty()) AddNode(FreeName(d.name), "NoOp", controls, {});
    return Status::Ok();
  }

  void FindCalled(const std::string& op, const Named& attributes) {
    Take(op);
    for (const NamedFunctionValue& a : attributes) FindNamed(a.value);
  }
  void FindNamed(const FunctionValue& value) {
    if (value.kind == FunctionValue::Kind::kFunction) Take(value.text);
    for (const FunctionValue& item : value.items) FindNamed(item);
    for (const NamedFunctionValue& a : value.attributes) FindNamed(a.value);
  }
  void Take(const std::string& name) {
    if (!library_.Has(name) || !called_.insert(name).second) return;
    for (const FunctionNode& node : library_.Find(name)->nodes)
      FindCalled(node.op, node.attributes);
  }

  FunctionLibrary& library_;
  const FunctionBody& body_;
  Function view_;
  NodeGraph graph_;
  std::set<std::string> taken_, called_;
  std::vector<std::string> arguments_;
  std::string out_;
};

Status CheckFormat(const FunctionLibrary& library) {
  if (library.format() == kFormatName) return Status::Ok();
  return InvalidArgument("these are functions of ",
                         library.format().empty() ? "no format" : library.format(),
                         ", not of TensorFlow");
}

}  // namespace
}  // namespace tensorflow

Result<std::string> ToGraphDef(FunctionLibrary& library, FunctionLibrary::Handle instance) {
  HEDDLE_RETURN_IF_ERROR(tensorflow::CheckFormat(library));
  return tensorflow::GraphWriter(&library, library.Body(instance)).Write();
}

Result<std::string> ToFunctionDef(FunctionLibrary& library, std::string_view name) {
  HEDDLE_RETURN_IF_ERROR(tensorflow::CheckFormat(library));
  const FunctionDefinition* definition = library.Find(name);
  if (definition == nullptr) return NotFound("there is no function '", name, "'");
  return tensorflow::EncodeDefinition(*definition);
}

}  // namespace heddle
