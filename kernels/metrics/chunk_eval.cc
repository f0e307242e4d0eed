// chunk_eval: precision and recall of chunks of tags.
#include <set>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// Tags of a chunk's positions; -1: the scheme has no such tag.
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
    for (const int64_t i : Watched(n)) {
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
    for (const int64_t r : Watched(rows)) {
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
