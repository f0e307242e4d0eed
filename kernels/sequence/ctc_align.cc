// ctc_align: removes repeated tokens and blanks.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"
#include "kernels/sequence/token_sequences.h"

namespace heddle {
namespace {

// --- ctc_align ---

template <typename T>
std::vector<T> Aligned(const OpContext& ctx, const T* tokens, int64_t n) {
  const T blank = static_cast<T>(ctx.Int("blank"));
  const bool merge = ctx.Bool("merge_repeated");
  std::vector<T> kept;
  T before = -1;
  for (const int64_t i : Watched(n)) {
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
    WatchedFill(out, x.numel(), static_cast<T>(ctx.Int("padding_value")));
    T* out_lengths =
        ctx.HasOut("OutputLength")
            ? ctx.Alloc("OutputLength", x.dtype(), Shape{count, 1}).template mutable_data<T>()
            : nullptr;
    for (const int64_t i : Watched(count)) {
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

HEDDLE_OP(ctc_align) {
  op.Doc("sequences of labels without repeats and blanks");
  op.Input("Input").Input("InputLength", kOptional).Output("Output");
  op.Output("OutputLength", kOptional).Attr("blank", 0).Attr("merge_repeated", true);
  op.Attr("padding_value", 0).Kernels<CtcAlign, int32_t, int64_t>();
}
