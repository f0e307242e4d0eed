// graph_sample_neighbors and weighted_sample_neighbors: random neighbours of nodes of a graph in
// compressed sparse columns.
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// --- neighbours ---

// The edges of each node that are kept; pick(edges begin, end, count) gives their places.
template <typename T, typename Pick>
Status Sample(KernelContext& ctx, const Tensor& row, const Tensor& first, const Tensor& nodes,
              const Tensor* ids, Key out_slot, Key count_slot, Key ids_slot, int64_t size,
              Pick pick) {
  std::vector<T> neighbours, kept_ids;
  std::vector<int32_t> counts;
  for (const int64_t i : Watched(nodes.numel())) {
    const int64_t node = nodes.data<T>()[i];
    if (node < 0 || node >= first.numel() - 1)
      return OutOfRange("node ", node, " is not in [0, ", first.numel() - 1, ")");
    const int64_t begin = first.data<T>()[node], end = first.data<T>()[node + 1];
    if (begin < 0 || end < begin || end > row.numel())
      return OutOfRange("the edges of node ", node, " are not in [0, ", row.numel(), ")");
    const std::vector<int64_t> edges = pick(begin, end, size < 0 ? end - begin : size);
    counts.push_back(static_cast<int32_t>(edges.size()));
    for (int64_t e : edges) {
      neighbours.push_back(row.data<T>()[e]);
      if (ids != nullptr && e < ids->numel()) kept_ids.push_back(ids->data<T>()[e]);
    }
  }
  const int64_t total = std::ssize(neighbours);
  std::copy(neighbours.begin(), neighbours.end(),
            ctx.Alloc(out_slot, kDTypeOf<T>, Shape{total}).template mutable_data<T>());
  std::copy(counts.begin(), counts.end(),
            ctx.Alloc(count_slot, DType::kI32, Shape{std::ssize(counts)}).mutable_data<int32_t>());
  if (ctx.Bool("return_eids") && ctx.HasOut(ids_slot))
    std::copy(
        kept_ids.begin(), kept_ids.end(),
        ctx.Alloc(ids_slot, kDTypeOf<T>, Shape{std::ssize(kept_ids)}).template mutable_data<T>());
  return Status::Ok();
}

std::vector<int64_t> All(int64_t begin, int64_t end) {
  std::vector<int64_t> edges(static_cast<size_t>(end - begin));
  std::iota(edges.begin(), edges.end(), begin);
  return edges;
}

template <typename T>
struct SampleNeighbors {
  static Status Run(KernelContext& ctx) {
    const auto pick = [&](int64_t begin, int64_t end, int64_t size) {
      std::vector<int64_t> edges = All(begin, end);
      for (int64_t i = 0; size < std::ssize(edges) && i < size; ++i) {
        std::uniform_int_distribution<int64_t> draw(i, std::ssize(edges) - 1);
        std::swap(edges[static_cast<size_t>(i)], edges[static_cast<size_t>(draw(ctx.random()))]);
      }
      if (size < std::ssize(edges)) edges.resize(static_cast<size_t>(size));
      return edges;
    };
    return Sample<T>(ctx, ctx.In("Row"), ctx.In("Col_Ptr"), ctx.In("X"), ctx.InOpt("Eids"), "Out",
                     "Out_Count", "Out_Eids", ctx.Int("sample_size"), pick);
  }
};

// Without replacement, by weight: the largest u^(1/w).
template <typename T>
struct WeightedSampleNeighbors {
  static Status Run(KernelContext& ctx) {
    const Tensor& weights = ctx.In("edge_weight");
    if (weights.dtype() != DType::kF32 || weights.numel() != ctx.In("row").numel())
      return InvalidArgument("edge_weight must be float32, one for each edge");
    const auto pick = [&](int64_t begin, int64_t end, int64_t size) {
      std::vector<int64_t> edges = All(begin, end);
      if (size >= std::ssize(edges)) return edges;
      std::uniform_real_distribution<float> uniform(0.f, 1.f);
      std::vector<std::pair<float, int64_t>> keys;
      for (int64_t e : edges)
        keys.emplace_back(std::log2(uniform(ctx.random())) / weights.data<float>()[e], e);
      LookCount looks;
      std::sort(keys.begin(), keys.end(), looks.In([](const auto& a, const auto& b) {
        return Greater(a.first, b.first) || (!Greater(b.first, a.first) && a.second > b.second);
      }));
      edges.clear();
      for (const auto part : Stretches(size))
        for (int64_t i = part.begin; i < part.end; ++i)
          edges.push_back(keys[static_cast<size_t>(i)].second);
      return edges;
    };
    return Sample<T>(ctx, ctx.In("row"), ctx.In("colptr"), ctx.In("input_nodes"), ctx.InOpt("eids"),
                     "out_neighbors", "out_count", "out_eids", ctx.Int("sample_size"), pick);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(graph_sample_neighbors) {
  op.Doc("at most sample_size neighbours of each node").Input("Row").Input("Col_Ptr").Input("X");
  op.Input("Eids", kOptional).Input("Perm_Buffer", kOptional).Output("Out").Output("Out_Count");
  op.Output("Out_Eids", kOptional).Attr("sample_size", -1).Attr("return_eids", false);
  op.Attr("flag_perm_buffer", false).Traits(kRandom).Kernels<SampleNeighbors, int32_t, int64_t>();
}

HEDDLE_OP(weighted_sample_neighbors) {
  op.Doc("at most sample_size neighbours of each node, by the weights of the edges");
  op.Input("row")
      .Input("colptr")
      .Input("edge_weight")
      .Input("input_nodes")
      .Input("eids", kOptional);
  op.Output("out_neighbors").Output("out_count").Output("out_eids", kOptional);
  op.Attr("sample_size", -1).Attr("return_eids", false).Traits(kRandom);
  op.Kernels<WeightedSampleNeighbors, int32_t, int64_t>();
}
