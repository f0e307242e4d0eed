#include "scheduler/static_graph.h"

#include <cstddef>
#include <functional>
#include <queue>
#include <utility>

namespace heddle {

void CompleteSuccessors(StaticGraph* graph) {
  StaticGraph& g = *graph;
  // Row lengths are counted two places to the right: entry p + 1 then is the begin of row p, and
  // filling the row makes it the row's end.
  g.succ_begin.assign(static_cast<size_t>(g.size) + 2, 0);
  for (uint32_t p : g.pred) ++g.succ_begin[p + 2];
  for (uint32_t v = 0; v < g.size; ++v) g.succ_begin[v + 2] += g.succ_begin[v + 1];
  g.succ.resize(g.pred.size());
  for (uint32_t v = 0; v < g.size; ++v)
    for (uint32_t e = g.pred_begin[v]; e < g.pred_begin[v + 1]; ++e)
      g.succ[g.succ_begin[g.pred[e] + 1]++] = v;
  g.succ_begin.pop_back();
}

std::vector<uint32_t> OrderByPriority(const StaticGraph& graph) {
  using Entry = std::pair<int64_t, uint32_t>;  // priority, node
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<uint32_t> waits(graph.size), order;
  order.reserve(graph.size);
  for (uint32_t v = 0; v < graph.size; ++v)
    if ((waits[v] = graph.in_degree(v)) == 0) ready.emplace(graph.PriorityOf(v), v);
  while (!ready.empty()) {
    const uint32_t v = ready.top().second;
    ready.pop();
    order.push_back(v);
    for (uint32_t e = graph.succ_begin[v]; e < graph.succ_begin[v + 1]; ++e)
      if (--waits[graph.succ[e]] == 0)
        ready.emplace(graph.PriorityOf(graph.succ[e]), graph.succ[e]);
  }
  return order;
}

}  // namespace heddle
