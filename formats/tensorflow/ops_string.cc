// Operators on strings, and on the ragged tensors that they make.
#include <algorithm>
#include <iterator>

#include "core/shapes.h"
#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {
namespace {

int Texts(NodeLowering& n, int v, const Shape& shape) {
  n.SetType(v, kString);
  n.SetShape(v, shape);
  return v;
}

int Numbers(NodeLowering& n, int v, DType dtype, const Shape& shape) {
  n.draft_var(v).dtype = dtype;
  n.SetShape(v, shape);
  return v;
}

// Texts of which each is made of one of X.
bool Mapped(NodeLowering& n, std::string_view type, Attrs attrs) {
  const int x = n.In(0);
  n.Result(0, Texts(n, n.Make(type, {{"X", {x}}}, std::move(attrs)), n.shape(x)));
  return true;
}

bool LowerTextCase(NodeLowering& n) {
  const std::string encoding = n.Str("encoding", "");
  if (!encoding.empty() && encoding != "utf-8")
    n.Problem("the encoding is '", encoding, "', expected utf-8 or none");
  return Mapped(n, "string_case",
                {{"upper", n.op() == "StringUpper"}, {"ascii", encoding.empty()}});
}

bool LowerStrip(NodeLowering& n) { return Mapped(n, "string_strip", {}); }

bool LowerStaticReplace(NodeLowering& n) {
  return Mapped(n, "regex_replace",
                {{"pattern", n.Str("pattern", "")},
                 {"rewrite", n.Str("rewrite", "")},
                 {"replace_global", n.Bool("replace_global", true)}});
}

bool LowerReplace(NodeLowering& n) {
  const int x = n.In(0);
  const int made =
      n.Make("regex_replace", {{"X", {x}}, {"Pattern", {n.In(1)}}, {"Rewrite", {n.In(2)}}},
             {{"replace_global", n.Bool("replace_global", true)}});
  n.Result(0, Texts(n, made, n.shape(x)));
  return true;
}

bool LowerFullMatch(NodeLowering& n) {
  const int x = n.In(0);
  Ins ins = {{"X", {x}}};
  if (n.op() == "RegexFullMatch") ins.emplace_back("Pattern", std::vector<int>{n.In(1)});
  const int made =
      n.Make("regex_full_match", std::move(ins), {{"pattern", n.Str("pattern", "")}}, "Y");
  n.Result(0, Numbers(n, made, DType::kBool, n.shape(x)));
  return true;
}

bool LowerTextLength(NodeLowering& n) {
  const int x = n.In(0);
  const int made = n.Make("string_length", {{"X", {x}}}, {{"unit", n.Str("unit", "BYTE")}});
  n.Result(0, Numbers(n, made, DType::kI32, n.shape(x)));
  return true;
}

bool LowerSubstring(NodeLowering& n) {
  const int x = n.In(0), begin = n.In(1);
  const int made = n.Make("substring", {{"X", {x}}, {"Begin", {begin}}, {"Length", {n.In(2)}}},
                          {{"unit", n.Str("unit", "BYTE")}});
  n.Result(0, Texts(n, made, n.rank(begin) == 0 ? n.shape(x) : Shape::Unknown()));
  return true;
}

bool LowerJoin(NodeLowering& n) {
  const std::vector<int> all = n.AllInputs();
  Shape shape = all.empty() ? Shape() : n.shape(all[0]);
  for (const int v : all)
    if (n.rank(v) != 0) shape = n.shape(v);
  const int made = n.Make("string_join", {{"X", all}}, {{"separator", n.Str("separator", "")}});
  n.Result(0, Texts(n, made, shape));
  return true;
}

bool LowerReduceJoin(NodeLowering& n) {
  const int made =
      n.Make("string_reduce_join", {{"X", {n.In(0)}}, {"Axes", {n.In(1)}}},
             {{"keep_dims", n.Bool("keep_dims", false)}, {"separator", n.Str("separator", "")}});
  n.Result(0, Texts(n, made, Shape::Unknown()));
  return true;
}

bool LowerSegmentJoin(NodeLowering& n) {
  const int made = n.Make("string_segment_join",
                          {{"X", {n.In(0)}}, {"Segments", {n.In(1)}}, {"Count", {n.In(2)}}},
                          {{"separator", n.Str("separator", "")}});
  n.Result(0, Texts(n, made, Shape::Unknown()));
  return true;
}

bool LowerToBase64(NodeLowering& n) {
  return Mapped(n, "string_to_base64", {{"pad", n.Bool("pad", false)}});
}
bool LowerFromBase64(NodeLowering& n) { return Mapped(n, "base64_to_string", {}); }

bool LowerDecodeRaw(NodeLowering& n) {
  const Attribute* a = n.Find("out_type");
  const int type = a == nullptr ? kNoType : BaseType(static_cast<int>(a->i));
  if (TypeOf(StorageOf(type)) != type)
    n.Problem("makes elements of a type that heddle holds in another one");
  const int x = n.In(0);
  const int made = n.Make("string_to_elements", {{"X", {x}}},
                          {{"out_type", DTypeToProto(StorageOf(type))},
                           {"little_endian", n.Bool("little_endian", true)}});
  n.Result(0, Numbers(n, made, StorageOf(type), Shape::Unknown()));
  return true;
}

bool LowerTextSplit(NodeLowering& n) {
  const bool first = n.op() == "StringSplit";
  const std::vector<int> made =
      n.MakeMany("string_tokens", {{"X", {n.In(0)}}, {"Separator", {n.In(1)}}},
                 {{"maxsplit", n.Int("maxsplit", -1)},
                  {"any_byte", first},
                  {"skip_empty", n.Bool("skip_empty", true)}},
                 {"Indices", "Values", "Shape"});
  n.Result(0, Numbers(n, made[0], DType::kI64, Shape{-1, 2}));
  n.Result(1, Texts(n, made[1], Shape{-1}));
  n.Result(2, Numbers(n, made[2], DType::kI64, Shape{2}));
  return true;
}

bool LowerNGrams(NodeLowering& n) {
  const int splits = n.In(1);
  const std::vector<int> made =
      n.MakeMany("string_n_grams", {{"X", {n.In(0)}}, {"Splits", {splits}}},
                 {{"separator", n.Str("separator", "")},
                  {"ngram_widths", n.IntList("ngram_widths")},
                  {"left_pad", n.Str("left_pad", "")},
                  {"right_pad", n.Str("right_pad", "")},
                  {"pad_width", n.Int("pad_width", 0)},
                  {"preserve_short_sequences", n.Bool("preserve_short_sequences", false)}},
                 {"Out", "OutSplits"});
  n.Result(0, Texts(n, made[0], Shape{-1}));
  n.Result(1, Numbers(n, made[1], n.dtype(splits), n.shape(splits)));
  return true;
}

bool LowerHash(NodeLowering& n) {
  const int x = n.In(0);
  const int64_t buckets = n.Int("num_buckets", 0);
  const int made =
      n.op() == "StringToHashBucketFast"
          ? n.Make("string_to_hash_bucket", {{"input", {x}}}, {{"num_buckets", buckets}}, "output")
          : n.Make("string_hash_bucket", {{"X", {x}}},
                   {{"num_buckets", buckets}, {"key", n.IntList("key")}});
  n.Result(0, Numbers(n, made, DType::kI64, n.shape(x)));
  return true;
}

bool LowerToNumber(NodeLowering& n) {
  const int x = n.In(0);
  const DType dtype = n.TypeAttr("out_type", DType::kF32);
  const int made = n.Make("string_to_number", {{"X", {x}}}, {{"out_dtype", DTypeToProto(dtype)}});
  n.Result(0, Numbers(n, made, dtype, n.shape(x)));
  return true;
}

bool LowerAsString(NodeLowering& n) {
  const int x = n.In(0);
  if (n.type(x) == kString) {
    n.Result(0, x);
    return true;
  }
  const int made = n.Make("number_to_string", {{"X", {x}}},
                          {{"precision", n.Int("precision", -1)},
                           {"scientific", n.Bool("scientific", false)},
                           {"shortest", n.Bool("shortest", false)},
                           {"width", n.Int("width", -1)},
                           {"fill", n.Str("fill", "")}});
  n.Result(0, Texts(n, made, n.shape(x)));
  return true;
}

bool IsUtf8(NodeLowering& n, std::string_view attribute) {
  const std::string encoding = n.Str(attribute, "");
  if (encoding == "UTF-8" || encoding == "utf-8" || encoding == "UTF8") return true;
  n.Problem("the encoding is '", encoding, "'; heddle has UTF-8");
  return false;
}

Attrs UnicodeErrors(NodeLowering& n) {
  return {{"errors", n.Str("errors", "replace")},
          {"replacement_char", n.Int("replacement_char", 0xFFFD)}};
}

bool LowerDecode(NodeLowering& n) {
  IsUtf8(n, "input_encoding");
  const DType splits = n.TypeAttr("Tsplits", DType::kI64);
  Attrs attrs = UnicodeErrors(n);
  attrs.emplace_back("replace_control_characters", n.Bool("replace_control_characters", false));
  attrs.emplace_back("narrow_splits", splits == DType::kI32);
  std::vector<std::string_view> outs = {"Splits", "Codes"};
  if (n.op() == "UnicodeDecodeWithOffsets") outs.push_back("Starts");
  const std::vector<int> made =
      n.MakeMany("unicode_decode", {{"X", {n.In(0)}}}, std::move(attrs), outs);
  n.Result(0, Numbers(n, made[0], splits, Shape{-1}));
  n.Result(1, Numbers(n, made[1], DType::kI32, Shape{-1}));
  if (made.size() > 2) n.Result(2, Numbers(n, made[2], DType::kI64, Shape{-1}));
  return true;
}

bool LowerEncode(NodeLowering& n) {
  IsUtf8(n, "output_encoding");
  const int made =
      n.Make("unicode_encode", {{"Codes", {n.In(0)}}, {"Splits", {n.In(1)}}}, UnicodeErrors(n));
  n.Result(0, Texts(n, made, Shape{-1}));
  return true;
}

bool LowerRaggedToTensor(NodeLowering& n) {
  const std::vector<std::string> kinds = n.StrList("row_partition_types");
  const bool value_rows = !kinds.empty() && kinds[0] == "FIRST_DIM_SIZE";
  for (size_t i = value_rows ? 1 : 0; i < kinds.size(); ++i)
    if (kinds[i] != (value_rows ? "VALUE_ROWIDS" : "ROW_SPLITS"))
      n.Problem("partition ", i, " is of the kind ", kinds[i], ", expected ",
                value_rows ? "VALUE_ROWIDS" : "ROW_SPLITS");
  std::vector<int> partitions;
  for (size_t i = 3; i < n.inputs(); ++i) partitions.push_back(n.In(i));
  const int values = n.In(1);
  const int made = n.Make("ragged_to_dense",
                          {{"Shape", {n.In(0)}},
                           {"Values", {values}},
                           {"Default", {n.In(2)}},
                           {"Partitions", partitions}},
                          {{"value_rows", value_rows}});
  const int levels = static_cast<int>(partitions.size()) - (value_rows ? 1 : 0);
  n.Result(0, Numbers(n, made, n.dtype(values),
                      n.rank(values) < 1 || n.rank(values) + levels > Shape::kMaxRank
                          ? Shape::Unknown()
                          : Shape(Ints(static_cast<size_t>(n.rank(values) + levels), -1))));
  return true;
}

bool LowerRaggedBincount(NodeLowering& n) {
  const int weights = n.In(3);
  const int made = n.Make(
      "ragged_bincount",
      {{"Splits", {n.In(0)}}, {"Values", {n.In(1)}}, {"Size", {n.In(2)}}, {"Weights", {weights}}},
      {{"binary_output", n.Bool("binary_output", false)}});
  n.Result(0, Numbers(n, made, n.dtype(weights), Shape{-1, -1}));
  return true;
}

constexpr HandlerEntry kStringEntries[] = {
    {"AsString", &LowerAsString},
    {"DecodeBase64", &LowerFromBase64},
    {"DecodeRaw", &LowerDecodeRaw},
    {"EncodeBase64", &LowerToBase64},
    {"RaggedBincount", &LowerRaggedBincount},
    {"RaggedTensorToTensor", &LowerRaggedToTensor},
    {"ReduceJoin", &LowerReduceJoin},
    {"RegexFullMatch", &LowerFullMatch},
    {"RegexReplace", &LowerReplace},
    {"StaticRegexFullMatch", &LowerFullMatch},
    {"StaticRegexReplace", &LowerStaticReplace},
    {"StringJoin", &LowerJoin},
    {"StringLength", &LowerTextLength},
    {"StringLower", &LowerTextCase},
    {"StringNGrams", &LowerNGrams},
    {"StringSplit", &LowerTextSplit},
    {"StringSplitV2", &LowerTextSplit},
    {"StringStrip", &LowerStrip},
    {"StringToHashBucket", &LowerHash},
    {"StringToHashBucketFast", &LowerHash},
    {"StringToHashBucketStrong", &LowerHash},
    {"StringToNumber", &LowerToNumber},
    {"StringUpper", &LowerTextCase},
    {"Substr", &LowerSubstring},
    {"UnicodeDecode", &LowerDecode},
    {"UnicodeDecodeWithOffsets", &LowerDecode},
    {"UnicodeEncode", &LowerEncode},
    {"UnsortedSegmentJoin", &LowerSegmentJoin},
};

}  // namespace

bool MovesElements(std::string_view op) {
  static constexpr std::string_view kMovers[] = {"BatchToSpaceND",
                                                 "BroadcastTo",
                                                 "Concat",
                                                 "ConcatV2",
                                                 "DynamicPartition",
                                                 "DynamicStitch",
                                                 "ExpandDims",
                                                 "Fill",
                                                 "Gather",
                                                 "GatherNd",
                                                 "GatherV2",
                                                 "ListDiff",
                                                 "MirrorPad",
                                                 "Pack",
                                                 "PadV2",
                                                 "ParallelDynamicStitch",
                                                 "RaggedTensorToSparse",
                                                 "RaggedTensorToTensor",
                                                 "Rank",
                                                 "Reshape",
                                                 "Reverse",
                                                 "ReverseSequence",
                                                 "ReverseV2",
                                                 "Roll",
                                                 "Select",
                                                 "SelectV2",
                                                 "Shape",
                                                 "ShapeN",
                                                 "Size",
                                                 "Slice",
                                                 "SpaceToBatchND",
                                                 "SparseConcat",
                                                 "SparseFillEmptyRows",
                                                 "SparseReorder",
                                                 "SparseSlice",
                                                 "SparseToDense",
                                                 "Split",
                                                 "SplitV",
                                                 "Squeeze",
                                                 "StridedSlice",
                                                 "TensorScatterUpdate",
                                                 "Tile",
                                                 "Transpose",
                                                 "Unique",
                                                 "UniqueV2",
                                                 "UniqueWithCounts",
                                                 "UniqueWithCountsV2",
                                                 "Unpack"};
  return std::find(std::begin(kMovers), std::end(kMovers), op) != std::end(kMovers);
}

std::span<const HandlerEntry> StringHandlers() { return kStringEntries; }

}  // namespace heddle::tensorflow
