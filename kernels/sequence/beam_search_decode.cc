#include <algorithm>

#include "core/dtype_of.h"
#include "core/operands/slot_kinds.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/convert.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// A hypothesis, last token first.
struct Sentence {
  std::vector<int64_t> ids;
  std::vector<double> scores;
};

template <typename Fn>
bool VisitScore(DType dtype, Fn&& fn) {
  return VisitDType<float, double, float16, int32_t, int64_t>(dtype, fn);
}

// The tokens chosen in one step, and two levels of offsets: the branches of each source sentence,
// and the tokens of each branch.
struct Step {
  const Tensor *ids, *scores;
  const Offsets *sources, *branches;

  double Score(size_t i) const {
    double score = 0;
    VisitScore(scores->dtype(), [&](auto tag) {
      score = static_cast<double>(scores->data<typename decltype(tag)::type>()[i]);
    });
    return score;
  }
};

Result<Step> StepAt(const TensorArray& ids, const TensorArray& scores, size_t i) {
  const Step s{&ids[i], &scores[i], nullptr, nullptr};
  if (s.ids->dtype() != DType::kI64 || !s.ids->initialized() || !s.scores->initialized() ||
      !VisitScore(s.scores->dtype(), [](auto) {}))
    return InvalidArgument("step ", i, " must hold int64 ids, and scores of float16, float32, ",
                           "float64, int32 or int64");
  if (s.ids->lod().size() != 2)
    return InvalidArgument("step ", i, " of Ids must have two levels of sequences, it has ",
                           s.ids->lod().size());
  const Offsets &sources = s.ids->lod()[0], &branches = s.ids->lod()[1];
  if (sources.empty() || branches.size() != sources.back() + 1 || sources.size() < 2 ||
      static_cast<int64_t>(branches.back()) > s.ids->numel() ||
      static_cast<int64_t>(branches.back()) > s.scores->numel() ||
      !std::is_sorted(sources.begin(), sources.end()) ||
      !std::is_sorted(branches.begin(), branches.end()))
    return InvalidArgument("the sequences of step ", i, " do not fit its tokens");
  return Step{s.ids, s.scores, &sources, &branches};
}

// Walks back from the last step: `at` are the tokens' positions in the step behind.
class Backtrace {
 public:
  Backtrace(size_t sources, int64_t end) : found_(sources), at_(sources), end_(end) {}

  Status Go(const Step& s) {
    if (s.sources->size() != found_.size() + 1)
      return InvalidArgument("all steps must have ", found_.size(), " source sentences");
    for (size_t source = 0; source < found_.size(); ++source)
      HEDDLE_RETURN_IF_ERROR(at_[source].empty() ? Start(s, source) : Extend(s, source));
    return Status::Ok();
  }
  std::vector<std::vector<Sentence>>& found() { return found_; }

 private:
  // The last step of this source: each token ends a hypothesis.
  Status Start(const Step& s, size_t source) {
    for (size_t b = (*s.sources)[source]; b < (*s.sources)[source + 1]; ++b)
      for (size_t i = (*s.branches)[b]; i < (*s.branches)[b + 1]; ++i) {
        at_[source].push_back(b);
        found_[source].push_back({{s.ids->data<int64_t>()[i]}, {s.Score(i)}});
      }
    return Status::Ok();
  }
  Status Extend(const Step& s, size_t source) {
    for (size_t k = 0; k < at_[source].size(); ++k) {
      const size_t i = at_[source][k];
      if (i >= s.branches->back())
        return InvalidArgument("a branch goes on from token ", i, ", but its step has ",
                               s.branches->back());
      const int64_t id = s.ids->data<int64_t>()[i];
      Sentence& sentence = found_[source][k];
      if (id != end_ || sentence.ids.empty()) {  // ended branches repeat the end token
        sentence.ids.push_back(id);
        sentence.scores.push_back(s.Score(i));
      }
      const auto after = std::upper_bound(s.branches->begin(), s.branches->end(), i);
      at_[source][k] = static_cast<size_t>(after - s.branches->begin()) - 1;
    }
    return Status::Ok();
  }

  std::vector<std::vector<Sentence>> found_;
  std::vector<std::vector<size_t>> at_;
  int64_t end_;
};

void PutSentences(const KernelContext& ctx, const std::vector<std::vector<Sentence>>& found,
                  DType dtype) {
  LoD lod{{0}, {0}};
  for (const auto& sentences : found) {
    for (const Sentence& s : sentences) lod[1].push_back(lod[1].back() + s.ids.size());
    lod[0].push_back(lod[0].back() + sentences.size());
  }
  const Shape shape{static_cast<int64_t>(lod[1].back())};
  Tensor& ids = ctx.Alloc("SentenceIds", DType::kI64, shape);
  Tensor& scores = ctx.Alloc("SentenceScores", dtype, shape);
  int64_t at = 0;
  std::vector<double> wide;
  for (const auto& sentences : found)
    for (const Sentence& s : sentences)
      for (size_t i = s.ids.size(); i-- > 0; ++at) {
        ids.mutable_data<int64_t>()[at] = s.ids[i];
        wide.push_back(s.scores[i]);
      }
  ConvertElements(ctx, wide.data(), DType::kF64, scores.mutable_raw(), dtype, at);
  ids.set_lod(lod);
  scores.set_lod(lod);
}

Status Decode(KernelContext& ctx) {
  const Value *ids = ctx.InVar("Ids"), *scores = ctx.InVar("Scores");
  if (ids == nullptr || scores == nullptr || !ids->is_array() || !scores->is_array() ||
      !ids->initialized() || !scores->initialized() || ids->array().empty() ||
      ids->array().size() != scores->array().size())
    return InvalidArgument("Ids and Scores must be tensor arrays with one item per step");
  const size_t steps = ids->array().size();
  HEDDLE_ASSIGN_OR_RETURN(const Step first, StepAt(ids->array(), scores->array(), 0));
  Backtrace trace(first.sources->size() - 1, ctx.Int("end_id"));
  for (size_t i = steps; i-- > 0;) {
    HEDDLE_ASSIGN_OR_RETURN(const Step step, StepAt(ids->array(), scores->array(), i));
    HEDDLE_RETURN_IF_ERROR(trace.Go(step));
  }
  // Best first; a sentence's score is that of its last token.
  for (auto& sentences : trace.found())
    std::stable_sort(sentences.begin(), sentences.end(), [](const Sentence& a, const Sentence& b) {
      return Greater(a.scores.front(), b.scores.front());
    });
  PutSentences(ctx, trace.found(), first.scores->dtype());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(beam_search_decode) {
  op.Doc("whole sentences from the steps of a beam search, the best ones first");
  op.Input("Ids", kAnyKind | kArrayOnly)
      .Input("Scores", kAnyKind | kArrayOnly)
      .Output("SentenceIds")
      .Output("SentenceScores");
  op.Attr("beam_size", 1).Attr("end_id", 0).AnyKernel(Decode);
}
