#include "benchmarks/scheduling/graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

namespace heddle::bench {
namespace {

using Lists = std::vector<std::vector<uint32_t>>;

uint32_t Add(Lists& lists, std::vector<uint32_t> predecessors) {
  lists.push_back(std::move(predecessors));
  return static_cast<uint32_t>(lists.size() - 1);
}

Lists Chain(uint32_t size) {
  Lists lists(size);
  for (uint32_t v = 1; v < size; ++v) lists[v] = {v - 1};
  return lists;
}

// One task, then all others but one side by side, then one that waits for them.
Lists Fan(uint32_t size) {
  Lists lists(size);
  for (uint32_t v = 1; v + 1 < size; ++v) {
    lists[v] = {0};
    lists.back().push_back(v);
  }
  return lists;
}

// A reduction by pairs: the leaves, then task after task that joins the two oldest unjoined ones.
Lists Tree(uint32_t size) {
  const uint32_t leaves = (size + 1) / 2;
  Lists lists(2 * leaves - 1);
  for (uint32_t v = leaves; v < lists.size(); ++v) {
    const uint32_t left = 2 * (v - leaves);
    lists[v] = {left, left + 1};
  }
  return lists;
}

// Diamonds in a row: a task, two after it, one that joins them, and so on.
Lists Ladder(uint32_t size) {
  Lists lists;
  uint32_t join = Add(lists, {});
  while (lists.size() + 3 <= size) {
    const uint32_t left = Add(lists, {join});
    const uint32_t right = Add(lists, {join});
    join = Add(lists, {left, right});
  }
  return lists;
}

// 2 to 4 predecessors out of the 256 tasks before.
Lists Random(uint32_t size) {
  constexpr uint32_t kWindow = 256;
  std::mt19937 random(20240229);
  Lists lists(size);
  for (uint32_t v = 1; v < size; ++v) {
    const uint32_t reach = std::min(v, kWindow);
    const uint32_t degree = std::min(reach, 2 + static_cast<uint32_t>(random() % 3));
    while (lists[v].size() < degree) {
      const uint32_t p = v - 1 - static_cast<uint32_t>(random() % reach);
      if (std::find(lists[v].begin(), lists[v].end(), p) == lists[v].end()) lists[v].push_back(p);
    }
  }
  return lists;
}

// A square grid, row by row; a task waits for its upper and its left neighbour.
Lists Wavefront(uint32_t size) {
  const auto side = static_cast<uint32_t>(std::lround(std::sqrt(static_cast<double>(size))));
  Lists lists(static_cast<size_t>(side) * side);
  for (uint32_t v = 0; v < lists.size(); ++v) {
    if (v >= side) lists[v].push_back(v - side);
    if (v % side != 0) lists[v].push_back(v - 1);
  }
  return lists;
}

// Blocks as in GoogLeNet, an activation after each convolution: branches of 1x1, 1x1 and 3x3, 1x1
// and 5x5, pooling and 1x1, then the concatenation.
Lists Inception(uint32_t size) {
  constexpr std::array<uint32_t, 4> kBranches = {2, 4, 4, 3};
  Lists lists;
  uint32_t join = Add(lists, {});
  while (lists.size() + 14 <= size) {
    std::vector<uint32_t> ends;
    for (const uint32_t length : kBranches) {
      uint32_t last = join;
      for (uint32_t i = 0; i < length; ++i) last = Add(lists, {last});
      ends.push_back(last);
    }
    join = Add(lists, std::move(ends));
  }
  return lists;
}

struct Form {
  std::string_view name;
  Lists (*make)(uint32_t size);
};
constexpr std::array<Form, 7> kForms = {{{"chain", Chain},
                                         {"fan", Fan},
                                         {"tree", Tree},
                                         {"ladder", Ladder},
                                         {"random", Random},
                                         {"wavefront", Wavefront},
                                         {"inception", Inception}}};
constexpr auto kNames = [] {
  std::array<std::string_view, kForms.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kForms[i].name;
  return names;
}();

// A bound for tasks of one step each, of which `levels` says how many steps, counted from any
// number, have to come before (or behind) each.
uint32_t LeastStepsOf(std::span<const uint32_t> levels, uint32_t workers) {
  const auto [least, greatest] = std::minmax_element(levels.begin(), levels.end());
  std::vector<uint32_t> at(*greatest - *least + 1, 0);
  for (const uint32_t level : levels) ++at[level - *least];
  uint32_t steps = 0, tasks = 0;
  for (auto k = static_cast<uint32_t>(at.size()); k-- > 0;) {
    tasks += at[k];
    steps = std::max(steps, k + (tasks + workers - 1) / workers);
  }
  return steps;
}

}  // namespace

Graph::Graph(std::string name, const std::vector<std::vector<uint32_t>>& predecessors)
    : name_(std::move(name)) {
  const size_t size = predecessors.size();
  first_predecessor_.assign(size + 1, 0);
  first_successor_.assign(size + 1, 0);
  for (uint32_t v = 0; v < size; ++v) {
    std::vector<uint32_t> sorted = predecessors[v];
    std::sort(sorted.begin(), sorted.end());
    predecessors_.insert(predecessors_.end(), sorted.begin(), sorted.end());
    first_predecessor_[v + 1] = static_cast<uint32_t>(predecessors_.size());
    for (const uint32_t p : sorted) ++first_successor_[p + 1];
  }
  for (size_t v = 0; v < size; ++v) first_successor_[v + 1] += first_successor_[v];
  successors_.resize(predecessors_.size());
  std::vector<uint32_t> next(first_successor_.begin(), first_successor_.end() - 1);
  for (uint32_t v = 0; v < size; ++v) {
    for (const uint32_t p : Predecessors(v)) successors_[next[p]++] = v;
  }
}

uint32_t Graph::CriticalPath() const {
  std::vector<uint32_t> depth(size(), 1);
  for (uint32_t v = 0; v < size(); ++v) {
    for (const uint32_t p : Predecessors(v)) depth[v] = std::max(depth[v], depth[p] + 1);
  }
  return *std::max_element(depth.begin(), depth.end());
}

uint32_t Graph::LeastSteps(uint32_t workers) const {
  // The number of tasks on the longest path that ends before v, or begins behind it.
  std::vector<uint32_t> before(size(), 0), behind(size(), 0);
  uint32_t last_source = 0;
  for (uint32_t v = 0; v < size(); ++v) {
    for (const uint32_t p : Predecessors(v)) before[v] = std::max(before[v], before[p] + 1);
    if (InDegree(v) == 0) last_source = v;
  }
  for (uint32_t v = size(); v-- > 0;) {
    for (const uint32_t s : Successors(v)) behind[v] = std::max(behind[v], behind[s] + 1);
  }
  uint32_t steps = 0;
  uint32_t first = 0;  // of the part that the next cut ends
  const auto end_part = [&](uint32_t end) {
    if (end > first)
      steps += std::max(LeastStepsOf(std::span(before).subspan(first, end - first), workers),
                        LeastStepsOf(std::span(behind).subspan(first, end - first), workers));
  };
  // No edge passes over a cut, nothing ends before it and nothing begins behind it: so all tasks
  // before it lead to it, and it leads to all the others.
  uint32_t farthest = 0;  // the last task that one before v leads to
  for (uint32_t v = 0; v < size(); ++v) {
    if (v >= last_source && v >= farthest) {
      end_part(v);
      first = v + 1;
      ++steps;
    }
    if (Successors(v).empty()) break;
    farthest = std::max(farthest, Successors(v).back());
  }
  end_part(size());
  return steps;
}

std::span<const std::string_view> GraphNames() { return kNames; }

Graph MakeGraph(std::string_view name, uint32_t size) {
  for (const Form& form : kForms) {
    if (form.name == name) return Graph(std::string(name), form.make(std::max(size, 16u)));
  }
  std::fprintf(stderr, "no graph is called %.*s\n", static_cast<int>(name.size()), name.data());
  std::abort();
}

}  // namespace heddle::bench
