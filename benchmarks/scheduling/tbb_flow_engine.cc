// oneTBB flow graph: a continue_node for each task. The calling thread takes part in
// wait_for_all().
#include <tbb/flow_graph.h>

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "benchmarks/scheduling/engine.h"
#include "benchmarks/scheduling/tbb_arena.h"

namespace heddle::bench {
namespace {

class TbbFlowEngine final : public Engine {
  using Message = tbb::flow::continue_msg;
  using Node = tbb::flow::continue_node<Message>;

 public:
  explicit TbbFlowEngine(int workers) : arena_(workers) {}

  void Build(const Graph& graph, std::span<const Task> tasks, std::span<const float>) override {
    arena_.Execute([&] { flow_.emplace(); });  // a flow graph belongs to the arena it is made in
    for (const Task task : tasks) {
      nodes_.emplace_back(*flow_, [task](const Message& message) {
        task();
        return message;
      });
    }
    for (uint32_t v = 0; v < graph.size(); ++v) {
      for (const uint32_t s : graph.Successors(v)) tbb::flow::make_edge(nodes_[v], nodes_[s]);
      if (graph.InDegree(v) == 0) roots_.push_back(&nodes_[v]);
    }
  }

  void Run() override {
    arena_.Execute([this] {
      for (Node* root : roots_) root->try_put(Message());
      flow_->wait_for_all();
    });
  }

 private:
  TbbArena arena_;
  std::optional<tbb::flow::graph> flow_;
  std::deque<Node> nodes_;  // nodes do not move
  std::vector<Node*> roots_;
};

const bool kRegistered =
    RegisterEngine({.name = "tbb_flow",
                    .kind = EngineKind::kPeer,
                    .make = [](int workers) { return std::make_unique<TbbFlowEngine>(workers); },
                    .version = TbbVersion()});

}  // namespace
}  // namespace heddle::bench
