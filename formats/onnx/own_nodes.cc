#include "formats/onnx/own_nodes.h"

#include <utility>

namespace heddle::onnx {

Attribute IntAttribute(std::string_view name, int64_t value) {
  Attribute a;
  a.name = name;
  a.kind = Attribute::kInt;
  a.i = value;
  return a;
}

Attribute FloatAttribute(std::string_view name, double value) {
  Attribute a;
  a.name = name;
  a.kind = Attribute::kFloat;
  a.f = static_cast<float>(value);
  return a;
}

Attribute IntsAttribute(std::string_view name, Ints values) {
  Attribute a;
  a.name = name;
  a.kind = Attribute::kInts;
  a.ints = std::move(values);
  return a;
}

Attributes Taken(const NodeLowering& n, std::initializer_list<std::string_view> names) {
  Attributes taken;
  for (const std::string_view name : names)
    if (const Attribute* a = n.Find(name)) taken.push_back(*a);
  return taken;
}

std::vector<int> Several(NodeLowering& n, std::string_view op, const std::vector<int>& operands,
                         Attributes attributes, size_t outputs, int opset) {
  Lowering& l = n.lowering();
  Node& node = l.OwnNode(n.node());
  NameScope names;
  names.outer = n.around().names;
  node.domain = {};
  node.op_type = op;
  node.attributes = std::move(attributes);
  node.inputs.clear();
  node.outputs.clear();
  for (size_t i = 0; i < operands.size(); ++i) {
    node.inputs.push_back(operands[i] == kNoDraft ? std::string_view() : l.OwnName(i));
    if (operands[i] != kNoDraft) names.vars.emplace(node.inputs.back(), operands[i]);
  }
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(l.OwnName(operands.size() + i));
  const std::vector<OpsetImport> opsets = {{"", opset}, {"com.microsoft", 1}};
  Surroundings around = n.around();
  around.names = &names;
  around.opsets = &opsets;
  l.LowerNode(node, around);
  std::vector<int> made;
  for (const std::string_view output : node.outputs) made.push_back(names.vars.at(output));
  return made;
}

int One(NodeLowering& n, std::string_view op, const std::vector<int>& operands,
        Attributes attributes, int opset) {
  return Several(n, op, operands, std::move(attributes), 1, opset)[0];
}

}  // namespace heddle::onnx
