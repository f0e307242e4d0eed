// Nodes of a graph, or of a function's body, with their inputs found: what leads to what.
//
// Ownership: refers to the nodes. Threads: any may read.
#pragma once

#include <compare>
#include <map>
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

class NodeGraph {
 public:
  // The nodes of a graph.
  explicit NodeGraph(const std::vector<Node>& nodes);
  // Those of a function: its inputs are arguments, and references name output arguments.
  explicit NodeGraph(const Function& function);

  size_t size() const { return nodes_->size(); }
  const Node& node(int i) const { return (*nodes_)[static_cast<size_t>(i)]; }
  const Links& links(int i) const { return links_[static_cast<size_t>(i)]; }
  Links& links(int i) { return links_[static_cast<size_t>(i)]; }
  // The node's place; kMissing.
  int Find(std::string_view name) const;
  // The value that "node", "node:1" or, in a function, "node:output:0" names.
  Source Resolve(std::string_view reference) const;
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
  const Function* function_ = nullptr;
  std::unordered_map<std::string_view, int> places_, arguments_;
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

// The number of output "argument:k" of an operator whose outputs have these names; -1 where there
// is no such output.
int PortOf(const Node& node, std::string_view argument, int k);

}  // namespace heddle::tensorflow
