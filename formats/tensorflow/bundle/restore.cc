// Finds the key of each variable in the bundle of a SavedModel or checkpoint, from the restore
// operator, which is a function or a group of plain nodes.
#include "core/error.h"
#include "core/interrupts.h"
#include "formats/tensorflow/lower.h"

namespace heddle::tensorflow {
namespace {

// The source of a value, behind Identity and Cast nodes.
Source Behind(const NodeGraph& graph, Source s) {
  for (size_t steps = 0; s.is_node() && steps <= graph.size(); ++steps) {
    const auto& inputs = graph.links(s.node).inputs;
    if (graph.node(s.node).op != "Identity" || inputs.empty()) break;
    s = inputs[0];
  }
  return s;
}

// The key that a value is restored from: the `k`th of a RestoreV2, or that of an older operator,
// which has one; empty: it is not restored.
std::string KeyOf(const NodeGraph& graph, Source value) {
  value = Behind(graph, value);
  if (!value.is_node()) return {};
  const std::string_view op = graph.node(value.node).op;
  if (op != "RestoreV2" && op != "Restore" && op != "RestoreSlice") return {};
  const auto& inputs = graph.links(value.node).inputs;
  const auto text = [&](size_t input) -> std::string {
    const Source from = inputs.size() > input ? Behind(graph, inputs[input]) : Source{};
    if (!from.is_node()) return {};
    const Attribute* a = graph.node(from.node).Find("value");
    if (a == nullptr || a->tensor == nullptr) return {};
    const auto& strings = a->tensor->strings;
    return static_cast<size_t>(value.port) < strings.size()
               ? std::string(strings[static_cast<size_t>(value.port)])
               : std::string();
  };
  const std::string key = text(1), slice = text(2);
  // For a part of a tensor: the key, a newline, and the slice.
  return slice.empty() || key.empty() ? key : key + std::string(1, '\n') + slice;
}

}  // namespace

std::string KeptName(const Node& node) {
  const Attribute* a = node.Find("shared_name");
  if (a != nullptr && a->kind == Attribute::kString && !a->s.empty()) return std::string(a->s);
  return std::string(node.name);
}

namespace {

// Whether the operator writes a variable, or advances a random sequence.
bool WritesState(std::string_view op) { return WritesVariable(op) || DrawsNumbers(op); }

// Calls fn(function name) for the functions that a node calls, or may call through an attribute.
template <typename Fn>
void EachCalled(const Node& node, Fn&& fn) {
  fn(node.op);
  for (const Attribute& a : node.attributes) EachNamed(a, fn);
}

}  // namespace

void Lowering::FindWritingFunctions() {
  std::unordered_map<std::string_view, std::vector<std::string_view>> callers;
  std::vector<std::string_view> open;
  for (const auto& [name, function] : functions_)
    for (const Node& node : function->nodes) {
      LookForInterrupt();
      // Clang 14 cannot capture a structured binding by reference.
      EachCalled(node, [&, caller = std::string_view(name)](std::string_view called) {
        if (functions_.contains(called)) callers[called].push_back(caller);
      });
      if (WritesState(node.op) && writing_functions_.insert(name).second) open.push_back(name);
    }
  while (!open.empty()) {
    const std::string_view name = open.back();
    open.pop_back();
    for (std::string_view caller : callers[name])
      if (writing_functions_.insert(caller).second) open.push_back(caller);
  }
  may_write_ = [this](const Node& node) {
    bool writes = WritesState(node.op);
    EachCalled(node, [&](std::string_view f) { writes |= writing_functions_.contains(f); });
    return writes;
  };
}

void Lowering::FindWritten() {
  std::vector<std::string_view> open;
  std::unordered_set<std::string_view> seen;
  const auto visit = [&](const Node& node) {
    EachCalled(node, [&](std::string_view f) {
      if (functions_.contains(f) && seen.insert(f).second) open.push_back(f);
    });
  };
  for (int i = 0; i < static_cast<int>(graph_.size()); ++i) {
    if (!needed_[static_cast<size_t>(i)]) continue;
    visit(graph_.node(i));
    const auto& inputs = graph_.links(i).inputs;
    if (!WritesVariable(graph_.node(i).op) || inputs.empty()) continue;
    Source s = Behind(graph_, inputs[0]);
    // A node that writes a reference returns it: continue with the reference.
    for (size_t steps = 0; s.is_node() && WritesVariable(graph_.node(s.node).op) &&
                           !graph_.links(s.node).inputs.empty() && steps <= graph_.size();
         ++steps)
      s = Behind(graph_, graph_.links(s.node).inputs[0]);
    if (s.is_node()) written_.insert(KeptName(graph_.node(s.node)));
  }
  while (!open.empty()) {
    const auto found = functions_.find(open.back());
    open.pop_back();
    if (found == functions_.end()) continue;
    for (const Node& node : found->second->nodes) {
      LookForInterrupt();
      functions_write_ = functions_write_ || WritesVariable(node.op);
      visit(node);
    }
  }
}

void Lowering::FindRestoredKeys() {
  if (model_.restore_op.empty()) {
    // A saver that was made without a list of variables uses the variables' names as keys.
    for (const Node& node : model_.graph.nodes)
      if (model_.is_meta_graph && IsVariableOp(node.op))
        restored_.emplace(KeptName(node), KeptName(node));
    return;
  }
  std::string_view name = model_.restore_op;
  if (name.ends_with(":0")) name.remove_suffix(2);
  const int restore = graph_.Find(name);
  if (restore < 0) return;
  const auto variable = [&](Source s) -> std::string {
    s = Behind(graph_, s);
    return s.is_node() ? KeptName(graph_.node(s.node)) : std::string();
  };
  const auto scan = [&](const NodeGraph& graph, int i, auto name_of) {
    const Node& node = graph.node(i);
    const auto& inputs = graph.links(i).inputs;
    if ((node.op != "Assign" && node.op != "AssignVariableOp") || inputs.size() < 2) return;
    std::string key = KeyOf(graph, inputs[1]);
    const std::string target = name_of(Behind(graph, inputs[0]));
    if (!key.empty() && !target.empty()) restored_.emplace(target, std::move(key));
  };
  const std::vector<bool> part = graph_.Ancestors({}, {restore});
  for (int i = 0; i < static_cast<int>(graph_.size()); ++i)
    if (part[static_cast<size_t>(i)]) scan(graph_, i, variable);
  const Attribute* f = graph_.node(restore).Find("f");
  if (f == nullptr || f->function == nullptr) return;
  const std::optional<NodeGraph> nodes = GraphOf(*f->function);
  if (!nodes) return;
  const NodeGraph& body = *nodes;
  const auto& given = graph_.links(restore).inputs;
  for (int i = 0; i < static_cast<int>(body.size()); ++i)
    scan(body, i, [&](Source s) -> std::string {
      if (s.node != Source::kArgument || static_cast<size_t>(s.port) >= given.size()) return {};
      return variable(given[static_cast<size_t>(s.port)]);
    });
}

}  // namespace heddle::tensorflow
