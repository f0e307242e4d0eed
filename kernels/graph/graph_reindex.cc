#include <unordered_map>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// Nodes numbered in the order in which they appear.
class Numbering {
 public:
  int64_t Of(int64_t node) {
    const auto [at, fresh] = numbers_.try_emplace(node, static_cast<int64_t>(nodes_.size()));
    if (fresh) nodes_.push_back(node);
    return at->second;
  }
  // A node of the start counts even when it is there already; the last number stays.
  void Start(int64_t node) {
    numbers_[node] = static_cast<int64_t>(nodes_.size());
    nodes_.push_back(node);
  }
  const std::vector<int64_t>& nodes() const { return nodes_; }

 private:
  std::unordered_map<int64_t, int64_t> numbers_;
  std::vector<int64_t> nodes_;
};

template <typename T>
void Put(const KernelContext& ctx, Key key, const std::vector<int64_t>& values) {
  if (!ctx.HasOut(key)) return;
  Tensor& out = ctx.Alloc(key, kDTypeOf<T>, Shape{static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) out.mutable_data<T>()[i] = static_cast<T>(values[i]);
}

template <typename T>
struct Reindex {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &neighbors = ctx.In("Neighbors");
    const Labels starts(ctx, x), ends(ctx, neighbors), count(ctx, ctx.In("Count"));
    if (ctx.In("Neighbors").dtype() != x.dtype())
      return InvalidArgument("X and Neighbors must have one dtype");
    Numbering numbers;
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) numbers.Start(starts[i]);
    std::vector<int64_t> src, dst;
    for (const auto part : Stretches(neighbors.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) src.push_back(numbers.Of(ends[i]));
    // Count holds the numbers of neighbours of X's nodes; of several graphs, one after the other.
    for (const int64_t i : Watched(x.numel() > 0 ? ctx.In("Count").numel() : 0)) {
      if (count[i] < 0 || count[i] > std::ssize(src) - std::ssize(dst))
        return InvalidArgument("Count does not add up to the ", src.size(), " neighbours");
      dst.insert(dst.end(), static_cast<size_t>(count[i]), numbers.Of(starts[i % x.numel()]));
    }
    if (dst.size() != src.size())
      return InvalidArgument("Count does not add up to the ", src.size(), " neighbours");
    Put<T>(ctx, "Reindex_Src", src);
    Put<T>(ctx, "Reindex_Dst", dst);
    Put<T>(ctx, "Out_Nodes", numbers.nodes());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(graph_reindex) {
  op.Doc("The nodes of a sampled graph numbered from 0: first those of X, then their neighbours");
  op.Input("X").Input("Neighbors").Input("Count");
  op.Input("HashTable_Value", kOptional).Input("HashTable_Index", kOptional);
  op.Output("Reindex_Src", kOptional).Output("Reindex_Dst", kOptional);
  op.Output("Out_Nodes", kOptional).Kernels<Reindex, int32_t, int64_t>();
}
