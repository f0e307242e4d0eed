// Finds the initial contents of hash tables, from the operators that run when a model is
// initialised or restored, in functions or in the graph.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "core/error.h"
#include "formats/tensorflow/lower.h"
#include "formats/tensorflow/tables/table_contents.h"

namespace heddle::tensorflow {
namespace {

constexpr int kMostDepth = 16;  // nesting of calls, and of variables that name variables
// The most nodes that are looked at: functions can call each other so often that no time would
// suffice.
constexpr size_t kMostSteps = 1'000'000;

// A graph, or a function's body at one of its calls.
struct Place {
  const NodeGraph* graph = nullptr;
  const Place* caller = nullptr;  // null: the model's graph
  int call = 0;                   // the calling node there
  int depth = 0;
};

// A value in a Place.
struct Found {
  const Place* place = nullptr;
  Source source;
  const Node* node() const { return source.is_node() ? &place->graph->node(source.node) : nullptr; }
};

bool Is(const Node* node, std::string_view op) { return node != nullptr && node->op == op; }

class TableFinder {
 public:
  // The nodes of a called function; nothing: there is none.
  using GraphOf = std::function<std::optional<NodeGraph>(const FunctionName&)>;

  TableFinder(const Model& model, const NodeGraph& graph, GraphOf graph_of,
              std::map<std::string, TableContents>* tables)
      : model_(model), graph_(graph), graph_of_(std::move(graph_of)), tables_(*tables) {}

  // Looks at the nodes that run when the model is loaded; at all nodes if the file does not say
  // which.
  void Run() {
    std::vector<int> roots;
    std::vector<std::string_view> names = model_.init_ops;
    names.push_back(model_.restore_op);
    for (std::string_view name : names) {
      if (name.ends_with(":0")) name.remove_suffix(2);
      if (const int node = graph_.Find(name); !name.empty() && node >= 0) roots.push_back(node);
    }
    for (int i = 0; i < static_cast<int>(graph_.size()); ++i) {
      const auto& inputs = graph_.links(i).inputs;
      if (graph_.node(i).op == "AssignVariableOp" && inputs.size() > 1 && inputs[0].is_node())
        assigned_.emplace(KeptName(graph_.node(inputs[0].node)), inputs[1]);
    }
    const Place& main = places_.emplace_back(Place{&graph_, nullptr, 0, 0});
    const std::vector<bool> marked = graph_.Ancestors({}, roots);
    for (int i = 0; i < static_cast<int>(graph_.size()); ++i)
      if (roots.empty() || marked[static_cast<size_t>(i)]) Visit(main, i);
  }

 private:
  void Visit(const Place& place, int i) {
    if (++steps_ > kMostSteps) return;
    const Node& node = place.graph->node(i);
    if (node.op.starts_with("InitializeTableFromTextFile")) return TakeFile(place, i);
    if (node.op.starts_with("InitializeTable") || node.op.starts_with("LookupTableImport"))
      return TakeValues(place, i);
    const Attribute* f = node.op.ends_with("PartitionedCall") ? node.Find("f") : nullptr;
    if (f == nullptr || f->function == nullptr || place.depth >= kMostDepth) return;
    auto found = graphs_.find(f->function->name);
    if (found == graphs_.end())
      found = graphs_.emplace(f->function->name, graph_of_(*f->function)).first;
    if (!found->second) return;
    const NodeGraph& body = *found->second;
    const Place& inside = places_.emplace_back(Place{&body, &place, i, place.depth + 1});
    for (int k = 0; k < static_cast<int>(body.size()); ++k) Visit(inside, k);
  }

  // The origin of a value behind identities, arguments, and a variable that is assigned once.
  Found Behind(Found v, int depth = 0) {
    while (++steps_ < kMostSteps) {
      if (v.source.node == Source::kArgument) {
        if (v.place->caller == nullptr) return v;
        const auto& given = v.place->caller->graph->links(v.place->call).inputs;
        const auto port = static_cast<size_t>(v.source.port);
        if (port >= given.size()) return {v.place, {}};
        v = {v.place->caller, given[port]};
        continue;
      }
      const Node* node = v.node();
      if (node == nullptr) return v;
      const auto& inputs = v.place->graph->links(v.source.node).inputs;
      if (inputs.empty()) return v;
      if (node->op == "Identity") {
        v.source = inputs[0];
      } else if (node->op == "ReadVariableOp") {
        if (depth >= kMostDepth) return v;
        const Found assigned = AssignedTo(Behind({v.place, inputs[0]}, depth + 1));
        if (assigned.place == nullptr) return v;
        v = assigned;
      } else {
        return v;
      }
    }
    return v;
  }
  // The value that a node of the graph assigns to a variable, which may hold a file's name.
  Found AssignedTo(const Found& variable) const {
    if (!Is(variable.node(), "VarHandleOp")) return {};
    const auto found = assigned_.find(KeptName(*variable.node()));
    return found == assigned_.end() ? Found{} : Found{&places_.front(), found->second};
  }

  Found Input(const Place& place, int node, size_t k) {
    const auto& inputs = place.graph->links(node).inputs;
    return k < inputs.size() ? Behind({&place, inputs[k]}) : Found{&place, {}};
  }
  std::string TableOf(const Place& place, int node) {
    const Found table = Input(place, node, 0);
    return table.node() != nullptr ? KeptName(*table.node()) : std::string();
  }
  static const TensorData* ConstantOf(const Found& v) {
    const Attribute* a = Is(v.node(), "Const") ? v.node()->Find("value") : nullptr;
    return a != nullptr && a->tensor != nullptr ? a->tensor.get() : nullptr;
  }
  // The key of a RestoreV2's output.
  std::string EntryOf(const Found& v) {
    if (!Is(v.node(), "RestoreV2")) return {};
    const TensorData* keys = ConstantOf(Input(*v.place, v.source.node, 1));
    const auto port = static_cast<size_t>(v.source.port);
    return keys != nullptr && port < keys->strings.size() ? std::string(keys->strings[port])
                                                          : std::string();
  }

  void TakeValues(const Place& place, int node) {
    const Found keys = Input(place, node, 1), values = Input(place, node, 2);
    TableContents contents;
    contents.keys_entry = EntryOf(keys);
    contents.values_entry = EntryOf(values);
    if (contents.keys_entry.empty() || contents.values_entry.empty()) {
      const TensorData *k = ConstantOf(keys), *v = ConstantOf(values);
      if (k == nullptr || v == nullptr) return;
      contents.keys_entry.clear();
      contents.keys = *k;
      contents.values = *v;
    }
    tables_.insert_or_assign(TableOf(place, node), std::move(contents));
  }

  void TakeFile(const Place& place, int i) {
    const Node& node = place.graph->node(i);
    TableContents contents;
    TableFile& file = contents.file.emplace();
    file.name = FileOf(Input(place, i, 1));
    const auto number = [&](std::string_view name, int64_t* to) {
      const Attribute* a = node.Find(name);
      if (a != nullptr && a->kind == Attribute::kInt) *to = a->i;
    };
    number("key_index", &file.key);
    number("value_index", &file.value);
    number("vocab_size", &file.count);
    number("offset", &file.first);
    const Attribute* delimiter = node.Find("delimiter");
    if (delimiter != nullptr && delimiter->s.size() == 1) file.delimiter = delimiter->s[0];
    const Found table = Input(place, i, 0);
    for (auto [name, to] :
         {std::pair("key_dtype", &file.key_type), std::pair("value_dtype", &file.value_type)})
      if (const Attribute* a = table.node() != nullptr ? table.node()->Find(name) : nullptr)
        *to = BaseType(a->i);
    tables_.insert_or_assign(TableOf(place, i), std::move(contents));
  }
  // The asset that a tensor names; otherwise the string that it holds, a path.
  std::string FileOf(const Found& v) const {
    if (v.node() == nullptr) return {};
    if (v.place->caller == nullptr)
      for (const Asset& asset : model_.assets) {
        std::string_view name = asset.tensor;
        if (name.ends_with(":0")) name.remove_suffix(2);
        if (name == v.node()->name) return std::string(asset.file);
      }
    const TensorData* constant = ConstantOf(v);
    return constant != nullptr && constant->strings.size() == 1 ? std::string(constant->strings[0])
                                                                : std::string();
  }

  const Model& model_;
  const NodeGraph& graph_;
  const GraphOf graph_of_;
  std::map<std::string, TableContents>& tables_;
  std::map<std::string_view, std::optional<NodeGraph>> graphs_;  // by function
  std::map<std::string, Source> assigned_;                       // by variable
  size_t steps_ = 0;
  std::deque<Place> places_;
};

}  // namespace

void Lowering::FindTables() {
  const auto has_table = [](const std::vector<Node>& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
      return node.op.find("HashTable") != std::string_view::npos;
    });
  };
  const bool in_function = std::any_of(model_.graph.functions.begin(), model_.graph.functions.end(),
                                       [&](const Function& f) { return has_table(f.nodes); });
  if (!has_table(model_.graph.nodes) && !in_function) return;
  TableFinder(
      model_, graph_, [this](const FunctionName& f) { return GraphOf(f); }, &tables_)
      .Run();
}

}  // namespace heddle::tensorflow
