// dispenso: its Graph with each of its three executors. They need all nodes marked incomplete
// before every run. The calling thread takes part, so that the pool has a thread less than there
// are workers.
#include <dispenso/graph.h>
#include <dispenso/graph_executor.h>
#include <dispenso/task_set.h>
#include <dispenso/thread_pool.h>

#include <memory>
#include <string>
#include <vector>

#include "benchmarks/scheduling/engine.h"

namespace heddle::bench {
namespace {

class DispensoEngine : public Engine {
 public:
  void Build(const Graph& graph, std::span<const Task> tasks, std::span<const float>) override {
    std::vector<dispenso::Node*> nodes;
    nodes.reserve(graph.size());
    for (const Task task : tasks) nodes.push_back(&graph_.addNode([task] { task(); }));
    for (uint32_t v = 0; v < graph.size(); ++v) {
      for (const uint32_t p : graph.Predecessors(v)) nodes[v]->dependsOn(*nodes[p]);
    }
  }
  void Run() override {
    setAllNodesIncomplete(graph_);
    RunGraph(graph_);
  }

 private:
  virtual void RunGraph(const dispenso::Graph& graph) = 0;

  dispenso::Graph graph_;
};

// A finished node goes on with its first ready dependent; the pool gets the others. Declared light,
// tasks go through the pool's central queue. As heavy ones, the default, they are handed to single
// threads; now and then none of these wakes up, until a timer of 100 ms does it.
class DispensoTasksEngine final : public DispensoEngine {
 public:
  explicit DispensoTasksEngine(int workers) : pool_(static_cast<size_t>(workers - 1)) {}

 private:
  void RunGraph(const dispenso::Graph& graph) override { executor_(task_set_, graph); }

  dispenso::ThreadPool pool_;
  dispenso::ConcurrentTaskSet task_set_{pool_, dispenso::TaskCost::kLightweight};
  dispenso::ConcurrentTaskSetExecutor executor_;
};

// A parallel loop over all nodes that are ready, then over those that have become so, and so on.
class DispensoLoopsEngine final : public DispensoEngine {
 public:
  explicit DispensoLoopsEngine(int workers) : pool_(static_cast<size_t>(workers - 1)) {}

 private:
  void RunGraph(const dispenso::Graph& graph) override { executor_(task_set_, graph); }

  dispenso::ThreadPool pool_;
  dispenso::TaskSet task_set_{pool_};
  dispenso::ParallelForExecutor executor_;
};

// On the calling thread alone.
class DispensoSerialEngine final : public DispensoEngine {
  void RunGraph(const dispenso::Graph& graph) override { executor_(graph); }

  dispenso::SingleThreadExecutor executor_;
};

const std::string kVersion = std::to_string(DISPENSO_MAJOR_VERSION) + "." +
                             std::to_string(DISPENSO_MINOR_VERSION) + "." +
                             std::to_string(DISPENSO_PATCH_VERSION);

const bool kRegistered =
    RegisterEngine({.name = "dispenso_tasks",
                    .kind = EngineKind::kPeer,
                    .make = [](int n) { return std::make_unique<DispensoTasksEngine>(n); },
                    .version = kVersion}) &&
    RegisterEngine({.name = "dispenso_loops",
                    .kind = EngineKind::kPeer,
                    .make = [](int n) { return std::make_unique<DispensoLoopsEngine>(n); },
                    .version = kVersion}) &&
    RegisterEngine({.name = "dispenso_serial",
                    .kind = EngineKind::kPeer,
                    .make = [](int) { return std::make_unique<DispensoSerialEngine>(); },
                    .max_workers = 1,
                    .version = kVersion});

}  // namespace
}  // namespace heddle::bench
