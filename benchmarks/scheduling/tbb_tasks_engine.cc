// oneTBB task_group, with the order kept by atomic counters: a finished task goes on with the first
// successor that has become ready and spawns the others. The calling thread takes part in wait().
#include <tbb/task_group.h>

#include <memory>
#include <optional>

#include "benchmarks/scheduling/dependency_counters.h"
#include "benchmarks/scheduling/engine.h"
#include "benchmarks/scheduling/tbb_arena.h"

namespace heddle::bench {
namespace {

class TbbTasksEngine final : public Engine {
  static constexpr uint32_t kNone = ~0u;

 public:
  explicit TbbTasksEngine(int workers) : arena_(workers) {}
  ~TbbTasksEngine() noexcept override = default;  // a task_group's own may throw

  void Build(const Graph& graph, std::span<const Task> tasks, std::span<const float>) override {
    tasks_ = tasks;
    counters_.emplace(graph);
  }

  void Run() override {
    arena_.Execute([this] {
      for (const uint32_t root : counters_->roots().subspan(1)) Spawn(root);
      group_.run_and_wait([this] { Follow(counters_->roots()[0]); });
    });
  }

 private:
  void Spawn(uint32_t task) {
    group_.run([this, task] { Follow(task); });
  }
  void Follow(uint32_t task) {
    while (task != kNone) {
      tasks_[task]();
      uint32_t next = kNone;
      counters_->Finish(task, [&](uint32_t ready) {
        if (next == kNone) {
          next = ready;
        } else {
          Spawn(ready);
        }
      });
      task = next;
    }
  }

  TbbArena arena_;
  std::span<const Task> tasks_;
  std::optional<DependencyCounters> counters_;
  tbb::task_group group_;
};

const bool kRegistered =
    RegisterEngine({.name = "tbb_tasks",
                    .kind = EngineKind::kPeer,
                    .make = [](int workers) { return std::make_unique<TbbTasksEngine>(workers); },
                    .version = TbbVersion()});

}  // namespace
}  // namespace heddle::bench
