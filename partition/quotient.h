// The graph with every group contracted to one node, kept free of cycles, and its nodes in an order
// that respects all edges.
//
// The order is a list whose places have numbers, with gaps between them. Merging nodes looks only
// at what lies between them in the order: from the last of them backwards and from the first one
// forwards in turn, until one side is exhausted or a path has been found. What the finished side
// has seen is then moved to the other side of the merged node. Groups grow at the end of what has
// been walked, so that hardly anything lies between.
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
  using Node = OpIndex;  // one of its operators

  explicit Quotient(const Graph& graph);

  Node node(OpIndex i) const { return nodes_[At(i)]; }
  std::span<const OpIndex> members(Node node) const;
  // Contracts the nodes of these operators to one. False, and nothing changed, where a path leaves
  // them and comes back; also where finding that out takes too long (see kMostSteps), unless
  // `patient`.
  bool Merge(std::span<const OpIndex> ops, bool patient = false);
  // The node of `op` falls apart into its operators.
  void Split(OpIndex op);

  // Whether `a` stands before `b`.
  bool Before(Node a, Node b) const { return labels_[At(a)] < labels_[At(b)]; }
  Node next(Node node) const { return next_[At(node)]; }  // the sentinel behind the last one

 private:
  // Steps of one merge, and of all together before merges get a small part of that. A step is an
  // operator that is looked at. Only graphs made for it get there.
  static constexpr int64_t kMostSteps = 1 << 18, kAllSteps = 1 << 25, kFewSteps = 1 << 8;

  struct Side {
    std::vector<Node> todo, seen;
    int64_t steps = 0;
  };
  enum class Mark : uint8_t { kNone, kMerged, kForward, kBackward };

  static size_t At(OpIndex i) { return static_cast<size_t>(i); }
  // Looks at one node of a side. False: a path leads back.
  bool Step(Side* side, bool forward, int64_t least, int64_t most);
  bool Search(std::span<const Node> merged, int64_t limit, Side* forward, Side* backward,
              bool* by_forward);
  // Makes `b` the next node behind `a`.
  void Link(Node a, Node b);
  void Unlink(Node node);
  // Puts nodes between two neighbours.
  void Insert(std::span<const Node> nodes, Node behind);
  void MakeRoom(Node left, Node right, size_t count);

  const Graph& graph_;
  std::vector<Node> nodes_;  // of each operator
  std::vector<std::vector<OpIndex>> members_;
  std::vector<int64_t> labels_;
  std::vector<Node> next_, previous_;
  std::vector<Mark> marks_;
  const Node head_, tail_;
  int64_t all_steps_ = 0;
};

}  // namespace heddle::partition
