// Graphs and tasks for tests of schedulers.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "scheduler/static_graph.h"

namespace heddle::testing {

inline StaticGraph FromPredecessors(const std::vector<std::vector<uint32_t>>& preds) {
  StaticGraph g;
  g.size = static_cast<uint32_t>(preds.size());
  g.pred_begin.push_back(0);
  for (const auto& p : preds) {
    g.pred.insert(g.pred.end(), p.begin(), p.end());
    g.pred_begin.push_back(static_cast<uint32_t>(g.pred.size()));
  }
  CompleteSuccessors(&g);
  return g;
}

// Each node depends on up to `degree` of the `window` nodes before it.
inline StaticGraph RandomGraph(uint32_t size, uint32_t degree, uint32_t window, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<uint32_t>> preds(size);
  for (uint32_t v = 1; v < size; ++v) {
    std::vector<bool> taken(window + 1, false);
    const uint64_t wanted = random() % (degree + 1);
    for (uint64_t k = 0; k < wanted; ++k) taken[1 + random() % std::min(v, window)] = true;
    for (uint32_t back = window; back > 0; --back)
      if (taken[back]) preds[v].push_back(v - back);
  }
  return FromPredecessors(preds);
}

// size x size tasks, each after the one above and the one to the left.
inline StaticGraph Wavefront(uint32_t size) {
  std::vector<std::vector<uint32_t>> preds(size_t{size} * size);
  for (uint32_t i = 0; i < size; ++i)
    for (uint32_t j = 0; j < size; ++j) {
      if (i > 0) preds[i * size + j].push_back((i - 1) * size + j);
      if (j > 0) preds[i * size + j].push_back(i * size + j - 1);
    }
  return FromPredecessors(preds);
}

// Values that tell whether every node ran once, after its predecessors: a node's value is made of
// its own number, the run's number and its predecessors' values of the same run.
class Ledger {
 public:
  explicit Ledger(const StaticGraph& graph) : g_(graph), value_(graph.size), runs_(graph.size) {}
  void NewRun() { ++run_; }
  // Not atomic on purpose: ThreadSanitizer sees a missing edge as a race.
  void Execute(uint32_t v) {
    uint64_t h = Mix(v * 0x9e3779b97f4a7c15ull + run_);
    for (uint32_t e = g_.pred_begin[v]; e < g_.pred_begin[v + 1]; ++e)
      h = Mix(h + value_[g_.pred[e]]);
    value_[v] = h;
    ++runs_[v];
  }
  // True when every node was executed in every run so far, and the last run in a valid order.
  bool Right() const {
    std::vector<uint64_t> expected(g_.size);
    for (uint32_t v = 0; v < g_.size; ++v) {
      uint64_t h = Mix(v * 0x9e3779b97f4a7c15ull + run_);
      for (uint32_t e = g_.pred_begin[v]; e < g_.pred_begin[v + 1]; ++e)
        h = Mix(h + expected[g_.pred[e]]);
      expected[v] = h;
      if (runs_[v] != run_) return false;
    }
    return expected == value_;
  }

 private:
  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  const StaticGraph& g_;
  std::vector<uint64_t> value_, runs_;
  uint64_t run_ = 0;
};

}  // namespace heddle::testing
