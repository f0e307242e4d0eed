// Counts of the n-grams of a pool, in sequences of integers.
#include <map>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/onnx/operands.h"

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

// The column of every n-gram that counts.
using Grams = std::map<std::vector<int64_t>, int64_t>;

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
      const std::vector<int64_t> gram(pool.begin() + at, pool.begin() + at + length);
      if (length >= ctx.Int("min_gram_length") && length <= ctx.Int("max_gram_length"))
        grams.emplace(gram, columns[number]);
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
  const int64_t longest = ctx.Int("max_gram_length");
  // Words further apart than the sequence is long do not exist.
  const int64_t most_skipped = std::min(ctx.Int("max_skip_count"), n);
  for (int64_t distance = 1; distance <= most_skipped + 1; ++distance)
    for (const int64_t begin : Watched(n)) {
      std::vector<int64_t> gram;
      for (int64_t at = begin; at < n && static_cast<int64_t>(gram.size()) < longest;
           at += distance) {
        gram.push_back(words[at]);
        if (gram.size() == 1 && distance > 1) continue;
        if (const auto found = grams.find(gram); found != grams.end()) counts[found->second] += 1;
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
  Grams own;
  if (!ctx.has_state()) {
    HEDDLE_ASSIGN_OR_RETURN(own, GramsOf(ctx));
  }
  const Grams& grams = ctx.has_state() ? ctx.State<GramState>().grams : own;
  const int64_t columns = VocabularySize(ctx), rows = x.rank() == 2 ? x.dim(0) : 1;
  if (!weights.empty() && static_cast<int64_t>(weights.size()) < columns)
    return InvalidArgument("weights has ", weights.size(), " elements, expected ", columns);
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
      const float weight =
          weights.empty() ? 1.0F : static_cast<float>(weights[static_cast<size_t>(c)]);
      if (mode == "IDF") row[c] = row[c] > 0 ? weight : 0;
      if (mode == "TFIDF") row[c] *= weight;
    }
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_tf_idf_vectorizer) {
  op.Doc("counts or weights of the n-grams of a pool in sequences").Input("X").Output("Y");
  op.Attr("mode", "TF").Attr("min_gram_length", 1).Attr("max_gram_length", 1);
  op.Attr("max_skip_count", 0).Attr("ngram_counts", Ints{}).Attr("ngram_indexes", Ints{});
  op.Attr("pool_int64s", Ints{}).Attr("weights", Floats{});
  op.InferShape(OnnxTfIdfShape).Prepare(PrepareTfIdf);
  op.Kernel({DType::kI32, DType::kI64}, OnnxTfIdf);
}

HEDDLE_EXAMPLES(onnx_tf_idf_vectorizer, R"(
example counts with skips
attr mode STRING "TF"
attr min_gram_length INT 2
attr max_gram_length INT 2
attr max_skip_count INT 5
attr ngram_counts LONGS [0, 4]
attr ngram_indexes LONGS [0, 1, 2, 3, 4, 5, 6]
attr pool_int64s LONGS [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]
in X int32 [2, 6] 1 1 3 3 3 7 8 6 7 5 6 8
out Y float32 [2, 7] 0*11 1 1 1

example single words and pairs, weights
attr mode STRING "TFIDF"
attr min_gram_length INT 1
attr max_gram_length INT 2
attr max_skip_count INT 0
attr ngram_counts LONGS [0, 4]
attr ngram_indexes LONGS [0, 1, 2, 3, 4, 5, 6]
attr pool_int64s LONGS [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]
attr weights FLOATS [0.5, 2, 1, 1, 3, 1, 0.25]
in X int64 [12] 1 1 3 3 3 7 8 6 7 5 6 8
out Y float32 [7] 0 6 1 0 3 1 0.25

example occurrence
attr mode STRING "IDF"
attr min_gram_length INT 1
attr max_gram_length INT 1
attr max_skip_count INT 1
attr ngram_counts LONGS [0]
attr ngram_indexes LONGS [1, 0, 2]
attr pool_int64s LONGS [3, 5, 9]
in X int64 [4] 3 3 5 1
out Y float32 [3] 1 1 0
)")
