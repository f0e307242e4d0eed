// Sorts nodes that stand in a file in another order than that of their values. If they have a cycle
// or lack a value they stay as they are, and the error names what is missing.
#include <unordered_map>

#include "core/interrupts.h"
#include "formats/onnx/lower.h"

namespace heddle::onnx {
namespace {

// Calls `use` for every name that a node, or a graph inside it, may take from the scope around it.
template <typename Use>
void ForUses(const Node& node, Use use) {
  std::vector<const Node*> open{&node};
  while (!open.empty()) {
    const Node* n = open.back();
    open.pop_back();
    for (std::string_view name : n->inputs) use(name);
    for (const Attribute& a : n->attributes) {
      if (a.graph == nullptr) continue;
      for (const Node& inner : a.graph->nodes) open.push_back(&inner);
      for (const ValueInfo& output : a.graph->outputs) use(output.name);
    }
  }
}

}  // namespace

std::vector<const Node*> InOrder(const std::vector<Node>& nodes) {
  std::vector<const Node*> order;
  for (const Node& node : nodes) order.push_back(&node);
  std::unordered_map<std::string_view, size_t> makers;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (std::string_view name : nodes[i].outputs)
      if (!name.empty()) makers.emplace(name, i);
  // Per node: the nodes that wait for it, and the number of nodes that it waits for.
  std::vector<std::vector<size_t>> waiting(nodes.size());
  std::vector<size_t> missing(nodes.size());
  bool ordered = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    LookForInterrupt();
    ForUses(nodes[i], [&](std::string_view name) {
      const auto maker = makers.find(name);
      if (maker == makers.end() || maker->second == i) return;
      ordered = ordered && maker->second < i;
      waiting[maker->second].push_back(i);
      ++missing[i];
    });
  }
  if (ordered) return order;
  std::vector<const Node*> sorted;
  std::vector<size_t> ready;
  for (size_t i = nodes.size(); i-- > 0;)
    if (missing[i] == 0) ready.push_back(i);
  while (!ready.empty()) {
    const size_t i = ready.back();
    ready.pop_back();
    sorted.push_back(&nodes[i]);
    for (size_t later : waiting[i])
      if (--missing[later] == 0) ready.push_back(later);
  }
  return sorted.size() == nodes.size() ? sorted : order;
}

}  // namespace heddle::onnx
