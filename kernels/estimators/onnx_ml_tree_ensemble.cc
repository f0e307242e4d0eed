// Ensembles of decision trees: regression, classification, and the later form of both.
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/estimators/trees.h"

namespace heddle {
namespace {

// --- shared by the three

constexpr int64_t kMostTargets = std::numeric_limits<int32_t>::max();  // LeafWeight::target

using MakeTrees = Result<TreeEnsemble> (*)(const OpContext& ctx);

template <MakeTrees kMake>
Result<std::unique_ptr<KernelState>> PrepareTrees(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(TreeEnsemble trees, kMake(ctx));
  return std::unique_ptr<KernelState>(std::make_unique<TreeState>(std::move(trees)));
}

// The trees that Prepare made, or ones made now in `*own`.
template <MakeTrees kMake>
Result<const TreeEnsemble*> TreesIn(const KernelContext& ctx, std::optional<TreeEnsemble>* own) {
  if (ctx.has_state()) return &ctx.State<TreeState>().trees;
  HEDDLE_ASSIGN_OR_RETURN(*own, kMake(ctx));
  return &**own;
}

// fn(row, scores of its targets, an empty list) for all samples, over the run's threads.
template <typename T, typename Fn>
Status ForEachSample(const KernelContext& ctx, const TreeEnsemble& trees, TreeSum how,
                     int64_t targets, const Fn& fn) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(x.shape()));
  if (s.width < trees.features)
    return InvalidArgument("X has ", s.width, " features, the trees look at ", trees.features);
  CallHeap heap(ctx);
  const std::pmr::vector<T> samples = Samples<T>(ctx, x, &heap);
  std::pmr::vector<Status> failed(static_cast<size_t>(s.rows), &heap);
  const auto cost = static_cast<int64_t>(trees.roots.size()) * 16;
  ctx.ParallelFor(s.rows, 1 + 16384 / (1 + cost), [&](int64_t begin, int64_t end) {
    CallHeap own(ctx);
    std::pmr::vector<TargetScore<T>> scores(static_cast<size_t>(targets), &own);
    std::pmr::vector<T> row(&own);
    row.reserve(std::max<size_t>(2, scores.size()));
    for (int64_t r = begin; r < end; ++r) {
      Status status = SumTrees(trees, how, samples.data() + r * s.width, &scores);
      row.clear();
      if (status.ok()) fn(r, scores, &row);
      failed[static_cast<size_t>(r)] = std::move(status);
    }
  });
  for (const Status& status : failed) HEDDLE_RETURN_IF_ERROR(status);
  return Status::Ok();
}

// --- TreeEnsembleRegressor

Result<TreeEnsemble> RegressorTrees(const OpContext& ctx) {
  return TreesOfNodes(ctx, false, ctx.Int("n_targets"));
}

Status OnnxTreeRegressorShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(ctx.InShape("X")));
  const auto base = static_cast<int64_t>(ctx.Attr<Floats>("base_values").size());
  const int64_t targets = ctx.Int("n_targets");
  if (targets < 1 || targets > kMostTargets || (base != 0 && base != targets && base != 1))
    return InvalidArgument("n_targets is ", targets, " with ", base, " base_values");
  ctx.SetOut("Y", {s.rows, targets}, DType::kF32);
  return Status::Ok();
}

template <typename T>
Status RunTreeRegressor(KernelContext& ctx) {
  std::optional<TreeEnsemble> own;
  HEDDLE_ASSIGN_OR_RETURN(const TreeEnsemble* const trees, TreesIn<RegressorTrees>(ctx, &own));
  HEDDLE_ASSIGN_OR_RETURN(const TreeSum how, TreeSumOf(ctx.Str("aggregate_function")));
  HEDDLE_ASSIGN_OR_RETURN(const PostTransform transform,
                          PostTransformOf(ctx.Str("post_transform")));
  const Floats& base = ctx.Attr<Floats>("base_values");
  const int64_t targets = ctx.Int("n_targets");
  float* to = ctx.Out("Y").mutable_data<float>();
  return ForEachSample<T>(
      ctx, *trees, how, targets,
      [&](int64_t r, const std::pmr::vector<TargetScore<T>>& scores, std::pmr::vector<T>* row) {
        for (size_t i = 0; i < scores.size(); ++i) {
          const double b = base.empty() ? 0 : base[base.size() == 1 ? 0 : i];
          row->push_back(scores[i].score + static_cast<T>(b));
        }
        TransformScores(transform, SecondScore::kAbsent, row);
        std::copy(row->begin(), row->end(), to + r * targets);
      });
}

// --- TreeEnsembleClassifier

Result<TreeEnsemble> ClassifierTrees(const OpContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t labels, LabelCountOf(ctx, "classlabels_int64s"));
  return TreesOfNodes(ctx, true, labels);
}

Status OnnxTreeClassifierShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(ctx.InShape("X")));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t labels, LabelCountOf(ctx, "classlabels_int64s"));
  const auto base = static_cast<int64_t>(ctx.Attr<Floats>("base_values").size());
  if (labels < 2 || base > labels)
    return InvalidArgument("has ", labels, " labels and ", base, " base_values");
  ctx.SetOut("Y", {s.rows}, DType::kI64);
  ctx.SetOut("Z", {s.rows, labels}, DType::kF32);
  return Status::Ok();
}

// Two classes may share one score, which counts for the second one.
struct TwoClasses {
  bool shared = false;    // all leaves name one class
  bool positive = false;  // no weight is below zero: scores are probabilities
};

template <typename T>
class ClassifierRow {
 public:
  ClassifierRow(const Floats& base, const TwoClasses& two, PostTransform transform)
      : base_(base), two_(two), transform_(transform) {}

  // The scores, and the number of the best class. `scores`: empty.
  int64_t Finish(const std::pmr::vector<TargetScore<T>>& seen, std::pmr::vector<T>* scores) const {
    SecondScore second = SecondScore::kAbsent;
    int64_t best = 0;
    if (seen.size() > 2) {
      for (size_t i = 0; i < seen.size(); ++i)
        scores->push_back(seen[i].score + (i < base_.size() ? static_cast<T>(base_[i]) : T(0)));
      best = std::max_element(scores->begin(), scores->end()) - scores->begin();
    } else {
      best = FinishTwo(seen, scores, &second);
    }
    TransformScores(transform_, second, scores);
    return best;
  }

 private:
  int64_t FinishTwo(const std::pmr::vector<TargetScore<T>>& seen, std::pmr::vector<T>* scores,
                    SecondScore* second) const {
    T first = seen[0].score, other = seen[1].score;
    bool both = seen[1].seen;
    if (base_.size() == 2) {
      if (both) {
        first += static_cast<T>(base_[0]);
        other += static_cast<T>(base_[1]);
      } else {
        other = static_cast<T>(base_[1]) + first;
        first = -other;
        both = true;
      }
    } else if (base_.size() == 1) {
      first += static_cast<T>(base_[0]);
    }
    scores->push_back(first);
    if (both) scores->push_back(other);
    const T decisive = both ? other : first;
    if (!two_.shared) {
      // Both classes have scores of their own.
      return both ? (other > first ? 1 : 0) : (first > 0 ? 1 : 0);
    }
    *second = two_.positive ? SecondScore::kComplement : SecondScore::kNegative;
    return decisive > (two_.positive ? T(0.5) : T(0)) ? 1 : 0;
  }

  const Floats& base_;
  TwoClasses two_;
  PostTransform transform_;
};

template <typename T>
Status RunTreeClassifier(KernelContext& ctx) {
  std::optional<TreeEnsemble> own;
  HEDDLE_ASSIGN_OR_RETURN(const TreeEnsemble* const trees, TreesIn<ClassifierTrees>(ctx, &own));
  HEDDLE_ASSIGN_OR_RETURN(const PostTransform transform,
                          PostTransformOf(ctx.Str("post_transform")));
  const Ints& ids = ctx.IntList("class_ids");
  TwoClasses two;
  two.shared = std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id == ids[0]; });
  const Floats& weights = ctx.Attr<Floats>("class_weights");
  two.positive = std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
  const ClassifierRow<T> row(ctx.Attr<Floats>("base_values"), two, transform);
  const Ints& labels = ctx.IntList("classlabels_int64s");
  const int64_t classes = ctx.Out("Z").dim(1);
  int64_t* label = ctx.Out("Y").mutable_data<int64_t>();
  float* to = ctx.Out("Z").mutable_data<float>();
  return ForEachSample<T>(
      ctx, *trees, TreeSum::kSum, classes,
      [&](int64_t r, const std::pmr::vector<TargetScore<T>>& seen, std::pmr::vector<T>* scores) {
        const int64_t best = row.Finish(seen, scores);
        label[r] = labels.empty() ? best : labels[static_cast<size_t>(best)];
        scores->resize(static_cast<size_t>(classes));
        std::copy(scores->begin(), scores->end(), to + r * classes);
      });
}

// --- TreeEnsemble

Result<TreeEnsemble> EnsembleTrees(const OpContext& ctx) {
  const Ints &features = ctx.IntList("nodes_featureids"), &modes = ctx.IntList("nodes_modes");
  const Ints &trues = ctx.IntList("nodes_truenodeids"), &falses = ctx.IntList("nodes_falsenodeids");
  const Ints& true_leaf = ctx.IntList("nodes_trueleafs");
  const Ints& false_leaf = ctx.IntList("nodes_falseleafs");
  const Ints& missing = ctx.IntList("nodes_missing_value_tracks_true");
  const Floats &splits = ctx.Attr<Floats>("nodes_splits"),
               &members = ctx.Attr<Floats>("membership_values");
  const Ints& targets = ctx.IntList("leaf_targetids");
  const Floats& weights = ctx.Attr<Floats>("leaf_weights");
  const size_t n = features.size();
  for (const size_t size : {modes.size(), trues.size(), falses.size(), true_leaf.size(),
                            false_leaf.size(), splits.size()})
    if (size != n || n > size_t{1} << 30)
      return InvalidArgument("the lists of nodes have ", size, " and ", n, " elements");
  if ((!missing.empty() && missing.size() != n) || weights.size() != targets.size())
    return InvalidArgument("the lists of missing values or of leaves have another length");
  TreeEnsemble trees;
  trees.members.assign(members.begin(), members.end());
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0 || targets[i] >= ctx.Int("n_targets"))
      return OutOfRange("leaf_targetids holds ", targets[i], " of ", ctx.Int("n_targets"));
    trees.weights.push_back({static_cast<int32_t>(targets[i]), weights[i]});
    trees.leaf_begin.push_back(static_cast<int32_t>(i) + 1);
  }
  const auto child = [&](int64_t id, bool leaf) -> Result<int32_t> {
    if (id < 0 || id >= static_cast<int64_t>(leaf ? targets.size() : n))
      return OutOfRange("a node leads to ", leaf ? "leaf " : "node ", id);
    return static_cast<int32_t>(leaf ? -1 - id : id);
  };
  for (size_t i = 0; i < n; ++i) {
    TreeNode node;
    if (modes[i] < 0 || modes[i] > static_cast<int64_t>(TreeRule::kMember) || features[i] < 0 ||
        features[i] > 1 << 30)
      return OutOfRange("nodes_modes holds ", modes[i], ", nodes_featureids ", features[i]);
    node.rule = static_cast<TreeRule>(modes[i]);
    node.feature = static_cast<int32_t>(features[i]);
    node.split = splits[i];
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    HEDDLE_ASSIGN_OR_RETURN(node.if_true, child(trues[i], true_leaf[i] != 0));
    HEDDLE_ASSIGN_OR_RETURN(node.if_false, child(falses[i], false_leaf[i] != 0));
    trees.features = std::max(trees.features, features[i] + 1);
    trees.nodes.push_back(node);
  }
  // Sets stand one after another, each with a NaN behind it, in the order of their nodes.
  size_t at = 0;
  for (TreeNode& node : trees.nodes) {
    if (node.rule != TreeRule::kMember) continue;
    node.members_begin = static_cast<int32_t>(at);
    while (at < members.size() && !std::isnan(members[at])) ++at;
    node.members_end = static_cast<int32_t>(at++);
  }
  if (at > members.size()) return InvalidArgument("membership_values has too few sets");
  for (const int64_t root : ctx.IntList("tree_roots")) {
    if (root < 0 || root >= static_cast<int64_t>(n)) return OutOfRange("tree_roots holds ", root);
    trees.roots.push_back(static_cast<int32_t>(root));
  }
  return trees;
}

Status OnnxTreeEnsembleShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(ctx.InShape("X")));
  if (ctx.Int("n_targets") < 1 || ctx.Int("n_targets") > kMostTargets)
    return InvalidArgument("n_targets is ", ctx.Int("n_targets"));
  const int64_t sum = ctx.Int("aggregate_function"), transform = ctx.Int("post_transform");
  if (sum < 0 || sum > 3 || transform < 0 || transform > 4)
    return InvalidArgument("aggregate_function is ", sum, " and post_transform ", transform,
                           ", expected 0 to 3 and 0 to 4");
  ctx.SetOut("Y", {s.rows, ctx.Int("n_targets")}, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct OnnxTreeEnsemble {
  static Status Run(KernelContext& ctx) {
    std::optional<TreeEnsemble> own;
    HEDDLE_ASSIGN_OR_RETURN(const TreeEnsemble* const trees, TreesIn<EnsembleTrees>(ctx, &own));
    const int64_t targets = ctx.Int("n_targets");
    const auto transform = static_cast<PostTransform>(ctx.Int("post_transform"));
    T* to = ctx.Out("Y").template mutable_data<T>();
    return ForEachSample<T>(
        ctx, *trees, static_cast<TreeSum>(ctx.Int("aggregate_function")), targets,
        [&](int64_t r, const std::pmr::vector<TargetScore<T>>& scores, std::pmr::vector<T>* row) {
          for (const TargetScore<T>& s : scores) row->push_back(s.score);
          TransformScores(transform, SecondScore::kAbsent, row);
          std::copy(row->begin(), row->end(), to + r * targets);
        });
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_ml_tree_ensemble_regressor) {
  op.Doc("sums, means or extremes of the leaves that samples reach").Input("X").Output("Y");
  DeclareTreeNodes(op, false);
  op.Attr("n_targets", 1).Attr("aggregate_function", "SUM");
  op.InferShape(OnnxTreeRegressorShape).Prepare(PrepareTrees<RegressorTrees>);
  op.Kernel({DType::kF32, DType::kI32, DType::kI64}, RunTreeRegressor<float>);
  op.Kernel(DType::kF64, RunTreeRegressor<double>);
}
HEDDLE_OP(onnx_ml_tree_ensemble_classifier) {
  op.Doc("the best class by the leaves that samples reach, and the scores of all");
  op.Input("X").Output("Y").Output("Z");
  DeclareTreeNodes(op, true);
  op.Attr("classlabels_int64s", Ints{}).Attr("classlabels_strings", Strings{});
  op.InferShape(OnnxTreeClassifierShape).Prepare(PrepareTrees<ClassifierTrees>);
  op.Kernel({DType::kF32, DType::kI32, DType::kI64}, RunTreeClassifier<float>);
  op.Kernel(DType::kF64, RunTreeClassifier<double>);
}
HEDDLE_OP(onnx_ml_tree_ensemble) {
  op.Doc("sums, means or extremes of the leaves that samples reach, sets among the rules");
  op.Input("X").Output("Y").Attr("n_targets", 1).Attr("aggregate_function", 1);
  op.Attr("post_transform", 0).Attr("nodes_featureids", Ints{}).Attr("nodes_splits", Floats{});
  op.Attr("nodes_modes", Ints{}).Attr("nodes_truenodeids", Ints{}).Attr("tree_roots", Ints{});
  op.Attr("nodes_falsenodeids", Ints{}).Attr("nodes_trueleafs", Ints{});
  op.Attr("nodes_falseleafs", Ints{}).Attr("nodes_missing_value_tracks_true", Ints{});
  op.Attr("nodes_hitrates", Floats{}).Attr("leaf_targetids", Ints{});
  op.Attr("leaf_weights", Floats{}).Attr("membership_values", Floats{});
  op.InferShape(OnnxTreeEnsembleShape).Prepare(PrepareTrees<EnsembleTrees>);
  op.Kernels<OnnxTreeEnsemble, float, double>();
}
