#include "passes/order_graph.h"

#include <functional>
#include <limits>
#include <queue>
#include <unordered_map>

#include "core/interrupts.h"
#include "passes/nested_blocks.h"
#include "passes/var_numbers.h"

namespace heddle::passes {
namespace {

// Calls fn(variable, written) for each operand of the operator, without those of its blocks.
template <typename Fn>
void ForEachAccess(const ir::Op& op, const Fn& fn) {
  for (const auto& slot : op.inputs)
    for (ir::VarId v : slot)
      if (v != ir::kNoVar) fn(v, false);
  for (const auto& slot : op.outputs)
    for (ir::VarId v : slot)
      if (v != ir::kNoVar) fn(v, true);
}

}  // namespace

OrderGraph::OrderGraph(const ir::Program& program, int block, const BlockUses& uses) {
  constexpr unsigned kOrdered = kRandom | kSideEffect | kCommunication | kReader | kControlFlow;
  const auto& ops = program.blocks[static_cast<size_t>(block)].ops;
  VarNumbers numbers(program, block);
  std::vector<int> writer(numbers.size(), -1);
  std::vector<std::vector<int>> readers(numbers.size());  // since the variable's latest write
  int last_ordered = -1;
  std::unordered_map<int64_t, int> marked;  // by mark of control edges
  begin_.reserve(ops.size() + 1);
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    LookForInterrupt();
    begin_.push_back(list_.size());
    const auto add = [&](int before) {
      if (before >= 0 && before != i) list_.push_back(before);
    };
    const ir::Op& op = ops[static_cast<size_t>(i)];
    const auto access = [&](ir::VarId var, bool written) {
      const uint32_t v = numbers.Add(var);
      if (v >= writer.size()) {
        writer.resize(numbers.size(), -1);
        readers.resize(numbers.size());
      }
      add(writer[v]);
      if (!written) return readers[v].push_back(i);
      for (int r : readers[v]) add(r);
      readers[v].clear();
      writer[v] = i;
    };
    ForEachNestedName(program, uses, op, [&](ir::VarId v, bool) { access(v, true); });
    ForEachAccess(op, access);
    if (op.has_control_edges()) {
      for (const int64_t mark : op.hints->after)
        if (const auto at = marked.find(mark); at != marked.end()) add(at->second);
      for (const int64_t mark : op.hints->marks) marked[mark] = i;
    }
    if ((op.def->traits() & kOrdered) == 0) continue;
    add(last_ordered);
    last_ordered = i;
  }
  begin_.push_back(list_.size());
}

std::vector<int> OrderNodes(const OrderGraph& graph, const std::vector<int>& node_of, int nodes) {
  const auto count = static_cast<size_t>(nodes);
  std::vector<int> first(count, std::numeric_limits<int>::max()), waits(count, 0);
  std::vector<std::vector<int>> after(count);
  for (int i = graph.size() - 1; i >= 0; --i) {
    const int node = node_of[static_cast<size_t>(i)];
    first[static_cast<size_t>(node)] = i;
    for (int b : graph.before(i)) {
      const int from = node_of[static_cast<size_t>(b)];
      if (from == node) continue;
      after[static_cast<size_t>(from)].push_back(node);
      ++waits[static_cast<size_t>(node)];
    }
  }
  using Entry = std::pair<int, int>;  // first operator, node
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (int n = 0; n < nodes; ++n)
    if (waits[static_cast<size_t>(n)] == 0) ready.emplace(first[static_cast<size_t>(n)], n);
  std::vector<int> order;
  order.reserve(count);
  while (!ready.empty()) {
    const int node = ready.top().second;
    ready.pop();
    order.push_back(node);
    for (int next : after[static_cast<size_t>(node)])
      if (--waits[static_cast<size_t>(next)] == 0)
        ready.emplace(first[static_cast<size_t>(next)], next);
  }
  if (order.size() < count) order.clear();
  return order;
}

}  // namespace heddle::passes
