// Taskflow: a static graph, run again and again by an executor of its own. The executor's threads
// are the workers; the calling thread sleeps in wait(). corun() would spare the wake-ups, but is
// only for callers that are themselves threads of the executor.
#include <memory>
#include <taskflow/taskflow.hpp>
#include <vector>

#include "benchmarks/scheduling/engine.h"

namespace heddle::bench {
namespace {

class TaskflowEngine final : public Engine {
 public:
  explicit TaskflowEngine(int workers) : executor_(static_cast<size_t>(workers)) {}

  void Build(const Graph& graph, std::span<const Task> tasks, std::span<const float>) override {
    std::vector<tf::Task> nodes;
    nodes.reserve(graph.size());
    for (const Task task : tasks) nodes.push_back(taskflow_.emplace([task] { task(); }));
    for (uint32_t v = 0; v < graph.size(); ++v) {
      for (const uint32_t s : graph.Successors(v)) nodes[v].precede(nodes[s]);
    }
  }
  void Run() override { executor_.run(taskflow_).wait(); }

 private:
  tf::Taskflow taskflow_;
  tf::Executor executor_;
};

const bool kRegistered =
    RegisterEngine({.name = "taskflow",
                    .kind = EngineKind::kPeer,
                    .make = [](int workers) { return std::make_unique<TaskflowEngine>(workers); },
                    .version = tf::version()});

}  // namespace
}  // namespace heddle::bench
