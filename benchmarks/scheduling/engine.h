// What a scheduler under measurement implements, and the list it joins.
//
// An engine is one file: a class derived from Engine, and at its end
//
//   const bool kRegistered = RegisterEngine({.name = "…", .kind = EngineKind::kPeer,
//                                            .make = [](int workers) { … }});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "benchmarks/scheduling/graph.h"

namespace heddle::bench {

// One call; what every engine executes for a task of the graph.
struct Task {
  void (*fn)(void*);
  void* arg;
  void operator()() const { fn(arg); }
};

// Threads: Build, Run and the destructor are called by one and the same thread.
class Engine {
 public:
  virtual ~Engine() = default;

  // Called once, before Run. Graph, tasks and costs live as long as the engine. `cost_ns` is what
  // each task takes by itself; an engine may plan with it.
  virtual void Build(const Graph& graph, std::span<const Task> tasks,
                     std::span<const float> cost_ns) = 0;

  // Executes every task once, after its predecessors; returns when all have finished and their
  // effects are visible to the caller.
  virtual void Run() = 0;

  // False while runs still serve to find out how to run best: those are not measured.
  virtual bool Settled() const { return true; }
};

enum class EngineKind {
  kFloor,   // what no scheduler can be faster than, on one thread
  kHeddle,  // ours
  kPeer,    // somebody else's
};

struct EngineInfo {
  std::string name;
  EngineKind kind;
  // An engine of so many workers: threads that execute tasks at the same time. The calling thread
  // is one of them where the library lets it take part, and sleeps in Run where not.
  std::function<std::unique_ptr<Engine>(int workers)> make;
  int max_workers = 1 << 10;
  std::string version = "";  // of the library
};

// For initialisers of namespace-scope constants only, so before main. Returns true.
bool RegisterEngine(EngineInfo info);

// All engines, by kind, then by name.
std::span<const EngineInfo> Engines();

}  // namespace heddle::bench
