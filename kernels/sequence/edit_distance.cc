// edit_distance between token sequences, and ctc_align, which takes repeats and blanks out of them.
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// Sequences of tokens: rows of a padded matrix with their lengths, or packed.
struct Tokens {
  std::vector<int64_t> begin, length;
};

Result<Tokens> TokensOf(const Tensor& t, const Tensor* lengths, const char* slot) {
  Tokens tokens;
  if (lengths == nullptr) {
    if (t.rank() < 1 || t.numel() != t.dim(0))
      return InvalidArgument(slot, " ", t.shape().ToString(), " is not one token per row");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(t, slot, 0));
    for (int64_t i = 0; i < SequenceCount(*offsets); ++i) {
      tokens.begin.push_back(Begin(*offsets, i));
      tokens.length.push_back(Length(*offsets, i));
    }
    return tokens;
  }
  const Ints given = ToInts(*lengths);
  if (t.rank() < 2 || std::ssize(given) != t.dim(0))
    return InvalidArgument(slot, " ", t.shape().ToString(), " does not fit ", given.size(),
                           " lengths");
  const int64_t width = t.numel() / std::max<int64_t>(t.dim(0), 1);
  for (int64_t i = 0; i < t.dim(0); ++i) {
    const int64_t n = given[static_cast<size_t>(i)];
    if (n < 0 || n > width) return OutOfRange("length ", n, " is not in [0, ", width, "]");
    tokens.begin.push_back(i * width);
    tokens.length.push_back(n);
  }
  return tokens;
}

template <typename T>
int64_t Distance(const T* a, int64_t m, const T* b, int64_t n) {
  std::vector<int64_t> row(static_cast<size_t>(n) + 1);
  for (int64_t j = 0; j <= n; ++j) row[static_cast<size_t>(j)] = j;
  for (int64_t i = 1; i <= m; ++i) {
    int64_t diagonal = row[0];
    row[0] = i;
    for (int64_t j = 1; j <= n; ++j) {
      int64_t& at = row[static_cast<size_t>(j)];
      const int64_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = at;
      at = std::min({at + 1, row[static_cast<size_t>(j) - 1] + 1, replace});
    }
  }
  return row[static_cast<size_t>(n)];
}

template <typename T>
struct EditDistance {
  static Status Run(KernelContext& ctx) {
    const Tensor &hyps = ctx.In("Hyps"), &refs = ctx.In("Refs");
    if (refs.dtype() != hyps.dtype()) return InvalidArgument("Hyps and Refs differ in dtype");
    const Tensor *hyps_length = ctx.InOpt("HypsLength"), *refs_length = ctx.InOpt("RefsLength");
    const bool padded = hyps_length != nullptr && refs_length != nullptr;
    HEDDLE_ASSIGN_OR_RETURN(const Tokens a, TokensOf(hyps, padded ? hyps_length : nullptr, "Hyps"));
    HEDDLE_ASSIGN_OR_RETURN(const Tokens b, TokensOf(refs, padded ? refs_length : nullptr, "Refs"));
    const int64_t count = std::ssize(a.begin);
    if (std::ssize(b.begin) != count)
      return InvalidArgument("there are ", count, " sequences in Hyps, ", b.begin.size(),
                             " in Refs");
    float* out = ctx.Alloc("Out", DType::kF32, Shape{count, 1}).mutable_data<float>();
    for (size_t i = 0; i < a.begin.size(); ++i) {
      out[i] = static_cast<float>(Distance(hyps.data<T>() + a.begin[i], a.length[i],
                                           refs.data<T>() + b.begin[i], b.length[i]));
      if (!ctx.Bool("normalized")) continue;
      if (b.length[i] == 0) return InvalidArgument("sequence ", i, " of Refs is empty");
      out[i] /= static_cast<float>(b.length[i]);
    }
    if (ctx.HasOut("SequenceNum"))
      *ctx.Alloc("SequenceNum", DType::kI64, Shape{1}).mutable_data<int64_t>() = count;
    return Status::Ok();
  }
};

// --- ctc_align ---

template <typename T>
std::vector<T> Aligned(const OpContext& ctx, const T* tokens, int64_t n) {
  const T blank = static_cast<T>(ctx.Int("blank"));
  const bool merge = ctx.Bool("merge_repeated");
  std::vector<T> kept;
  T before = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (tokens[i] != blank && !(merge && tokens[i] == before)) kept.push_back(tokens[i]);
    before = tokens[i];
  }
  return kept;
}

template <typename T>
struct CtcAlign {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Input");
    const Tensor* lengths = ctx.InOpt("InputLength");
    HEDDLE_ASSIGN_OR_RETURN(const Tokens tokens, TokensOf(x, lengths, "Input"));
    return lengths != nullptr ? Padded(ctx, x, tokens) : Packed(ctx, x, tokens);
  }

  static Status Padded(KernelContext& ctx, const Tensor& x, const Tokens& tokens) {
    const int64_t count = x.dim(0), width = x.numel() / std::max<int64_t>(count, 1);
    T* out = ctx.Alloc("Output", x.dtype(), x.shape()).template mutable_data<T>();
    std::fill_n(out, x.numel(), static_cast<T>(ctx.Int("padding_value")));
    T* out_lengths =
        ctx.HasOut("OutputLength")
            ? ctx.Alloc("OutputLength", x.dtype(), Shape{count, 1}).template mutable_data<T>()
            : nullptr;
    for (int64_t i = 0; i < count; ++i) {
      const auto kept = Aligned(ctx, x.data<T>() + tokens.begin[static_cast<size_t>(i)],
                                tokens.length[static_cast<size_t>(i)]);
      std::copy(kept.begin(), kept.end(), out + i * width);
      if (out_lengths != nullptr) out_lengths[i] = static_cast<T>(kept.size());
    }
    return Status::Ok();
  }

  // Nothing left at all is one element, -1.
  static Status Packed(KernelContext& ctx, const Tensor& x, const Tokens& tokens) {
    std::vector<T> all;
    Offsets offsets{0};
    for (size_t i = 0; i < tokens.begin.size(); ++i) {
      const auto kept = Aligned(ctx, x.data<T>() + tokens.begin[i], tokens.length[i]);
      all.insert(all.end(), kept.begin(), kept.end());
      offsets.push_back(all.size());
    }
    if (all.empty()) all.push_back(-1);
    Tensor& out = ctx.Alloc("Output", x.dtype(), Shape{std::ssize(all), 1});
    std::copy(all.begin(), all.end(), out.mutable_data<T>());
    out.set_lod({offsets});
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(edit_distance) {
  op.Doc("insertions, deletions and replacements between the sequences of Hyps and Refs");
  op.Input("Hyps").Input("Refs").Input("HypsLength", kOptional).Input("RefsLength", kOptional);
  op.Output("Out").Output("SequenceNum", kOptional).Attr("normalized", false);
  op.Kernels<EditDistance, int64_t, int32_t>();
}
HEDDLE_OP(ctc_align) {
  op.Doc("sequences of labels without repeats and blanks");
  op.Input("Input").Input("InputLength", kOptional).Output("Output");
  op.Output("OutputLength", kOptional).Attr("blank", 0).Attr("merge_repeated", true);
  op.Attr("padding_value", 0).Kernels<CtcAlign, int32_t, int64_t>();
}

HEDDLE_EXAMPLES(edit_distance, R"(
example int64 2x4, normalized
attr normalized BOOLEAN true
in Hyps int64 [2, 4] 1*4 7 8 5 5
in HypsLength int64 [2] 2 4
in Refs int64 [2, 3] 1 10 0 6 9 2
in RefsLength int64 [2] 2 3
out Out float32 [2, 1] 0.5 1.3333334
out SequenceNum int64 [1] 2

example int64 6x1, normalized
attr normalized BOOLEAN true
in Hyps int64 [6, 1] lod [[0, 0, 6, 6]] 8 6 5 10 2 3
in Refs int64 [5, 1] lod [[0, 2, 3, 5]] 7 9 4 8 5
out Out float32 [3, 1] 1 6 1
out SequenceNum int64 [1] 3
)")

HEDDLE_EXAMPLES(ctc_align, R"(
example int32 3x6, no merge_repeated
attr merge_repeated BOOLEAN false
in Input int32 [3, 6] 1*4 7 0 5*5 0 7 4 3 2 7 4
in InputLength int32 [3, 1] 6 5 4
out Output int32 [3, 6] 1*4 7 0 5*5 0 7 4 3 2 0 0
out OutputLength int32 [3, 1] 5 5 4

example int32 4x1
in Input int32 [4, 1] lod [[0, 4]] 0*4
out Output int32 [1, 1] lod [[0, 0]] -1
)")
