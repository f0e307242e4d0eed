#include "scheduler/static_graph.h"

#include <cstddef>

namespace heddle {

void CompleteSuccessors(StaticGraph* graph) {
  StaticGraph& g = *graph;
  // Each row's length, shifted by two, so that filling a row moves its end to where it belongs.
  g.succ_begin.assign(static_cast<size_t>(g.size) + 2, 0);
  for (uint32_t p : g.pred) ++g.succ_begin[p + 2];
  for (uint32_t v = 0; v < g.size; ++v) g.succ_begin[v + 2] += g.succ_begin[v + 1];
  g.succ.resize(g.pred.size());
  for (uint32_t v = 0; v < g.size; ++v)
    for (uint32_t e = g.pred_begin[v]; e < g.pred_begin[v + 1]; ++e)
      g.succ[g.succ_begin[g.pred[e] + 1]++] = v;
  g.succ_begin.pop_back();
}

}  // namespace heddle
