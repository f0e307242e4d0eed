#include "benchmarks/scheduling/check.h"

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "benchmarks/scheduling/graph.h"
#include "benchmarks/scheduling/workload.h"

namespace heddle::bench {
namespace {

// Executes a fixed list of tasks.
class FixedOrder final : public Engine {
 public:
  using Change = void (*)(std::vector<uint32_t>& order);
  explicit FixedOrder(Change change) : change_(change) {}

  void Build(const Graph& graph, std::span<const Task> tasks, std::span<const float>) override {
    tasks_ = tasks;
    order_.resize(graph.size());
    std::iota(order_.begin(), order_.end(), 0u);
    change_(order_);
  }
  void Run() override {
    for (const uint32_t v : order_) tasks_[v]();
  }

 private:
  const Change change_;
  std::span<const Task> tasks_;
  std::vector<uint32_t> order_;
};

bool Accepts(FixedOrder::Change change) {
  const EngineInfo info = {.name = "fixed order",
                           .kind = EngineKind::kPeer,
                           .make = [change](int) { return std::make_unique<FixedOrder>(change); },
                           .max_workers = 1};
  return CheckEngine(info, 1).empty();
}

}  // namespace

std::string CheckEngine(const EngineInfo& info, int workers) {
  constexpr int kEpochs = 20;
  for (const std::string_view name : GraphNames()) {
    const Graph graph = MakeGraph(name, 1000);
    Workload workload(graph, Body::kCheck);
    const std::unique_ptr<Engine> engine = info.make(workers);
    engine->Build(graph, workload.tasks(), workload.cost_ns());
    for (int epoch = 1; epoch <= kEpochs; ++epoch) {
      workload.BeginEpoch();
      engine->Run();
      const std::string where = std::string(name) + ", run " + std::to_string(epoch);
      if (workload.TakeCount() != 1) return where + ": a task did not run exactly once";
      if (!workload.ValuesAreRight()) return where + ": a task ran before one it depends on";
    }
  }
  return "";
}

bool CheckFindsMistakes() {
  using Order = std::vector<uint32_t>;
  return Accepts([](Order&) {}) &&
         !Accepts([](Order& order) { std::swap(order[10], order[11]); }) &&
         !Accepts([](Order& order) { order.push_back(order.back()); }) &&
         !Accepts([](Order& order) { order.pop_back(); });
}

}  // namespace heddle::bench
