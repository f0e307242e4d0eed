// Turns an ONNX model into a program of heddle's operators. Values become variables, initializers
// and Constant nodes parameters, local functions are put in where they are called, If, Loop and
// Scan become operators with sub-blocks.
//
// A node goes to the handler of its operator (handlers.h), which makes operators of Paddle's
// vocabulary where those mean the same; what it declines, and what has no handler, becomes heddle's
// operator of the same name ("onnx_grid_sample"), slot by slot.
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

// The keys of an output that is a sequence of maps, in the order of the values: integers or
// strings, one of the two lists is empty.
struct MapKeys {
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
};

// What is known of one element of an integer vector before a run: its value, or that it equals
// dimension `dim` of variable `of`.
struct Entry {
  std::optional<int64_t> value;
  int of = kNoDraft, dim = 0;
};
using Entries = std::vector<Entry>;

struct VarFacts : formats::ValueFacts {
  std::shared_ptr<const Entries> entries;  // of a vector or scalar of integers that is computed
  Type::Kind kind = Type::Kind::kTensor;
  bool typed = false;                   // `type` was said by the handler
  bool of_sequence = false;             // an optional one
  int plane = kNoDraft;                 // the same, [n, c, l] as [n, c, 1, l]
  std::shared_ptr<const MapKeys> keys;  // of a sequence of maps, which the values stand for

  VarFacts Alike() const;
};

using formats::Parameter;

struct Lowered : formats::LoweredGraph {
  std::vector<Parameter> parameters;
  std::vector<Type> inputs, outputs;                 // types of feeds and fetches
  std::vector<std::shared_ptr<const MapKeys>> keys;  // of outputs
};

// Names are looked up here: in a graph, then in those around it, or in the body of a function.
struct NameScope {
  const NameScope* outer = nullptr;                // null: nothing further can be seen
  std::unordered_map<std::string_view, int> vars;  // kNoDraft: an input that is left out
};

// The nodes of a graph or of a function's body share this.
struct Surroundings {
  NameScope* names = nullptr;
  const std::vector<OpsetImport>* opsets = nullptr;
  const Function* function = nullptr;                 // null: the model's graph
  const std::vector<Attribute>* arguments = nullptr;  // of the function's call
  int depth = 0;                                      // calls and graphs inside each other
};

// The nodes of a graph in an order in which values are made before they are used, if there is one.
std::vector<const Node*> InOrder(const std::vector<Node>& nodes);

// The number that a variable holds for good; nothing for others.
using ScalarOf = std::function<std::optional<double>(int var)>;
// Operators that exporters wrote out (hard swish, GELU, layer normalisation) in place of those that
// make them up.
void RecogniseForms(Draft* draft, const std::deque<VarFacts>& facts, const ScalarOf& scalar);

class NodeLowering;

class Lowering : public formats::GraphLoweringOf<VarFacts> {
 public:
  // Mistakes go to `builder`. Both must outlive it and what it returns.
  Lowering(const Model& model, ir::ProgramBuilder* builder);

  // The program, finished. kUnimplemented: operators that heddle has no counterpart of, all listed
  // with their number and where they first stand.
  Result<Lowered> Run();

  // Calls and graphs inside each other, which are lowered by recursion.
  static constexpr int kMostDepth = kMostNestedCalls;
  // For handlers that lower a node as another one.
  void LowerNode(const Node& node, const Surroundings& around);
  Node& OwnNode(const Node& node) { return owned_nodes_.emplace_back(node); }
  // Values that a loop carries whose rank its body changes, by the loop's node.
  std::vector<bool>& growing(const Node& loop) { return growing_[&loop]; }
  // The name of the `k`th input of such a node, which no file can give to a value beside it.
  std::string_view OwnName(size_t k);

 private:
  friend class NodeLowering;

  // --- lower.cc
  Status CheckVersions() const;
  void LowerInputs();
  void LowerOutputs();
  void AddInitializers(const Graph& graph, NameScope* names);
  void LowerNodes(const std::vector<Node>& nodes, const Surroundings& around);
  bool LowerCall(const Node& node, const Surroundings& around);
  bool LowerUnsignedForm(NodeLowering& n);
  std::string Place(const Node& node, const Surroundings& around) const;
  std::string Where(const Node& node) const;
  void Recognise();

  const Model& model_;
  std::deque<Node> owned_nodes_;  // nodes with the attributes of a call put in
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
