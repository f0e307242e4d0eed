#include "tests/partition/legal.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "core/error.h"

namespace heddle::partition {
namespace {

using Ops = std::set<OpIndex>;

// Whether the graph with each of the sets contracted has a cycle.
bool HasCycle(const Graph& g, const std::vector<Ops>& groups) {
  std::vector<size_t> node(static_cast<size_t>(g.size()));
  for (size_t i = 0; i < node.size(); ++i) node[i] = groups.size() + i;
  for (size_t k = 0; k < groups.size(); ++k)
    for (const OpIndex i : groups[k]) node[static_cast<size_t>(i)] = k;
  std::map<size_t, std::set<size_t>> needs;
  for (OpIndex i = 0; i < g.size(); ++i) {
    auto& needed = needs[node[static_cast<size_t>(i)]];
    for (const OpIndex p : g.before(i))
      if (node[static_cast<size_t>(p)] != node[static_cast<size_t>(i)])
        needed.insert(node[static_cast<size_t>(p)]);
  }
  while (!needs.empty()) {
    const auto free = std::find_if(needs.begin(), needs.end(), [&](const auto& n) {
      return std::none_of(n.second.begin(), n.second.end(),
                          [&](size_t p) { return needs.contains(p); });
    });
    if (free == needs.end()) return true;
    needs.erase(free);
  }
  return false;
}

bool IsConnected(const Graph& g, const Ops& ops, const Ops& helpers) {
  Ops nodes = ops;
  for (const OpIndex h : helpers)
    for (const OpIndex p : g.makers(h))
      if (ops.contains(p) || helpers.contains(p)) nodes.insert(h);
  Ops seen;
  std::vector<OpIndex> todo = {*ops.begin()};
  while (!todo.empty()) {
    const OpIndex i = todo.back();
    todo.pop_back();
    if (!nodes.contains(i) || !seen.insert(i).second) continue;
    for (const OpIndex p : g.makers(i)) todo.push_back(p);
    for (const OpIndex j : nodes)
      for (const OpIndex p : g.makers(j))
        if (p == i) todo.push_back(j);
  }
  return std::includes(seen.begin(), seen.end(), ops.begin(), ops.end());
}

// Of a set of operators: its helpers, its limits, whether it hangs together.
std::string WhySetIllegal(const Matches& m, const Ops& ops, const Ops& helpers) {
  const Graph& g = m.graph();
  const Limits& limits = m.target().limits;
  const auto inside = [&](OpIndex i) { return ops.contains(i) || helpers.contains(i); };
  for (const OpIndex h : helpers) {
    bool read = false;
    if (!m.helper(h)) return StrCat(h, " is no helper");
    for (const Use& use : g.writes(h)) {
      for (const OpIndex r : g.readers(use.value)) {
        read = true;
        if (!inside(r)) return StrCat("helper ", h, " is read outside");
      }
      if (g.value(use.value).kept) return StrCat("helper ", h, " is fetched");
    }
    if (!read) return StrCat("helper ", h, " is not read");
  }
  if (!IsConnected(g, ops, helpers)) return "not connected";
  const auto size = static_cast<int64_t>(ops.size());
  if (size < limits.min_group || size > limits.max_group) return StrCat(size, " operators");
  std::set<ValueId> inputs;
  int64_t outputs = 0;
  Ops all = ops;
  all.insert(helpers.begin(), helpers.end());
  for (const OpIndex i : all) {
    for (const Use& use : g.reads(i))
      if (!g.value(use.value).constant && !inside(g.value(use.value).maker))
        inputs.insert(use.value);
    for (const Use& use : g.writes(i)) {
      const auto readers = g.readers(use.value);
      outputs += g.value(use.value).kept || !std::all_of(readers.begin(), readers.end(), inside);
    }
  }
  if (static_cast<int64_t>(inputs.size()) > limits.max_inputs) return "too many inputs";
  if (outputs > limits.max_outputs) return "too many outputs";
  return "";
}

template <typename T>
bool Contains(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// Whether each operator stands behind those of the group that it needs, through whatever path.
bool IsOrdered(const Graph& g, const std::vector<OpIndex>& ops) {
  for (size_t k = 0; k < ops.size(); ++k) {
    Ops seen;
    std::vector<OpIndex> todo = {ops[k]};
    while (!todo.empty()) {
      const OpIndex i = todo.back();
      todo.pop_back();
      for (const OpIndex p : g.before(i)) {
        if (std::find(ops.begin() + static_cast<long>(k), ops.end(), p) != ops.end()) return false;
        if (seen.insert(p).second) todo.push_back(p);
      }
    }
  }
  return true;
}

// The cheapest units for the operators in any order; infinity: there are none.
double CheapestSequence(const Matches& m, const Ops& ops) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double best = kNever;
  std::vector<OpIndex> order(ops.begin(), ops.end());
  do {
    if (!IsOrdered(m.graph(), order)) continue;
    const std::function<double(size_t, UnitId)> cheapest = [&](size_t k, UnitId last) -> double {
      if (k == order.size()) return 0.0;
      double least = kNever;
      for (const Choice& c : m.choices(order[k]))
        if (Contains(k == 0 ? m.target().first : m.target().next[static_cast<size_t>(last)],
                     c.unit))
          least = std::min(least, c.cost + cheapest(k + 1, c.unit));
      return least;
    };
    best = std::min(best, cheapest(0, 0));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace

std::string WhyIllegal(const Matches& m, const BlockPartition& block) {
  const Graph& g = m.graph();
  const Target& t = m.target();
  std::vector<OpIndex> all;
  std::vector<Ops> sets;
  for (const RestOperator& rest : block.rest) {
    all.push_back(rest.op);
    if (rest.reason.empty() || rest.type != g.type(rest.op))
      return StrCat("operator ", rest.op, " stays as ", rest.type, ": ", rest.reason);
  }
  for (const PlacedGroup& group : block.groups) {
    all.insert(all.end(), group.operators.begin(), group.operators.end());
    all.insert(all.end(), group.helpers.begin(), group.helpers.end());
    UnitId last = -1;
    if (group.operators.empty() || group.units.size() != group.operators.size()) return "no units";
    for (size_t k = 0; k < group.operators.size(); ++k) {
      UnitId unit = 0;
      while (t.units[static_cast<size_t>(unit)].name != group.units[k]) ++unit;
      if (m.cost(group.operators[k], unit) == nullptr)
        return StrCat("operator ", group.operators[k], " in ", group.units[k]);
      if (!Contains(k == 0 ? t.first : t.next[static_cast<size_t>(last)], unit))
        return StrCat("no way to ", group.units[k]);
      last = unit;
    }
    if (!IsOrdered(g, group.operators)) return "out of order";
    const Ops ops(group.operators.begin(), group.operators.end());
    const Ops helpers(group.helpers.begin(), group.helpers.end());
    if (std::string why = WhySetIllegal(m, ops, helpers); !why.empty()) return why;
    sets.push_back(ops);
    sets.back().insert(helpers.begin(), helpers.end());
  }
  std::sort(all.begin(), all.end());
  for (OpIndex i = 0; i < g.size(); ++i)
    if (static_cast<size_t>(i) >= all.size() || all[static_cast<size_t>(i)] != i)
      return StrCat("operator ", i, " is nowhere, or twice");
  return HasCycle(g, sets) ? "a cycle" : "";
}

std::optional<Best> BestOfAll(const Matches& m, size_t most) {
  const Graph& g = m.graph();
  std::vector<OpIndex> items;
  double fixed = 0;
  for (OpIndex i = 0; i < g.size(); ++i) {
    if (m.taken(i) || m.helper(i))
      items.push_back(i);
    else
      fixed += m.host_cost(i);
  }
  if (items.size() > most) return std::nullopt;
  struct Legal {
    double cost = 0;
    int size = 0;
    Ops members;
  };
  std::map<uint32_t, Legal> legal;
  Measure measure(m);
  for (uint32_t set = 1; set < 1u << items.size(); ++set) {
    Ops ops, helpers;
    for (size_t k = 0; k < items.size(); ++k)
      if (set >> k & 1) (m.taken(items[k]) ? ops : helpers).insert(items[k]);
    if (ops.empty() || !WhySetIllegal(m, ops, helpers).empty()) continue;
    Ops members = ops;
    members.insert(helpers.begin(), helpers.end());
    if (HasCycle(g, {members})) continue;
    const double units = CheapestSequence(m, ops);
    if (units == std::numeric_limits<double>::infinity()) continue;
    Group group{{ops.begin(), ops.end()}, {}, {helpers.begin(), helpers.end()}};
    for (const OpIndex i : ops) group.units.push_back(m.choices(i)[0].unit);
    double cost = measure.CostOf(group) + units;
    for (const OpIndex i : ops) cost -= m.choices(i)[0].cost;
    legal[set] = {cost, static_cast<int>(ops.size()), members};
  }
  Best best;
  best.cost = std::numeric_limits<double>::infinity();
  std::vector<Ops> chosen;
  const std::function<void(size_t, uint32_t, double, int)> choose = [&](size_t k, uint32_t used,
                                                                        double cost, int covered) {
    while (k < items.size() && (used >> k & 1)) ++k;
    if (k == items.size()) {
      if (HasCycle(g, chosen)) return;
      const auto groups = static_cast<int>(chosen.size());
      best.cost = std::min(best.cost, cost);
      if (covered > best.covered || (covered == best.covered && groups < best.groups)) {
        best.covered = covered;
        best.groups = groups;
      }
      return;
    }
    choose(k + 1, used, cost + m.host_cost(items[k]), covered);
    for (const auto& [set, group] : legal) {
      if ((set & used) || !(set >> k & 1) || (set & ((1u << k) - 1))) continue;
      chosen.push_back(group.members);
      choose(k + 1, used | set, cost + group.cost, covered + group.size);
      chosen.pop_back();
    }
  };
  choose(0, 0, fixed, 0);
  return best;
}

}  // namespace heddle::partition
