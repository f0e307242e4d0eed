// TensorBytes: a tensor as a message of a file holds it, and its conversion to heddle's tensors.
// The contents may be raw bytes, values in a field of their own, several elements per byte, or one
// value that stands for all.
//
// Ownership: a TensorBytes refers to the bytes that it was read from. Threads: any may read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/wire_fields.h"
#include "heddle/dtype.h"
#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle::formats {

// How a format stores the elements of one type. An element narrower than its storage is extended:
// by its sign where the storage is int8, else with zeros.
struct ElementType {
  int type = 0;  // the format's number for it
  std::string_view name;
  DType storage = DType::kUnknown;  // the dtype in which heddle holds the elements
  int bits = 0;                     // of an element in raw bytes; 0: it has no raw form
  uint32_t field = 0;  // number of the field in the tensor's message that has values of this type
  bool is_text = false;

  size_t RawBytes(int64_t count) const {
    return (static_cast<size_t>(count) * static_cast<size_t>(bits) + 7) / 8;
  }
  // Bytes per value on the wire for fixed32 and fixed64 numbers; 0: varints.
  size_t FixedWidth() const;
  // Whether raw bytes have the layout of the storage. Those of bools do not: in a file any byte but
  // 0 is true, in memory 1 alone.
  bool IsRawStorage() const;
  // Unpacks raw elements to the storage. Precondition: raw.size() is RawBytes(count).
  void Unpack(std::string_view raw, int64_t count, void* to) const;
};

// The element types of a format. The table must outlive it.
class ElementTypes {
 public:
  explicit constexpr ElementTypes(std::span<const ElementType> types) : types_(types) {}
  // The entry of a type; null: there is none.
  const ElementType* Find(int64_t type) const;
  DType StorageOf(int64_t type) const;
  // The first type with this storage; 0: there is none.
  int TypeOf(DType storage) const;

 private:
  std::span<const ElementType> types_;
};

// Readers look into constants of at most so many elements while they lower a graph. Of larger ones
// they use the type and the dimensions alone.
inline constexpr int64_t kMostLookedInto = 1024;

struct TensorBytes {
  std::string_view name;  // empty: it has none
  int type = 0;
  const ElementType* element = nullptr;  // of `type`; null: heddle does not know the type
  std::vector<int64_t> dims;
  bool unknown_rank = false;
  std::string_view raw;
  bool has_raw = false;
  bool external = false;                                // the contents are in another file
  std::string_view location, offset, length, checksum;  // of the contents, as strings in the file
  // Values in wire encoding (fixed32, fixed64 or varints), in ranges of bytes. Elements narrower
  // than a byte are packed, and each value holds one byte of them.
  std::vector<std::string_view> typed;
  uint32_t typed_field = 0;
  std::vector<std::string_view> strings;
  // Values may be missing: the last one stands for the rest, zero where there is none. Surplus
  // values are ignored.
  bool repeats = false;

  bool is_text() const { return element != nullptr && element->is_text; }
  // The number of elements, and of bytes of heddle's tensor. kInvalidArgument: a dimension is
  // negative, or the product is larger than any memory; kUnimplemented: a rank above heddle's
  // limit.
  Result<int64_t> Count() const;
  Result<size_t> StoredBytes() const;
  // Whether a reader may look into the elements, so that the program may depend on them.
  bool MayBeLookedInto() const;
  // Adds values of a field: one value, or a packed list. `width` is ElementType::FixedWidth. False:
  // the field is damaged.
  bool AddTyped(const wire::Field& field, size_t width);
  // "float32 [2, 3]"
  std::string TypeText() const;
  // "tensor 'w' (float32 [2, 3])"
  std::string What() const;
};

// Makes the tensor in memory of its own; MakeValue makes a StringTensor for strings. Memory is
// allocated only for contents that are there or, where one value stands for all, for at most 2 GiB.
// kInvalidArgument: the contents do not fit type and dims, or are external; kDataLoss;
// kUnimplemented; kResourceExhausted.
Result<Value> MakeValue(const TensorBytes& data);
Result<Tensor> MakeTensor(const TensorBytes& data);

}  // namespace heddle::formats
