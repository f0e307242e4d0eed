// Demands of TensorFlow's kernels, and of shape functions that look at variables, which the table
// of op_types.inc lacks: the ranks of inputs and the values of attributes.
#include <algorithm>

#include "core/error.h"
#include "formats/tensorflow/types/op_types.h"

namespace heddle::tensorflow {
namespace {

// The inputs from `first` to `last`, where -1 is the last one of the node.
struct RankDemand {
  std::string_view ops;
  int first, last;
  int least, most;
};
constexpr int kAny = Shape::kMaxRank;
constexpr RankDemand kRanks[] = {
    {"ConcatOffset", 0, 0, 0, 0},
    {"ConcatOffset", 1, -1, 1, 1},
    {"ConcatV2", -1, -1, 0, 0},
    {"Cumprod Cumsum CumulativeLogsumexp", 0, 0, 1, kAny},
    {"FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3", 1, 4, 1, 1},
    {"FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3", 2, 4, 1, 1},
    {"InTopKV2", 2, 2, 0, 0},
    // Rates, decays and powers.
    {"ResourceApplyGradientDescent", 1, 1, 0, 0},
    {"ResourceApplyProximalGradientDescent ResourceSparseApplyProximalGradientDescent", 1, 3, 0, 0},
    {"ResourceApplyAdagrad ResourceSparseApplyAdagrad ResourceApplyMomentum "
     "ResourceApplyKerasMomentum ResourceSparseApplyMomentum ResourceSparseApplyKerasMomentum",
     2, 2, 0, 0},
    {"ResourceApplyAdagradV2 ResourceSparseApplyAdagradV2", 2, 3, 0, 0},
    {"ResourceApplyProximalAdagrad ResourceSparseApplyProximalAdagrad", 2, 4, 0, 0},
    {"ResourceApplyAddSign ResourceApplyPowerSign", 2, 5, 0, 0},
    {"ResourceApplyAdadelta ResourceSparseApplyAdadelta", 3, 5, 0, 0},
    {"ResourceApplyRMSProp ResourceSparseApplyRMSProp", 3, 6, 0, 0},
    {"ResourceApplyAdaMax", 3, 7, 0, 0},
    {"ResourceApplyAdam", 3, 8, 0, 0},
    {"ResourceApplyMomentum ResourceApplyKerasMomentum", 4, 4, 0, 0},
    {"ResourceApplyCenteredRMSProp ResourceApplyFtrl ResourceSparseApplyCenteredRMSProp", 4, 7, 0,
     0},
    {"ResourceApplyFtrlV2", 4, 8, 0, 0},
    {"ResourceApplyAdamWithAmsgrad", 4, 9, 0, 0},
    {"ResourceSparseApplyMomentum ResourceSparseApplyKerasMomentum", 5, 5, 0, 0},
    {"ResourceSparseApplyFtrl", 5, 8, 0, 0},
    {"ResourceSparseApplyFtrlV2", 5, 9, 0, 0},
};

struct ValueDemand {
  std::string_view ops, attribute, values;  // separated by '|'
};
constexpr ValueDemand kValues[] = {
    {"GatherNd ResourceGatherNd ScatterNd ScatterNdAdd ScatterNdMax ScatterNdMin ScatterNdSub "
     "ScatterNdUpdate TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub "
     "TensorScatterUpdate",
     "bad_indices_policy", "|DEFAULT|ERROR|IGNORE"},
};

bool Lists(std::string_view words, std::string_view word, char by) {
  for (;;) {
    const size_t end = std::min(words.find(by), words.size());
    if (words.substr(0, end) == word) return true;
    if (end == words.size()) return false;
    words.remove_prefix(end + 1);
  }
}

}  // namespace

RankRange KernelRanksOf(std::string_view op, size_t i, size_t inputs) {
  RankRange range;
  const int at = static_cast<int>(i), end = static_cast<int>(inputs) - 1;
  for (const RankDemand& d : kRanks)
    if (at >= (d.first < 0 ? end : d.first) && at <= (d.last < 0 ? end : d.last) &&
        Lists(d.ops, op, ' '))
      range = {std::max(range.least, d.least), std::min(range.most, d.most)};
  return range;
}

std::string FindWrongValue(std::string_view op, const FindAttribute& find) {
  for (const ValueDemand& d : kValues) {
    const Attribute* a = Lists(d.ops, op, ' ') ? find(d.attribute) : nullptr;
    if (a != nullptr && a->kind == Attribute::kString && !Lists(d.values, a->s, '|'))
      return StrCat("attribute ", d.attribute, " is '", a->s, "', expected one of ",
                    d.values.substr(1), " or nothing");
  }
  return {};
}

}  // namespace heddle::tensorflow
