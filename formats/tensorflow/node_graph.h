// NodeGraph: the nodes of a graph or of a function's body, with the sources of their inputs
// resolved.
//
// Ownership: refers to the nodes. Threads: any may read.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/tensorflow/model.h"

namespace heddle::tensorflow {

// The origin of a value: output `port` of a node, or an argument.
struct Source {
  static constexpr int kArgument = -1;  // `port` numbers the arguments
  static constexpr int kMissing = -2;   // the name is unknown
  int node = kMissing;
  int port = 0;
  bool is_node() const { return node >= 0; }
  friend auto operator<=>(const Source&, const Source&) = default;
};

struct Links {
  std::vector<Source> inputs;
  std::vector<std::string_view> names;  // of `inputs`, as the file has them
  std::vector<int> controls;            // nodes; kMissing where there is none
  std::vector<std::string_view> control_names;
};

// The range of a node's outputs that form one argument of its operator's definition.
struct OutputRange {
  int first = 0;
  int count = 1;  // -1: a list of unknown length; outputs after it cannot be named
};
// The outputs of an argument by its name; nothing if the operator has no such argument.
using FindOutputs = std::function<std::optional<OutputRange>(const Node&, std::string_view)>;

class NodeGraph {
 public:
  // Resolves the nodes of a graph.
  explicit NodeGraph(const std::vector<Node>& nodes);
  // Resolves the nodes of a function: its inputs are arguments of `argument_sizes` values each, and
  // references name output arguments.
  NodeGraph(const Function& function, const std::vector<size_t>& argument_sizes, FindOutputs find);

  size_t size() const { return nodes_->size(); }
  const Node& node(int i) const { return (*nodes_)[static_cast<size_t>(i)]; }
  const Links& links(int i) const { return links_[static_cast<size_t>(i)]; }
  Links& links(int i) { return links_[static_cast<size_t>(i)]; }
  // The index of the node; kMissing: there is none.
  int Find(std::string_view name) const;
  // The value named by "node", "node:1" or, in a function, "node:output:0"; the first if there are
  // several.
  Source Resolve(std::string_view reference) const;
  // All values of a name: in a function "node:output" and an argument's name may denote lists.
  std::vector<Source> ResolveAll(std::string_view reference) const;
  // The source of input `i` of a node, ignoring Replace.
  Source Original(int node, size_t i) const;
  // A name that two nodes have; empty: there is none.
  std::string_view duplicate() const { return duplicate_; }

  // Makes the nodes read these arguments in place of these outputs.
  void Replace(const std::map<Source, int>& arguments);
  // Marks all nodes that these depend on, by data and control edges.
  std::vector<bool> Ancestors(const std::vector<Source>& values,
                              const std::vector<int>& nodes) const;
  // Counts which outputs the marked nodes read; `results` are read from outside.
  void NoteUses(const std::vector<bool>& marked, const std::vector<Source>& results);
  bool IsUsed(Source output) const { return Uses(output) > 0; }
  // How many inputs of marked nodes, and how many results, are this value.
  int Uses(Source value) const;

 private:
  void Link();

  const std::vector<Node>* nodes_;
  FindOutputs find_outputs_;  // null: the nodes are not a function's
  std::unordered_map<std::string_view, int> places_;
  std::unordered_map<std::string_view, OutputRange> arguments_;
  std::vector<Links> links_;
  static uint64_t KeyOf(Source source) {
    return uint64_t{static_cast<uint32_t>(source.node)} << 32 | static_cast<uint32_t>(source.port);
  }
  std::unordered_map<uint64_t, int> uses_;  // by output or argument that is read
  std::string_view duplicate_;
};

// Whether the operator writes the variable that is its first input.
bool WritesVariable(std::string_view op);
// Whether the operator draws random numbers from a sequence that continues from run to run.
bool DrawsNumbers(std::string_view op);

// The names of the operator's output arguments, separated by blanks; empty if it has only one,
// whose name is not needed.
std::string_view OutputNames(std::string_view op);

}  // namespace heddle::tensorflow
