#include "formats/lowering/tensor_bytes.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/memory/bytes.h"
#include "core/memory/truths.h"
#include "heddle/string_tensor.h"

namespace heddle::formats {
namespace {

// One value may stand for all elements, so a few bytes could claim any size: the limit, in bytes.
constexpr size_t kMostRepeated = size_t{2} << 30;

// Unpacks elements of `bits` bits; the first is in the lowest bits of a byte.
void UnpackBits(std::string_view raw, int bits, bool is_signed, int64_t count, uint8_t* to) {
  const int per_byte = 8 / bits, mask = (1 << bits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(raw[static_cast<size_t>(i / per_byte)]);
    int v = byte >> (i % per_byte * bits) & mask;
    if (is_signed && v > mask / 2) v -= mask + 1;
    to[i] = static_cast<uint8_t>(v);
  }
}

template <typename From, typename To>
void Widen(std::string_view raw, int64_t count, void* to) {
  for (int64_t i = 0; i < count; ++i) {
    From v;
    std::memcpy(&v, raw.data() + static_cast<size_t>(i) * sizeof(From), sizeof(From));
    static_cast<To*>(to)[i] = static_cast<To>(v);
  }
}

Status WrongCount(const TensorBytes& data, uint64_t want, uint64_t got) {
  return InvalidArgument(data.What(), ": ", got, " values are stored, ", want, " are expected");
}

// Writes the values of a tensor, the last of which may stand for all that are left out.
template <typename T>
class Values {
 public:
  Values(void* to, uint64_t count) : to_(static_cast<T*>(to)), count_(count) {}
  void Add(T value) {
    if (seen_ < count_) to_[seen_] = value;
    ++seen_;
  }
  // Fills up with the last value where `repeats`; false: the number of values is wrong.
  bool Finish(bool repeats) {
    if (!repeats) return seen_ == count_;
    if (seen_ < count_) std::fill(to_ + seen_, to_ + count_, seen_ > 0 ? to_[seen_ - 1] : T{});
    return true;
  }
  uint64_t seen() const { return seen_; }

 private:
  T* const to_;
  const uint64_t count_;
  uint64_t seen_ = 0;
};

// Unpacks varints; `made` converts one to an element.
template <typename T, typename Made>
Status UnpackVarints(const TensorBytes& data, uint64_t count, void* to, Made made) {
  Values<T> values(to, count);
  for (std::string_view rest : data.typed) {
    uint64_t v = 0;
    while (!rest.empty()) {
      if (!wire::TakeVarint(&rest, &v)) return DataLoss(data.What(), ": damaged values");
      values.Add(made(v));
    }
  }
  return values.Finish(data.repeats) ? Status::Ok() : WrongCount(data, count, values.seen());
}

Status UnpackIntegers(const TensorBytes& data, int64_t count, void* to) {
  const ElementType& element = *data.element;
  const auto n = static_cast<uint64_t>(count);
  if (element.storage == DType::kBool)
    return UnpackVarints<bool>(data, n, to, [](uint64_t v) { return v != 0; });
  if (element.bits < 8) {
    std::string packed(element.RawBytes(count), '\0');
    HEDDLE_RETURN_IF_ERROR(UnpackVarints<uint8_t>(
        data, packed.size(), packed.data(), [](uint64_t v) { return static_cast<uint8_t>(v); }));
    element.Unpack(packed, count, to);
    return Status::Ok();
  }
  const uint64_t mask = ~uint64_t{0} >> (64 - element.bits);
  const auto unpack = [&](auto zero) {
    using T = decltype(zero);
    return UnpackVarints<T>(data, n, to, [mask](uint64_t v) { return static_cast<T>(v & mask); });
  };
  switch (SizeOf(element.storage)) {
    case 1:
      return unpack(uint8_t{});
    case 2:
      return unpack(uint16_t{});
    case 4:
      return unpack(uint32_t{});
    default:
      return unpack(uint64_t{});
  }
}

Status UnpackFixed(const TensorBytes& data, int64_t count, void* to) {
  const size_t size = SizeOf(data.element->storage);
  const size_t want = static_cast<size_t>(count) * size;
  size_t stored = 0;
  char* const at = static_cast<char*>(to);
  for (std::string_view part : data.typed) {
    if (stored < want) std::memcpy(at + stored, part.data(), std::min(part.size(), want - stored));
    stored += part.size();
  }
  if (!data.repeats)
    return stored == want ? Status::Ok()
                          : WrongCount(data, static_cast<uint64_t>(count), stored / size);
  if (stored % size != 0) return DataLoss(data.What(), ": damaged values");
  if (stored == 0 && want > 0) std::memset(to, 0, want);
  for (size_t i = stored; stored > 0 && i < want; i += size)
    std::memcpy(at + i, at + stored - size, size);
  return Status::Ok();
}

Status UnpackTyped(const TensorBytes& data, int64_t count, void* to) {
  if (!data.typed.empty() && data.typed_field != data.element->field)
    return InvalidArgument(data.What(), ": its values are in field ", data.typed_field,
                           " of the tensor's message; those of this type belong into field ",
                           data.element->field);
  return data.element->FixedWidth() > 0 ? UnpackFixed(data, count, to)
                                        : UnpackIntegers(data, count, to);
}

// Checks that the contents are there, before memory is allocated for them.
Status CheckContents(const TensorBytes& data, int64_t count) {
  const auto n = static_cast<uint64_t>(count);
  const size_t raw_bytes = data.element->RawBytes(count);
  if (data.has_raw)
    return data.raw.size() == raw_bytes
               ? Status::Ok()
               : InvalidArgument(data.What(), ": ", data.raw.size(), " bytes are stored, ",
                                 raw_bytes, " are expected");
  size_t typed_bytes = 0;
  for (std::string_view part : data.typed) typed_bytes += part.size();
  if (!data.repeats && typed_bytes * 8 < n) return WrongCount(data, n, typed_bytes);
  if (data.repeats && typed_bytes < n && n * SizeOf(data.element->storage) > kMostRepeated)
    return InvalidArgument(data.What(), " is larger than ", kMostRepeated, " bytes, for which ",
                           typed_bytes, " bytes of values stand");
  return Status::Ok();
}

Result<Value> MakeStrings(const TensorBytes& data) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, data.Count());
  const auto n = static_cast<size_t>(count);
  if (data.has_raw || data.external)
    return InvalidArgument(data.What(), ": strings cannot be stored as raw data");
  if (!data.repeats && n != data.strings.size()) return WrongCount(data, n, data.strings.size());
  const std::string_view last = data.strings.empty() ? std::string_view() : data.strings.back();
  if (data.strings.size() < n && n > kMostRepeated / (sizeof(std::string) + last.size()))
    return InvalidArgument(data.What(), " is larger than ", kMostRepeated, " bytes");
  std::vector<std::string> texts;
  texts.reserve(n);
  for (size_t i = 0; i < n; ++i)
    texts.emplace_back(i < data.strings.size() ? data.strings[i] : last);
  return ValueOf(StringTensor{Shape(std::span<const int64_t>(data.dims)), std::move(texts)});
}

}  // namespace

size_t ElementType::FixedWidth() const {
  if (storage == DType::kF32 || storage == DType::kC64) return sizeof(float);
  if (storage == DType::kF64 || storage == DType::kC128) return sizeof(double);
  return 0;
}

bool ElementType::IsRawStorage() const {
  return bits > 0 && bits == static_cast<int>(SizeOf(storage)) * 8 && storage != DType::kBool;
}

void ElementType::Unpack(std::string_view raw, int64_t count, void* to) const {
  if (count == 0) return;
  if (bits < 8)
    UnpackBits(raw, bits, storage == DType::kI8, count, static_cast<uint8_t*>(to));
  else if (IsRawStorage() || storage == DType::kBool)
    std::memcpy(to, raw.data(), raw.size());
  else if (bits == 16)
    Widen<uint16_t, int32_t>(raw, count, to);
  else
    Widen<uint32_t, int64_t>(raw, count, to);
  if (storage == DType::kBool) MakeTruths(to, raw.size());
}

const ElementType* ElementTypes::Find(int64_t type) const {
  for (const ElementType& t : types_)
    if (t.type == type) return &t;
  return nullptr;
}

DType ElementTypes::StorageOf(int64_t type) const {
  const ElementType* t = Find(type);
  return t == nullptr ? DType::kUnknown : t->storage;
}

int ElementTypes::TypeOf(DType storage) const {
  for (const ElementType& t : types_)
    if (t.storage == storage && t.bits > 0 && t.bits == static_cast<int>(SizeOf(storage)) * 8)
      return t.type;
  return 0;
}

bool TensorBytes::AddTyped(const wire::Field& f, size_t width) {
  using wire::Field;
  const uint32_t single = width == 4   ? Field::kFixed32
                          : width == 8 ? Field::kFixed64
                                       : Field::kVarint;
  if (f.wire_type != Field::kBytes && f.wire_type != single) return false;
  typed_field = f.number;
  std::string_view part = f.payload;
  if (f.wire_type == Field::kVarint) {  // the value after the tag
    part = f.whole;
    uint64_t tag = 0;
    wire::TakeVarint(&part, &tag);
  }
  if (width > 0 && part.size() % width != 0) return false;
  typed.push_back(part);
  return true;
}

std::string TensorBytes::TypeText() const {
  std::string text = element == nullptr ? StrCat("type ", type) : std::string(element->name);
  for (size_t i = 0; i < dims.size(); ++i) text += StrCat(i == 0 ? " [" : ", ", dims[i]);
  return text + (dims.empty() ? " []" : "]");
}

std::string TensorBytes::What() const {
  if (name.empty()) return "a tensor of " + TypeText();
  return StrCat("tensor '", name, "' (", TypeText(), ")");
}

Result<int64_t> TensorBytes::Count() const {
  HEDDLE_ASSIGN_OR_RETURN(const size_t bytes, StoredBytes());
  const size_t size = element == nullptr ? 1 : std::max<size_t>(SizeOf(element->storage), 1);
  return static_cast<int64_t>(bytes / size);
}

Result<size_t> TensorBytes::StoredBytes() const {
  if (unknown_rank) return InvalidArgument("a tensor of unknown rank");
  if (dims.size() > static_cast<size_t>(Shape::kMaxRank))
    return Unimplemented(What(), ": rank ", dims.size(), " is above the limit of ",
                         Shape::kMaxRank);
  unsigned __int128 bytes = element == nullptr ? 1 : std::max<size_t>(SizeOf(element->storage), 1);
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) return InvalidArgument(What(), ": a negative dimension");
    empty = empty || d == 0;
    bytes = d > 0 && bytes < kImpossibleBytes ? bytes * static_cast<uint64_t>(d) : bytes;
  }
  if (empty) return size_t{0};
  if (bytes >= kImpossibleBytes) return InvalidArgument(What(), " is larger than any memory");
  return static_cast<size_t>(bytes);
}

bool TensorBytes::MayBeLookedInto() const {
  const auto count = Count();
  return !is_text() && count.ok() && *count <= kMostLookedInto;
}

Result<Tensor> MakeTensor(const TensorBytes& data) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, data.Count());
  if (data.is_text()) return InvalidArgument(data.What(), ": numbers are expected here");
  if (data.element == nullptr || data.element->bits == 0)
    return Unimplemented(data.What(), ": this is no element type that heddle knows");
  if (data.external) return InvalidArgument(data.What(), ": its external data is not at hand here");
  HEDDLE_RETURN_IF_ERROR(CheckContents(data, count));
  Tensor t = Tensor::Empty(data.element->storage, Shape(std::span<const int64_t>(data.dims)));
  if (!t.initialized() && count > 0) return ResourceExhausted(data.What(), ": no memory for it");
  if (data.has_raw)
    data.element->Unpack(data.raw, count, t.mutable_raw());
  else
    HEDDLE_RETURN_IF_ERROR(UnpackTyped(data, count, t.mutable_raw()));
  return t;
}

Result<Value> MakeValue(const TensorBytes& data) {
  if (data.is_text()) return MakeStrings(data);
  HEDDLE_ASSIGN_OR_RETURN(Tensor t, MakeTensor(data));
  return Value(std::move(t));
}

}  // namespace heddle::formats
