// chunk_eval: chunks of tags found and missed; precision_recall: the same for classes.
#include <set>

#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// What a tag says about its place in a chunk; -1: the scheme has no such tag.
struct Scheme {
  int64_t tags, begin, inside, end, single;
};

Result<Scheme> SchemeOf(const std::string& name) {
  if (name == "IOB") return Scheme{2, 0, 1, -1, -1};
  if (name == "IOE") return Scheme{2, -1, 0, 1, -1};
  if (name == "IOBES") return Scheme{4, 0, 1, 2, 3};
  if (name == "plain") return Scheme{1, -1, -1, -1, -1};
  return InvalidArgument("unknown chunk_scheme '", name, "'");
}

struct Chunk {
  int64_t begin, end, type;
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

class Chunker {
 public:
  Chunker(const Scheme& scheme, int64_t types) : s_(scheme), types_(types) {}

  Result<std::vector<Chunk>> Chunks(const int64_t* labels, int64_t n) const {
    std::vector<Chunk> found;
    bool inside = false;
    int64_t start = 0, tag = -1, type = types_;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t before_tag = tag, before_type = type;
      if (labels[i] < 0 || labels[i] > types_ * s_.tags)
        return OutOfRange("label ", labels[i], " is not in [0, ", types_ * s_.tags, "]");
      tag = labels[i] % s_.tags;
      type = labels[i] / s_.tags;
      if (inside && Ends(before_tag, before_type, tag, type)) {
        found.push_back({start, i - 1, before_type});
        inside = false;
      }
      if (Begins(before_tag, before_type, tag, type)) {
        start = i;
        inside = true;
      }
    }
    if (inside) found.push_back({start, n - 1, type});
    return found;
  }

 private:
  bool Ends(int64_t before_tag, int64_t before_type, int64_t tag, int64_t type) const {
    if (before_type == types_) return false;
    if (type == types_ || type != before_type) return true;
    if (before_tag == s_.begin || before_tag == s_.inside)
      return tag == s_.begin || tag == s_.single;
    return before_tag == s_.end || before_tag == s_.single;
  }
  bool Begins(int64_t before_tag, int64_t before_type, int64_t tag, int64_t type) const {
    if (before_type == types_) return type != types_;
    if (type == types_) return false;
    if (type != before_type || tag == s_.begin) return true;
    if (tag == s_.inside || tag == s_.end) return before_tag == s_.end || before_tag == s_.single;
    return tag == s_.single;
  }

  const Scheme s_;
  const int64_t types_;
};

struct Counts {
  int64_t found = 0, labelled = 0, correct = 0;
};

void Count(const std::vector<Chunk>& found, const std::vector<Chunk>& labelled,
           const std::set<int64_t>& excluded, Counts* counts) {
  const auto counted = [&](const Chunk& c) { return excluded.count(c.type) == 0; };
  counts->found += std::count_if(found.begin(), found.end(), counted);
  counts->labelled += std::count_if(labelled.begin(), labelled.end(), counted);
  for (size_t i = 0, j = 0; i < found.size() && j < labelled.size();) {
    counts->correct += found[i] == labelled[j] && counted(found[i]);
    const int64_t end = found[i].end, other = labelled[j].end;
    i += end <= other;
    j += other <= end;
  }
}

Status ChunkEval(KernelContext& ctx) {
  const Tensor &inference = ctx.In("Inference"), &label = ctx.In("Label");
  if (inference.numel() != label.numel())
    return InvalidArgument("Inference and Label differ in size");
  HEDDLE_ASSIGN_OR_RETURN(const Scheme scheme, SchemeOf(ctx.Str("chunk_scheme")));
  const Chunker chunker(scheme, ctx.Int("num_chunk_types"));
  const Labels found(ctx, inference), labelled(ctx, label);
  const Ints& excluded_list = ctx.IntList("excluded_chunk_types");
  const std::set<int64_t> excluded(excluded_list.begin(), excluded_list.end());
  std::vector<std::pair<int64_t, int64_t>> sequences;  // begin, length
  if (const Tensor* lengths = ctx.InOpt("SeqLength")) {
    const int64_t rows = label.rank() > 0 ? label.dim(0) : 0;
    const int64_t width = rows == 0 ? 0 : label.numel() / rows;
    const Ints given = ToInts(*lengths);
    if (std::ssize(given) != rows) return InvalidArgument("SeqLength does not fit Label");
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t n = given[static_cast<size_t>(r)];
      if (n < 0 || n > width) return OutOfRange("length ", n, " is not in [0, ", width, "]");
      sequences.emplace_back(r * width, n);
    }
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(label, "Label"));
    for (int64_t i = 0; i < SequenceCount(*offsets); ++i)
      sequences.emplace_back(Begin(*offsets, i), Length(*offsets, i));
  }
  Counts c;
  for (const auto& [begin, n] : sequences) {
    HEDDLE_ASSIGN_OR_RETURN(const auto a, chunker.Chunks(found.data() + begin, n));
    HEDDLE_ASSIGN_OR_RETURN(const auto b, chunker.Chunks(labelled.data() + begin, n));
    Count(a, b, excluded, &c);
  }
  const auto share = [](int64_t part, int64_t of) {
    return of == 0 ? 0.f : static_cast<float>(part) / static_cast<float>(of);
  };
  const float precision = share(c.correct, c.found), recall = share(c.correct, c.labelled);
  const auto put = [&](Key slot, auto value) {
    using V = decltype(value);
    if (ctx.HasOut(slot))
      *ctx.Alloc(slot, kDTypeOf<V>, Shape{1}).template mutable_data<V>() = value;
  };
  put("Precision", precision);
  put("Recall", recall);
  put("F1-Score", c.correct == 0 ? 0.f : 2 * precision * recall / (precision + recall));
  put("NumInferChunks", c.found);
  put("NumLabelChunks", c.labelled);
  put("NumCorrectChunks", c.correct);
  return Status::Ok();
}

// --- precision_recall ---

// Per class: true positives, false positives, true negatives, false negatives.
template <typename T>
using States = std::vector<T>;

template <typename T>
T Ratio(T part, T other) {
  return part > 0 || other > 0 ? part / (part + other) : T(1);
}
template <typename T>
T F1(T precision, T recall) {
  return precision > 0 || recall > 0 ? 2 * precision * recall / (precision + recall) : T(0);
}

// Precision, recall and F1: means over the classes, then over all samples. Computed in the states'
// dtype.
template <typename T>
void PutMetrics(const KernelContext& ctx, Key slot, const States<T>& states) {
  const size_t classes = states.size() / 4;
  T precision = 0, recall = 0, tp = 0, fp = 0, fn = 0;
  for (size_t c = 0; c < classes; ++c) {
    const T* s = states.data() + c * 4;
    precision += Ratio(s[0], s[1]);
    recall += Ratio(s[0], s[3]);
    tp += s[0];
    fp += s[1];
    fn += s[3];
  }
  precision /= static_cast<T>(classes);
  recall /= static_cast<T>(classes);
  const T micro_p = Ratio(tp, fp), micro_r = Ratio(tp, fn);
  const T metrics[6] = {precision, recall,  F1(precision, recall),
                        micro_p,   micro_r, F1(micro_p, micro_r)};
  std::copy(metrics, metrics + 6, ctx.Alloc(slot, DType::kF64, Shape{6}).mutable_data<double>());
}

template <typename T>
struct PrecisionRecall {
  static Status Run(KernelContext& ctx) {
    const int64_t classes = ctx.Int("class_number");
    const Labels found(ctx, ctx.In("Indices")), labelled(ctx, ctx.In("Labels"));
    const int64_t n = ctx.In("Indices").numel();
    const Tensor *weights = ctx.InOpt("Weights"), *before = ctx.InOpt("StatesInfo");
    if (classes < 1 || ctx.In("Labels").numel() != n ||
        (weights != nullptr && (weights->numel() != n || weights->dtype() != kDTypeOf<T>)) ||
        (before != nullptr && (before->numel() != classes * 4 || before->dtype() != kDTypeOf<T>)))
      return InvalidArgument("Indices, Labels, Weights and StatesInfo do not fit ", classes,
                             " classes");
    HEDDLE_RETURN_IF_ERROR(found.Check(n, classes, 0));
    HEDDLE_RETURN_IF_ERROR(labelled.Check(n, classes, 0));
    States<T> states(static_cast<size_t>(classes) * 4, T(0));
    for (int64_t i = 0; i < n; ++i) {
      const T w = weights != nullptr ? weights->data<T>()[i] : T(1);
      for (int64_t c = 0; c < classes; ++c) {
        const bool is_found = c == found[i], is_label = c == labelled[i];
        const int kind = is_found ? (is_label ? 0 : 1) : is_label ? 3 : 2;
        states[static_cast<size_t>(c * 4 + kind)] += w;
      }
    }
    PutMetrics(ctx, "BatchMetrics", states);
    for (size_t i = 0; before != nullptr && i < states.size(); ++i)
      states[i] += before->data<T>()[i];
    PutMetrics(ctx, "AccumMetrics", states);
    std::copy(
        states.begin(), states.end(),
        ctx.Alloc("AccumStatesInfo", kDTypeOf<T>, Shape{classes, 4}).template mutable_data<T>());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(chunk_eval) {
  op.Doc("how many chunks of tags are found, labelled, and both");
  op.Input("Inference").Input("Label").Input("SeqLength", kOptional);
  for (const char* name :
       {"Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks"})
    op.Output(name, kOptional);
  op.Attr("num_chunk_types", 1).Attr("chunk_scheme", "IOB").Attr("excluded_chunk_types", Ints{});
  op.AnyKernel(ChunkEval);
}
HEDDLE_OP(precision_recall) {
  op.Doc("precision, recall and F1 of classes, of this batch and of all");
  op.Input("MaxProbs", kNoBuffer).Input("Indices").Input("Labels").Input("Weights", kOptional);
  op.Input("StatesInfo", kOptional).Output("BatchMetrics").Output("AccumMetrics");
  op.Output("AccumStatesInfo").Attr("class_number", 1).KernelKey("MaxProbs");
  op.Kernels<PrecisionRecall, float, double>();
}

HEDDLE_EXAMPLES(chunk_eval, R"(
example int64 50, chunk_scheme IOE, excluded_chunk_types 1, num_chunk_types 3
attr chunk_scheme STRING "IOE"
attr excluded_chunk_types INTS [1]
attr num_chunk_types INT 3
in Inference int64 [50] lod [[0, 11, 14, 31, 49, 50]] 1 1 1 0 1 0 0 1 1 0 1 1 0 1 0 1 0 0 1 1 0 0 1
  0*4 1 0*6 1 0 0 1 1 0 0 0 1 1 0 1 0 1 0 0
in Label int64 [50] lod [[0, 11, 14, 31, 49, 50]] 0 1 0 0 1 0 0 1 0 1*4 0 1 0 1 0 1 1 0 1*6 0 1 1 0
  1 1 1 0*4 1 1 1 0 0 0 1 1 0 1 1 0
out F1-Score float32 [1] 0.21428572
out NumCorrectChunks int64 [1] 6
out NumInferChunks int64 [1] 24
out NumLabelChunks int64 [1] 32
out Precision float32 [1] 0.25
out Recall float32 [1] 0.1875
)")

HEDDLE_EXAMPLES(precision_recall, R"(
example float64 3x4, class_number 3
attr class_number INT 3
in Indices int32 [3, 1] 1 0 2
in Labels int32 [3, 1] 1 0 1
in MaxProbs float64 [3, 1] 0.274 0.71 0.4
in StatesInfo float64 [3, 4] 17 4 8 15 3 29 0 12 29 19 27 18
in Weights float64 [3, 1] 0.713 0.923 0.5
out AccumMetrics float64 [6] 0.5096612137206235 0.463475496616305 0.48547235270458555
  0.49096338814768853 0.5267121577764834 0.5082098839776787
out AccumStatesInfo float64 [3, 4] 17.923000000000002 4 9.213000000000001 15 3.713 29 0.923 12.5 29
  19.5 28.636 18
out BatchMetrics float64 [6] 0.6666666666666666 0.8625996152789227 0.7520814615154237
  0.7659176029962547 0.7659176029962547 0.7659176029962547

example float32 3x4, class_number 3
attr class_number INT 3
in Indices int32 [2, 1] 1 0
in Labels int32 [2, 1] 1 0
in MaxProbs float32 [2, 1] 0.274 0.71
in StatesInfo float32 [3, 4] 17 4 8 15 3 29 0 12 29 19 27 18
in Weights float32 [2, 1] 0.713 0.923
out AccumMetrics float64 [6] 0.5117374062538147 0.4659046232700348 0.4877466559410095
  0.4933551549911499 0.529465913772583 0.5107730627059937
out AccumStatesInfo float32 [3, 4] 17.923 4 8.713 15 3.713 29 0.923 12 29 19 28.636 18
out BatchMetrics float64 [6] 1*6

example int32 4x1, class_number 10
attr class_number INT 10
in Indices int32 [4, 1] 2 0 1 1
in Labels int32 [4, 1] 0 1 1 0
in MaxProbs float32 [4, 1] 0.615 0.43 0.245 0.8
out AccumMetrics float64 [6] 0.75 0.8500000238418579 0.7968750596046448 0.25 0.25 0.25
out AccumStatesInfo float32 [10, 4] 0 1 1 2 1*4 0 1 3 0 0 0 4 0 0 0 4 0 0 0 4 0 0 0 4 0 0 0 4 0 0 0
  4 0 0 0 4 0
out BatchMetrics float64 [6] 0.75 0.8500000238418579 0.7968750596046448 0.25 0.25 0.25
)")
