// Attention of com.microsoft, said in ONNX's Attention: an additive mask stands for every kind of
// mask, lengths and windows, and caches are joined before. docs/com-microsoft.md lists the domain.
#include <cstdint>
#include <limits>
#include <utility>

#include "core/error.h"
#include "formats/onnx/handlers.h"
#include "formats/onnx/own_nodes.h"

namespace heddle::onnx {
namespace {

constexpr int kAttentionOpset = 24;

int DimAt(NodeLowering& n, int v, int64_t k) {
  return One(n, "Gather", {n.ShapeOf(v), n.IntConstant(k)}, {IntAttribute("axis", 0)});
}
// 0, 1, … end - 1.
int Counting(NodeLowering& n, int end) {
  return One(n, "Range", {n.IntConstant(0), end, n.IntConstant(1)});
}
int Along(NodeLowering& n, int v, Ints axes) { return n.Unsqueeze(v, std::move(axes)); }
int Add(NodeLowering& n, int a, int b) {
  return a == kNoDraft ? b : b == kNoDraft ? a : n.Binary("elementwise_add", a, b);
}
int Less(NodeLowering& n, int a, int b) { return n.Binary("less_than", a, b); }
int And(NodeLowering& n, int a, int b) { return n.Binary("logical_and", a, b); }
int OneOf(NodeLowering& n, int vector) { return n.Reshape(vector, {1}); }

int Joined(NodeLowering& n, std::vector<int> vectors) {
  return n.Make("concat", {{"X", std::move(vectors)}}, {{"axis", int64_t{0}}});
}

// Elements `begin` to `end`, vectors of one element, of axis `axis`.
int PartOf(NodeLowering& n, int v, int begin, int end, int64_t axis) {
  return One(n, "Slice", {v, begin, end, n.IntsConstant({axis})});
}

// [batch, length, heads * size] as [batch, heads, length, size].
int InHeads(NodeLowering& n, int v, int64_t heads) {
  return One(n, "Transpose", {n.Reshape(v, {0, 0, heads, -1})},
             {IntsAttribute("perm", {0, 2, 1, 3})});
}
int SideBySide(NodeLowering& n, int v) {
  return n.Reshape(One(n, "Transpose", {v}, {IntsAttribute("perm", {0, 2, 1, 3})}), {0, 0, -1});
}

// The dtype of the queries.
DType QueryDType(NodeLowering& n) {
  const DType dtype = n.dtype(n.Required(0));
  return dtype == DType::kUnknown ? DType::kF32 : dtype;
}

// 0 where `kept`, else `other`.
int Additive(NodeLowering& n, int kept, double other) {
  const DType dtype = QueryDType(n);
  return One(n, "Where", {kept, n.FloatConstant(0, dtype), n.FloatConstant(other, dtype)});
}

// Whether each element is above zero.
int Set(NodeLowering& n, int mask) {
  return n.Binary("greater_than", mask, n.IntConstant(0, n.dtype(mask)));
}

// The queries, keys and values of one call, [batch, heads, length, size], and what goes with them.
struct Operands {
  int q = kNoDraft, k = kNoDraft, v = kNoDraft;
  int past_key = kNoDraft, past_value = kNoDraft;
  int bias = kNoDraft;  // added to the scores
  bool causal = false;
  double softcap = 0;
};

// Attention's four results: the values, packed, and keys, values and scores (those the call wants).
std::vector<int> Attend(NodeLowering& n, const Operands& o, bool wants_present, int scores_mode) {
  Attributes attributes = Taken(n, {"scale"});
  if (o.causal) attributes.push_back(IntAttribute("is_causal", 1));
  if (o.softcap > 0) attributes.push_back(FloatAttribute("softcap", o.softcap));
  if (scores_mode >= 0) attributes.push_back(IntAttribute("qk_matmul_output_mode", scores_mode));
  std::vector<int> made = Several(n, "Attention", {o.q, o.k, o.v, o.bias, o.past_key, o.past_value},
                                  std::move(attributes),
                                  scores_mode >= 0 ? 4
                                  : wants_present  ? 3
                                                   : 1,
                                  kAttentionOpset);
  made[0] = SideBySide(n, made[0]);
  return made;
}

// The length of keys and values with those of before.
int TotalLength(NodeLowering& n, const Operands& o) {
  const int length = DimAt(n, o.k, 2);
  return o.past_key == kNoDraft ? length
                                : n.Binary("elementwise_add", DimAt(n, o.past_key, 2), length);
}

// A mask as an addend of [batch, heads, length, total], each of which may be 1. A vector is the
// number of keys of each item, behind which it may have the first key of each.
int MaskAddend(NodeLowering& n, int mask, int total, const Operands& o) {
  const double filler = n.Float("mask_filter_value", -10000);
  switch (n.rank(mask)) {
    case 1: {
      const int wide = n.Cast(mask, DType::kI64), batch = DimAt(n, o.q, 0);
      const int ends = PartOf(n, wide, n.IntsConstant({0}), OneOf(n, batch), 0);
      const int at = Counting(n, total);
      int kept = Less(n, at, Along(n, ends, {1}));
      if (n.node().op_type == "Attention") {  // without first keys, zeros stand there
        const int begins =
            PartOf(n, Joined(n, {wide, One(n, "Expand", {n.IntConstant(0), OneOf(n, batch)})}),
                   OneOf(n, batch), OneOf(n, n.Binary("elementwise_add", batch, batch)), 0);
        kept = And(n, kept, n.Unary("logical_not", Less(n, at, Along(n, begins, {1}))));
      }
      return Additive(n, Along(n, kept, {1, 2}), filler);
    }
    case 2: {
      int kept = Set(n, mask);
      if (n.node().op_type == "Attention")  // of one column, which masks nothing
        kept = n.Binary("logical_or", kept, n.Binary("equal", DimAt(n, mask, 1), n.IntConstant(1)));
      return Additive(n, Along(n, kept, {1, 2}), filler);
    }
    case 3:
      return Additive(n, Along(n, Set(n, mask), {1}), filler);
    default:
      n.Problem("has a mask of ", n.rank(mask) < 0 ? "unknown rank" : "too many dimensions",
                "; rank 1 to 3 is read");
      return kNoDraft;
  }
}

bool Refuses(NodeLowering& n, std::initializer_list<size_t> inputs) {
  for (const size_t i : inputs) {
    if (!n.Has(i)) continue;
    n.Problem("has input ", i, ", with which heddle does not read it");
    for (size_t k = 0; k < n.node().outputs.size(); ++k)
      if (n.Wants(k)) n.Result(k, n.NewVar(DType::kUnknown));
    return true;
  }
  return false;
}

int64_t HeadsOf(NodeLowering& n, std::string_view attribute) {
  const int64_t heads = n.Int(attribute, 0);
  if (heads < 1) n.Problem("'", attribute, "' is ", heads, "; 1 or more is expected");
  return heads < 1 ? 1 : heads;
}

void GiveMade(NodeLowering& n, size_t output, const std::vector<int>& made, size_t i) {
  if (n.Wants(output)) n.Result(output, made[i]);
}

bool LowerMultiHeadAttention(NodeLowering& n) {
  if (Refuses(n, {8, 9})) return true;
  const int64_t heads = HeadsOf(n, "num_heads");
  const int query = n.Required(0), key = n.Required(1), value = n.Required(2);
  if (n.rank(query) != 3 || (n.rank(key) != 3 && n.rank(key) != 4) ||
      n.rank(value) != n.rank(key)) {
    n.Problem(
        "has operands of rank ", n.rank(query), ", ", n.rank(key), " and ", n.rank(value),
        "; [batch, length, size] is read, and for keys and values [batch, heads, length, size]");
    n.Result(0, query);
    return true;
  }
  const bool inside = n.rank(key) == 3;
  int q = query, k = key, v = value;
  if (n.Has(3)) {
    const int size = OneOf(n, DimAt(n, query, 2)), none = n.IntsConstant({0});
    const int twice = n.Binary("elementwise_add", size, size);
    q = Add(n, q, PartOf(n, n.In(3), none, size, 0));
    if (inside) {
      k = Add(n, k, PartOf(n, n.In(3), size, twice, 0));
      v = Add(n, v, PartOf(n, n.In(3), twice, n.IntsConstant({INT32_MAX}), 0));
    }
  }
  Operands o;
  o.q = InHeads(n, q, heads);
  o.k = inside ? InHeads(n, k, heads) : k;
  o.v = inside ? InHeads(n, v, heads) : v;
  o.past_key = n.In(6), o.past_value = n.In(7);
  const bool present = n.Wants(1) || n.Wants(2), scores = n.Wants(3);
  o.causal = n.Int("unidirectional", 0) != 0 && !scores;
  const int total = TotalLength(n, o);
  if (n.Has(4)) o.bias = MaskAddend(n, n.In(4), total, o);
  o.bias = Add(n, o.bias, n.In(5));
  if (scores && n.Int("unidirectional", 0) != 0) {  // which then show finite numbers
    const int before = n.Binary("elementwise_sub", total, DimAt(n, o.k, 2));
    const int places = Add(n, Counting(n, DimAt(n, o.q, 2)), Add(n, before, n.IntConstant(1)));
    const int seen = Less(n, Counting(n, total), Along(n, places, {1}));
    o.bias = Add(n, o.bias, Additive(n, seen, std::numeric_limits<float>::lowest()));
  }
  constexpr int kMaskedScores = 2;
  const auto made = Attend(n, o, present, scores ? kMaskedScores : -1);
  for (size_t i = 0; i < 4; ++i) GiveMade(n, i, made, i);
  return true;
}

// Queries, keys and values are products of one operand with one matrix.
bool LowerAttention(NodeLowering& n) {
  if (Refuses(n, {6})) return true;
  if (n.Int("do_rotary", 0) != 0) n.Problem("has do_rotary, which heddle does not read here");
  const int64_t heads = HeadsOf(n, "num_heads");
  int all = One(n, "MatMul", {n.Required(0), n.Required(1)});
  if (n.Has(2)) all = Add(n, all, n.In(2));
  const Ints sizes = n.IntList("qkv_hidden_sizes");
  std::vector<int> parts;
  if (sizes.size() == 3)
    parts = Several(n, "Split", {all, n.IntsConstant(sizes)}, {IntAttribute("axis", 2)}, 3);
  else
    parts =
        Several(n, "Split", {all}, {IntAttribute("axis", 2), IntAttribute("num_outputs", 3)}, 3);
  Operands o;
  o.q = InHeads(n, parts[0], heads);
  o.k = InHeads(n, parts[1], heads);
  o.v = InHeads(n, parts[2], heads);
  if (n.Has(4)) {
    const auto past = [&](int64_t i) {
      return One(n, "Gather", {n.In(4), n.IntConstant(i)}, {IntAttribute("axis", 0)});
    };
    o.past_key = past(0), o.past_value = past(1);
  }
  o.causal = n.Int("unidirectional", 0) != 0;
  if (n.Has(3)) o.bias = MaskAddend(n, n.In(3), TotalLength(n, o), o);
  o.bias = Add(n, o.bias, n.In(5));
  const auto made = Attend(n, o, n.Wants(1), -1);
  n.Result(0, made[0]);
  if (n.Wants(1))
    n.Result(1, n.Make("stack", {{"X", {made[1], made[2]}}}, {{"axis", int64_t{0}}}, "Y"));
  return true;
}

// Turns the pairs of each head by the angles of `places`, [batch, length]. Where the tables are
// narrower than that, what lies behind the turned pairs stays.
int Turned(NodeLowering& n, int heads, int cos, int sin, int places, bool interleaved) {
  const auto turn = [&](int x) {
    return One(n, "RotaryEmbedding", {x, cos, sin, places},
               {IntAttribute("interleaved", interleaved ? 1 : 0)}, 23);
  };
  const Shape &table = n.shape(cos), &x = n.shape(heads);
  if (table.rank() == 2 && x.rank() == 4 && table[1] > 0 && x[3] == 2 * table[1])
    return turn(heads);
  const int half = OneOf(n, DimAt(n, cos, 1)), turned = n.Binary("elementwise_add", half, half);
  const int first = PartOf(n, heads, n.IntsConstant({0}), turned, 3);
  const int rest = PartOf(n, heads, turned, n.IntsConstant({INT32_MAX}), 3);
  return n.Make("concat", {{"X", {turn(first), rest}}}, {{"axis", int64_t{3}}});
}

bool LowerRotaryEmbedding(NodeLowering& n) {
  if (n.Int("is_packed_batching", 0) != 0)
    n.Problem("has is_packed_batching, which heddle does not read");
  const int x = n.Required(0), cos = n.Required(2), sin = n.Required(3);
  int places = n.Cast(n.Required(1), DType::kI64);
  const int rank = n.rank(x);
  if ((rank != 3 && rank != 4) || n.rank(places) < 1 || n.rank(places) > 2) {
    n.Problem("has operands of rank ", rank, " and ", n.rank(places),
              "; 3 or 4, and 1 or 2 are read");
    n.Result(0, x);
    return true;
  }
  const int64_t heads = n.Int("num_heads", 0);
  int in_heads = x;
  if (rank == 3 && heads > 0) {
    in_heads = InHeads(n, x, heads);
  } else if (rank == 3) {  // all of a head is turned
    const int half = OneOf(n, DimAt(n, cos, 1));
    const int shape =
        Joined(n, {n.IntsConstant({0, 0, -1}), n.Binary("elementwise_add", half, half)});
    in_heads =
        One(n, "Transpose", {One(n, "Reshape", {x, shape})}, {IntsAttribute("perm", {0, 2, 1, 3})});
  }
  if (n.rank(places) == 1) {  // the first place of all items
    const int row = Add(n, Counting(n, DimAt(n, in_heads, 2)), places);
    const int shape = Joined(n, {OneOf(n, DimAt(n, in_heads, 0)), n.IntsConstant({1})});
    places = One(n, "Expand", {Along(n, row, {0}), shape});
  }
  const int made = Turned(n, in_heads, cos, sin, places, n.Int("interleaved", 0) != 0);
  n.Result(0, rank == 3 ? SideBySide(n, made) : made);
  return true;
}

// Writes keys or values into the cache, from each item's place on; without a cache they are one.
int Cached(NodeLowering& n, int cache, int fresh, int places, int total) {
  if (cache == kNoDraft) return fresh;
  const int length = DimAt(n, cache, 2);
  const int more =
      n.Binary("elementwise_max", n.Binary("elementwise_sub", total, length), n.IntConstant(0));
  const int pads =
      Joined(n, {n.IntsConstant({0, 0, 0, 0, 0, 0}), OneOf(n, more), n.IntsConstant({0})});
  return One(n, "TensorScatter", {One(n, "Pad", {cache, pads}), fresh, places},
             {IntAttribute("axis", 2)}, kAttentionOpset);
}

// A key and a value of zeros, whose score is `sink`, [1, heads, 1, 1], take part in each softmax.
void AddSink(NodeLowering& n, int sink, int64_t heads, Operands* o) {
  for (int* v : {&o->k, &o->v}) *v = One(n, "Pad", {*v, n.IntsConstant({0, 0, 0, 0, 0, 0, 1, 0})});
  const int rows = Joined(n, {OneOf(n, DimAt(n, o->q, 0)), n.IntsConstant({heads}),
                              OneOf(n, DimAt(n, o->q, 2)), n.IntsConstant({1})});
  o->bias =
      n.Make("concat", {{"X", {One(n, "Expand", {o->bias, rows}), One(n, "Expand", {sink, rows})}}},
             {{"axis", int64_t{3}}});
}

// Queries, keys and values in one operand: the heads of each lie behind each other.
void TakeHeads(NodeLowering& n, int64_t heads, int64_t groups, Operands* o) {
  if (n.Has(1)) {
    o->q = InHeads(n, n.Required(0), heads);
    o->k = InHeads(n, n.Required(1), groups);
    o->v = InHeads(n, n.Required(2), groups);
    return;
  }
  const int all = InHeads(n, n.Required(0), heads + 2 * groups);
  const auto part = [&](int64_t begin, int64_t count) {
    return PartOf(n, all, n.IntsConstant({begin}), n.IntsConstant({begin + count}), 1);
  };
  o->q = part(0, heads);
  o->k = part(heads, groups);
  o->v = part(heads + groups, groups);
}

// Which keys each query sees, [batch, 1, length, total], as an addend. `places`: of the queries in
// the sequence, [batch, length]; `ends`: how many keys count, [batch].
int SeenKeys(NodeLowering& n, int places, int ends, int total) {
  const int at = Counting(n, total), row = Along(n, places, {2});
  const int64_t window = n.Int("local_window_size", -1);
  const bool causal = n.Int("causal", 1) != 0;
  int seen = Less(n, at, causal ? Add(n, row, n.IntConstant(1)) : Along(n, ends, {1, 2}));
  if (window >= 0) {
    const int before = n.Binary("elementwise_sub", row, n.IntConstant(window));
    seen = And(n, seen, Less(n, before, at));
  }
  return Additive(n, Along(n, seen, {1}), -std::numeric_limits<double>::infinity());
}

bool LowerGroupQueryAttention(NodeLowering& n) {
  // Scales of a cache of integers, and what ONNX Runtime's kernel for processors lacks: weights of
  // normalised queries and keys, and lengths of queries.
  if (Refuses(n, {12, 13, 14, 15, 16})) return true;
  for (const std::string_view name : {"sliding_window_cache", "kv_cache_bit_width", "qk_output"})
    if (n.Int(name, 0) != 0)
      n.Problem("has ", name, " ", n.Int(name, 0), ", which heddle does not read");
  const int64_t heads = HeadsOf(n, "num_heads"), groups = HeadsOf(n, "kv_num_heads");
  if (n.rank(n.Required(0)) != 3) {
    n.Problem("has queries of rank ", n.rank(n.Required(0)), "; [batch, length, size] is read");
    n.Result(0, n.Required(0));
    return true;
  }
  Operands o;
  TakeHeads(n, heads, groups, &o);
  // Each item's new keys come behind its old ones.
  const int length = DimAt(n, n.Required(0), 1);
  const int ends = Add(n, n.Reshape(n.Cast(n.Required(5), DType::kI64), {-1}), n.IntConstant(1));
  const int firsts =
      n.Binary("elementwise_max", n.Binary("elementwise_sub", ends, length), n.IntConstant(0));
  const int places = Add(n, Along(n, firsts, {1}), Counting(n, length));
  if (n.Int("do_rotary", 0) != 0) {
    const int given = n.Has(9) ? n.Cast(n.In(9), DType::kI64) : places;
    const bool interleaved = n.Int("rotary_interleaved", 0) != 0;
    o.q = Turned(n, o.q, n.Required(7), n.Required(8), given, interleaved);
    o.k = Turned(n, o.k, n.Required(7), n.Required(8), given, interleaved);
  }
  const int wanted = n.Reshape(n.Cast(n.Required(6), DType::kI64), {});
  o.k = Cached(n, n.In(3), o.k, firsts, wanted);
  o.v = Cached(n, n.In(4), o.v, firsts, wanted);
  if (n.Wants(1)) n.Result(1, o.k);
  if (n.Wants(2)) n.Result(2, o.v);
  if (n.Has(10)) {  // an addend for as many keys as there are
    for (int* v : {&o.k, &o.v}) *v = PartOf(n, *v, n.IntsConstant({0}), OneOf(n, wanted), 2);
  }
  o.bias = Add(n, SeenKeys(n, places, ends, DimAt(n, o.k, 2)), n.In(10));
  o.softcap = n.Float("softcap", 0);
  if (n.Has(11))
    AddSink(n, n.Reshape(n.In(11), {1, heads, 1, 1}), heads, &o);
  else if (n.Int("smooth_softmax", -1) > 0)
    AddSink(n, n.Reshape(n.FloatConstant(0, QueryDType(n)), {1, 1, 1, 1}), heads, &o);
  n.Result(0, Attend(n, o, false, -1)[0]);
  return true;
}

constexpr HandlerEntry kEntries[] = {
    {"com.microsoft", "Attention", &LowerAttention},
    {"com.microsoft", "GroupQueryAttention", &LowerGroupQueryAttention},
    {"com.microsoft", "MultiHeadAttention", &LowerMultiHeadAttention},
    {"com.microsoft", "RotaryEmbedding", &LowerRotaryEmbedding},
};

}  // namespace

std::span<const HandlerEntry> MicrosoftAttentionHandlers() { return kEntries; }

}  // namespace heddle::onnx
