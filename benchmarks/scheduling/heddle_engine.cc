// heddle's scheduler by itself: a TaskGraph on a HostPool. Its first runs are timed, then lanes are
// tried; only what it settles on is measured. It does not look at the costs that engines are told.
#include <memory>
#include <optional>
#include <vector>

#include "benchmarks/scheduling/engine.h"
#include "benchmarks/scheduling/task_graph.h"

namespace heddle::bench {
namespace {

class HeddleEngine final : public Engine {
 public:
  explicit HeddleEngine(int workers) : pool_(workers) {}

  void Build(const Graph& graph, std::span<const Task> tasks, std::span<const float>) override {
    StaticGraph g;
    g.size = graph.size();
    g.pred_begin.push_back(0);
    for (uint32_t v = 0; v < graph.size(); ++v) {
      for (uint32_t p : graph.Predecessors(v)) g.pred.push_back(p);
      g.pred_begin.push_back(static_cast<uint32_t>(g.pred.size()));
    }
    CompleteSuccessors(&g);
    graph_.emplace(std::move(g), tasks, pool_);
  }
  void Run() override { graph_->Run(); }
  bool Settled() const override { return graph_->settled(); }

 private:
  HostPool pool_;
  std::optional<TaskGraph> graph_;
};

const bool kRegistered =
    RegisterEngine({.name = "heddle", .kind = EngineKind::kHeddle, .make = [](int workers) {
                      return std::make_unique<HeddleEngine>(workers);
                    }});

}  // namespace
}  // namespace heddle::bench
