#include "scheduler/units.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr uint32_t kNoUnit = ~0u;

// The unit of each node, and the units' costs and priorities.
struct Assignment {
  std::vector<uint32_t> unit_of;
  std::vector<float> cost;
  std::vector<int64_t> priority;  // empty where the nodes have none
};

// A node joins its only predecessor when it is that one's only successor. Units are numbered by
// their first node; since edges enter a chain only at its head, that is a topological order.
Assignment Chains(const StaticGraph& g, std::span<const float> cost) {
  Assignment a;
  a.unit_of.resize(g.size);
  a.cost.reserve(g.size);
  for (uint32_t v = 0; v < g.size; ++v) {
    if (g.in_degree(v) == 1) {
      const uint32_t p = g.pred[g.pred_begin[v]];
      if (g.out_degree(p) == 1 && g.PriorityOf(p) == g.PriorityOf(v)) {
        a.unit_of[v] = a.unit_of[p];
        a.cost[a.unit_of[v]] += cost[v];
        continue;
      }
    }
    a.unit_of[v] = static_cast<uint32_t>(a.cost.size());
    a.cost.push_back(cost[v]);
    if (!g.priority.empty()) a.priority.push_back(g.priority[v]);
  }
  return a;
}

// Merges units by cutting their order into runs of consecutive ones; no such cut makes a cycle.
void Group(const StaticGraph& g, float group_ns, Assignment* a) {
  const auto n = static_cast<uint32_t>(a->cost.size());
  std::vector<double> start(n, 0);  // earliest, with any number of workers
  for (uint32_t v = 0; v < g.size; ++v) {
    const uint32_t u = a->unit_of[v];
    for (uint32_t e = g.pred_begin[v]; e < g.pred_begin[v + 1]; ++e) {
      const uint32_t p = a->unit_of[g.pred[e]];
      if (p != u) start[u] = std::max(start[u], start[p] + a->cost[p]);
    }
  }
  std::vector<uint32_t> group_of(n);
  std::vector<float> cost;
  double low = 0, high = 0;
  bool open = false;
  for (uint32_t u = 0; u < n; ++u) {
    const bool cheap = a->cost[u] < group_ns;
    const double l = std::min(low, start[u]), h = std::max(high, start[u]);
    if (open && cheap && cost.back() < group_ns && h - l <= group_ns) {
      low = l;
      high = h;
      cost.back() += a->cost[u];
    } else {
      cost.push_back(a->cost[u]);
      low = high = start[u];
      open = cheap;
    }
    group_of[u] = static_cast<uint32_t>(cost.size() - 1);
  }
  for (uint32_t& u : a->unit_of) u = group_of[u];
  a->cost = std::move(cost);
}

void ListNodes(const Assignment& a, UnitGraph* out) {
  const auto units = static_cast<uint32_t>(a.cost.size());
  out->node_begin.assign(units + 1, 0);
  for (uint32_t u : a.unit_of) ++out->node_begin[u + 1];
  for (uint32_t u = 0; u < units; ++u) out->node_begin[u + 1] += out->node_begin[u];
  out->nodes.resize(a.unit_of.size());
  std::vector<uint32_t> at(out->node_begin.begin(), out->node_begin.end() - 1);
  for (uint32_t v = 0; v < a.unit_of.size(); ++v) out->nodes[at[a.unit_of[v]]++] = v;
}

void Connect(const StaticGraph& g, const Assignment& a, UnitGraph* out) {
  StaticGraph& units = out->graph;
  units.size = static_cast<uint32_t>(a.cost.size());
  units.priority = a.priority;
  units.pred_begin.assign(units.size + 1, 0);
  units.pred.reserve(g.pred.size());
  std::vector<uint32_t> seen(units.size, kNoUnit);
  for (uint32_t u = 0; u < units.size; ++u) {
    for (uint32_t k = out->node_begin[u]; k < out->node_begin[u + 1]; ++k) {
      const uint32_t v = out->nodes[k];
      for (uint32_t e = g.pred_begin[v]; e < g.pred_begin[v + 1]; ++e) {
        const uint32_t p = a.unit_of[g.pred[e]];
        if (p == u || seen[p] == u) continue;
        seen[p] = u;
        units.pred.push_back(p);
      }
    }
    std::sort(units.pred.begin() + units.pred_begin[u], units.pred.end());
    units.pred_begin[u + 1] = static_cast<uint32_t>(units.pred.size());
  }
  CompleteSuccessors(&units);
}

}  // namespace

UnitGraph FormUnits(const StaticGraph& graph, std::span<const float> cost_ns, float group_ns) {
  Assignment a = Chains(graph, cost_ns);
  // Not with priorities: a successor would wait for the whole group, and could then come after
  // tasks of less priority.
  if (group_ns > 0 && graph.priority.empty()) Group(graph, group_ns, &a);
  UnitGraph out;
  ListNodes(a, &out);
  Connect(graph, a, &out);
  out.cost_ns = std::move(a.cost);
  out.bottom_level_ns.assign(out.size(), 0);
  for (uint32_t u = out.size(); u-- > 0;) {
    double rest = 0;
    for (uint32_t e = out.graph.succ_begin[u]; e < out.graph.succ_begin[u + 1]; ++e)
      rest = std::max(rest, out.bottom_level_ns[out.graph.succ[e]]);
    out.bottom_level_ns[u] = rest + out.cost_ns[u];
    out.serial_ns += out.cost_ns[u];
    out.path_ns = std::max(out.path_ns, out.bottom_level_ns[u]);
  }
  return out;
}

}  // namespace heddle
