// Nodes of a graph, or of a function's body, with their inputs found: what leads to what.
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
  static constexpr int kMissing = -2;   // there is none of that name
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

// The outputs that an argument of an operator's definition is.
struct OutputRange {
  int first = 0;
  int count = 1;  // -1: a list of an unknown length, behind which nothing is named
};
// By the name of the argument; nothing where the operator has none of that name.
using FindOutputs = std::function<std::optional<OutputRange>(const Node&, std::string_view)>;

class NodeGraph {
 public:
  // The nodes of a graph.
  explicit NodeGraph(const std::vector<Node>& nodes);
  // Those of a function: its inputs are arguments, each of so many values, and references name
  // output arguments.
  NodeGraph(const Function& function, const std::vector<size_t>& argument_sizes, FindOutputs find);

  size_t size() const { return nodes_->size(); }
  const Node& node(int i) const { return (*nodes_)[static_cast<size_t>(i)]; }
  const Links& links(int i) const { return links_[static_cast<size_t>(i)]; }
  Links& links(int i) { return links_[static_cast<size_t>(i)]; }
  // The node's place; kMissing.
  int Find(std::string_view name) const;
  // The value that "node", "node:1" or, in a function, "node:output:0" names; of several the first.
  Source Resolve(std::string_view reference) const;
  // In a function "node:output" and the name of an argument are all values of a list.
  std::vector<Source> ResolveAll(std::string_view reference) const;
  // Where input `i` of a node comes from, whatever it was replaced by.
  Source Original(int node, size_t i) const;
  // Two nodes of one name: the name; empty where there are none.
  std::string_view duplicate() const { return duplicate_; }

  // In place of these outputs, nodes read these arguments.
  void Replace(const std::map<Source, int>& arguments);
  // Marks what these lead back to, by data and control edges.
  std::vector<bool> Ancestors(const std::vector<Source>& values,
                              const std::vector<int>& nodes) const;
  // Notes which outputs the marked nodes read; `results` are read from outside.
  void NoteUses(const std::vector<bool>& marked, const std::vector<Source>& results);
  bool IsUsed(Source output) const { return Uses(output) > 0; }
  // The number of their inputs, and of the results, that the value is.
  int Uses(Source value) const;

 private:
  void Link();

  const std::vector<Node>* nodes_;
  FindOutputs find_outputs_;  // null: these are no function's
  std::unordered_map<std::string_view, int> places_;
  std::unordered_map<std::string_view, OutputRange> arguments_;
  std::vector<Links> links_;
  static uint64_t KeyOf(Source source) {
    return uint64_t{static_cast<uint32_t>(source.node)} << 32 | static_cast<uint32_t>(source.port);
  }
  std::unordered_map<uint64_t, int> uses_;  // by output or argument that somebody reads
  std::string_view duplicate_;
};

// Whether operators of this name write the variable that is their first input.
bool WritesVariable(std::string_view op);
// Random operators that go on from run to run, so that each run of theirs counts.
bool DrawsNumbers(std::string_view op);

// The names of the arguments that are the operator's outputs, with blanks between them; empty where
// it has one argument, so that its name says nothing.
std::string_view OutputNames(std::string_view op);

}  // namespace heddle::tensorflow
