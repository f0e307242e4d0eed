// Sparse tensors, which are three tensors: indices, values and shape.
#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {
namespace {

// Sets the results of an operator that makes a sparse tensor of this rank (-1: not known).
bool ResultSparse(NodeLowering& n, const std::vector<int>& made, int rank, bool texts) {
  n.draft_var(made[0]).dtype = DType::kI64;
  n.SetShape(made[0], Shape{-1, rank});
  if (texts) n.SetType(made[1], kString);
  n.SetShape(made[1], Shape{-1});
  if (made.size() > 2) {
    n.draft_var(made[2]).dtype = DType::kI64;
    n.SetShape(made[2], Shape{rank});
  }
  for (size_t i = 0; i < made.size(); ++i) n.Result(i, made[i]);
  return true;
}

// How many elements a vector has; -1: not known.
int ElementsIn(NodeLowering& n, int v) {
  const Shape& shape = n.shape(v);
  return shape.rank() == 1 && shape[0] <= Shape::kMaxRank ? static_cast<int>(shape[0]) : -1;
}

// The operands that each attribute counts, from `first` on.
std::vector<int> Listed(NodeLowering& n, size_t* first, int64_t count) {
  std::vector<int> made;
  for (int64_t i = 0; i < count && *first < n.inputs(); ++i) made.push_back(n.In((*first)++));
  return made;
}

bool LowerSparseCross(NodeLowering& n) {
  const int64_t sparse = n.Int("N", 0);
  size_t at = 0;
  std::vector<int> indices = Listed(n, &at, sparse), values = Listed(n, &at, sparse),
                   shapes = Listed(n, &at, sparse);
  const bool v1 = n.op() == "SparseCross", hashed_v2 = n.op() == "SparseCrossHashed";
  const size_t last = n.inputs() - (v1 ? 0 : hashed_v2 ? 3 : 1);
  std::vector<int> dense;
  while (at < last) dense.push_back(n.In(at++));
  Ins ins;
  const auto add = [&](std::string_view slot, std::vector<int> vars) {
    if (!vars.empty()) ins.emplace_back(slot, std::move(vars));
  };
  add("Indices", std::move(indices));
  add("Values", std::move(values));
  add("Shapes", std::move(shapes));
  add("Dense", std::move(dense));
  const bool hashed = hashed_v2 || (v1 && n.Bool("hashed_output", false));
  Attrs attrs = {{"hashed", hashed}};
  if (v1) {
    if (hashed != (n.Type("out_type", kInt64) == kInt64))
      n.Problem("'hashed_output' is ", hashed ? "true" : "false", ", and 'out_type' is ",
                TypeName(n.Type("out_type", kInt64)));
    attrs.emplace_back("num_buckets", n.Int("num_buckets", 0));
    attrs.emplace_back("hash_key", n.Int("hash_key", 0));
  } else if (hashed_v2) {
    ins.emplace_back("Buckets", std::vector<int>{n.In(at)});
    ins.emplace_back("Strong", std::vector<int>{n.In(at + 1)});
    ins.emplace_back("Salt", std::vector<int>{n.In(at + 2)});
  } else {
    ins.emplace_back("Separator", std::vector<int>{n.In(at)});
  }
  const std::vector<int> made = n.MakeMany("coo_cross", std::move(ins), std::move(attrs),
                                           {"OutIndices", "OutValues", "OutShape"});
  if (hashed) n.draft_var(made[1]).dtype = DType::kI64;
  return ResultSparse(n, made, 2, !hashed);
}

bool LowerSparseReorder(NodeLowering& n) {
  const int shape = n.In(2);
  return ResultSparse(
      n,
      n.MakeMany("coo_reorder", {{"Indices", {n.In(0)}}, {"Values", {n.In(1)}}, {"Shape", {shape}}},
                 {}, {"OutIndices", "OutValues"}),
      ElementsIn(n, shape), false);
}

bool LowerSparseConcat(NodeLowering& n) {
  const int64_t count = n.Int("N", 0);
  size_t at = 0;
  const std::vector<int> indices = Listed(n, &at, count), values = Listed(n, &at, count),
                         shapes = Listed(n, &at, count);
  if (shapes.empty()) return false;
  return ResultSparse(
      n,
      n.MakeMany("coo_concat", {{"Indices", indices}, {"Values", values}, {"Shapes", shapes}},
                 {{"axis", n.Int("concat_dim", 0)}}, {"OutIndices", "OutValues", "OutShape"}),
      ElementsIn(n, shapes[0]), false);
}

bool LowerSparseSlice(NodeLowering& n) {
  const int shape = n.In(2);
  return ResultSparse(n,
                      n.MakeMany("coo_slice",
                                 {{"Indices", {n.In(0)}},
                                  {"Values", {n.In(1)}},
                                  {"Shape", {shape}},
                                  {"Start", {n.In(3)}},
                                  {"Size", {n.In(4)}}},
                                 {}, {"OutIndices", "OutValues", "OutShape"}),
                      ElementsIn(n, shape), false);
}

bool LowerRaggedToSparse(NodeLowering& n) {
  const size_t levels = n.inputs() - 1;
  std::vector<int> splits;
  for (size_t i = 0; i < levels; ++i) splits.push_back(n.In(i));
  const int values = n.In(levels), rank = n.rank(values);
  return ResultSparse(n,
                      n.MakeMany("ragged_to_coo", {{"Splits", splits}, {"Values", {values}}}, {},
                                 {"OutIndices", "OutValues", "OutShape"}),
                      rank < 0 ? -1 : rank + static_cast<int>(levels), false);
}

constexpr HandlerEntry kSparseEntries[] = {
    {"RaggedTensorToSparse", &LowerRaggedToSparse},
    {"SparseConcat", &LowerSparseConcat},
    {"SparseCross", &LowerSparseCross},
    {"SparseCrossHashed", &LowerSparseCross},
    {"SparseCrossV2", &LowerSparseCross},
    {"SparseReorder", &LowerSparseReorder},
    {"SparseSlice", &LowerSparseSlice},
};

}  // namespace

std::span<const HandlerEntry> SparseHandlers() { return kSparseEntries; }

}  // namespace heddle::tensorflow
