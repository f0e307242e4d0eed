// Lowers a TensorFlow graph to a program of heddle's operators: the nodes that the wanted values
// depend on, and no others. Calls of functions are expanded; branches and loops, old and new,
// become operators with sub-blocks; variables become parameters that operators write.
//
// A node goes to its operator's handler (handlers.h), which makes operators of Paddle's vocabulary
// where they mean the same, or heddle's own under TensorFlow's or ONNX's names.
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
#include "formats/program_source.h"
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
  kResource,     // a handle of a variable; no operator reads it
  kList,         // a TensorList, which is a value: an array
  kTensorArray,  // a handle of an array that operators write
  kStack,        // a handle of such an array that is used as a stack
  kFlow          // the order in which a TensorArray is used; holds nothing
};

struct VarFacts : formats::ValueFacts {
  // For a list, `type` is that of the elements and `shape` that of the items.
  Kind kind = Kind::kTensor;
  int target = kNoDraft;        // handle: the variable or array that it refers to
  Ints partial;                 // known elements of an integer vector; -1: not known
  bool inner_name = false;      // its name comes from a node in a function
  bool grows = false;           // TensorArray: a write behind its end extends it
  bool adds = false;            // array of gradients: a write adds to the item
  bool has_items = true;        // list: an item may have been written to it
  bool says_shape = false;      // list: all items must have `shape`
  const Node* maker = nullptr;  // TensorArray or stack: the node that makes it
  int length = kNoDraft;        // list: the variable with its number of items
  int as_long = kNoDraft;       // list in a loop: the carried list with as many items
  int first = kNoDraft;         // carried variable: the value before the loop

  VarFacts Alike() const;
};

// A parameter. A variable's contents are in the bundle of a SavedModel under `key`; one that only
// operators write has none.
struct Parameter : formats::Parameter {
  std::string key;
  bool guessed_key = false;  // the bundle may lack the key; then an operator writes the variable
  bool is_variable = false;
  std::optional<TableContents> table;
};

// An input or output of the program, by its user's name.
struct Port {
  std::string name;
  int type = kNoType;
};

// A call of a function's gradient. The variables are those of the draft.
struct GradientNode {
  std::vector<int> losses, arguments, gradients;
  std::string where;
};

struct Lowered : formats::LoweredGraph {
  std::vector<Parameter> parameters;
  std::vector<Port> inputs, outputs;
  std::map<std::string, std::string, std::less<>> output_names;  // by variable, where they differ
  std::vector<formats::GradientCall> gradient_calls;
};

// A graph or a function's body that is being lowered; each call has its own.
struct Instance {
  const NodeGraph* graph = nullptr;
  std::vector<std::vector<int>> values;  // by node and output: its variable
  std::vector<int> arguments;
  std::vector<bool> given_away;        // by argument: the caller does not use the list any more
  const FunctionBody* body = nullptr;  // null: the model's graph
  const std::vector<Attribute>* attributes = nullptr;  // of the function's call
  std::string_view function;                           // empty: the model's graph
  int depth = 0;
};

// The node's attribute; if it refers to the function's, the value from the call. Null: there is
// none.
const Attribute* AttributeIn(const Instance& instance, const Node& node, std::string_view name);

class NodeLowering;

inline bool IsVariableOp(std::string_view op) {
  return op == "VariableV2" || op == "Variable" || op == "VarHandleOp";
}
// The name under which a variable's node stores it.
std::string KeptName(const Node& node);

class Lowering : public formats::GraphLoweringOf<VarFacts> {
 public:
  // Errors are reported to `builder`. Assumptions that do not hold are noted in `revisions`; if
  // another reading is needed, this one's result is of no use. All four must outlive this and its
  // result.
  Lowering(const Model& model, const ProgramPart& part, ir::ProgramBuilder* builder,
           Revisions* revisions);

  // Lowers the graph. kUnimplemented: operators that heddle lacks, all listed with their number and
  // where each occurs first; kNotFound: a name that the graph lacks.
  Result<Lowered> Run();

  // The deepest nesting of calls, which are lowered by recursion.
  static constexpr int kMostDepth = kMostNestedCalls;

  // Expands a call of a function with these arguments and returns its outputs. `given_away` as in
  // Instance; empty: none is.
  std::vector<int> Call(NodeLowering& n, const FunctionName& function,
                        const std::vector<int>& arguments, std::vector<bool> given_away = {});
  // Whether the function returns argument `k` unchanged as result `k`.
  bool HandsOn(NodeLowering& n, const FunctionName& function, size_t k);
  Revisions& revisions() { return revisions_; }
  bool HasFunction(std::string_view name) const { return functions_.contains(name); }
  // Whether a lowered node may write the variable.
  bool IsWritten(int variable) const {
    const auto name = kept_names_.find(variable);
    return functions_write_ || (name != kept_names_.end() && written_.contains(name->second));
  }
  // The gradient array of a TensorArray; kNoDraft, to be set by the caller, if it has none yet.
  int& GradientArray(int array, const std::string& source) {
    return gradient_arrays_.try_emplace({array, source}, kNoDraft).first->second;
  }
  // Notes a gradient that is to be computed before the program runs.
  void AddGradient(GradientNode node) { gradients_.push_back(std::move(node)); }
  // The variable of this name, which is made if it does not exist.
  int VariableNamed(const std::string& name, int type, const Shape& shape);
  // The same for a hash table.
  int TableNamed(const std::string& name, bool is_mutable);
  bool IsMutableTable(int variable) const { return mutable_tables_.contains(variable); }

 private:
  friend class NodeLowering;
  // The nodes of a function's instance, and which of them its results depend on.
  struct Body {
    const Function* function = nullptr;
    const FunctionBody* instance = nullptr;
    std::deque<std::string> held;  // bytes that `attributes` refer to
    std::vector<Attribute> attributes;
    NodeGraph graph;
    std::vector<Source> results;
    Region region;
    bool broken = false;  // an error in it has been reported
    Body(const Function& f, const FunctionBody& instance, NodeGraph nodes)
        : function(&f), instance(&instance), graph(std::move(nodes)) {}
  };
  struct Wanted {
    std::string name;  // the user's name
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
  bool CheckForm(NodeLowering& n, int at);
  bool CheckRanks(NodeLowering& n, int at);
  void LowerBranches(const Branches& branches, Instance& instance);
  void LowerLoop(const Loop& loop, Instance& instance);
  // The variable of a value; kNoDraft: it is not lowered (yet).
  static int KnownValueOf(const Instance& instance, Source source);
  int ValueOf(Instance& instance, Source source, const Node& reader, std::string_view name);

  // --- functions/call.cc
  Result<FunctionLibrary::Handle> InstanceFor(NodeLowering& n, const FunctionName& function);
  Body* BodyOf(FunctionLibrary::Handle handle);
  NodeGraph GraphOf(const FunctionBody& instance);
  // The nodes of a called function; nothing: there is none, or it has errors.
  std::optional<NodeGraph> GraphOf(const FunctionName& function);
  void FindRegion(Body* body);

  const Model& model_;
  const ProgramPart& part_;
  Revisions& revisions_;
  NodeGraph graph_;
  Instance main_;
  std::vector<bool> needed_;
  std::vector<Wanted> feeds_, fetches_;
  std::vector<int> targets_;                                 // nodes that must run
  std::vector<int> fetched_;                                 // by fetch: the variable
  std::unordered_map<int, std::vector<size_t>> fetches_of_;  // by node
  std::vector<Port> inputs_, outputs_;
  std::map<std::string, std::string, std::less<>> output_names_;  // as Lowered::output_names
  std::unordered_map<std::string_view, const Function*> functions_;
  FunctionLibrary library_;
  std::unordered_map<FunctionLibrary::Handle, std::unique_ptr<Body>> bodies_;
  std::map<std::pair<int, std::string>, int> gradient_arrays_;
  std::map<std::string, int> variables_;             // by name
  std::unordered_map<int, std::string> kept_names_;  // variable -> its name in the checkpoint
  std::unordered_set<std::string> variable_names_;   // names that no input has
  std::map<std::string, std::string> restored_;      // variable -> key of the bundle
  std::map<std::string, TableContents> tables_;      // by name
  std::unordered_map<int, std::string> table_names_;
  std::unordered_set<int> mutable_tables_;
  std::unordered_set<std::string> written_;  // variables that nodes of the graph write
  bool functions_write_ = false;             // a function may write any variable
  std::unordered_set<std::string_view> writing_functions_;  // directly or through calls
  MayWrite may_write_;
  std::vector<GradientNode> gradients_;
  size_t nodes_lowered_ = 0;
  int regions_ = 0;             // regions that are being lowered
  bool too_deep_ = false;       // the error has been reported
  int64_t listed_outputs_ = 0;  // of operators whose attributes say how many they have
};

}  // namespace heddle::tensorflow
