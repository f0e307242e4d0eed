// Lowers an ONNX model to a program of heddle's operators. Values become variables, initializers
// and Constant nodes parameters, calls of local functions are expanded, and If, Loop and Scan
// become operators with sub-blocks.
//
// A node goes to its operator's handler (handlers.h), which makes operators of Paddle's vocabulary
// where they mean the same. What the handler declines, and what has none, becomes heddle's operator
// of the same name ("onnx_grid_sample"), slot by slot.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/programs/program_builder.h"
#include "formats/lowering/graph_lowering.h"
#include "formats/onnx/model.h"
#include "heddle/bounds.h"
#include "heddle/functions.h"

namespace heddle::onnx {

using formats::Draft;
using formats::DraftOp;
using formats::DraftVar;
using formats::kNoDraft;

// The keys of an output that is a sequence of maps, in the order of the values. They are either
// integers or strings: one of the lists is empty.
struct MapKeys {
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
};

// One element of an integer vector as known before a run: its value, or that it equals dimension
// `dim` of variable `of`.
struct Entry {
  std::optional<int64_t> value;
  int of = kNoDraft, dim = 0;
};
using Entries = std::vector<Entry>;

struct VarFacts : formats::ValueFacts {
  std::shared_ptr<const Entries> entries;  // of a computed vector or scalar of integers
  Type::Kind kind = Type::Kind::kTensor;
  bool typed = false;        // `type` was set by the handler
  bool of_sequence = false;  // an optional that holds a sequence
  // The variable with the same elements as a plane: [n, c, 1, l] for [n, c, l].
  int plane = kNoDraft;
  // Of a sequence of maps, of which the variable holds the values.
  std::shared_ptr<const MapKeys> keys;

  VarFacts Alike() const;
};

using formats::Parameter;

struct Lowered : formats::LoweredGraph {
  std::vector<Parameter> parameters;
  std::vector<Type> inputs, outputs;                 // types of feeds and fetches
  std::vector<std::shared_ptr<const MapKeys>> keys;  // of outputs
};

// A scope of names: of a graph, whose outer scope is that of the graph around it, or of a
// function's body.
struct NameScope {
  const NameScope* outer = nullptr;                // null: the outermost scope
  std::unordered_map<std::string_view, int> vars;  // kNoDraft: an input that the call leaves out
};

// What the nodes of one graph, or of one function's body, share.
struct Surroundings {
  NameScope* names = nullptr;
  const std::vector<OpsetImport>* opsets = nullptr;
  const Function* function = nullptr;                 // null: the model's graph
  const std::vector<Attribute>* arguments = nullptr;  // of the function's call, sorted by name
  int depth = 0;                                      // calls and graphs inside each other
};

// The nodes of a graph in topological order; as they are if there is none.
std::vector<const Node*> InOrder(const std::vector<Node>& nodes);

// The value of a variable that is a constant number; nothing for others.
using ScalarOf = std::function<std::optional<double>(int var)>;
// Replaces operators that exporters wrote out as several (hard swish, GELU, layer normalisation) by
// the single operators.
void RecogniseForms(Draft* draft, const std::deque<VarFacts>& facts, const ScalarOf& scalar);

class NodeLowering;

class Lowering : public formats::GraphLoweringOf<VarFacts> {
 public:
  // Errors are reported to `builder`. Both arguments must outlive this and its result.
  Lowering(const Model& model, ir::ProgramBuilder* builder);

  // Lowers the model. kUnimplemented: operators that heddle lacks, all listed with their number and
  // where each occurs first.
  Result<Lowered> Run();

  // The deepest nesting of calls and graphs, which are lowered by recursion.
  static constexpr int kMostDepth = kMostNestedCalls;
  // For handlers that lower a node as a node of another operator.
  void LowerNode(const Node& node, const Surroundings& around);
  Node& OwnNode(const Node& node) { return owned_nodes_.emplace_back(node); }
  // Per value that the loop carries: its body changes the rank.
  std::vector<bool>& growing(const Node& loop) { return growing_[&loop]; }
  // The name of the `k`th input of such a node; no value of a file has it.
  std::string_view OwnName(size_t k);

 private:
  friend class NodeLowering;

  // --- lower.cc
  Status CheckVersions() const;
  void LowerInputs();
  void LowerOutputs();
  bool IsTextList(int v);
  void TakeTextLists();
  int GivenTextList(int v, std::string_view name);
  void AddInitializers(const Graph& graph, NameScope* names);
  void LowerNodes(const std::vector<Node>& nodes, const Surroundings& around);
  bool TooMany() const;  // nodes, which a problem says; the others are not looked at
  bool LowerCall(const Node& node, const Surroundings& around);
  bool LowerUnsignedForm(NodeLowering& n);
  std::string Place(const Node& node, const Surroundings& around) const;
  std::string Where(const Node& node) const;
  void Recognise();

  const Model& model_;
  std::deque<Node> owned_nodes_;  // copies of nodes with a call's attributes filled in
  std::unordered_map<std::string, const Function*> functions_;
  FunctionLibrary library_;
  NameScope main_;
  std::vector<Type> inputs_, outputs_;
  std::unordered_set<std::string_view> output_names_;
  std::vector<std::shared_ptr<const MapKeys>> keys_;
  std::deque<std::string> own_names_;
  std::unordered_map<const Node*, std::vector<bool>> growing_;
  size_t nodes_lowered_ = 0;
};

}  // namespace heddle::onnx
