// beam_search: one step, from the candidates of every branch to the best of each sentence.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

struct Item {
  int64_t branch, id;
  float score;
  bool operator<(const Item& other) const {
    return score < other.score || (score == other.score && branch < other.branch);
  }
};

// Keeps `beam` at most `size` items, best first.
void Insert(const Item& item, size_t size, std::vector<Item>* beam) {
  if (beam->size() == size && (size == 0 || item < beam->back())) return;
  if (beam->size() == size) beam->pop_back();
  auto at = beam->end();
  while (at != beam->begin() && *(at - 1) < item) --at;
  beam->insert(at, item);
}

struct Candidates {
  const int64_t *before, *ids;  // the branches' last tokens; tokens of candidates, null: 0, 1, …
  const float *before_scores, *scores;
  int64_t width, end;
  bool accumulated;
};

// The best items of branches [first, last). A finished branch has itself as only candidate.
std::vector<Item> Best(const Candidates& c, int64_t first, int64_t last, size_t size) {
  std::vector<Item> beam;
  for (const int64_t b : Watched(first, last)) {
    if (c.before[b] == c.end) {
      Insert({b, c.end, c.before_scores[b]}, size, &beam);
      continue;
    }
    for (int64_t k = b * c.width; k < (b + 1) * c.width; ++k)
      Insert({b, c.ids != nullptr ? c.ids[k] : k - b * c.width,
              c.accumulated ? c.scores[k] : c.before_scores[b] + std::log(c.scores[k])},
             size, &beam);
  }
  return beam;
}

// All branches of the sentence had ended before this step.
bool IsFinished(const Candidates& c, const std::vector<Item>& beam) {
  return std::all_of(beam.begin(), beam.end(), [&](const Item& item) {
    return item.id == c.end && c.before[item.branch] == c.end;
  });
}

// The rows at which the sequences of a level begin.
Result<Offsets> RowOffsets(const LoD& lod, int64_t level) {
  if (level < 0 || level >= std::ssize(lod))
    return InvalidArgument("scores have ", lod.size(), " levels of sequences, level is ", level);
  Offsets offsets = lod[static_cast<size_t>(level)];
  for (size_t l = static_cast<size_t>(level) + 1; l < lod.size(); ++l)
    for (size_t& o : offsets) {
      if (o >= lod[l].size()) return InvalidArgument("the sequences of scores are not nested");
      o = lod[l][o];
    }
  return offsets;
}

Status Put(const KernelContext& ctx, const Offsets& sentences,
           const std::vector<std::vector<Item>>& by_branch) {
  Offsets branches{0};
  for (const auto& items : by_branch) branches.push_back(branches.back() + items.size());
  const auto count = static_cast<int64_t>(branches.back());
  Tensor& ids = ctx.Alloc("selected_ids", DType::kI64, Shape{count, 1});
  Tensor& scores = ctx.Alloc("selected_scores", DType::kF32, Shape{count, 1});
  Tensor parents = ctx.HasOut("parent_idx") ? ctx.Alloc("parent_idx", DType::kI32, Shape{count})
                                            : ctx.Scratch(DType::kI32, Shape{count});
  int64_t at = 0;
  for (size_t b = 0; b < by_branch.size(); ++b)
    for (const Item& item : by_branch[b]) {
      LookForInterrupt();
      ids.mutable_data<int64_t>()[at] = item.id;
      scores.mutable_data<float>()[at] = item.score;
      parents.mutable_data<int32_t>()[at++] = static_cast<int32_t>(b);
    }
  ids.set_lod({sentences, branches});
  scores.set_lod({sentences, branches});
  return Status::Ok();
}

Status BeamSearch(KernelContext& ctx) {
  const Tensor &before = ctx.In("pre_ids"), &before_scores = ctx.In("pre_scores");
  const Tensor &scores = ctx.In("scores"), *ids = ctx.InOpt("ids");
  if (before.dtype() != DType::kI64 || before_scores.dtype() != DType::kF32 ||
      scores.dtype() != DType::kF32 || (ids != nullptr && ids->dtype() != DType::kI64))
    return InvalidArgument("ids must be int64 and scores float32");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets sentences, RowOffsets(scores.lod(), ctx.Int("level")));
  const int64_t count = static_cast<int64_t>(sentences.back()), width = RowSize(scores);
  if (before.numel() < count || before_scores.numel() < count || scores.numel() < count * width ||
      (ids != nullptr && ids->numel() < count * width) || ctx.Int("beam_size") < 0)
    return InvalidArgument("pre_ids, pre_scores, ids and scores do not fit each other");
  const Candidates c{before.data<int64_t>(),
                     ids != nullptr ? ids->data<int64_t>() : nullptr,
                     before_scores.data<float>(),
                     scores.data<float>(),
                     width,
                     ctx.Int("end_id"),
                     ctx.Bool("is_accumulated")};
  std::vector<std::vector<Item>> by_branch(static_cast<size_t>(count));
  for (const int64_t s : Watched(SequenceCount(sentences))) {
    const auto beam = Best(c, Begin(sentences, s), Begin(sentences, s + 1),
                           static_cast<size_t>(ctx.Int("beam_size")));
    if (IsFinished(c, beam)) continue;
    for (const Item& item : beam) by_branch[static_cast<size_t>(item.branch)].push_back(item);
  }
  return Put(ctx, sentences, by_branch);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(beam_search) {
  op.Doc("the best candidates of each sentence, by the branch they go on from");
  op.Input("pre_ids").Input("pre_scores").Input("ids", kOptional).Input("scores");
  op.Output("selected_ids").Output("selected_scores").Output("parent_idx", kOptional);
  op.Attr("level", 0).Attr("beam_size", 1).Attr("end_id", 0).Attr("is_accumulated", true);
  op.AnyKernel(BeamSearch);
}
