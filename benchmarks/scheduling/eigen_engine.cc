// Eigen's work-stealing thread pool under atomic dependency counters, in the two ways in which
// large frameworks drive it. The pool's threads are the workers; the calling thread sleeps until
// they have finished, as it does in those frameworks.
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <unsupported/Eigen/CXX11/ThreadPool>
#include <vector>

#include "benchmarks/scheduling/dependency_counters.h"
#include "benchmarks/scheduling/engine.h"

namespace heddle::bench {
namespace {

class EigenEngine : public Engine {
 public:
  explicit EigenEngine(int workers) : pool_(workers) {}

  void Build(const Graph& graph, std::span<const Task> tasks,
             std::span<const float> cost_ns) override {
    tasks_ = tasks;
    cost_ns_ = cost_ns;
    counters_.emplace(graph);
  }

 protected:
  void ScheduleRoots() {
    for (const uint32_t root : counters_->roots()) Schedule(root);
  }
  // The closure fits into std::function: no allocation.
  void Schedule(uint32_t task) {
    pool_.Schedule([this, task] { Process(task); });
  }
  void Wait() {
    done_.wait(false, std::memory_order_acquire);
    done_.store(false, std::memory_order_relaxed);
  }
  void SignalDone() {
    done_.store(true, std::memory_order_release);
    done_.notify_one();
  }

  std::span<const Task> tasks_;
  std::span<const float> cost_ns_;
  std::optional<DependencyCounters> counters_;

 private:
  // Executes a ready task and what it goes on with.
  virtual void Process(uint32_t task) = 0;

  std::atomic<bool> done_ = false;
  Eigen::ThreadPool pool_;  // last: its threads end first
};

// As the queue of Paddle's interpreter: a finished operator goes on with one of its ready
// successors, each other one becomes a closure of its own; all operators together have one atomic
// counter.
class EigenPaddleEngine final : public EigenEngine {
 public:
  using EigenEngine::EigenEngine;

  void Run() override {
    unfinished_.store(tasks_.size(), std::memory_order_relaxed);
    ScheduleRoots();
    Wait();
  }

 private:
  void Process(uint32_t task) override {
    constexpr uint32_t kNone = ~0u;
    while (task != kNone) {
      tasks_[task]();
      uint32_t next = kNone;
      counters_->Finish(task, [&](uint32_t ready) {
        if (next == kNone) {
          next = ready;
        } else {
          Schedule(ready);
        }
      });
      if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) SignalDone();
      task = next;
    }
  }

  std::atomic<size_t> unfinished_ = 0;
};

// As TensorFlow's executor: a closure has a queue of its own, which ready cheap nodes go to; of the
// expensive ones at most one, if the queue is empty, the others are handed over. One atomic counter
// says how many nodes are ready or running.
class EigenTensorflowEngine final : public EigenEngine {
  // TensorFlow's own limit is 8000 cycles, too high to share tasks of a microsecond among threads.
  static constexpr float kExpensiveNs = 500;

 public:
  using EigenEngine::EigenEngine;

  void Run() override {
    outstanding_.store(counters_->roots().size(), std::memory_order_relaxed);
    ScheduleRoots();
    Wait();
  }

 private:
  // Vectors that stay within the frame of Process unless they become long.
  struct Queues {
    Queues() {
      inlined.reserve(48);
      ready.reserve(16);
    }
    std::array<std::byte, 512> buffer;
    std::pmr::monotonic_buffer_resource memory{buffer.data(), buffer.size()};
    std::pmr::vector<uint32_t> inlined{&memory};
    std::pmr::vector<uint32_t> ready{&memory};
    size_t head = 0;  // of inlined
  };

  void Process(uint32_t first) override {
    Queues queues;
    queues.inlined.push_back(first);
    while (queues.head < queues.inlined.size()) {
      const uint32_t task = queues.inlined[queues.head++];
      if (queues.head == queues.inlined.size()) {
        queues.inlined.clear();
        queues.head = 0;
      }
      tasks_[task]();
      queues.ready.clear();
      counters_->Finish(task, [&](uint32_t ready) { queues.ready.push_back(ready); });
      const size_t count = queues.ready.size();
      if (count == 0) {
        if (outstanding_.fetch_sub(1, std::memory_order_acq_rel) == 1) SignalDone();
      } else if (count > 1) {
        outstanding_.fetch_add(count - 1, std::memory_order_relaxed);
      }
      Distribute(queues);
    }
  }

  void Distribute(Queues& queues) {
    constexpr uint32_t kNone = ~0u;
    uint32_t expensive = kNone;
    for (const uint32_t ready : queues.ready) {
      if (cost_ns_[ready] <= kExpensiveNs) {
        queues.inlined.push_back(ready);
      } else {
        if (expensive != kNone) Schedule(expensive);
        expensive = ready;
      }
    }
    if (expensive == kNone) return;
    if (queues.inlined.empty()) {
      queues.inlined.push_back(expensive);
    } else {
      Schedule(expensive);
    }
  }

  std::atomic<size_t> outstanding_ = 0;
};

std::string EigenVersion() {
  return std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
         std::to_string(EIGEN_MINOR_VERSION);
}

const bool kRegistered =
    RegisterEngine({.name = "eigen_paddle",
                    .kind = EngineKind::kPeer,
                    .make = [](int n) { return std::make_unique<EigenPaddleEngine>(n); },
                    .version = EigenVersion()}) &&
    RegisterEngine({.name = "eigen_tensorflow",
                    .kind = EngineKind::kPeer,
                    .make = [](int n) { return std::make_unique<EigenTensorflowEngine>(n); },
                    .version = EigenVersion()});

}  // namespace
}  // namespace heddle::bench
