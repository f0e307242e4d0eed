#include "scheduler/prune.h"

#include <algorithm>

namespace heddle {
namespace {

class Pruner {
 public:
  Pruner(StaticGraph& graph, size_t steps)
      : g_(graph),
        steps_(steps),
        level_(graph.size, 0),
        candidate_(graph.size, kNone),
        seen_(graph.size, kNone) {}

  size_t Run() {
    const size_t edges = g_.pred.size();
    uint32_t kept = 0, begin = 0;
    for (uint32_t v = 0; v < g_.size; ++v) {
      const uint32_t end = g_.pred_begin[v + 1];
      if (end - begin > 1) Search(v, begin, end);
      for (uint32_t e = begin; e < end; ++e) {
        const uint32_t p = g_.pred[e];
        level_[v] = std::max(level_[v], level_[p] + 1);
        // A candidate without its mark was found to be implied.
        if (end - begin > 1 && candidate_[p] != v) continue;
        g_.pred[kept++] = p;
      }
      begin = end;
      g_.pred_begin[v + 1] = kept;
    }
    g_.pred.resize(kept);
    return edges - kept;
  }

 private:
  static constexpr uint32_t kNone = ~0u;
  // Nodes further back than this have left the caches: a step there costs a visit to memory and
  // hardly ever meets a candidate, so it counts as several.
  static constexpr uint32_t kNear = 4096;
  static constexpr size_t kFarStep = 16;

  // Removes the mark of each predecessor in pred[begin .. end) that a backward search from the
  // other predecessors of v reaches. The search starts from the newest, prefers the longest steps
  // back that do not pass the oldest candidate, and stops where no candidate can lie further back.
  void Search(uint32_t v, uint32_t begin, uint32_t end) {
    const uint32_t oldest = g_.pred[begin];
    uint32_t lowest = kNone;
    open_.clear();
    for (uint32_t e = begin; e < end; ++e) {
      const uint32_t p = g_.pred[e];
      candidate_[p] = seen_[p] = v;
      if (e + 1 < end) lowest = std::min(lowest, level_[p]);
      open_.push_back(p);
    }
    size_t left = std::max<size_t>(steps_, 4 * (end - begin)), undecided = end - begin - 1;
    while (!open_.empty() && left > 0 && undecided > 0) {
      const uint32_t at = open_.back();
      open_.pop_back();
      if (level_[at] <= lowest) continue;
      for (uint32_t e = g_.pred_begin[at + 1]; e > g_.pred_begin[at] && left > 0; --e) {
        const uint32_t q = g_.pred[e - 1];
        if (q < oldest) break;
        left -= std::min<size_t>(left, v - q < kNear ? 1 : kFarStep);
        if (candidate_[q] == v) {
          candidate_[q] = kNone;
          --undecided;
        } else if (seen_[q] != v) {
          seen_[q] = v;
          open_.push_back(q);
        }
      }
    }
  }

  StaticGraph& g_;
  const size_t steps_;
  std::vector<uint32_t> level_;      // longest path from a node without predecessors
  std::vector<uint32_t> candidate_;  // == v: a predecessor of v, not known to be implied
  std::vector<uint32_t> seen_;       // == v: visited by the search for v
  std::vector<uint32_t> open_;       // stack of the search
};

}  // namespace

size_t PruneImpliedEdges(StaticGraph* graph, size_t steps) {
  const size_t dropped = Pruner(*graph, steps).Run();
  CompleteSuccessors(graph);
  return dropped;
}

}  // namespace heddle
