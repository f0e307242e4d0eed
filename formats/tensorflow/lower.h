// Turns a graph of TensorFlow into a program of heddle's operators: what leads to the values that
// are asked for, and nothing else. Functions are put in where they are called; branches and loops,
// old and new, become operators with sub-blocks; variables become parameters that operators write.
//
// A node goes to the handler of its operator (handlers.h), which makes operators of Paddle's
// vocabulary where those mean the same, or heddle's own of TensorFlow's and ONNX's names.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/programs/program_builder.h"
#include "formats/lowering/graph_lowering.h"
#include "formats/tensorflow/model.h"
#include "formats/tensorflow/node_graph.h"
#include "formats/tensorflow/revisions.h"
#include "formats/tensorflow/structure.h"
#include "formats/tensorflow/tables/table_contents.h"
#include "heddle/bounds.h"
#include "heddle/functions.h"
#include "heddle/program_part.h"

namespace heddle::tensorflow {

using formats::Draft;
using formats::DraftOp;
using formats::DraftVar;
using formats::kNoDraft;

enum class Kind : uint8_t {
  kTensor,
  kResource,     // a handle of a variable: no operator reads it
  kList,         // a TensorList, as a value: an array
  kTensorArray,  // a handle of an array that operators write
  kStack,        // the same for a stack
  kFlow          // says in which order a TensorArray is used; holds nothing
};

struct VarFacts : formats::ValueFacts {
  // `type` is of the elements, and `shape` of the items, where it is a list.
  Kind kind = Kind::kTensor;
  int target = kNoDraft;        // of a handle: the variable or array behind it
  Ints partial;                 // integers of a vector as far as they are known; else -1
  bool inner_name = false;      // a function gives it
  bool grows = false;           // of a TensorArray: behind its end
  bool adds = false;            // of one of gradients: to what was written before
  bool has_items = true;        // of a list: something may have been written to it
  bool says_shape = false;      // of a list: it takes items of `shape` alone
  const Node* maker = nullptr;  // of a TensorArray or stack: the node that makes it
  int length = kNoDraft;        // of a list: the variable that says how many items it has
  int as_long = kNoDraft;       // of a list in a loop: the carried one that has as many items
  int first = kNoDraft;  // of a variable that a loop carries: the value before the first round

  VarFacts Alike() const;
};

// A parameter, whose contents may also be those of a variable: in the bundle of a SavedModel under
// `key`; nowhere, for one that only operators write.
struct Parameter : formats::Parameter {
  std::string key;
  bool guessed_key = false;  // the file may lack it: an operator writes the variable then
  bool is_variable = false;
  std::optional<TableContents> table;
};

// An input or output of the program as its user knows it.
struct Port {
  std::string name;
  int type = kNoType;
};

struct Lowered : formats::LoweredGraph {
  std::vector<Parameter> parameters;
  std::vector<Port> inputs, outputs;
  std::map<std::string, std::string, std::less<>> output_names;  // by variable, where other ones
};

// A graph, or a function's body, where it is lowered: one for each call.
struct Instance {
  const NodeGraph* graph = nullptr;
  std::vector<std::vector<int>> values;  // by node and output: its variable
  std::vector<int> arguments;
  std::vector<bool> given_away;        // by argument: nobody outside needs a list any more
  const FunctionBody* body = nullptr;  // null: the model's graph
  const std::vector<Attribute>* attributes = nullptr;  // the function's
  std::string_view function;                           // empty: the model's graph
  int depth = 0;
};

// The node's attribute; one that refers to the function's is the value of the call. Null: there is
// none.
const Attribute* AttributeIn(const Instance& instance, const Node& node, std::string_view name);

class NodeLowering;

inline bool IsVariableOp(std::string_view op) {
  return op == "VariableV2" || op == "Variable" || op == "VarHandleOp";
}
// The name under which a variable's node keeps it.
std::string KeptName(const Node& node);

class Lowering : public formats::GraphLoweringOf<VarFacts> {
 public:
  // Mistakes go to `builder`. What is found not to hold goes to `revisions`; where it then needs
  // another reading, this one is worth nothing. All four must outlive it and what it returns.
  Lowering(const Model& model, const ProgramPart& part, ir::ProgramBuilder* builder,
           Revisions* revisions);

  // The program, finished. kUnimplemented: operators that heddle has no counterpart of, all listed
  // with their number and where they first stand; kNotFound: a name that the graph does not have.
  Result<Lowered> Run();

  // Calls inside each other, which are lowered by recursion.
  static constexpr int kMostDepth = kMostNestedCalls;

  // The outputs of a function that is called with these arguments.
  // `given_away` as in Instance; empty: none is.
  std::vector<int> Call(NodeLowering& n, const FunctionName& function,
                        const std::vector<int>& arguments, std::vector<bool> given_away = {});
  // Whether the function hands argument `k` on as its result `k`.
  bool HandsOn(NodeLowering& n, const FunctionName& function, size_t k);
  Revisions& revisions() { return revisions_; }
  bool HasFunction(std::string_view name) const { return functions_.contains(name); }
  // Whether some node that is lowered may write the variable.
  bool IsWritten(int variable) const {
    const auto name = kept_names_.find(variable);
    return functions_write_ || (name != kept_names_.end() && written_.contains(name->second));
  }
  // The array of gradients of a TensorArray; kNoDraft, to be set, where there is none yet.
  int& GradientArray(int array, const std::string& source) {
    return gradient_arrays_.try_emplace({array, source}, kNoDraft).first->second;
  }
  // The variable that is kept under this name, made where there is none.
  int VariableNamed(const std::string& name, int type, const Shape& shape);
  // The same of a hash table.
  int TableNamed(const std::string& name, bool is_mutable);
  bool IsMutableTable(int variable) const { return mutable_tables_.contains(variable); }

 private:
  friend class NodeLowering;
  // The nodes of an instance of a function, and those of them that its results need.
  struct Body {
    const Function* function = nullptr;
    const FunctionBody* instance = nullptr;
    std::deque<std::string> held;  // what `attributes` refer to
    std::vector<Attribute> attributes;
    NodeGraph graph;
    std::vector<Source> results;
    Region region;
    bool broken = false;  // which was told
    Body(const Function& f, const FunctionBody& instance, NodeGraph nodes)
        : function(&f), instance(&instance), graph(std::move(nodes)) {}
  };
  struct Wanted {
    std::string name;  // the user's
    Source source;
    int type = kNoType;
  };

  // --- lower.cc
  void KeepNames();
  Status Select();
  void FetchResults();
  Status SelectSignature(const std::string& key);
  Status AddFeed(const std::string& name, std::string_view tensor);
  Status AddFetch(const std::string& name, std::string_view tensor);
  void LowerFeeds();
  void LowerFetches();
  void FetchNow(const Instance& instance, int node);
  std::string Where(const Node& node, const Instance& instance) const;
  void KeepParameters(Lowered* made);
  void FindRestoredKeys();
  void FindTables();  // tables/find_tables.cc
  void FindWritten();
  void FindWritingFunctions();

  // --- lower_region.cc
  void LowerRegion(const Region& region, Instance& instance);
  void LowerNode(Instance& instance, int at);
  bool LowerUnsignedForm(NodeLowering& n);
  void CheckTypes(NodeLowering& n, int at);
  void LowerBranches(const Branches& branches, Instance& instance);
  void LowerLoop(const Loop& loop, Instance& instance);
  // kNoDraft: nothing is known to be there (yet).
  static int KnownValueOf(const Instance& instance, Source source);
  int ValueOf(Instance& instance, Source source, const Node& reader, std::string_view name);

  // --- functions/call.cc
  Result<FunctionLibrary::Handle> InstanceFor(NodeLowering& n, const FunctionName& function);
  Body* BodyOf(FunctionLibrary::Handle handle);
  NodeGraph GraphOf(const FunctionBody& instance);
  // Of a function that the graph calls; nothing: there is none, or it is broken.
  std::optional<NodeGraph> GraphOf(const FunctionName& function);
  void FindRegion(Body* body);

  const Model& model_;
  const ProgramPart& part_;
  Revisions& revisions_;
  NodeGraph graph_;
  Instance main_;
  std::vector<bool> needed_;
  std::vector<Wanted> feeds_, fetches_;
  std::vector<int> targets_;                                 // nodes that run
  std::vector<int> fetched_;                                 // by fetch: its variable
  std::unordered_map<int, std::vector<size_t>> fetches_of_;  // by node
  std::vector<Port> inputs_, outputs_;
  std::map<std::string, std::string, std::less<>> output_names_;  // as Lowered::output_names
  std::unordered_map<std::string_view, const Function*> functions_;
  FunctionLibrary library_;
  std::unordered_map<FunctionLibrary::Handle, std::unique_ptr<Body>> bodies_;
  std::map<std::pair<int, std::string>, int> gradient_arrays_;
  std::map<std::string, int> variables_;             // by name
  std::unordered_map<int, std::string> kept_names_;  // of variables, in their checkpoint
  std::unordered_set<std::string> variable_names_;   // that no input has
  std::map<std::string, std::string> restored_;      // variable -> key of the bundle
  std::map<std::string, TableContents> tables_;      // by name
  std::unordered_map<int, std::string> table_names_;
  std::unordered_set<int> mutable_tables_;
  std::unordered_set<std::string> written_;  // variables that nodes of the graph write
  bool functions_write_ = false;             // functions may write any
  std::unordered_set<std::string_view> writing_functions_;  // themselves, or what they call
  MayWrite may_write_;
  size_t nodes_lowered_ = 0;
  int regions_ = 0;        // those that are being lowered
  bool too_deep_ = false;  // which was told
};

}  // namespace heddle::tensorflow
