#include "executor/plan/memory_edges.h"

#include <algorithm>

#include "executor/plan/block_access.h"
#include "scheduler/prune.h"

namespace heddle {
namespace {

constexpr uint32_t kMostInstructions = 2000;
constexpr int kMostTries = 20000;
constexpr double kLongerPath = 1.05;

// A temporary of the serial plan, with its views.
struct Temporary {
  uint32_t slot = 0;
  size_t offset = 0, bytes = 0;
  std::vector<uint32_t> users;  // positions of the instructions that use it, ascending
};

std::vector<Temporary> FindTemporaries(const Plan& plan) {
  std::vector<Temporary> all(plan.slots.size());
  BlockAccess blocks(plan);
  const auto& ins = plan.blocks[0].instructions;
  for (uint32_t i = 0; i < ins.size(); ++i) {
    const auto touch = [&](std::span<const uint32_t> slots) {
      for (uint32_t s : slots) {
        if (s == kNoSlot || plan.slots[s].storage != Storage::kArena) continue;
        if (plan.slots[plan.RootOf(s)].home != 0) continue;  // it lies in a sub-block's work space
        auto& users = all[plan.RootOf(s)].users;
        if (users.empty() || users.back() != i) users.push_back(i);
      }
    };
    touch(ins[i].op.in);
    touch(ins[i].op.out);
    for (int sub : BlocksOf(plan, ins[i])) {
      touch(blocks.Of(sub).reads);
      touch(blocks.Of(sub).writes);
      touch({&plan.blocks[sub].workspace, 1});
    }
  }
  for (uint32_t s = 0; s < all.size(); ++s)
    all[s] = {s, plan.slots[s].offset, all[s].users.empty() ? 0 : plan.slots[s].bytes(),
              std::move(all[s].users)};
  std::erase_if(all, [](const Temporary& t) { return t.bytes == 0; });
  return all;
}

class EdgeFinder {
 public:
  EdgeFinder(const Plan& plan, const StaticGraph& graph, std::span<const float> cost_ns)
      : plan_(plan),
        graph_(graph),
        cost_(cost_ns),
        added_(graph.size),
        words_((graph.size + 63) / 64),
        before_(graph.size * words_),
        path_ns_(graph.size) {
    longest_ = kLongerPath * LongestPath();
    FindAncestors(0);
  }

  std::vector<OrderEdge> Run() {
    const std::vector<Temporary> all = FindTemporaries(plan_);
    struct Pair {
      size_t shared;  // bytes
      const Temporary *earlier, *later;
    };
    std::vector<Pair> pairs;
    for (const Temporary& a : all)
      for (const Temporary& b : all)
        if (LayThere(a, b)) pairs.push_back({std::min(a.bytes, b.bytes), &a, &b});
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const Pair& a, const Pair& b) { return a.shared > b.shared; });
    int tries = 0;
    for (const Pair& pair : pairs) {
      const uint32_t first = pair.later->users.front();
      const size_t had = added_[first].size();
      WaitForUsers(*pair.earlier, first);
      if (added_[first].size() == had) continue;
      if (LongestPath() > longest_)
        added_[first].resize(had);
      else
        FindAncestors(first);
      if (++tries == kMostTries) break;
    }
    std::vector<OrderEdge> edges;
    for (uint32_t v = 0; v < graph_.size; ++v)
      for (uint32_t u : added_[v]) edges.emplace_back(u, v);
    return edges;
  }

 private:
  template <typename Fn>
  void ForPredecessors(uint32_t v, Fn&& fn) const {
    for (uint32_t e = graph_.pred_begin[v]; e < graph_.pred_begin[v + 1]; ++e) fn(graph_.pred[e]);
    for (uint32_t u : added_[v]) fn(u);
  }

  double LongestPath() {
    double longest = 0;
    for (uint32_t v = 0; v < graph_.size; ++v) {
      double start = 0;
      ForPredecessors(v, [&](uint32_t u) { start = std::max(start, path_ns_[u]); });
      path_ns_[v] = start + static_cast<double>(cost_[v]);
      longest = std::max(longest, path_ns_[v]);
    }
    return longest;
  }

  bool IsBefore(uint32_t u, uint32_t v) const {
    return before_[v * words_ + u / 64] >> (u % 64) & 1;
  }
  // Recomputes the ancestors of nodes from `first` on.
  void FindAncestors(uint32_t first) {
    for (uint32_t v = first; v < graph_.size; ++v)
      ForPredecessors(v, [&](uint32_t u) {
        for (size_t w = 0; w < words_; ++w) before_[v * words_ + w] |= before_[u * words_ + w];
        before_[v * words_ + u / 64] |= uint64_t{1} << (u % 64);
      });
  }

  // Whether `b` lies in memory that `a` used before it in the serial plan. A piece and its whole
  // lie there at the same time.
  bool LayThere(const Temporary& a, const Temporary& b) const {
    if (a.slot == b.slot || a.users.front() >= b.users.front() || a.offset >= b.offset + b.bytes ||
        b.offset >= a.offset + a.bytes)
      return false;
    const Instruction& in = plan_.blocks[0].instructions[b.users.front()];
    const bool joins = in.op.def->has(kAlongAxis) && plan_.buffers[a.slot] == plan_.buffers[b.slot];
    return !joins && a.users.back() <= b.users.front();
  }

  void WaitForUsers(const Temporary& earlier, uint32_t first) {
    for (uint32_t u : earlier.users)
      if (u != first && !IsBefore(u, first) &&
          std::find(added_[first].begin(), added_[first].end(), u) == added_[first].end())
        added_[first].push_back(u);
  }

  const Plan& plan_;
  const StaticGraph& graph_;
  const std::span<const float> cost_;
  std::vector<std::vector<uint32_t>> added_;  // per node: additional predecessors
  const size_t words_;
  std::vector<uint64_t> before_;  // per node: its ancestors, as bits
  std::vector<double> path_ns_;   // per node: its earliest end
  double longest_ = 0;
};

}  // namespace

std::vector<OrderEdge> FindMemoryEdges(const Plan& serial, const StaticGraph& graph,
                                       std::span<const float> cost_ns) {
  if (graph.size > kMostInstructions || serial.buffers.empty()) return {};
  return EdgeFinder(serial, graph, cost_ns).Run();
}

StaticGraph AddEdges(const StaticGraph& graph, std::span<const OrderEdge> edges) {
  std::vector<std::vector<uint32_t>> added(graph.size);
  for (const auto& [from, to] : edges) added[to].push_back(from);
  StaticGraph all;
  all.size = graph.size;
  all.priority = graph.priority;
  all.pred_begin.push_back(0);
  for (uint32_t v = 0; v < graph.size; ++v) {
    auto& row = added[v];
    row.insert(row.end(), graph.pred.begin() + graph.pred_begin[v],
               graph.pred.begin() + graph.pred_begin[v + 1]);
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    all.pred.insert(all.pred.end(), row.begin(), row.end());
    all.pred_begin.push_back(static_cast<uint32_t>(all.pred.size()));
  }
  PruneImpliedEdges(&all);
  return all;
}

}  // namespace heddle
