// Folds the elements of small integer vectors that are known before any run: the dimensions that
// exporters compute for Reshape, Expand and If.
#include <algorithm>
#include <limits>

#include "core/shapes.h"
#include "formats/onnx/node_lowering.h"

namespace heddle::onnx {
namespace {

constexpr int64_t kMostEntries = 64;

using Number = std::optional<int64_t>;

const AttrValue* AttrOf(const DraftOp& op, std::string_view name) {
  for (const auto& [key, value] : op.attributes)
    if (key == name) return &value;
  return nullptr;
}
Ints IntsOrNone(const DraftOp& op, std::string_view name) {
  const AttrValue* value = AttrOf(op, name);
  const auto* ints = value == nullptr ? nullptr : std::get_if<Ints>(value);
  return ints == nullptr ? Ints() : *ints;
}
int64_t IntOf(const DraftOp& op, std::string_view name) {
  const AttrValue* value = AttrOf(op, name);
  const auto* i = value == nullptr ? nullptr : std::get_if<int64_t>(value);
  return i == nullptr ? 0 : *i;
}
int OperandOf(const DraftOp& op, std::string_view slot) {
  for (const auto& [name, vars] : op.inputs)
    if (name == slot && vars.size() == 1) return vars[0];
  return kNoDraft;
}

bool Fits(int64_t value, DType dtype) {
  if (dtype == DType::kI32)
    return value >= std::numeric_limits<int32_t>::min() &&
           value <= std::numeric_limits<int32_t>::max();
  return dtype == DType::kI64 || (dtype == DType::kBool && (value == 0 || value == 1));
}

// The result for one element; nothing: another operator, or overflow.
Number Combined(std::string_view type, int64_t a, int64_t b) {
  int64_t result = 0;
  if (type == "elementwise_add") return __builtin_add_overflow(a, b, &result) ? Number() : result;
  if (type == "elementwise_sub") return __builtin_sub_overflow(a, b, &result) ? Number() : result;
  if (type == "elementwise_mul") return __builtin_mul_overflow(a, b, &result) ? Number() : result;
  // Rounding towards zero and rounding down agree for these signs.
  if (type == "elementwise_div" || type == "elementwise_floordiv")
    return a < 0 || b <= 0 ? Number() : a / b;
  if (type == "equal") return a == b;
  if (type == "not_equal") return a != b;
  if (type == "less_than") return a < b;
  if (type == "less_equal") return a <= b;
  if (type == "greater_than") return a > b;
  if (type == "greater_equal") return a >= b;
  if (type == "logical_and") return a != 0 && b != 0;
  if (type == "logical_or") return a != 0 || b != 0;
  return std::nullopt;
}

// The elements that a slice takes from a vector.
std::optional<Entries> Sliced(const DraftOp& op, const Entries& all) {
  const Ints axes = IntsOrNone(op, "axes"), starts = IntsOrNone(op, "starts"),
             ends = IntsOrNone(op, "ends");
  if (axes != Ints{0} || starts.size() != 1 || ends.size() != 1) return std::nullopt;
  const auto size = static_cast<int64_t>(all.size());
  const auto place = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  const int64_t begin = place(starts[0]), end = std::max(begin, place(ends[0]));
  return Entries(all.begin() + begin, all.begin() + end);
}

}  // namespace

const Entries* NodeLowering::EntriesOf(int v) {
  if (v == kNoDraft) return nullptr;
  if (l_.facts(v).entries == nullptr && rank(v) >= 0 && rank(v) <= 1) {
    const auto ints = shape(v).is_static() && shape(v).numel() <= kMostEntries
                          ? ConstantInts(v)
                          : std::optional<Ints>();
    if (ints) {
      Entries entries;
      for (int64_t i : *ints) entries.push_back({i});
      l_.facts(v).entries = std::make_shared<const Entries>(std::move(entries));
    }
  }
  return l_.facts(v).entries.get();
}

std::optional<Entries> NodeLowering::EntriesMade(const DraftOp& op) {
  const std::string_view type = op.type;
  if (type == "shape") {
    const int x = OperandOf(op, "Input");
    if (rank(x) < 0 || kind(x) != Type::Kind::kTensor) return std::nullopt;
    Entries dims;
    for (int i = 0; i < rank(x); ++i) {
      const int64_t d = shape(x)[i];
      dims.push_back({d < 0 ? Number() : Number(d), x, i});
    }
    return dims;
  }
  if (type == "concat") {
    Entries all;
    for (const auto& [slot, vars] : op.inputs)
      for (int v : vars) {
        const Entries* part = EntriesOf(v);
        if (part == nullptr || rank(v) != 1 || IntOf(op, "axis") > 0) return std::nullopt;
        all.insert(all.end(), part->begin(), part->end());
        if (static_cast<int64_t>(all.size()) > kMostEntries) return std::nullopt;
      }
    return all;
  }
  if (type == "gather") {
    const Entries *data = EntriesOf(OperandOf(op, "X")), *at = EntriesOf(OperandOf(op, "Index"));
    if (data == nullptr || at == nullptr || rank(OperandOf(op, "X")) != 1) return std::nullopt;
    Entries taken;
    for (const Entry& e : *at) {
      const auto size = static_cast<int64_t>(data->size());
      const int64_t i = e.value.value_or(size);
      if (i < -size || i >= size) return std::nullopt;
      taken.push_back((*data)[static_cast<size_t>(i < 0 ? i + size : i)]);
    }
    return taken;
  }
  const Entries* x = EntriesOf(OperandOf(op, type == "slice" ? "Input" : "X"));
  if (x == nullptr) return std::nullopt;
  if (type == "slice") return Sliced(op, *x);
  if (type == "assign" || type == "squeeze2" || type == "unsqueeze2" || type == "reshape2")
    return *x;
  Entries made;
  if (type == "cast" || type == "logical_not") {
    const bool truth =
        type == "logical_not" || DTypeFromProto(IntOf(op, "out_dtype")) == DType::kBool;
    for (const Entry& e : *x)
      made.push_back(!truth    ? e
                     : e.value ? Entry{(*e.value != 0) != (type == "logical_not")}
                               : Entry());
    return made;
  }
  const Entries* y = EntriesOf(OperandOf(op, "Y"));
  if (y == nullptr || (x->size() != y->size() && x->size() != 1 && y->size() != 1))
    return std::nullopt;
  for (size_t i = 0; i < (x->size() == 1 ? y : x)->size(); ++i) {
    const Number a = (*x)[x->size() == 1 ? 0 : i].value, b = (*y)[y->size() == 1 ? 0 : i].value;
    made.push_back({a && b ? Combined(type, *a, *b) : std::nullopt});
  }
  return made;
}

void NodeLowering::FollowValues(const DraftOp& op, int made) {
  const DType dtype = this->dtype(made);
  const Shape& shape = this->shape(made);
  if ((dtype != DType::kI64 && dtype != DType::kI32 && dtype != DType::kBool) || shape.rank() > 1 ||
      !shape.known_rank())
    return;
  std::optional<Entries> entries = EntriesMade(op);
  if (!entries || static_cast<int64_t>(entries->size()) > kMostEntries ||
      (shape.is_static() ? shape.numel() : -1) != static_cast<int64_t>(entries->size()))
    return;
  bool all = true;
  for (Entry& e : *entries) {
    if (e.value && !Fits(*e.value, dtype)) e = {};
    all = all && e.value;
  }
  if (all) {
    Tensor value = Tensor::Empty(dtype, shape);
    for (size_t i = 0; i < entries->size(); ++i) {
      const int64_t e = *(*entries)[i].value;
      if (dtype == DType::kI64) value.mutable_data<int64_t>()[i] = e;
      if (dtype == DType::kI32) value.mutable_data<int32_t>()[i] = static_cast<int32_t>(e);
      if (dtype == DType::kBool) value.mutable_data<bool>()[i] = e != 0;
    }
    l_.facts(made).value = std::make_shared<const Tensor>(std::move(value));
  }
  l_.facts(made).entries = std::make_shared<const Entries>(*std::move(entries));
}

}  // namespace heddle::onnx
