// The graph with every group contracted to one node, kept acyclic, and its nodes in a topological
// order.
//
// The order is a list whose positions have numbers, with gaps between them. Merging nodes searches
// only what lies between them in the order: alternately backwards from the last and forwards from
// the first, until one side is exhausted or a path has been found. What the finished side has
// visited is then moved to the other side of the merged node. Groups grow at the end of the walk,
// so that hardly anything lies between.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "partition/graph.h"

namespace heddle::partition {

class Quotient {
 public:
  using Node = OpIndex;  // represented by one of its operators

  explicit Quotient(const Graph& graph);

  Node node(OpIndex i) const { return nodes_[At(i)]; }
  std::span<const OpIndex> members(Node node) const;
  // Contracts the nodes of these operators to one. False, without a change, if a path leaves them
  // and returns, or if the search takes too long (see kMostSteps), unless `patient`.
  bool Merge(std::span<const OpIndex> ops, bool patient = false);
  // Splits the node of `op` into its operators.
  void Split(OpIndex op);

  // Whether `a` precedes `b` in the order.
  bool Before(Node a, Node b) const { return labels_[At(a)] < labels_[At(b)]; }
  Node next(Node node) const { return next_[At(node)]; }  // the sentinel after the last one

 private:
  // The most steps (visits of an operator) of one merge, and of all merges before each gets only
  // kFewSteps. Only graphs that are constructed for it reach these limits.
  static constexpr int64_t kMostSteps = 1 << 18, kAllSteps = 1 << 25, kFewSteps = 1 << 8;

  struct Side {
    std::vector<Node> todo, seen;
    int64_t steps = 0;
  };
  enum class Mark : uint8_t { kNone, kMerged, kForward, kBackward };

  static size_t At(OpIndex i) { return static_cast<size_t>(i); }
  // Visits one node of a side. False: there is a path back.
  bool Step(Side* side, bool forward, int64_t least, int64_t most);
  bool Search(std::span<const Node> merged, int64_t limit, Side* forward, Side* backward,
              bool* by_forward);
  // Makes `b` the next node after `a`.
  void Link(Node a, Node b);
  void Unlink(Node node);
  // Inserts nodes between two neighbours.
  void Insert(std::span<const Node> nodes, Node behind);
  void MakeRoom(Node left, Node right, size_t count);

  const Graph& graph_;
  std::vector<Node> nodes_;  // of each operator: its node
  std::vector<std::vector<OpIndex>> members_;
  std::vector<int64_t> labels_;
  std::vector<Node> next_, previous_;
  std::vector<Mark> marks_;
  const Node head_, tail_;
  int64_t all_steps_ = 0;
};

}  // namespace heddle::partition
