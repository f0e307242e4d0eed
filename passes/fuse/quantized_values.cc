#include "passes/fuse/quantized_values.h"

#include <algorithm>
#include <cmath>

#include "core/memory/lazy_buffer.h"
#include "passes/cleanup/evaluate.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::VarId;

// ONNX's numbers of element types that tensors hold as they are.
bool IsOwnType(int64_t elem_type, DType dtype) {
  constexpr int64_t kUint8 = 2, kInt8 = 3, kInt32 = 6;
  return elem_type == 0 || (dtype == DType::kU8 && elem_type == kUint8) ||
         (dtype == DType::kI8 && elem_type == kInt8) ||
         (dtype == DType::kI32 && elem_type == kInt32);
}
bool IsFactor(float scale) { return std::isnormal(scale); }

}  // namespace

const Tensor* QuantizedValues::Parameter(VarId v, bool contents) {
  if (v == ir::kNoVar || !p_.vars[v].persistable || !view_.NeverWritten(v) ||
      context_.fed.count(v) > 0)
    return nullptr;
  const Tensor* const t = context_.Parameter(p_, v, false, contents);
  return t != nullptr && t->initialized() ? context_.Parameter(p_, v, true, contents) : nullptr;
}

template <typename T>
std::vector<T> QuantizedValues::Elements(VarId v) {
  const Tensor* const t = Parameter(v);
  if (t == nullptr) return {};
  if constexpr (std::is_same_v<T, float>) {
    if (t->dtype() != DType::kF32) return {};
    return std::vector<float>(t->data<float>(), t->data<float>() + t->numel());
  } else {
    const auto read = [&](const auto* from) { return std::vector<T>(from, from + t->numel()); };
    if (t->dtype() == DType::kU8) return read(t->data<uint8_t>());
    if (t->dtype() == DType::kI8) return read(t->data<int8_t>());
    if (t->dtype() == DType::kI32) return read(t->data<int32_t>());
    return {};
  }
}

std::optional<Tensor> QuantizedValues::Bytes(VarId v) {
  if (const auto it = quantized_.find(v); it != quantized_.end()) return it->second;
  const Tensor* const t = Parameter(v, false);
  return t != nullptr ? std::optional<Tensor>(*t) : std::nullopt;
}

bool QuantizedValues::NoteConstant(const ir::Op& op) {
  const VarId x = op.In("x")[0], y = op.Out("y")[0];
  const Tensor* const t = Parameter(x);
  if (t == nullptr || y == ir::kNoVar || !view_.SingleWriter(y)) return false;
  if (auto value = Apply(op, Value(*t))) quantized_[y] = value->tensor();
  return true;
}

void QuantizedValues::Note(const ir::Op& op, int at) {
  const VarId x = op.In("x")[0], y = op.Out("y")[0], scale = op.In("x_scale")[0];
  if (x == ir::kNoVar || y == ir::kNoVar || !view_.SingleWriter(y) ||
      p_.vars[y].dtype != DType::kF32 || op.Attr<int64_t>("block_size") != 0)
    return;
  Dequantized d;
  d.writer = &op;
  d.scale = Elements<float>(scale);
  if (d.scale.empty() || !std::all_of(d.scale.begin(), d.scale.end(), IsFactor)) return;
  const VarId zero = op.In("x_zero_point").empty() ? ir::kNoVar : op.In("x_zero_point")[0];
  if (zero == ir::kNoVar)
    d.zero.assign(d.scale.size(), 0);
  else
    d.zero = Elements<int32_t>(zero);
  if (d.zero.size() != d.scale.size()) return;
  if (const auto value = Bytes(x)) {
    d.constant = true;
    d.value = *value;
    d.dtype = value->dtype();
  } else {
    if (!view_.WrittenBefore(x, at) || p_.vars[x].kind != ir::VarKind::kTensor) return;
    d.dtype = p_.vars[x].dtype;
  }
  const bool bytes = d.dtype == DType::kU8 || d.dtype == DType::kI8;
  if ((!bytes && !(d.constant && d.dtype == DType::kI32)) ||
      !IsOwnType(op.Attr<int64_t>("elem_type"), d.dtype))
    return;
  if (zero != ir::kNoVar && Parameter(zero)->dtype() != d.dtype) return;
  if (quantized_.count(x) == 0) d.integers = x;
  if (!d.whole()) {
    const Shape& shape = d.constant ? d.value.shape() : p_.vars[x].shape;
    const int64_t axis = op.Attr<int64_t>("axis");
    if (!shape.known_rank() || axis < -shape.rank() || axis >= shape.rank()) return;
    d.axis = static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
    if (shape[d.axis] != static_cast<int64_t>(d.scale.size())) return;
  }
  known_[y] = std::move(d);
}

const Dequantized* QuantizedValues::Find(VarId v) const {
  const auto it = known_.find(v);
  return it != known_.end() && it->second.dtype != DType::kI32 ? &it->second : nullptr;
}

void QuantizedValues::MoveConstant(const ir::Op& op, const Dequantized& x) {
  if (op.type() != "transpose2") return;
  const Ints& perm = op.Attr<Ints>("axis");
  if (static_cast<int>(perm.size()) != x.value.rank()) return;
  Dequantized moved = x;
  if (!x.whole()) {
    const auto to = std::find(perm.begin(), perm.end(), int64_t{x.axis});
    if (to == perm.end()) return;
    moved.axis = static_cast<int>(to - perm.begin());
  }
  const BorrowedContents contents(x.value);
  const auto value = Apply(op, Value(contents.tensor()));
  if (!value) return;
  moved.value = value->tensor().Clone();
  moved.integers = ir::kNoVar;
  known_[op.outputs[0][0]] = std::move(moved);
}

VarId QuantizedValues::Operand(const Dequantized& d, const std::string& stem) {
  return d.integers != ir::kNoVar ? d.integers
                                  : context_.AddConstant(p_, stem + ".integers", d.value.Clone());
}

std::optional<VarId> QuantizedValues::ZeroOperand(const Dequantized& d, const std::string& stem) {
  if (std::all_of(d.zero.begin(), d.zero.end(), [](int32_t z) { return z == 0; }))
    return std::nullopt;
  Tensor t = Tensor::Empty(d.dtype, {static_cast<int64_t>(d.zero.size())});
  for (size_t i = 0; i < d.zero.size(); ++i)
    static_cast<uint8_t*>(t.mutable_raw())[i] = static_cast<uint8_t>(d.zero[i]);
  return context_.AddConstant(p_, stem + ".zero", std::move(t));
}

std::optional<Quantized8> QuantizedValues::QuantisationBy(const ir::Op& op) {
  const VarId y = op.Out("y")[0];
  const int64_t precision = op.Attr<int64_t>("precision");
  if (y == ir::kNoVar || !op.var_attrs.empty() || op.Attr<int64_t>("block_size") != 0 ||
      precision > 1 || p_.vars[op.In("x")[0]].dtype != DType::kF32 || !view_.SingleWriter(y))
    return std::nullopt;
  const std::vector<float> scale = Elements<float>(op.In("y_scale")[0]);
  if (scale.size() != 1 || !IsFactor(scale[0])) return std::nullopt;
  Quantized8 q{scale[0], 0, p_.vars[y].dtype};
  if (!op.In("y_zero_point").empty() && op.In("y_zero_point")[0] != ir::kNoVar) {
    const std::vector<int32_t> zero = Elements<int32_t>(op.In("y_zero_point")[0]);
    if (zero.size() != 1) return std::nullopt;
    q.zero = zero[0];
    q.dtype = Parameter(op.In("y_zero_point")[0])->dtype();
  }
  if ((q.dtype != DType::kU8 && q.dtype != DType::kI8) || p_.vars[y].dtype != q.dtype ||
      !IsOwnType(op.Attr<int64_t>("elem_type"), q.dtype))
    return std::nullopt;
  return q;
}

std::optional<Tensor> QuantizedValues::Floats(VarId v) {
  if (const auto it = known_.find(v); it != known_.end() && it->second.constant) {
    const BorrowedContents contents(it->second.value);
    const Value integers(contents.tensor());
    const auto real = Apply(*it->second.writer, integers);
    return real ? std::optional<Tensor>(real->tensor()) : std::nullopt;
  }
  const Tensor* const t = Parameter(v);
  if (t == nullptr || t->dtype() != DType::kF32) return std::nullopt;
  return *t;
}

std::optional<ByteTable> QuantizedValues::TableOf(const std::vector<const ir::Op*>& chain,
                                                  const Dequantized& x, const Quantized8& q) {
  ByteTable table;
  Tensor t = Tensor::Empty(DType::kF32, {static_cast<int64_t>(table.size())});
  for (size_t i = 0; i < table.size(); ++i)
    t.mutable_data<float>()[i] = x.RealOf(static_cast<uint8_t>(i));
  Value value(std::move(t));
  for (size_t i = chain.size(); i-- > 0;) {
    auto next = Apply(*chain[i], value);
    if (!next) return std::nullopt;
    value = *std::move(next);
  }
  const Tensor& bytes = value.tensor();
  if (bytes.dtype() != q.dtype || bytes.numel() != static_cast<int64_t>(table.size()))
    return std::nullopt;
  std::copy_n(static_cast<const uint8_t*>(bytes.raw()), table.size(), table.begin());
  return table;
}

ByteTable QuantizedValues::TableOfPair(bool sum, const Dequantized& x, const Dequantized& number,
                                       double least, double most, const Quantized8& q) {
  const BorrowedContents contents(number.value);
  const float c = number.RealOf(*static_cast<const uint8_t*>(contents.tensor().raw()));
  const float low = q.dtype == DType::kU8 ? 0.f : -128.f;
  ByteTable table;
  for (size_t i = 0; i < table.size(); ++i) {
    const float v = x.RealOf(static_cast<uint8_t>(i));
    float w = sum ? v + c : v * c;
    w = std::min(std::max(w, static_cast<float>(least)), static_cast<float>(most));
    w = std::nearbyint(w / q.scale) + static_cast<float>(q.zero);
    w = std::min(std::max(w, low), low + 255.f);
    table[i] = static_cast<uint8_t>(static_cast<int32_t>(w));
  }
  return table;
}

std::optional<Value> QuantizedValues::Apply(const ir::Op& op, const Value& x) {
  std::vector<Value> others;
  others.reserve(8);
  std::vector<const Value*> inputs;
  bool first = true;
  for (const auto& slot : op.inputs)
    for (const VarId v : slot) {
      const Tensor* t = nullptr;
      if (!first && v != ir::kNoVar && (t = Parameter(v)) == nullptr) return std::nullopt;
      if (others.size() == others.capacity()) return std::nullopt;
      inputs.push_back(first ? &x : t != nullptr ? &others.emplace_back(*t) : nullptr);
      first = false;
    }
  auto outputs = Evaluate(op, inputs, context_.options().max_folded_bytes);
  if (!outputs.ok() || outputs->empty() || !(*outputs)[0].is_tensor() ||
      !(*outputs)[0].tensor().initialized())
    return std::nullopt;
  return std::move((*outputs)[0]);
}

}  // namespace heddle::passes
