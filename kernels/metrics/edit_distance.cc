// edit_distance: the Levenshtein distance of token sequences.
#include "core/threads/look_meter.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"
#include "kernels/sequence/token_sequences.h"

namespace heddle {
namespace {

template <typename T>
int64_t Distance(const T* a, int64_t m, const T* b, int64_t n) {
  std::vector<int64_t> row(static_cast<size_t>(n) + 1);
  for (int64_t j = 0; j <= n; ++j) row[static_cast<size_t>(j)] = j;
  LookMeter meter;
  for (int64_t i = 1; i <= m; ++i) {
    meter.Did(4 * n + 1);
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

}  // namespace
}  // namespace heddle

HEDDLE_OP(edit_distance) {
  op.Doc("insertions, deletions and replacements between the sequences of Hyps and Refs");
  op.Input("Hyps").Input("Refs").Input("HypsLength", kOptional).Input("RefsLength", kOptional);
  op.Output("Out").Output("SequenceNum", kOptional).Attr("normalized", false);
  op.Kernels<EditDistance, int64_t, int32_t>();
}
