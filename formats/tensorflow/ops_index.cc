// Operators that select, search and count elements.
#include "core/op_registry.h"
#include "core/shapes.h"
#include "formats/tensorflow/ops_direct.h"

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
    ResultLike(n, 0,
               n.Make("tf_select", {{"condition", {c}}, {"t", {x}}, {"e", {y}}}, {}, "output"), x);
    return true;
  }
  const bool same = n.shape(c).is_static() && n.shape(c) == n.shape(x) && n.shape(x) == n.shape(y);
  const int made =
      same ? n.Make("where", {{"Condition", {c}}, {"X", {x}}, {"Y", {y}}})
           : n.Make("onnx_where", {{"condition", {c}}, {"X", {x}}, {"Y", {y}}}, {}, "output");
  ResultLike(n, 0, made, x);
  return true;
}

bool LowerGather(NodeLowering& n) {
  const int x = n.In(0);
  ResultLike(n, 0, n.Make("tf_gather_v2", {{"params", {x}}, {"indices", {n.In(1)}}}, {}, "output"),
             x);
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
  Ins ins{{"x", {x}}};
  if (n.inputs() > 1) ins.emplace_back("axis", std::vector<int>{n.In(1)});
  std::vector<std::string_view> outs{"y", "idx"};
  if (n.op().starts_with("UniqueWithCounts")) outs.emplace_back("count");
  const auto made =
      n.MakeMany("tf_unique_with_counts_v2", std::move(ins),
                 {{"out_idx", DTypeToProto(n.TypeAttr("out_idx", DType::kI32))}}, outs);
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
      "tf_dynamic_stitch",
      {{"indices", {all.begin(), all.begin() + half}}, {"data", {all.begin() + half, all.end()}}},
      {}, "merged");
  ResultLike(n, 0, made, like);
  return true;
}

bool LowerTopK(NodeLowering& n) {
  const int x = n.In(0);
  const DType wanted = n.TypeAttr("index_type", DType::kI32);
  const DType wide = wanted == DType::kI64 ? wanted : DType::kI32;
  const auto made =
      n.MakeMany("tf_top_k_v2", {{"input", {x}}, {"k", {n.In(1)}}},
                 {{"sorted", n.Bool("sorted", true)}, {"index_type", DTypeToProto(wide)}},
                 {"values", "indices"});
  ResultLike(n, 0, made[0], x);
  SayDType(n, made[1], wide);
  n.Result(1, n.Cast(made[1], wanted));
  return true;
}

bool LowerInTopK(NodeLowering& n) {
  const int k = n.op() == "InTopK" ? n.IntConstant(n.Int("k", 1)) : n.In(2);
  n.Result(
      0, n.Make("tf_in_top_k_v2", {{"predictions", {n.In(0)}}, {"targets", {n.In(1)}}, {"k", {k}}},
                {}, "precision"));
  return true;
}

// The first version has the threshold as an attribute.
bool LowerFirstNms(NodeLowering& n) {
  n.Result(
      0, n.Make("tf_non_max_suppression_v5",
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
      n.MakeMany("tf_non_max_suppression_v5", std::move(ins),
                 {{"pad_to_max_output_size", n.Bool("pad_to_max_output_size", false)}},
                 {"selected_indices", "selected_scores", "valid_outputs"});
  SayDType(n, made[0], DType::kI32);
  SayDType(n, made[2], DType::kI32);
  n.Result(0, made[0]);
  if (soft) n.Result(1, made[1]);
  n.Result(soft ? 2 : 1, made[2]);
  return true;
}

bool LowerBincount(NodeLowering& n) {
  n.Result(0, n.Make("tf_dense_bincount",
                     {{"input", {n.In(0)}}, {"size", {n.In(1)}}, {"weights", {n.In(2)}}},
                     {{"flatten", true}}, "output"));
  return true;
}

bool LowerConcatOffset(NodeLowering& n) {
  const std::vector<int> shapes = n.AllInputs(1);
  const auto made = n.MakeMany("tf_concat_offset", {{"concat_dim", {n.In(0)}}, {"shape", shapes}},
                               {}, std::vector<std::string_view>(shapes.size(), "offset"));
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
  int made = n.Make("tf_bitcast", {{"input", {n.Cast(x, narrow(from))}}},
                    {{"type", DTypeToProto(narrow(to))}}, "output");
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
  const int made = n.Make(to_batch ? "tf_space_to_batch_nd" : "tf_batch_to_space_nd",
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
    {"ConcatOffset", &LowerConcatOffset},
    {"NonMaxSuppression", &LowerFirstNms},
    {"NonMaxSuppressionV4", &LowerNonMaxSuppression},
    {"NonMaxSuppressionV5", &LowerNonMaxSuppression},
    {"SpaceToBatch", &LowerOldBlocks},
    {"DynamicStitch", &LowerStitch},
    {"Gather", &LowerGather},
    {"InTopK", &LowerInTopK},
    {"InTopKV2", &LowerInTopK},
    {"ParallelDynamicStitch", &LowerStitch},
    {"Select", &LowerSelect},
    {"SelectV2", &LowerSelect},
    {"TopKV2", &LowerTopK},
    {"Unique", &LowerUnique},
    {"UniqueV2", &LowerUnique},
    {"UniqueWithCounts", &LowerUnique},
    {"UniqueWithCountsV2", &LowerUnique},
    {"Where", &LowerWhere},
};

}  // namespace

std::span<const HandlerEntry> IndexHandlers() { return kIndexEntries; }

}  // namespace heddle::tensorflow
