// Counts of the n-grams of a pool, in sequences of integers.
#include <map>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

int64_t VocabularySize(const OpContext& ctx) {
  int64_t most = -1;
  for (const int64_t i : ctx.IntList("ngram_indexes")) most = std::max(most, i);
  return most + 1;
}

Status OnnxTfIdfShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() > 2)
    return InvalidArgument("X has shape ", x.ToString(), ", expected at most two dimensions");
  HEDDLE_ASSIGN_OR_RETURN(const Shape row, MakeShape({VocabularySize(ctx)}, "ngram_indexes"));
  ctx.SetOut("Y", x.rank() == 2 ? Shape{x[0], row[0]} : row, DType::kF32);
  return Status::Ok();
}

// The n-grams that count, as a tree of words: a sequence is followed no further than some n-gram
// goes.
class Grams {
 public:
  // The n-gram of `words` has this column, unless it has one already.
  void Add(const int64_t* words, int64_t length, int64_t column) {
    int64_t node = kRoot;
    for (int64_t k = 0; k < length; ++k) {
      const auto [next, added] = nodes_.emplace(std::pair(node, words[k]), std::ssize(columns_));
      if (added) columns_.push_back(kNone);
      node = next->second;
    }
    int64_t& held = columns_[static_cast<size_t>(node)];
    if (held == kNone) held = column;
  }
  // The node behind `node` by this word; kNone: no n-gram goes on so.
  int64_t Next(int64_t node, int64_t word) const {
    const auto found = nodes_.find({node, word});
    return found == nodes_.end() ? kNone : found->second;
  }
  // Of the n-gram that ends at the node; kNone: none does.
  int64_t Column(int64_t node) const { return columns_[static_cast<size_t>(node)]; }

  static constexpr int64_t kRoot = 0, kNone = -1;

 private:
  std::map<std::pair<int64_t, int64_t>, int64_t> nodes_;  // by the node before and the word
  std::vector<int64_t> columns_ = {kNone};                // by node
};

Result<Grams> GramsOf(const OpContext& ctx) {
  const Ints &pool = ctx.IntList("pool_int64s"), &starts = ctx.IntList("ngram_counts");
  const Ints& columns = ctx.IntList("ngram_indexes");
  Grams grams;
  size_t number = 0;
  for (size_t k = 0; k < starts.size(); ++k) {
    const int64_t end = k + 1 < starts.size() ? starts[k + 1] : static_cast<int64_t>(pool.size());
    const auto length = static_cast<int64_t>(k) + 1;
    if (starts[k] < 0 || end < starts[k] || end > static_cast<int64_t>(pool.size()))
      return InvalidArgument("ngram_counts holds ", starts[k], " for a pool of ", pool.size());
    for (int64_t at = starts[k]; at + length <= end; at += length) {
      if (number >= columns.size() || columns[number] < 0)
        return InvalidArgument("ngram_indexes has no column for n-gram ", number);
      if (length >= ctx.Int("min_gram_length") && length <= ctx.Int("max_gram_length"))
        grams.Add(pool.data() + at, length, columns[number]);
      ++number;
    }
  }
  return grams;
}

struct GramState final : KernelState {
  Grams grams;
};

Result<std::unique_ptr<KernelState>> PrepareTfIdf(PrepareContext& ctx) {
  auto state = std::make_unique<GramState>();
  HEDDLE_ASSIGN_OR_RETURN(state->grams, GramsOf(ctx));
  return std::unique_ptr<KernelState>(std::move(state));
}

// Counts of one sequence. Words of an n-gram are 1 to max_skip_count + 1 apart; single words are
// counted once.
void CountGrams(const OpContext& ctx, const Grams& grams, const int64_t* words, int64_t n,
                float* counts) {
  // Words further apart than the sequence is long do not exist.
  const int64_t most_skipped = std::min(ctx.Int("max_skip_count"), n);
  std::vector<std::pair<int64_t, int64_t>> begins;  // of n-grams, with the nodes of their words
  for (const int64_t at : Watched(n)) {
    const int64_t node = grams.Next(Grams::kRoot, words[at]);
    if (node == Grams::kNone) continue;
    begins.emplace_back(at, node);
    if (grams.Column(node) != Grams::kNone) counts[grams.Column(node)] += 1;
  }
  for (int64_t distance = 1; distance <= most_skipped + 1; ++distance)
    for (const int64_t k : Watched(std::ssize(begins))) {
      auto [at, node] = begins[static_cast<size_t>(k)];
      for (at += distance; at < n; at += distance) {
        node = grams.Next(node, words[at]);
        if (node == Grams::kNone) break;
        if (grams.Column(node) != Grams::kNone) counts[grams.Column(node)] += 1;
      }
    }
}

Status OnnxTfIdf(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Y");
  const std::string& mode = ctx.Str("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return InvalidArgument("mode is '", mode, "', expected TF, IDF or TFIDF");
  const Floats& weights = ctx.Attr<Floats>("weights");
  const Ints& column_of = ctx.IntList("ngram_indexes");
  Grams own;
  if (!ctx.has_state()) {
    HEDDLE_ASSIGN_OR_RETURN(own, GramsOf(ctx));
  }
  const Grams& grams = ctx.has_state() ? ctx.State<GramState>().grams : own;
  const int64_t columns = VocabularySize(ctx), rows = x.rank() == 2 ? x.dim(0) : 1;
  if (!weights.empty() && weights.size() < column_of.size())
    return InvalidArgument("weights has ", weights.size(), " elements, expected ",
                           column_of.size());
  // Weights have the order of the n-grams, not that of the columns.
  std::vector<float> weight_of(static_cast<size_t>(columns), 1.0F);
  for (size_t k = 0; k < column_of.size() && !weights.empty(); ++k)
    if (column_of[k] >= 0)
      weight_of[static_cast<size_t>(column_of[k])] = static_cast<float>(weights[k]);
  std::vector<int64_t> words(static_cast<size_t>(x.numel()));
  ConvertElements(ctx, x.raw(), x.dtype(), words.data(), DType::kI64, x.numel());
  const int64_t length = rows == 0 ? 0 : x.numel() / rows;
  float* to = out.mutable_data<float>();
  WatchedFill(to, out.numel(), 0.0F);
  for (const int64_t r : Watched(rows)) {
    HEDDLE_RETURN_IF_ERROR(ctx.Interrupted());
    float* row = to + r * columns;
    CountGrams(ctx, grams, words.data() + r * length, length, row);
    for (int64_t c = 0; c < columns; ++c) {
      const float weight = weight_of[static_cast<size_t>(c)];
      if (mode == "IDF") row[c] = row[c] > 0 ? weight : 0;
      if (mode == "TFIDF") row[c] *= weight;
    }
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(ngram_counts) {
  op.Doc("counts or weights of the n-grams of a pool in sequences").Input("X").Output("Y");
  op.Attr("mode", "TF").Attr("min_gram_length", 1).Attr("max_gram_length", 1);
  op.Attr("max_skip_count", 0).Attr("ngram_counts", Ints{}).Attr("ngram_indexes", Ints{});
  op.Attr("pool_int64s", Ints{}).Attr("weights", Floats{});
  op.InferShape(OnnxTfIdfShape).Prepare(PrepareTfIdf);
  op.Kernel({DType::kI32, DType::kI64}, OnnxTfIdf);
}
