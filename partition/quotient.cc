#include "partition/quotient.h"

#include <algorithm>

namespace heddle::partition {

Quotient::Quotient(const Graph& graph)
    : graph_(graph),
      nodes_(At(graph.size())),
      members_(At(graph.size())),
      labels_(At(graph.size()) + 2),
      next_(At(graph.size()) + 2),
      previous_(At(graph.size()) + 2),
      marks_(At(graph.size())),
      head_(graph.size()),
      tail_(graph.size() + 1) {
  constexpr int64_t kEnd = int64_t{1} << 62;
  const int64_t gap = kEnd / (int64_t{graph.size()} + 1);
  Node last = head_;
  int64_t label = 0;
  for (const OpIndex i : graph.walk()) {
    nodes_[At(i)] = i;
    labels_[At(i)] = label += gap;
    Link(last, i);
    last = i;
  }
  labels_[At(tail_)] = kEnd;
  Link(last, tail_);
}

std::span<const OpIndex> Quotient::members(Node node) const {
  const auto& members = members_[At(node)];
  return members.empty() ? std::span<const OpIndex>(&nodes_[At(node)], 1) : members;
}

bool Quotient::Step(Side* side, bool forward, int64_t least, int64_t most) {
  const Node node = side->todo.back();
  side->todo.pop_back();
  const bool outside = marks_[At(node)] != Mark::kMerged;
  const Mark own = forward ? Mark::kForward : Mark::kBackward;
  for (const OpIndex member : members(node)) {
    ++side->steps;
    for (const OpIndex other : forward ? graph_.after(member) : graph_.before(member)) {
      ++side->steps;
      const Node to = nodes_[At(other)];
      const Mark mark = marks_[At(to)];
      if (to == node || mark == own) continue;
      if (mark != Mark::kNone) {
        if (mark == Mark::kMerged && !outside) continue;
        return false;
      }
      if (labels_[At(to)] < least || labels_[At(to)] > most) continue;
      marks_[At(to)] = own;
      side->todo.push_back(to);
      side->seen.push_back(to);
    }
  }
  return true;
}

bool Quotient::Search(std::span<const Node> merged, int64_t limit, Side* forward, Side* backward,
                      bool* by_forward) {
  int64_t least = labels_[At(tail_)], most = 0;
  for (const Node node : merged) {
    marks_[At(node)] = Mark::kMerged;
    least = std::min(least, labels_[At(node)]);
    most = std::max(most, labels_[At(node)]);
  }
  for (const Node node : merged) {
    if (labels_[At(node)] != most) forward->todo.push_back(node);
    if (labels_[At(node)] != least) backward->todo.push_back(node);
  }
  bool free = true;
  const auto price = [&](const Side& side) {
    return side.steps + static_cast<int64_t>(members(side.todo.back()).size());
  };
  while (free && !forward->todo.empty() && !backward->todo.empty()) {
    if (forward->steps + backward->steps > limit) free = false;
    if (!free) break;
    free = price(*forward) < price(*backward) ? Step(forward, true, least, most)
                                              : Step(backward, false, least, most);
  }
  *by_forward = forward->todo.empty();
  all_steps_ += forward->steps + backward->steps;
  for (const Node node : merged) marks_[At(node)] = Mark::kNone;
  for (const Node node : forward->seen) marks_[At(node)] = Mark::kNone;
  for (const Node node : backward->seen) marks_[At(node)] = Mark::kNone;
  return free;
}

bool Quotient::Merge(std::span<const OpIndex> ops, bool patient) {
  std::vector<Node> merged;
  for (const OpIndex i : ops) merged.push_back(node(i));
  std::sort(merged.begin(), merged.end());
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  if (merged.size() < 2) return true;
  Side forward, backward;
  bool by_forward = false;
  const int64_t limit = patient                  ? std::numeric_limits<int64_t>::max()
                        : all_steps_ < kAllSteps ? kMostSteps
                                                 : kFewSteps;
  if (!Search(merged, limit, &forward, &backward, &by_forward)) return false;
  const auto order = [this](Node a, Node b) { return Before(a, b); };
  std::sort(merged.begin(), merged.end(), order);
  // The merged node gets the position of its last one, and what it reaches moves after it; or that
  // of its first one, and what reaches it moves before it.
  std::vector<Node>& moved = by_forward ? forward.seen : backward.seen;
  std::sort(moved.begin(), moved.end(), order);
  for (const Node node : moved) Unlink(node);
  const Node place = by_forward ? merged.back() : merged.front();
  Node largest = place;
  for (const Node node : merged)
    if (members(node).size() > members(largest).size()) largest = node;
  Node behind = previous_[At(place)];
  for (const Node node : merged) {
    if (node == behind) behind = previous_[At(behind)];
    Unlink(node);
  }
  std::vector<OpIndex>& all = members_[At(largest)];
  if (all.empty()) all.push_back(largest);
  for (const Node node : merged) {
    if (node == largest) continue;
    const std::vector<OpIndex> theirs(members(node).begin(), members(node).end());
    members_[At(node)].clear();
    for (const OpIndex i : theirs) {
      nodes_[At(i)] = largest;
      all.push_back(i);
    }
  }
  std::vector<Node> inserted;
  if (by_forward) inserted.push_back(largest);
  inserted.insert(inserted.end(), moved.begin(), moved.end());
  if (!by_forward) inserted.push_back(largest);
  Insert(inserted, behind);
  return true;
}

void Quotient::Split(OpIndex op) {
  const Node group = node(op);
  std::vector<OpIndex> ops = std::move(members_[At(group)]);
  members_[At(group)].clear();
  if (ops.empty()) return;
  std::sort(ops.begin(), ops.end(),
            [this](OpIndex a, OpIndex b) { return graph_.place(a) < graph_.place(b); });
  const Node behind = previous_[At(group)];
  Unlink(group);
  for (const OpIndex i : ops) nodes_[At(i)] = i;
  Insert(ops, behind);
}

void Quotient::Link(Node a, Node b) {
  next_[At(a)] = b;
  previous_[At(b)] = a;
}

void Quotient::Unlink(Node node) { Link(previous_[At(node)], next_[At(node)]); }

void Quotient::Insert(std::span<const Node> nodes, Node behind) {
  const Node end = next_[At(behind)];
  MakeRoom(behind, end, nodes.size());
  const int64_t gap =
      (labels_[At(end)] - labels_[At(behind)]) / (static_cast<int64_t>(nodes.size()) + 1);
  int64_t label = labels_[At(behind)];
  for (const Node node : nodes) {
    labels_[At(node)] = label += gap;
    Link(behind, node);
    behind = node;
  }
  Link(behind, end);
}

void Quotient::MakeRoom(Node left, Node right, size_t count) {
  const auto needed = static_cast<int64_t>(count) + 1;
  if (labels_[At(right)] - labels_[At(left)] > needed) return;
  // Takes in twice as many neighbours each time, until there is room for many more.
  constexpr int64_t kRoom = 1 << 8;
  const Node gap = left;
  int64_t nodes = needed;
  for (int64_t more = 2; labels_[At(right)] - labels_[At(left)] <= kRoom * nodes; more *= 2) {
    if (left == head_ && right == tail_) break;
    for (int64_t k = 0; k < more; ++k) {
      if (left != head_) left = previous_[At(left)], ++nodes;
      if (right != tail_) right = next_[At(right)], ++nodes;
    }
  }
  const int64_t step = (labels_[At(right)] - labels_[At(left)]) / (nodes + 1);
  int64_t label = labels_[At(left)];
  for (Node node = left; node != right; node = next_[At(node)]) {
    if (node != left) labels_[At(node)] = label += step;
    if (node == gap) label += step * needed;
  }
}

}  // namespace heddle::partition
