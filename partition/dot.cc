// Groups as a graph in the language of Graphviz.
#include <string>

#include "partition/graph.h"
#include "partition/partition.h"

namespace heddle::partition {
namespace {

std::string DotText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + "\"";
}

std::string NodeName(int block, int op) {
  return "b" + std::to_string(block) + "_" + std::to_string(op);
}

void AddBlockDot(const Graph& graph, const BlockPartition& block, const Partition& partition,
                 std::string* dot) {
  const auto node = [&](int i, const std::string& more, const char* style) {
    *dot += "    " + NodeName(block.block, i) +
            " [label=" + DotText(std::to_string(i) + " " + std::string(graph.type(i)) + more) +
            style + "];\n";
  };
  for (size_t k = 0; k < block.groups.size(); ++k) {
    const PlacedGroup& group = block.groups[k];
    *dot += "  subgraph cluster_" + std::to_string(block.block) + "_" + std::to_string(k) + " {\n" +
            "    label=" +
            DotText("group " + std::to_string(k) + " on " +
                    partition.targets[static_cast<size_t>(group.target)]) +
            ";\n";
    for (size_t i = 0; i < group.operators.size(); ++i)
      node(group.operators[i], "\n(" + group.units[i] + ")", "");
    for (const int helper : group.helpers) node(helper, "", ", style=dotted");
    *dot += "  }\n";
  }
  for (const RestOperator& rest : block.rest) node(rest.op, "", ", style=dashed");
  for (OpIndex i = 0; i < graph.size(); ++i) {
    const auto before = graph.before(i);
    for (size_t k = 0; k < before.size(); ++k)
      *dot += "  " + NodeName(block.block, before[k]) + " -> " + NodeName(block.block, i) +
              (k < graph.makers(i).size() ? ";\n" : " [style=dashed];\n");
  }
}

}  // namespace

Result<std::string> PartitionDot(std::string_view program_desc, const Partition& partition) {
  HEDDLE_ASSIGN_OR_RETURN(const Description description, Description::Parse(program_desc));
  std::string dot = "digraph partition {\n  node [shape=box];\n";
  for (const BlockPartition& block : partition.blocks)
    AddBlockDot(Graph(description, block.block), block, partition, &dot);
  return dot + "}\n";
}

}  // namespace heddle::partition
