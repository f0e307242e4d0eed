// The floor: the tasks in the order of the program, by a plain loop on the calling thread.
#include <memory>
#include <vector>

#include "benchmarks/scheduling/engine.h"

namespace heddle::bench {
namespace {

class FlatEngine final : public Engine {
 public:
  void Build(const Graph&, std::span<const Task> tasks, std::span<const float>) override {
    tasks_.assign(tasks.begin(), tasks.end());
  }
  void Run() override {
    for (const Task& task : tasks_) task();
  }

 private:
  std::vector<Task> tasks_;
};

const bool kRegistered = RegisterEngine({.name = "flat",
                                         .kind = EngineKind::kFloor,
                                         .make = [](int) { return std::make_unique<FlatEngine>(); },
                                         .max_workers = 1});

}  // namespace
}  // namespace heddle::bench
