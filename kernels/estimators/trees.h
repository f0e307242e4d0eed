// Decision trees in one array of nodes, and the sums of their leaves.
#pragma once

#include <vector>

#include "kernels/estimators/scores.h"

namespace heddle {

enum class TreeRule : uint8_t {
  kLessEqual,
  kLess,
  kGreaterEqual,
  kGreater,
  kEqual,
  kNotEqual,
  kMember
};

struct TreeNode {
  TreeRule rule = TreeRule::kLessEqual;
  bool missing_is_true = false;
  int32_t feature = 0;
  int32_t if_true = 0, if_false = 0;  // below zero: -1 - the number of a leaf
  double split = 0;
  int32_t members_begin = 0, members_end = 0;  // of a set
};

// A leaf's part of a target.
struct LeafWeight {
  int32_t target = 0;
  double weight = 0;
};

struct TreeEnsemble {
  std::vector<TreeNode> nodes;
  std::vector<int32_t> roots;          // as TreeNode::if_true
  std::vector<int32_t> leaf_begin{0};  // of leaf i: weights [leaf_begin[i], leaf_begin[i + 1])
  std::vector<LeafWeight> weights;
  std::vector<double> members;
  int64_t features = 0;  // that some node looks at: at least so many are needed

  // The leaf of a tree that a sample reaches; -1 where nodes lead in circles.
  template <typename T>
  int32_t LeafOf(int32_t root, const T* x) const;
};

enum class TreeSum : uint8_t { kAverage, kSum, kMin, kMax };
Result<TreeSum> TreeSumOf(const std::string& name);

// The score that a sample's leaves give one target.
template <typename T>
struct TargetScore {
  T score = 0;
  bool seen = false;
};
// Combines the leaves of all trees; `scores` has one element per target.
template <typename T>
Status SumTrees(const TreeEnsemble& trees, TreeSum how, const T* x,
                std::pmr::vector<TargetScore<T>>* scores);

// From the attributes nodes_* and, with prefix "target" or "class", those of the leaves.
Result<TreeEnsemble> TreesOfNodes(const OpContext& ctx, bool classes, int64_t targets);
void DeclareTreeNodes(OpDef& op, bool classes);

struct TreeState final : KernelState {
  explicit TreeState(TreeEnsemble t) : trees(std::move(t)) {}
  TreeEnsemble trees;
};

}  // namespace heddle
