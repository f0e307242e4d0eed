// sequence_erase: removes given tokens from sequences.
#include <algorithm>

#include "core/interrupts.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

template <typename T>
struct Erase {
  static Status Run(KernelContext& ctx) {
    const Tensor x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    const Ints& tokens = ctx.IntList("tokens");
    if (x.numel() != x.dim(0)) return InvalidArgument("X must be [N] or [N, 1]");
    std::vector<T> kept;
    Offsets made{0};
    for (const int64_t i : Watched(SequenceCount(*offsets))) {
      for (int64_t t = Begin(*offsets, i); t < Begin(*offsets, i + 1); ++t) {
        const T v = x.data<T>()[t];
        if (std::find(tokens.begin(), tokens.end(), static_cast<int64_t>(v)) == tokens.end())
          kept.push_back(v);
      }
      made.push_back(kept.size());
    }
    LoD lod = x.lod();
    lod.back() = made;
    Shape shape = x.shape();
    shape[0] = static_cast<int64_t>(kept.size());
    Tensor& out = ctx.Alloc("Out", x.dtype(), shape);
    std::copy(kept.begin(), kept.end(), out.mutable_data<T>());
    out.set_lod(std::move(lod));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_erase) {
  op.Doc("sequences without the given tokens")
      .Input("X")
      .Output("Out")
      .Attr("tokens", Ints{})
      .Kernels<Erase, int32_t, int64_t>();
}
