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
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/programs/program_builder.h"
#include "formats/lowering/draft.h"
#include "formats/onnx/model.h"

namespace heddle::onnx {

using formats::Draft;
using formats::DraftOp;
using formats::DraftVar;
using formats::kNoDraft;

// Keys of the maps that an output's values belong to: of one kind.
struct MapKeys {
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
};

// An element of a vector, as far as it is known before a run.
struct Entry {
  std::optional<int64_t> value;
  int of = kNoDraft, dim = 0;  // it is that dimension of this variable
};
using Entries = std::vector<Entry>;

// The reader knows this of a variable, beside what the draft has.
struct VarFacts {
  int type = kUndefinedType;               // ONNX's; of the elements where it is a sequence
  Shape shape = Shape::Unknown();          // -1: open
  const TensorData* data = nullptr;        // a constant of the file
  std::shared_ptr<const Tensor> value;     // a small constant, once somebody asked for it
  std::shared_ptr<const Entries> entries;  // of a vector or scalar of integers that is computed
  Type::Kind kind = Type::Kind::kTensor;
  bool exact_name = false;              // the file gives it
  bool unreadable = false;              // `data` is not what it claims, which was told
  bool typed = false;                   // `type` was said by the handler
  bool of_sequence = false;             // an optional one
  int plane = kNoDraft;                 // the same, [n, c, l] as [n, c, 1, l]
  bool joined = false;                  // `shape` holds for whichever operator writes it
  std::shared_ptr<const MapKeys> keys;  // of a sequence of maps, which the values stand for
};

// A parameter of the program: a variable and where the file has its contents.
struct Parameter {
  std::string name;
  TensorData data;
  std::optional<Tensor> made;  // in place of data
};

struct Lowered {
  Draft draft;
  std::vector<Parameter> parameters;
  std::vector<Type> inputs, outputs;                 // types of feeds and fetches
  std::vector<std::shared_ptr<const MapKeys>> keys;  // of outputs
  std::deque<std::string> texts;                     // that parameters refer to
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
  const Surroundings* caller = nullptr;               // of the function's call
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

class Lowering {
 public:
  // Mistakes go to `builder`. Both must outlive it and what it returns.
  Lowering(const Model& model, ir::ProgramBuilder* builder);

  // The program, finished. kUnimplemented: operators that heddle has no counterpart of, all listed
  // with their number and where they first stand.
  Result<Lowered> Run();

  // Calls and graphs inside each other, which are lowered by recursion.
  static constexpr int kMostDepth = 64;
  // For handlers that lower a node as another one.
  void LowerNode(const Node& node, const Surroundings& around);
  Draft& draft() { return draft_; }
  Node& OwnNode(const Node& node) { return owned_nodes_.emplace_back(node); }
  // The name of the `k`th input of such a node, which no file can give to a value beside it.
  std::string_view OwnName(size_t k);

 private:
  friend class NodeLowering;
  struct Unknown {
    int count = 0;
    std::string first;
  };

  // --- lower.cc
  Status CheckVersions() const;
  void DeclareShapes();
  void LowerInputs();
  void LowerOutputs();
  void AddInitializers(const Graph& graph, NameScope* names);
  void LowerNodes(const std::vector<Node>& nodes, const Surroundings& around);
  bool LowerCall(const Node& node, const Surroundings& around);
  void NoteUnknown(const Node& node, const Surroundings& around);
  std::string Where(const Node& node) const;
  Status UnknownOperators() const;
  void Recognise();
  void KeepParameters(Lowered* made);

  // --- variables
  int NewVar(std::string name, DType dtype);
  std::string FreshName(std::string_view stem);
  int AddConstant(const TensorData& data, std::string_view name);
  int AddConstant(Tensor value, int type, std::string_view name);
  DraftVar& var(int v) { return draft_.vars[static_cast<size_t>(v)]; }
  VarFacts& facts(int v) { return facts_[static_cast<size_t>(v)]; }

  const Model& model_;
  ir::ProgramBuilder& builder_;
  Draft draft_;
  std::deque<VarFacts> facts_;  // by variable; references to them outlive additions
  std::unordered_set<std::string> names_;
  std::unordered_map<int, Tensor> made_constants_;
  std::deque<TensorData> owned_;  // tensors that no message of the file holds
  std::deque<Node> owned_nodes_;  // nodes with the attributes of a call put in
  std::map<std::string, Unknown> unknown_;
  std::unordered_map<std::string, const Function*> functions_;
  NameScope main_;
  std::vector<Type> inputs_, outputs_;
  std::vector<std::shared_ptr<const MapKeys>> keys_;
  std::deque<std::string> own_names_, owned_texts_;
  int block_ = 0;  // where operators go
  size_t nodes_lowered_ = 0;
};

}  // namespace heddle::onnx
