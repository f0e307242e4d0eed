// shuffle_batch: rows in random order; class_center_sample: the classes of a batch and some others;
// graph_sample_neighbors and weighted_sample_neighbors: some neighbours of nodes.
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// X seen as rows of its last axis.
struct Rows {
  int64_t count;
  size_t bytes;
  explicit Rows(const Tensor& x)
      : count(x.rank() == 0 ? 1 : x.shape().Product(0, x.rank() - 1)),
        bytes(x.rank() == 0 ? SizeOf(x.dtype())
                            : static_cast<size_t>(x.dim(x.rank() - 1)) * SizeOf(x.dtype())) {}
};

Status ShuffleBatch(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Rows rows(x);
  const Tensor* seed = ctx.InOpt("Seed");
  std::minstd_rand0 engine(static_cast<uint32_t>(
      seed != nullptr && seed->numel() > 0 ? ToInts(*seed)[0] : ctx.Int("startup_seed")));
  const auto next_seed = static_cast<int64_t>(engine());  // for the next batch
  std::vector<int64_t> order(static_cast<size_t>(rows.count));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = rows.count - 1; i > 0; --i)
    std::swap(order[static_cast<size_t>(i)],
              order[static_cast<size_t>(static_cast<int64_t>(engine()) % (i + 1))]);
  // ShuffleIdx says where each row of X goes.
  int64_t* index = ctx.Alloc("ShuffleIdx", DType::kI64, Shape{rows.count}).mutable_data<int64_t>();
  for (int64_t i = 0; i < rows.count; ++i) index[order[static_cast<size_t>(i)]] = i;
  Tensor& out = ctx.Alloc("Out", x.dtype(), x.shape());
  for (int64_t i = 0; i < rows.count && rows.bytes > 0; ++i)
    std::memcpy(
        out.mutable_data<std::byte>() + static_cast<size_t>(i) * rows.bytes,
        x.data<std::byte>() + static_cast<size_t>(order[static_cast<size_t>(i)]) * rows.bytes,
        rows.bytes);
  if (x.has_lod()) out.set_lod(x.lod());
  if (ctx.HasOut("SeedOut"))
    *ctx.Alloc("SeedOut", DType::kI64, Shape{1}).mutable_data<int64_t>() = next_seed;
  return Status::Ok();
}

Status ShuffleBatchGrad(KernelContext& ctx) {
  const Tensor &d = ctx.In("Out@GRAD"), &index = ctx.In("ShuffleIdx");
  const Rows rows(d);
  const Ints order = ToInts(index);
  if (std::ssize(order) != rows.count) return InvalidArgument("ShuffleIdx does not fit Out@GRAD");
  Tensor& dx = ctx.Alloc("X@GRAD", d.dtype(), d.shape());
  for (int64_t i = 0; i < rows.count && rows.bytes > 0; ++i) {
    const int64_t from = order[static_cast<size_t>(i)];
    if (from < 0 || from >= rows.count) return OutOfRange("ShuffleIdx holds ", from);
    std::memcpy(dx.mutable_data<std::byte>() + static_cast<size_t>(i) * rows.bytes,
                d.data<std::byte>() + static_cast<size_t>(from) * rows.bytes, rows.bytes);
  }
  return Status::Ok();
}

// --- class_center_sample ---

template <typename T>
struct ClassCenterSample {
  static Status Run(KernelContext& ctx) {
    const Tensor& label = ctx.In("Label");
    const int64_t classes = ctx.Int("num_classes"), wanted = ctx.Int("num_samples");
    if (ctx.Int("nranks") != 1) return Unimplemented("classes spread over several ranks");
    if (classes < 1 || wanted > classes)
      return InvalidArgument(wanted, " samples of ", classes, " classes");
    std::map<T, T> place;
    for (int64_t i = 0; i < label.numel(); ++i) {
      const T c = label.data<T>()[i];
      if (c < 0 || c >= classes) return OutOfRange("label ", c, " is not in [0, ", classes, ")");
      place.emplace(c, T(0));
    }
    std::vector<T> sampled;
    for (auto& [c, at] : place) {
      at = static_cast<T>(sampled.size());
      sampled.push_back(c);
    }
    T* remapped =
        ctx.Alloc("RemappedLabel", label.dtype(), label.shape()).template mutable_data<T>();
    for (int64_t i = 0; i < label.numel(); ++i) remapped[i] = place[label.data<T>()[i]];
    std::mt19937_64 fixed(static_cast<uint64_t>(ctx.Int("seed")));
    std::mt19937_64& engine = ctx.Bool("fix_seed") ? fixed : ctx.random();
    std::uniform_int_distribution<T> draw(0, static_cast<T>(classes - 1));
    while (std::ssize(sampled) < wanted)
      if (const T c = draw(engine); place.emplace(c, T(0)).second) sampled.push_back(c);
    Tensor& out = ctx.Alloc("SampledLocalClassCenter", label.dtype(), Shape{std::ssize(sampled)});
    std::copy(sampled.begin(), sampled.end(), out.mutable_data<T>());
    return Status::Ok();
  }
};

// --- neighbours ---

// The edges of each node that are kept; pick(edges begin, end, count) gives their places.
template <typename T, typename Pick>
Status Sample(KernelContext& ctx, const Tensor& row, const Tensor& first, const Tensor& nodes,
              const Tensor* ids, Key out_slot, Key count_slot, Key ids_slot, int64_t size,
              Pick pick) {
  std::vector<T> neighbours, kept_ids;
  std::vector<int32_t> counts;
  for (int64_t i = 0; i < nodes.numel(); ++i) {
    const T node = nodes.data<T>()[i];
    if (node < 0 || node + 1 >= first.numel())
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
      std::sort(keys.begin(), keys.end(), std::greater<>());
      edges.clear();
      for (int64_t i = 0; i < size; ++i) edges.push_back(keys[static_cast<size_t>(i)].second);
      return edges;
    };
    return Sample<T>(ctx, ctx.In("row"), ctx.In("colptr"), ctx.In("input_nodes"), ctx.InOpt("eids"),
                     "out_neighbors", "out_count", "out_eids", ctx.Int("sample_size"), pick);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(shuffle_batch) {
  op.Doc("rows in random order").Input("X").Input("Seed", kOptional).Output("Out");
  op.Output("ShuffleIdx").Output("SeedOut", kOptional).Attr("startup_seed", 0);
  op.Traits(kRandom).AnyKernel(ShuffleBatch);
}
HEDDLE_OP(shuffle_batch_grad) {
  op.Input("ShuffleIdx").Input("Out@GRAD").Output("X@GRAD").Attr("startup_seed", 0);
  op.AnyKernel(ShuffleBatchGrad);
}
HEDDLE_OP(class_center_sample) {
  op.Doc("the classes of a batch and some others, and labels as places among them");
  op.Input("Label").Output("RemappedLabel").Output("SampledLocalClassCenter");
  op.Attr("num_classes", 1).Attr("num_samples", 1).Attr("nranks", 1).Attr("rank", 0);
  op.Attr("ring_id", 0).Attr("fix_seed", false).Attr("seed", 0).Traits(kRandom);
  op.Kernels<ClassCenterSample, int32_t, int64_t>();
}
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

HEDDLE_EXAMPLES(shuffle_batch, R"(
example four rows
random
attr startup_seed INT 3
in X float32 [4, 1] 1 2 3 4
in Seed int64 [1] 3
out Out float32 [4, 1] mean 2.5 0 var 1.25 0 range 1 4 count 4
out ShuffleIdx int64 [4] mean 1.5 0 var 1.25 0 range 0 3 count 4
out SeedOut ?
)")

HEDDLE_EXAMPLES(shuffle_batch_grad, R"(
example four rows
in ShuffleIdx int64 [4] 2 0 3 1
in Out@GRAD float32 [4, 2] -0.49 0.75 -0.2 0.12 -0.66 -0.98 -0.18 -0.79
out X@GRAD float32 [4, 2] -0.66 -0.98 -0.49 0.75 -0.18 -0.79 -0.2 0.12

example float64
in ShuffleIdx int64 [3] 1 0 2
in Out@GRAD float64 [3, 1] 0.05 -0.08 -0.18
out X@GRAD float64 [3, 1] -0.08 0.05 -0.18
)")

HEDDLE_EXAMPLES(class_center_sample, R"(
example two of six classes
random
attr num_classes INT 6
attr num_samples INT 4
attr fix_seed BOOLEAN true
attr seed INT 3
in Label int64 [3] 1 4 1
out RemappedLabel int64 [3] range 0 3
out SampledLocalClassCenter int64 [4] range 0 5 count 4

example as many as there are positives
attr num_classes INT 6
attr num_samples INT 2
attr fix_seed BOOLEAN true
attr seed INT 3
in Label int64 [3] 1 4 1
out RemappedLabel int64 [3] 0 1 0
out SampledLocalClassCenter int64 [2] 1 4

example int32
attr num_classes INT 3
attr num_samples INT 2
attr fix_seed BOOLEAN true
attr seed INT 3
in Label int32 [2] 0 2
out RemappedLabel int32 [2] 0 1
out SampledLocalClassCenter int32 [2] 0 2
)")

HEDDLE_EXAMPLES(graph_sample_neighbors, R"(
example one neighbour
random
attr sample_size INT 1
in Row int64 [13] 3 7 0 9 1 4 2 9 3 9 1 9 7
in Col_Ptr int64 [11] 0 2 4 5 6 7 9 11 11 13 13
in X int64 [3] 0 8 1
out Out int64 [3] range 0 9
out Out_Count int32 [3] mean 1 0 range 1 1
out Out_Eids ?

example more than there are, int64
attr sample_size INT 5
in Row int64 [5] 3 7 0 9 1
in Col_Ptr int64 [4] 0 2 4 5
in X int64 [2] 0 2
out Out int64 [3] 3 7 1
out Out_Count int32 [2] 2 1
out Out_Eids ?

example with edges, int64
attr sample_size INT 5
attr return_eids BOOLEAN true
in Row int64 [5] 3 7 0 9 1
in Col_Ptr int64 [4] 0 2 4 5
in X int64 [2] 0 2
in Eids int64 [5] 5 6 7 8 9
out Out int64 [3] 3 7 1
out Out_Count int32 [2] 2 1
out Out_Eids int64 [3] 5 6 9

example more than there are, int32
attr sample_size INT 5
in Row int32 [5] 3 7 0 9 1
in Col_Ptr int32 [4] 0 2 4 5
in X int32 [2] 0 2
out Out int32 [3] 3 7 1
out Out_Count int32 [2] 2 1
out Out_Eids ?

example with edges, int32
attr sample_size INT 5
attr return_eids BOOLEAN true
in Row int32 [5] 3 7 0 9 1
in Col_Ptr int32 [4] 0 2 4 5
in X int32 [2] 0 2
in Eids int32 [5] 5 6 7 8 9
out Out int32 [3] 3 7 1
out Out_Count int32 [2] 2 1
out Out_Eids int32 [3] 5 6 9
)")

HEDDLE_EXAMPLES(weighted_sample_neighbors, R"(
example more than there are, int64
attr sample_size INT 5
attr return_eids BOOLEAN false
in row int64 [5] 3 7 0 9 1
in colptr int64 [4] 0 2 4 5
in edge_weight float32 [5] 0.63 0.73 0.27 0.14 0.28
in input_nodes int64 [2] 0 2
in eids int64 [5] 0 1 2 3 4
out out_neighbors int64 [3] 3 7 1
out out_count int32 [2] 2 1
out out_eids ?

example more than there are, int32
attr sample_size INT 5
attr return_eids BOOLEAN false
in row int32 [5] 3 7 0 9 1
in colptr int32 [4] 0 2 4 5
in edge_weight float32 [5] 0.2 0.75 0.71 0.53 0.5
in input_nodes int32 [2] 0 2
in eids int32 [5] 0 1 2 3 4
out out_neighbors int32 [3] 3 7 1
out out_count int32 [2] 2 1
out out_eids ?
)")
