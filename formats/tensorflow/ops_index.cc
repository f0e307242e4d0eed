// Operators that select, search and count elements.
#include <algorithm>
#include <cstring>

#include "core/op_registry.h"
#include "core/shapes.h"
#include "formats/tensorflow/direct/ops_direct.h"

namespace heddle::tensorflow {
namespace {

// A vector as condition selects whole rows.
bool LowerSelect(NodeLowering& n) {
  int c = n.In(0);
  const int x = n.In(1), y = n.In(2);
  const int rank = n.rank(x);
  if (n.op() == "Select" && n.rank(c) == 1 && rank > 1) {
    Ints axes;
    for (int i = 1; i < rank; ++i) axes.push_back(i);
    c = n.Unsqueeze(c, axes);
  } else if (n.op() == "Select" && (n.rank(c) < 0 || (n.rank(c) == 1 && rank < 0))) {
    ResultLike(
        n, 0,
        n.Make("where", {{"Condition", {c}}, {"X", {x}}, {"Y", {y}}}, {{"leading_axes", true}}), x);
    return true;
  }
  ResultLike(n, 0, n.Make("where", {{"Condition", {c}}, {"X", {x}}, {"Y", {y}}}), x);
  return true;
}

bool LowerGather(NodeLowering& n) {
  const int x = n.In(0);
  ResultLike(n, 0, n.Make("gather", {{"X", {x}}, {"Index", {n.In(1)}}}, {{"index_shape", true}}),
             x);
  return true;
}

// The values off and on in one tensor.
int OffAndOn(NodeLowering& n, int off, int on) {
  const Tensor *low = n.Constant(off), *high = n.Constant(on);
  if (low == nullptr || high == nullptr || low->numel() != 1 || high->numel() != 1 ||
      low->dtype() != high->dtype())
    return n.Make("stack", {{"X", {off, on}}}, {{"axis", int64_t{0}}}, "Y");
  Tensor both = Tensor::Empty(low->dtype(), Shape{2});
  auto* to = static_cast<std::byte*>(both.mutable_raw());
  std::memcpy(to, low->raw(), low->bytes());
  std::memcpy(to + low->bytes(), high->raw(), high->bytes());
  return n.HoldConstant(std::move(both), n.type(on));
}

bool LowerOneHot(NodeLowering& n) {
  const int on = n.In(2), off = n.In(3);
  const int made =
      n.Make("one_hot_v2",
             {{"X", {n.In(0)}}, {"depth_tensor", {n.In(1)}}, {"Values", {OffAndOn(n, off, on)}}},
             {{"axis", n.Int("axis", -1)}, {"out_of_range", std::string("off")}});
  ResultLike(n, 0, made, on);
  return true;
}

bool LowerWhere(NodeLowering& n) {
  int x = n.In(0);
  if (IsComplex(n.dtype(x))) x = n.Cast(x, DType::kBool);
  const int made = n.Make("where_index", {{"Condition", {x}}});
  SayDType(n, made, DType::kI64);
  n.Result(0, made);
  return true;
}

// Unique, UniqueV2 (with axis), and both with counts.
bool LowerUnique(NodeLowering& n) {
  const int x = n.In(0);
  Ins ins{{"X", {x}}};
  if (n.inputs() > 1) {
    const Shape& axis = n.shape(n.In(1));
    if (axis.rank() == 1 && axis[0] == 0 && n.rank(x) >= 0 && n.rank(x) != 1)
      n.Problem("input 0 has rank ", n.rank(x), "; without an axis, a vector is expected");
    ins.emplace_back("Axis", std::vector<int>{n.In(1)});
  }
  std::vector<std::string_view> outs{"Out", "Index"};
  Attrs attrs{{"dtype", DTypeToProto(n.TypeAttr("out_idx", DType::kI32))},
              {"nan_differs", true},
              {"return_inverse", true}};
  if (n.op().starts_with("UniqueWithCounts")) {
    outs.emplace_back("Counts");
    attrs.emplace_back("return_counts", true);
  }
  const auto made = n.MakeMany("unique", std::move(ins), std::move(attrs), outs);
  ResultLike(n, 0, made[0], x);
  for (size_t i = 1; i < made.size(); ++i) {
    SayDType(n, made[i], n.TypeAttr("out_idx", DType::kI32));
    n.Result(i, made[i]);
  }
  return true;
}

// Its inputs are all index tensors, then all data tensors.
bool LowerStitch(NodeLowering& n) {
  const std::vector<int> all = n.AllInputs();
  const auto half = static_cast<int64_t>(all.size() / 2);
  if (half == 0 || all.size() % 2 != 0) return false;
  const int like = all[static_cast<size_t>(half)];
  const int made = n.Make(
      "dynamic_stitch",
      {{"indices", {all.begin(), all.begin() + half}}, {"data", {all.begin() + half, all.end()}}},
      {}, "merged");
  ResultLike(n, 0, made, like);
  return true;
}

bool LowerTopK(NodeLowering& n) {
  const int x = n.In(0);
  const DType wanted = n.TypeAttr("index_type", DType::kI32);
  const DType wide = wanted == DType::kI64 ? wanted : DType::kI32;
  Ins ins{{"X", {x}}};
  Attrs attrs{{"sorted", n.Bool("sorted", true)}, {"index_type", DTypeToProto(wide)}};
  if (const auto k = n.ConstantInts(n.In(1)); k && k->size() == 1)
    attrs.emplace_back("k", (*k)[0]);
  else
    ins.emplace_back("K", std::vector<int>{n.In(1)});
  const auto made = n.MakeMany("top_k_v2", std::move(ins), std::move(attrs), {"Out", "Indices"});
  ResultLike(n, 0, made[0], x);
  SayDType(n, made[1], wide);
  n.Result(1, n.Cast(made[1], wanted));
  return true;
}

bool LowerInTopK(NodeLowering& n) {
  const int k = n.op() == "InTopK" ? n.IntConstant(n.Int("k", 1)) : n.In(2);
  n.Result(0, n.Make("in_top_k", {{"predictions", {n.In(0)}}, {"targets", {n.In(1)}}, {"k", {k}}},
                     {}, "precision"));
  return true;
}

// The first version has the threshold as an attribute.
bool LowerFirstNms(NodeLowering& n) {
  n.Result(
      0, n.Make("non_max_suppression",
                {{"boxes", {n.In(0)}},
                 {"scores", {n.In(1)}},
                 {"max_output_size", {n.In(2)}},
                 {"iou_threshold", {n.FloatConstant(n.Float("iou_threshold", 0.5), DType::kF32)}}},
                {}, "selected_indices"));
  return true;
}

// V4 and V5 may pad the indices and return how many are valid; V5 also returns scores.
bool LowerNonMaxSuppression(NodeLowering& n) {
  const bool soft = n.op().ends_with("V5");
  Ins ins{{"boxes", {n.In(0)}},
          {"scores", {n.In(1)}},
          {"max_output_size", {n.In(2)}},
          {"iou_threshold", {n.In(3)}},
          {"score_threshold", {n.In(4)}}};
  if (soft) ins.emplace_back("soft_nms_sigma", std::vector<int>{n.In(5)});
  const auto made =
      n.MakeMany("non_max_suppression", std::move(ins),
                 {{"pad_to_max_output_size", n.Bool("pad_to_max_output_size", false)}},
                 {"selected_indices", "selected_scores", "valid_outputs"});
  SayDType(n, made[0], DType::kI32);
  SayDType(n, made[2], DType::kI32);
  n.Result(0, made[0]);
  if (soft) n.Result(1, made[1]);
  n.Result(soft ? 2 : 1, made[2]);
  return true;
}

// LowerBound and UpperBound.
bool LowerBound(NodeLowering& n) {
  const bool ints = n.TypeAttr("out_type", DType::kI32) == DType::kI32;
  const int made = n.Make("searchsorted", {{"SortedSequence", {n.In(0)}}, {"Values", {n.In(1)}}},
                          {{"out_int32", ints}, {"right", n.op() == "UpperBound"}});
  SayDType(n, made, ints ? DType::kI32 : DType::kI64);
  n.Result(0, made);
  return true;
}

// Integers are compared with boundaries that need not be whole.
bool LowerBucketize(NodeLowering& n) {
  const Floats bounds = n.FloatList("boundaries");
  if (!std::is_sorted(bounds.begin(), bounds.end())) n.Problem("has boundaries that do not rise");
  int x = n.In(0);
  if (n.dtype(x) != DType::kF32) x = n.Cast(x, DType::kF64);
  const int made = n.Make(
      "searchsorted", {{"SortedSequence", {n.FloatsConstant(bounds, n.dtype(x))}}, {"Values", {x}}},
      {{"out_int32", true}, {"right", true}});
  SayDType(n, made, DType::kI32);
  n.Result(0, made);
  return true;
}

bool LowerBincount(NodeLowering& n) {
  n.Result(0, n.Make("bincount", {{"X", {n.In(0)}}, {"Size", {n.In(1)}}, {"Weights", {n.In(2)}}},
                     {{"like_weights", true}}));
  return true;
}

bool LowerConcatOffset(NodeLowering& n) {
  const std::vector<int> shapes = n.AllInputs(1);
  const auto made = n.MakeMany("concat_offset", {{"concat_dim", {n.In(0)}}, {"shape", shapes}}, {},
                               std::vector<std::string_view>(shapes.size(), "offset"));
  for (size_t i = 0; i < made.size(); ++i) n.Result(i, made[i]);
  return true;
}

// Elements in wider storage are cut to the bits of their own type first.
bool LowerBitcast(NodeLowering& n) {
  const int x = n.In(0), from = n.type(x), to = BaseType(n.Type("type", kFloat));
  const auto narrow = [](int type) {
    return type == kUint16 ? DType::kI16 : type == kUint32 ? DType::kI32 : StorageOf(type);
  };
  if (narrow(to) == DType::kUnknown) {
    n.Problem("sees bits as ", TypeName(to), ", which is not supported");
    n.Result(0, x);
    return true;
  }
  int made = n.Unary("bitcast", n.Cast(x, narrow(from)), {{"dtype", DTypeToProto(narrow(to))}});
  if (narrow(to) != StorageOf(to)) {
    made = n.Cast(made, StorageOf(to));
    made = n.Binary("bitwise_and", made,
                    n.IntConstant(to == kUint16 ? 0xffff : 0xffffffff, n.dtype(made)));
  }
  n.SetType(made, to);
  n.Result(0, made);
  return true;
}

// SpaceToBatch and BatchToSpace: two spatial dimensions with one block size.
bool LowerOldBlocks(NodeLowering& n) {
  const bool to_batch = n.op() == "SpaceToBatch";
  const int64_t size = n.Int("block_size", 2);
  const int x = n.In(0);
  const int made = n.Make(to_batch ? "space_to_batch_nd" : "batch_to_space_nd",
                          {{"input", {x}},
                           {"block_shape", {n.IntsConstant({size, size})}},
                           {to_batch ? "paddings" : "crops", {n.In(1)}}},
                          {}, "output");
  ResultLike(n, 0, made, x);
  return true;
}

constexpr HandlerEntry kIndexEntries[] = {
    {"BatchToSpace", &LowerOldBlocks},
    {"Bincount", &LowerBincount},
    {"Bitcast", &LowerBitcast},
    {"Bucketize", &LowerBucketize},
    {"ConcatOffset", &LowerConcatOffset},
    {"NonMaxSuppression", &LowerFirstNms},
    {"NonMaxSuppressionV4", &LowerNonMaxSuppression},
    {"NonMaxSuppressionV5", &LowerNonMaxSuppression},
    {"OneHot", &LowerOneHot},
    {"SpaceToBatch", &LowerOldBlocks},
    {"DynamicStitch", &LowerStitch},
    {"Gather", &LowerGather},
    {"InTopK", &LowerInTopK},
    {"InTopKV2", &LowerInTopK},
    {"LowerBound", &LowerBound},
    {"ParallelDynamicStitch", &LowerStitch},
    {"Select", &LowerSelect},
    {"SelectV2", &LowerSelect},
    {"TopKV2", &LowerTopK},
    {"Unique", &LowerUnique},
    {"UniqueV2", &LowerUnique},
    {"UniqueWithCounts", &LowerUnique},
    {"UniqueWithCountsV2", &LowerUnique},
    {"UpperBound", &LowerBound},
    {"Where", &LowerWhere},
};

}  // namespace

std::span<const HandlerEntry> IndexHandlers() { return kIndexEntries; }

}  // namespace heddle::tensorflow
