#include "engines/process/group_text.h"

#include <cstring>

namespace heddle_process {
namespace {

// Marks the values that the group's operators name.
std::vector<bool> Named(const heddle_engine_group& group) {
  std::vector<bool> named(group.num_values);
  const auto note = [&](const int32_t* values, size_t count) {
    for (size_t i = 0; i < count; ++i)
      if (values[i] >= 0) named[static_cast<size_t>(values[i])] = true;
  };
  for (size_t k = 0; k < group.num_operators; ++k) {
    const heddle_engine_operator& op = *group.operators[k];
    for (size_t s = 0; s < op.num_inputs; ++s) note(op.inputs[s]->values, op.inputs[s]->count);
    for (size_t a = 0; a < op.num_attributes; ++a)
      if (op.attributes[a]->kind == HEDDLE_ENGINE_HELD)
        note(op.attributes[a]->values, op.attributes[a]->count);
  }
  return named;
}

template <typename T>
void WriteNumbers(const T* numbers, size_t count, Writer* to) {
  to->Number(static_cast<int64_t>(count));
  for (size_t i = 0; i < count; ++i) to->Number(numbers[i]);
}

void WriteSlots(const heddle_engine_slot* const* slots, size_t count, Writer* to) {
  to->Number(static_cast<int64_t>(count));
  for (size_t s = 0; s < count; ++s) {
    to->Text(slots[s]->name);
    WriteNumbers(slots[s]->values, slots[s]->count, to);
  }
}

void WriteAttribute(const heddle_engine_attribute& a, Writer* to) {
  to->Text(a.name);
  to->Number(a.kind);
  switch (a.kind) {
    case HEDDLE_ENGINE_REAL:
    case HEDDLE_ENGINE_REALS:
      to->Number(static_cast<int64_t>(a.count));
      for (size_t i = 0; i < a.count; ++i) to->Real(a.reals[i]);
      break;
    case HEDDLE_ENGINE_TEXT:
    case HEDDLE_ENGINE_TEXTS:
      to->Number(static_cast<int64_t>(a.count));
      for (size_t i = 0; i < a.count; ++i) to->Text(a.texts[i]);
      break;
    case HEDDLE_ENGINE_HELD:
      WriteNumbers(a.values, a.count, to);
      break;
    default:
      WriteNumbers(a.ints, a.count, to);
  }
}

// Contents that are not there have -1 bytes.
void WriteContents(const void* data, size_t bytes, Writer* to, std::byte** at) {
  to->Number(data != nullptr ? static_cast<int64_t>(bytes) : -1);
  if (data == nullptr) return;
  if (bytes > 0) std::memcpy(*at, data, bytes);
  *at += Aligned(bytes);
}

}  // namespace

Later LaterOf(const heddle_engine_group& group) {
  if (group.size < offsetof(heddle_engine_group, later) + sizeof group.later) return {};
  return {group.host, group.later};
}

size_t ContentBytes(const heddle_engine_group& group, Contents contents) {
  if (contents == Contents::kNo) return 0;
  const std::vector<bool> named = Named(group);
  size_t bytes = group.onnx != nullptr ? Aligned(group.onnx_bytes) : 0;
  for (size_t i = 0; i < group.num_values; ++i)
    if (named[i] && group.values[i]->data != nullptr) bytes += Aligned(group.values[i]->bytes);
  return bytes;
}

void Write(const heddle_engine_group& group, Contents contents, Writer* to, std::byte** at) {
  std::vector<bool> named(group.num_values);  // whose contents go with it
  if (contents == Contents::kYes) named = Named(group);
  to->Text(group.symbol);
  to->Number(static_cast<int64_t>(group.num_values));
  for (size_t i = 0; i < group.num_values; ++i) {
    const heddle_engine_value& v = *group.values[i];
    to->Text(v.name);
    to->Number(v.dtype);
    to->Number(v.rank);
    WriteNumbers(v.dims, v.rank > 0 ? static_cast<size_t>(v.rank) : 0, to);
    WriteContents(named[i] ? v.data : nullptr, v.bytes, to, at);
  }
  to->Number(static_cast<int64_t>(group.num_operators));
  for (size_t k = 0; k < group.num_operators; ++k) {
    const heddle_engine_operator& op = *group.operators[k];
    to->Text(op.type);
    WriteSlots(op.inputs, op.num_inputs, to);
    WriteSlots(op.outputs, op.num_outputs, to);
    to->Number(static_cast<int64_t>(op.num_attributes));
    for (size_t a = 0; a < op.num_attributes; ++a) WriteAttribute(*op.attributes[a], to);
  }
  WriteNumbers(group.inputs, group.num_inputs, to);
  WriteNumbers(group.outputs, group.num_outputs, to);
  WriteContents(contents == Contents::kYes ? group.onnx : nullptr, group.onnx_bytes, to, at);
  to->Number(LaterOf(group).give != nullptr ? 1 : 0);
}

const std::vector<int64_t>& GroupCopy::Longs(Reader* from) {
  auto& list = longs_.emplace_back(from->Count());
  for (int64_t& n : list) n = from->Number();
  return list;
}

const std::vector<int32_t>& GroupCopy::Indices(Reader* from) {
  auto& list = indices_.emplace_back(from->Count());
  for (int32_t& n : list) n = static_cast<int32_t>(from->Number());
  return list;
}

const heddle_engine_slot* const* GroupCopy::Slots(Reader* from, size_t* count) {
  auto& list = slot_lists_.emplace_back();
  *count = from->Count();
  for (size_t s = 0; s < *count; ++s) {
    const char* const name = Text(from);
    const auto& values = Indices(from);
    slots_.push_back({sizeof(heddle_engine_slot), name, values.size(), values.data()});
    list.push_back(&slots_.back());
  }
  return list.data();
}

const heddle_engine_attribute* const* GroupCopy::Attributes(Reader* from, size_t* count) {
  auto& list = attribute_lists_.emplace_back();
  *count = from->Count();
  for (size_t i = 0; i < *count; ++i) {
    heddle_engine_attribute& a = attributes_.emplace_back();
    a.size = sizeof a;
    a.name = Text(from);
    a.kind = static_cast<int32_t>(from->Number());
    switch (a.kind) {
      case HEDDLE_ENGINE_REAL:
      case HEDDLE_ENGINE_REALS: {
        auto& reals = reals_.emplace_back(from->Count());
        for (double& d : reals) d = from->Real();
        a.count = reals.size();
        a.reals = reals.data();
        break;
      }
      case HEDDLE_ENGINE_TEXT:
      case HEDDLE_ENGINE_TEXTS: {
        auto& texts = text_lists_.emplace_back(from->Count());
        for (const char*& text : texts) text = Text(from);
        a.count = texts.size();
        a.texts = texts.data();
        break;
      }
      case HEDDLE_ENGINE_HELD: {
        const auto& values = Indices(from);
        a.count = values.size();
        a.values = values.data();
        break;
      }
      default: {
        const auto& ints = Longs(from);
        a.count = ints.size();
        a.ints = ints.data();
      }
    }
    list.push_back(&a);
  }
  return list.data();
}

const void* GroupCopy::ContentsOf(Reader* from, const std::byte** at, const std::byte* end,
                                  size_t* bytes) {
  const int64_t claimed = from->Number();
  if (claimed < 0 || static_cast<int64_t>(end - *at) < claimed) return nullptr;
  *bytes = static_cast<size_t>(claimed);
  const std::byte* const contents = *at;
  *at += Aligned(*bytes);
  return contents;
}

GroupCopy::GroupCopy(Reader* from, const std::byte** at, const std::byte* end) {
  group_.size = sizeof group_;
  group_.symbol = Text(from);
  group_.num_values = from->Count();
  for (size_t i = 0; i < group_.num_values; ++i) {
    heddle_engine_value& v = values_.emplace_back();
    v.size = sizeof v;
    v.name = Text(from);
    v.dtype = static_cast<int32_t>(from->Number());
    v.rank = static_cast<int32_t>(from->Number());
    v.dims = Longs(from).data();
    v.data = ContentsOf(from, at, end, &v.bytes);
    value_list_.push_back(&v);
  }
  group_.num_operators = from->Count();
  for (size_t k = 0; k < group_.num_operators; ++k) {
    heddle_engine_operator& op = operators_.emplace_back();
    op.size = sizeof op;
    op.type = Text(from);
    op.inputs = Slots(from, &op.num_inputs);
    op.outputs = Slots(from, &op.num_outputs);
    op.attributes = Attributes(from, &op.num_attributes);
    operator_list_.push_back(&op);
  }
  const auto& inputs = Indices(from);
  const auto& outputs = Indices(from);
  group_.onnx = ContentsOf(from, at, end, &group_.onnx_bytes);
  has_more_ = from->Number() != 0;
  group_.values = value_list_.data();
  group_.operators = operator_list_.data();
  group_.num_inputs = inputs.size();
  group_.inputs = inputs.data();
  group_.num_outputs = outputs.size();
  group_.outputs = outputs.data();
}

size_t SizeOf(int32_t dtype) {
  constexpr size_t kSizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return dtype >= 0 && dtype < HEDDLE_ENGINE_UNKNOWN ? kSizes[dtype] : 0;
}

}  // namespace heddle_process
