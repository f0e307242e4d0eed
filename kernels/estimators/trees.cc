#include "kernels/estimators/trees.h"

#include <cmath>
#include <map>

namespace heddle {
namespace {

template <typename T>
bool Holds(const TreeEnsemble& trees, const TreeNode& n, T x) {
  if (std::isnan(x)) return n.missing_is_true;
  const T split = static_cast<T>(n.split);
  switch (n.rule) {
    case TreeRule::kLessEqual:
      return x <= split;
    case TreeRule::kLess:
      return x < split;
    case TreeRule::kGreaterEqual:
      return x >= split;
    case TreeRule::kGreater:
      return x > split;
    case TreeRule::kEqual:
      return x == split;
    case TreeRule::kNotEqual:
      return x != split;
    case TreeRule::kMember:
      for (int32_t i = n.members_begin; i < n.members_end; ++i)
        if (static_cast<T>(trees.members[static_cast<size_t>(i)]) == x) return true;
      return false;
  }
  return false;
}

struct NodeKey {
  int64_t tree, node;
  bool operator<(const NodeKey& o) const { return tree != o.tree ? tree < o.tree : node < o.node; }
};

// The attribute lists of one kind must be as long as the first one, or empty where that is allowed.
Status CheckLength(size_t expected, size_t got, const char* what, bool may_be_empty = false) {
  if (got == expected || (may_be_empty && got == 0)) return Status::Ok();
  return InvalidArgument(what, " has ", got, " elements, expected ", expected);
}

Result<TreeRule> RuleOf(const std::string& mode) {
  constexpr const char* kNames[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                    "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (mode == kNames[i]) return static_cast<TreeRule>(i);
  return InvalidArgument("nodes_modes holds '", mode, "', which is no rule");
}

// Leaves are numbered as they first occur among the nodes.
Status AddLeaves(const OpContext& ctx, bool classes, int64_t targets,
                 const std::map<NodeKey, int32_t>& leaves, TreeEnsemble* trees) {
  const Ints& tree_ids = ctx.IntList(classes ? Key("class_treeids") : Key("target_treeids"));
  const Ints& node_ids = ctx.IntList(classes ? Key("class_nodeids") : Key("target_nodeids"));
  const Ints& ids = ctx.IntList(classes ? Key("class_ids") : Key("target_ids"));
  const Floats& weights = ctx.Attr<Floats>(classes ? Key("class_weights") : Key("target_weights"));
  HEDDLE_RETURN_IF_ERROR(CheckLength(ids.size(), tree_ids.size(), "the list of leaves' trees"));
  HEDDLE_RETURN_IF_ERROR(CheckLength(ids.size(), node_ids.size(), "the list of leaves' nodes"));
  HEDDLE_RETURN_IF_ERROR(CheckLength(ids.size(), weights.size(), "the list of leaves' weights"));
  std::vector<std::vector<LeafWeight>> of_leaf(leaves.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= targets)
      return OutOfRange("a leaf names target ", ids[i], " of ", targets);
    const auto found = leaves.find({tree_ids[i], node_ids[i]});
    if (found == leaves.end()) continue;  // a weight of a node that is no leaf counts nothing
    of_leaf[static_cast<size_t>(found->second)].push_back(
        {static_cast<int32_t>(ids[i]), weights[i]});
  }
  for (const auto& all : of_leaf) {
    trees->weights.insert(trees->weights.end(), all.begin(), all.end());
    trees->leaf_begin.push_back(static_cast<int32_t>(trees->weights.size()));
  }
  return Status::Ok();
}

}  // namespace

template <typename T>
int32_t TreeEnsemble::LeafOf(int32_t root, const T* x) const {
  int32_t at = root;
  for (size_t steps = 0; at >= 0; ++steps) {
    if (steps > nodes.size()) return -1;
    const TreeNode& n = nodes[static_cast<size_t>(at)];
    at = Holds(*this, n, x[n.feature]) ? n.if_true : n.if_false;
  }
  return -1 - at;
}

Result<TreeSum> TreeSumOf(const std::string& name) {
  constexpr const char* kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<TreeSum>(i);
  return InvalidArgument("aggregate_function is '", name, "', expected SUM, AVERAGE, MIN or MAX");
}

template <typename T>
Status SumTrees(const TreeEnsemble& trees, TreeSum how, const T* x,
                std::pmr::vector<TargetScore<T>>* scores) {
  for (TargetScore<T>& s : *scores) s = {};
  for (const int32_t root : trees.roots) {
    const int32_t leaf = trees.LeafOf(root, x);
    if (leaf < 0) return InvalidArgument("the nodes of a tree lead in circles");
    for (int32_t i = trees.leaf_begin[static_cast<size_t>(leaf)];
         i < trees.leaf_begin[static_cast<size_t>(leaf) + 1]; ++i) {
      const LeafWeight& w = trees.weights[static_cast<size_t>(i)];
      TargetScore<T>& s = (*scores)[static_cast<size_t>(w.target)];
      const T v = static_cast<T>(w.weight);
      if (how == TreeSum::kMin || how == TreeSum::kMax)
        s.score = !s.seen ? v : how == TreeSum::kMin ? std::min(s.score, v) : std::max(s.score, v);
      else
        s.score += v;
      s.seen = true;
    }
  }
  if (how == TreeSum::kAverage && !trees.roots.empty())
    for (TargetScore<T>& s : *scores) s.score /= static_cast<T>(trees.roots.size());
  return Status::Ok();
}
template Status SumTrees(const TreeEnsemble&, TreeSum, const float*,
                         std::pmr::vector<TargetScore<float>>*);
template Status SumTrees(const TreeEnsemble&, TreeSum, const double*,
                         std::pmr::vector<TargetScore<double>>*);

void DeclareTreeNodes(OpDef& op, bool classes) {
  op.Attr("nodes_treeids", Ints{}).Attr("nodes_nodeids", Ints{}).Attr("nodes_featureids", Ints{});
  op.Attr("nodes_values", Floats{}).Attr("nodes_hitrates", Floats{}).Attr("nodes_modes", Strings{});
  op.Attr("nodes_truenodeids", Ints{}).Attr("nodes_falsenodeids", Ints{});
  op.Attr("nodes_missing_value_tracks_true", Ints{}).Attr("base_values", Floats{});
  op.Attr("post_transform", "NONE");
  if (classes) {
    op.Attr("class_treeids", Ints{}).Attr("class_nodeids", Ints{}).Attr("class_ids", Ints{});
    op.Attr("class_weights", Floats{});
  } else {
    op.Attr("target_treeids", Ints{}).Attr("target_nodeids", Ints{}).Attr("target_ids", Ints{});
    op.Attr("target_weights", Floats{});
  }
}

Result<TreeEnsemble> TreesOfNodes(const OpContext& ctx, bool classes, int64_t targets) {
  const Ints &tree_ids = ctx.IntList("nodes_treeids"), &node_ids = ctx.IntList("nodes_nodeids");
  const Ints &features = ctx.IntList("nodes_featureids"), &trues = ctx.IntList("nodes_truenodeids");
  const Ints& falses = ctx.IntList("nodes_falsenodeids");
  const Ints& missing = ctx.IntList("nodes_missing_value_tracks_true");
  const Floats& values = ctx.Attr<Floats>("nodes_values");
  const Strings& modes = ctx.Attr<Strings>("nodes_modes");
  const size_t n = tree_ids.size();
  if (n > size_t{1} << 30) return InvalidArgument("has ", n, " nodes");
  HEDDLE_RETURN_IF_ERROR(CheckLength(n, node_ids.size(), "nodes_nodeids"));
  HEDDLE_RETURN_IF_ERROR(CheckLength(n, features.size(), "nodes_featureids"));
  HEDDLE_RETURN_IF_ERROR(CheckLength(n, trues.size(), "nodes_truenodeids"));
  HEDDLE_RETURN_IF_ERROR(CheckLength(n, falses.size(), "nodes_falsenodeids"));
  HEDDLE_RETURN_IF_ERROR(CheckLength(n, values.size(), "nodes_values"));
  HEDDLE_RETURN_IF_ERROR(CheckLength(n, modes.size(), "nodes_modes"));
  HEDDLE_RETURN_IF_ERROR(CheckLength(n, missing.size(), "nodes_missing_value_tracks_true", true));
  TreeEnsemble trees;
  std::map<NodeKey, int32_t> leaves, branches;
  std::map<int64_t, NodeKey> roots;
  for (size_t i = 0; i < n; ++i) {
    const NodeKey key{tree_ids[i], node_ids[i]};
    auto& kind = modes[i] == "LEAF" ? leaves : branches;
    if (leaves.count(key) + branches.count(key) != 0)
      return InvalidArgument("node ", node_ids[i], " of tree ", tree_ids[i], " occurs twice");
    kind.emplace(key, static_cast<int32_t>(kind.size()));
    roots.emplace(tree_ids[i], key);
  }
  const auto find = [&](const NodeKey& key) -> Result<int32_t> {
    if (const auto b = branches.find(key); b != branches.end()) return b->second;
    if (const auto l = leaves.find(key); l != leaves.end()) return -1 - l->second;
    return InvalidArgument("tree ", key.tree, " has no node ", key.node);
  };
  for (size_t i = 0; i < n; ++i) {
    if (modes[i] == "LEAF") continue;
    TreeNode node;
    HEDDLE_ASSIGN_OR_RETURN(node.rule, RuleOf(modes[i]));
    HEDDLE_ASSIGN_OR_RETURN(node.if_true, find({tree_ids[i], trues[i]}));
    HEDDLE_ASSIGN_OR_RETURN(node.if_false, find({tree_ids[i], falses[i]}));
    if (features[i] < 0 || features[i] > 1 << 30)
      return OutOfRange("nodes_featureids holds ", features[i]);
    node.feature = static_cast<int32_t>(features[i]);
    node.split = values[i];
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    trees.features = std::max(trees.features, features[i] + 1);
    trees.nodes.push_back(node);
  }
  for (const auto& [tree, key] : roots) {
    HEDDLE_ASSIGN_OR_RETURN(const int32_t root, find(key));
    trees.roots.push_back(root);
  }
  HEDDLE_RETURN_IF_ERROR(AddLeaves(ctx, classes, targets, leaves, &trees));
  return trees;
}

}  // namespace heddle
