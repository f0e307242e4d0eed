#include "passes/fuse/convex_groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace heddle::passes {
namespace {

class Grouper {
 public:
  Grouper(const OrderGraph& order, const std::vector<ElementOp>& ops,
          FunctionRef<bool(int, int)> joins)
      : order_(order), ops_(ops), joins_(joins) {}

  std::vector<std::vector<int>> Run() {
    Layer();
    Sink();
    return Join();
  }

 private:
  const ElementOp& op(int at) const { return ops_[static_cast<size_t>(at)]; }
  bool Joins(int producer, int reader) const {
    return op(producer).fusable && op(reader).fusable && joins_(producer, reader);
  }

  // Assigns layers: no operator depends on a later layer, operators that join may share a layer,
  // and all other dependencies of a fusable operator are in earlier layers. Joined operators of one
  // layer can therefore be computed together.
  void Layer() {
    layer_.assign(ops_.size(), 0);
    for (int i = 0; i < order_.size(); ++i) {
      int& layer = layer_[static_cast<size_t>(i)];
      for (int b : order_.before(i)) {
        const bool apart = op(i).fusable && !Joins(b, i);
        layer = std::max(layer, layer_[static_cast<size_t>(b)] + (apart ? 1 : 0));
      }
    }
  }

  // Moves a fusable operator, all of whose readers are in later layers, to the layer of the readers
  // that it joins.
  void Sink() {
    std::vector<int> latest(ops_.size(), std::numeric_limits<int>::max());
    std::vector<bool> joined(ops_.size(), false);  // joined by a reader in that layer
    for (int i = order_.size() - 1; i >= 0; --i) {
      const auto at = static_cast<size_t>(i);
      if (op(i).fusable && joined[at]) layer_[at] = std::max(layer_[at], latest[at]);
      for (int b : order_.before(i)) {
        const auto from = static_cast<size_t>(b);
        const bool joins = Joins(b, i);
        const int limit = layer_[at] - (op(i).fusable && !joins ? 1 : 0);
        if (limit < latest[from]) joined[from] = false;
        if (limit <= latest[from]) joined[from] = joined[from] || joins;
        latest[from] = std::min(latest[from], limit);
      }
    }
  }

  std::vector<std::vector<int>> Join() {
    std::vector<int> root(ops_.size());
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](int i) {
      while (root[static_cast<size_t>(i)] != i) {
        int& r = root[static_cast<size_t>(i)];
        r = root[static_cast<size_t>(r)];
        i = r;
      }
      return i;
    };
    for (int i = 0; i < order_.size(); ++i)
      for (int b : order_.before(i))
        if (layer_[static_cast<size_t>(b)] == layer_[static_cast<size_t>(i)] && Joins(b, i))
          root[static_cast<size_t>(find(i))] = find(b);
    std::map<int, std::vector<int>>
        members;  // ordered by root, so that the result is deterministic
    for (int i = 0; i < order_.size(); ++i)
      if (op(i).fusable) members[find(i)].push_back(i);
    std::vector<std::vector<int>> groups;
    for (auto& [first, group] : members) groups.push_back(std::move(group));
    return groups;
  }

  const OrderGraph& order_;
  const std::vector<ElementOp>& ops_;
  const FunctionRef<bool(int, int)> joins_;
  std::vector<int> layer_;
};

}  // namespace

std::vector<std::vector<int>> ConvexGroups(const OrderGraph& order,
                                           const std::vector<ElementOp>& ops,
                                           FunctionRef<bool(int, int)> joins) {
  return Grouper(order, ops, joins).Run();
}

}  // namespace heddle::passes
