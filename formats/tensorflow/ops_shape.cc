// Operators that rearrange elements (transpose, slice, split, tile), and casts.
#include <algorithm>

#include "core/op_registry.h"
#include "core/shapes.h"
#include "formats/tensorflow/direct/ops_direct.h"

namespace heddle::tensorflow {
namespace {

// The constant integer of input `i`, if it is one.
std::optional<int64_t> KnownInt(NodeLowering& n, size_t i) {
  const auto list = n.ConstantInts(n.In(i));
  if (!list || list->size() != 1) return std::nullopt;
  return (*list)[0];
}

// Makes a negative axis positive, for a tensor of this rank; false, and an error is reported: out
// of range.
bool CheckAxis(NodeLowering& n, int64_t* axis, int rank) {
  if (rank < 0) return true;
  if (*axis < -rank || *axis >= rank) {
    n.Problem("names axis ", *axis, " of a tensor of rank ", rank);
    return false;
  }
  if (*axis < 0) *axis += rank;
  return true;
}

bool LowerTranspose(NodeLowering& n) {
  int x = n.In(0);
  if (n.op() == "ConjugateTranspose" && IsComplex(n.dtype(x))) x = n.Unary("conj", x);
  const auto perm = n.ConstantInts(n.In(1));
  if (!perm) {
    ResultLike(n, 0, n.Make("transpose2", {{"X", {x}}, {"Perm", {n.In(1)}}}), x);
    return true;
  }
  Ints axes = *perm, sorted;
  const auto rank = static_cast<int64_t>(axes.size());
  for (int64_t& a : axes) a = a < 0 ? a + rank : a;
  sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool fits = n.rank(x) < 0 || n.rank(x) == rank;
  for (int64_t i = 0; i < rank; ++i) fits = fits && sorted[static_cast<size_t>(i)] == i;
  if (!fits) {
    n.Problem("has a perm that is no order of the axes of ", n.shape(x).ToString());
    ResultLike(n, 0, x, x);
    return true;
  }
  ResultLike(
      n, 0, rank == 0 ? n.Unary("assign", x) : n.Make("transpose2", {{"X", {x}}}, {{"axis", axes}}),
      x);
  return true;
}

// Pad, PadV2 and MirrorPad. Constant amounts become attributes.
bool LowerPad(NodeLowering& n) {
  const int x = n.In(0);
  Ins ins{{"X", {x}}};
  Attrs attrs;
  if (const auto pads = n.ConstantInts(n.In(1))) {
    if (std::any_of(pads->begin(), pads->end(), [](int64_t p) { return p < 0; }))
      n.Problem("has negative paddings");
    attrs.emplace_back("paddings", *pads);
  } else {
    ins.emplace_back("Paddings", std::vector<int>{n.In(1)});
  }
  if (n.op() == "PadV2") ins.emplace_back("Value", std::vector<int>{n.In(2)});
  if (n.op() == "MirrorPad")
    attrs.emplace_back("mode", n.Str("mode", "") == "SYMMETRIC" ? std::string("symmetric")
                                                                : std::string("reflect"));
  ResultLike(n, 0, n.Make("pad", std::move(ins), std::move(attrs)), x);
  return true;
}

bool LowerMirrorPadGrad(NodeLowering& n) {
  const int x = n.In(0);
  const bool symmetric = n.Str("mode", "") == "SYMMETRIC";
  const int made = n.Make("pad_grad", {{"Out@GRAD", {x}}, {"Paddings", {n.In(1)}}},
                          {{"mode", std::string(symmetric ? "symmetric" : "reflect")}}, "X@GRAD");
  ResultLike(n, 0, made, x);
  return true;
}

bool LowerFill(NodeLowering& n) {
  const int value = n.In(1);
  Ins ins{{"ValueTensor", {value}}};
  Attrs attrs{
      {"dtype", n.dtype(value) == DType::kUnknown ? int64_t{-1} : DTypeToProto(n.dtype(value))}};
  if (const auto dims = n.ConstantInts(n.In(0)))
    attrs.emplace_back("shape", *dims);
  else
    ins.emplace_back("ShapeTensor", std::vector<int>{n.In(0)});
  ResultLike(n, 0, n.Make("fill_constant", std::move(ins), std::move(attrs)), value);
  return true;
}

// ReverseV2 names axes, Reverse marks them.
bool LowerReverse(NodeLowering& n) {
  const int x = n.In(0);
  int axes = n.In(1);
  const Tensor* known = n.Constant(axes);
  if (n.op() == "ReverseV2") {
    if (const auto list = n.ConstantInts(axes)) {
      ResultLike(n, 0, n.Make("flip", {{"X", {x}}}, {{"axis", *list}}), x);
      return true;
    }
  } else if (known != nullptr && known->dtype() == DType::kBool) {
    Ints marked;
    for (int64_t i = 0; i < known->numel(); ++i)
      if (known->data<bool>()[i]) marked.push_back(i);
    ResultLike(
        n, 0,
        marked.empty() ? n.Unary("assign", x) : n.Make("flip", {{"X", {x}}}, {{"axis", marked}}),
        x);
    return true;
  } else {
    axes = n.Reshape(n.Make("where_index", {{"Condition", {axes}}}), {-1});
  }
  ResultLike(n, 0, n.Make("flip", {{"X", {x}}, {"AxisTensor", {axes}}}), x);
  return true;
}

bool LowerExpandDims(NodeLowering& n) {
  const int x = n.In(0);
  const auto axis = KnownInt(n, 1);
  int64_t at = axis.value_or(0);
  if (!axis) {
    ResultLike(n, 0,
               n.Make("unsqueeze2", {{"X", {x}}, {"AxesTensor", {n.In(1)}}}, {{"in_result", true}}),
               x);
    return true;
  }
  if (!CheckAxis(n, &at, n.rank(x) < 0 ? -1 : n.rank(x) + 1)) at = 0;
  ResultLike(n, 0, n.Unsqueeze(x, {at}), x);
  return true;
}

bool LowerSqueeze(NodeLowering& n) {
  const int x = n.In(0);
  Ints axes = n.IntList("squeeze_dims");
  const Shape& shape = n.shape(x);
  for (int64_t& a : axes) {
    if (!CheckAxis(n, &a, shape.rank())) {
      ResultLike(n, 0, x, x);
      return true;
    }
    if (shape.known_rank() && shape[static_cast<int>(a)] > 1)
      n.Problem("takes away axis ", a, " of ", shape.ToString(), ", which is not 1");
  }
  ResultLike(n, 0, n.Squeeze(x, axes), x);
  return true;
}

bool LowerConcat(NodeLowering& n) {
  const bool first = n.op() == "Concat";
  std::vector<int> values = n.AllInputs();
  if (values.size() < 2) return false;
  const size_t at = first ? 0 : values.size() - 1;
  const int axis = values[at];
  values.erase(values.begin() + static_cast<int64_t>(at));
  const auto known = n.ConstantInts(axis);
  const int like = values[0];
  if (known && known->size() == 1) {
    const int made = n.Make("concat", {{"X", values}}, {{"axis", (*known)[0]}});
    // Vectors of dimensions are often known in part; they are short.
    Ints sizes;
    bool all = true;
    for (const int v : values) {
      const Ints& part = n.facts(v).partial;
      all = all && n.rank(v) == 1 && n.shape(v)[0] == static_cast<int64_t>(part.size()) &&
            sizes.size() + part.size() <= static_cast<size_t>(Shape::kMaxRank);
      if (all) sizes.insert(sizes.end(), part.begin(), part.end());
    }
    if (all) n.facts(made).partial = sizes;
    ResultLike(n, 0, made, like);
  } else {
    ResultLike(n, 0, n.Make("concat", {{"X", values}, {"AxisTensor", {n.Cast(axis, DType::kI64)}}}),
               like);
  }
  return true;
}

// Splits into equal parts, or into parts whose lengths are an input (SplitV).
bool LowerSplit(NodeLowering& n) {
  const bool lengths = n.op() == "SplitV";
  const int x = n.In(lengths ? 0 : 1);
  const size_t axis_at = lengths ? 2 : 0;
  const int64_t count = n.Int("num_split", 1);
  if (!n.CheckOutputs(count, 1)) return true;
  const std::vector<std::string_view> outs(static_cast<size_t>(count), "Out");
  Ins ins{{"X", {x}}};
  Attrs attrs;
  if (const auto axis = KnownInt(n, axis_at)) {
    int64_t a = *axis;
    if (!CheckAxis(n, &a, n.rank(x))) a = 0;
    attrs.emplace_back("axis", a);
  } else {
    ins.emplace_back("AxisTensor", std::vector<int>{n.Cast(n.In(axis_at), DType::kI64)});
  }
  if (!lengths) {
    attrs.emplace_back("num", count);
  } else if (const auto sections = n.ConstantInts(n.In(1))) {
    if (static_cast<int64_t>(sections->size()) != count) {
      n.Problem("splits into ", count, " parts, but size_splits has ", sections->size(),
                " elements");
      return true;
    }
    attrs.emplace_back("sections", *sections);
  } else {
    const auto cut = n.MakeMany("unstack", {{"X", {n.Cast(n.In(1), DType::kI64)}}},
                                {{"axis", int64_t{0}}, {"num", count}},
                                std::vector<std::string_view>(static_cast<size_t>(count), "Y"));
    std::vector<int> sizes;
    for (const int v : cut) sizes.push_back(n.Reshape(v, {1}));
    ins.emplace_back("SectionsTensorList", sizes);
  }
  const auto made = n.MakeMany("split", std::move(ins), std::move(attrs), outs);
  for (size_t i = 0; i < made.size(); ++i) ResultLike(n, i, made[i], x);
  return true;
}

bool LowerUnpack(NodeLowering& n) {
  const int x = n.In(0);
  int64_t axis = n.Int("axis", 0);
  const int64_t count = n.Int("num", 0);
  if (!CheckAxis(n, &axis, n.rank(x)) || !n.CheckOutputs(count) || count == 0) return true;
  const auto made = n.MakeMany("unstack", {{"X", {x}}}, {{"axis", axis}, {"num", count}},
                               std::vector<std::string_view>(static_cast<size_t>(count), "Y"));
  for (size_t i = 0; i < made.size(); ++i) ResultLike(n, i, made[i], x);
  return true;
}

bool LowerTile(NodeLowering& n) {
  const int x = n.In(0);
  ResultLike(n, 0, n.Make("tile", {{"X", {x}}, {"RepeatTimes", {n.In(1)}}}, {{"same_rank", true}}),
             x);
  return true;
}

bool LowerBroadcastTo(NodeLowering& n) {
  const int x = n.In(0), shape = n.In(1);
  const auto dims = n.ConstantInts(shape);
  if (dims && !dims->empty())
    ResultLike(n, 0, n.Make("expand_v2", {{"X", {x}}}, {{"shape", *dims}}), x);
  else
    ResultLike(n, 0, n.Make("expand_v2", {{"X", {x}}, {"Shape", {shape}}}, {{"mutual", true}}), x);
  return true;
}

// Casts between uint64 and floats; heddle's operator identifies types by ONNX's numbers.
int CastUint64(NodeLowering& n, int x, int to) {
  const auto number = [](DType t) -> int64_t {
    return t == DType::kF32 ? 1 : t == DType::kF16 ? 10 : t == DType::kBF16 ? 16 : 11;
  };
  constexpr int64_t kElemUint64 = 13;
  const DType stored = StorageOf(to);
  const DType real = IsComplex(stored) ? DType::kF64 : stored;
  const bool to_uint64 = to == kUint64;
  const int made = n.Unary("cast_element_type", x,
                           {{"from", to_uint64 ? number(n.dtype(x)) : kElemUint64},
                            {"to", to_uint64 ? kElemUint64 : number(real)}});
  n.draft_var(made).dtype = to_uint64 ? DType::kI64 : real;
  const int result = IsComplex(stored) ? n.Cast(made, stored) : made;
  n.SetType(result, to);
  return result;
}

// Casts to types in wider storage keep the low bits.
bool LowerCast(NodeLowering& n) {
  const int x = n.In(0), to = BaseType(n.Type("DstT", kFloat)), from = n.type(x);
  if (StorageOf(to) == DType::kUnknown || to == kString) {
    n.Problem("casts to ", TypeName(to), ", which is not supported");
    n.Result(0, x);
    return true;
  }
  const DType stored = StorageOf(to);
  if ((from == kUint64 && (IsFloat(stored) || IsComplex(stored))) ||
      (to == kUint64 && IsFloat(n.dtype(x)))) {
    n.Result(0, CastUint64(n, x, to));
    return true;
  }
  int made = n.dtype(x) == StorageOf(to) ? n.Unary("assign", x) : n.Cast(x, StorageOf(to));
  const bool integer = !IsFloat(n.dtype(x)) && !IsComplex(n.dtype(x));
  if ((to == kUint16 || to == kUint32) && from != to && (integer || to == kUint16))
    made = n.Binary("bitwise_and", made,
                    n.IntConstant(to == kUint16 ? 0xffff : 0xffffffff, n.dtype(made)));
  n.SetType(made, to);
  n.Result(0, made);
  return true;
}

constexpr HandlerEntry kShapeEntries[] = {
    {"BroadcastTo", &LowerBroadcastTo},
    {"Cast", &LowerCast},
    {"Concat", &LowerConcat},
    {"ConcatV2", &LowerConcat},
    {"ConjugateTranspose", &LowerTranspose},
    {"ExpandDims", &LowerExpandDims},
    {"Fill", &LowerFill},
    {"MirrorPad", &LowerPad},
    {"MirrorPadGrad", &LowerMirrorPadGrad},
    {"Pad", &LowerPad},
    {"PadV2", &LowerPad},
    {"Reverse", &LowerReverse},
    {"ReverseV2", &LowerReverse},
    {"Split", &LowerSplit},
    {"SplitV", &LowerSplit},
    {"Squeeze", &LowerSqueeze},
    {"Tile", &LowerTile},
    {"Transpose", &LowerTranspose},
    {"Unpack", &LowerUnpack},
};

}  // namespace

std::span<const HandlerEntry> ShapeHandlers() { return kShapeEntries; }

}  // namespace heddle::tensorflow
