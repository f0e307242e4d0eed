// Sequences of tensors, which become tensor arrays, and optionals. An optional is the value itself
// where it is known to hold one, else an array of at most one tensor.
#include "core/shapes.h"
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

using Kind = Type::Kind;

// Items may differ: nothing is said of their shape.
void ResultSequence(NodeLowering& n, int v, int element) {
  n.facts(v).shape = Shape::Unknown();
  n.draft_var(v).dtype = DType::kUnknown;
  n.SetKind(v, Kind::kSequence, element);
  n.Result(0, v);
}

bool LowerConstruct(NodeLowering& n) {
  std::vector<int> items = n.AllInputs();
  const int type = items.empty() ? int{kFloat} : n.type(items[0]);
  for (int& item : items) item = n.AsItem(item);
  ResultSequence(n, n.Make("list_of", {{"items", items}}), type);
  return true;
}

bool LowerEmpty(NodeLowering& n) {
  const int made = n.Make("list_of", {});
  ResultSequence(n, made, static_cast<int>(n.Int("dtype", kFloat)));
  return true;
}

bool LowerInsert(NodeLowering& n) {
  const int sequence = n.Required(0), item = n.Required(1);
  const int made = n.Make(
      "list_insert", {{"list", {sequence}}, {"item", {n.AsItem(item)}}, {"position", {n.In(2)}}});
  ResultSequence(n, made, n.type(item));
  return true;
}

bool LowerErase(NodeLowering& n) {
  const int sequence = n.Required(0);
  const int made = n.Make("list_erase", {{"list", {sequence}}, {"position", {n.In(1)}}});
  ResultSequence(n, made, n.type(sequence));
  return true;
}

// The dtype of a sequence's items: texts are numbers of a pool there.
DType ItemDType(NodeLowering& n, int sequence) {
  return n.type(sequence) == kString ? DType::kI64 : StorageOf(n.type(sequence));
}

void ResultItem(NodeLowering& n, int v, int sequence) {
  n.draft_var(v).dtype = ItemDType(n, sequence);
  n.facts(v).shape = Shape::Unknown();
  v = n.FromItem(v, n.type(sequence));
  n.SetType(v, n.type(sequence));
  n.Result(0, v);
}

bool LowerAt(NodeLowering& n) {
  const int sequence = n.Required(0);
  ResultItem(
      n, n.Make("list_item", {{"list", {sequence}}, {"index", {n.Required(1)}}}, {{"wrap", true}}),
      sequence);
  return true;
}

bool LowerLength(NodeLowering& n) {
  const int made = n.Make("lod_array_length", {{"X", {n.Required(0)}}});
  n.draft_var(made).dtype = DType::kI64;
  n.facts(made).shape = Shape{1};
  const int scalar = n.Squeeze(made, {0});
  n.SetType(scalar, kInt64);
  n.Result(0, scalar);
  return true;
}

bool LowerSplitToSequence(NodeLowering& n) {
  const int x = n.Required(0);
  const int made = n.Make("list_split", {{"tensor", {n.AsItem(x)}}, {"lengths", {n.In(1)}}},
                          {{"axis", n.Int("axis", 0)}, {"keepdims", n.Int("keepdims", 1) != 0}});
  ResultSequence(n, made, n.type(x));
  return true;
}

bool LowerConcatFromSequence(NodeLowering& n) {
  const int sequence = n.Required(0);
  Attrs attrs{{"axis", n.Int("axis", 0)}};
  if (const DType dtype = ItemDType(n, sequence); dtype != DType::kUnknown)
    attrs.emplace_back("dtype", DTypeToProto(dtype));
  ResultItem(n,
             n.Make(n.Int("new_axis", 0) != 0 ? "list_stack" : "list_concat",
                    {{"list", {sequence}}}, std::move(attrs)),
             sequence);
  return true;
}

// --- optionals

bool LowerOptional(NodeLowering& n) {
  if (n.Has(0)) {
    n.Result(0, n.Required(0));
    return true;
  }
  const Attribute* type = n.Find("type");
  const Type* elements = type == nullptr ? nullptr : type->type.get();
  while (elements != nullptr && !elements->inner.empty()) elements = elements->inner.data();
  const int made = n.Make("list_of", {});
  n.SetKind(made, Kind::kOptional, elements == nullptr ? int{kFloat} : elements->element);
  n.Result(0, made);
  return true;
}

bool LowerHasElement(NodeLowering& n) {
  const int x = n.In(0);
  if (x == kNoDraft || n.kind(x) != Kind::kOptional) {
    n.Result(0, n.IntConstant(x == kNoDraft ? 0 : 1, DType::kBool));
    return true;
  }
  const int length = n.Make("lod_array_length", {{"X", {x}}});
  n.draft_var(length).dtype = DType::kI64;
  n.facts(length).shape = Shape{1};
  n.Result(0, n.Squeeze(n.Binary("greater_than", length, n.IntsConstant({0})), {0}));
  return true;
}

bool LowerGetElement(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.kind(x) != Kind::kOptional) {
    n.Result(0, x);
    return true;
  }
  if (n.facts(x).of_sequence) {
    ResultSequence(n, n.Make("assign", {{"X", {x}}}), n.type(x));
    return true;
  }
  ResultItem(n, n.Make("list_item", {{"list", {x}}, {"index", {n.IntConstant(0)}}}), x);
  return true;
}

constexpr HandlerEntry kSequenceEntries[] = {
    {"", "ConcatFromSequence", &LowerConcatFromSequence},
    {"", "Optional", &LowerOptional},
    {"", "OptionalGetElement", &LowerGetElement},
    {"", "OptionalHasElement", &LowerHasElement},
    {"", "SequenceAt", &LowerAt},
    {"", "SequenceConstruct", &LowerConstruct},
    {"", "SequenceEmpty", &LowerEmpty},
    {"", "SequenceErase", &LowerErase},
    {"", "SequenceInsert", &LowerInsert},
    {"", "SequenceLength", &LowerLength},
    {"", "SplitToSequence", &LowerSplitToSequence},
};

}  // namespace

std::span<const HandlerEntry> SequenceHandlers() { return kSequenceEntries; }

}  // namespace heddle::onnx
