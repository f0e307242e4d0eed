// Tensors as messages of files hold them, and heddle's tensors of them: raw bytes, values of a
// field of their own, several elements in a byte, one value that stands for all.
//
// Ownership: TensorBytes refers to the bytes that it was read from. Threads: any may read.
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

// How a format stores the elements of one type. What is narrower than its storage is extended: with
// its sign where the storage is int8, else with zeros.
struct ElementType {
  int type = 0;  // the format's number of it
  std::string_view name;
  DType storage = DType::kUnknown;  // what heddle holds elements in
  int bits = 0;                     // of an element in raw bytes; 0: it has no raw form
  uint32_t field = 0;               // of the tensor's message, with values of this type
  bool is_text = false;

  size_t RawBytes(int64_t count) const {
    return (static_cast<size_t>(count) * static_cast<size_t>(bits) + 7) / 8;
  }
  // Bytes of a number on the wire, where values are fixed32 or fixed64 numbers; 0: they are
  // varints.
  size_t FixedWidth() const;
  // Whether raw bytes are the storage as they stand. Those of bools are not: any byte but 0 is true
  // in a file, and 1 alone in memory.
  bool IsRawStorage() const;
  // Unpacks raw elements to the storage. Precondition: raw.size() is RawBytes(count).
  void Unpack(std::string_view raw, int64_t count, void* to) const;
};

// The element types of a format. The table must outlive it.
class ElementTypes {
 public:
  explicit constexpr ElementTypes(std::span<const ElementType> types) : types_(types) {}
  // Null: there is no such type.
  const ElementType* Find(int64_t type) const;
  DType StorageOf(int64_t type) const;
  // The first type that fills this storage; 0: there is none.
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
  std::string_view location, offset, length, checksum;  // of them, as the file says it
  // Values as they stand on the wire, fixed32 or fixed64 numbers or varints, in stretches. Elements
  // of less than a byte lie in bytes, of which each is a value.
  std::vector<std::string_view> typed;
  uint32_t typed_field = 0;
  std::vector<std::string_view> strings;
  // Values may be left out: the last one stands for them, and zero where there is none. Values too
  // many are ignored.
  bool repeats = false;

  bool is_text() const { return element != nullptr && element->is_text; }
  // Elements, and bytes of heddle's tensor. kInvalidArgument: dimensions are negative or larger
  // than any memory; kUnimplemented: a rank above heddle's.
  Result<int64_t> Count() const;
  Result<size_t> StoredBytes() const;
  // Whether a reader may look into the elements, so that the program depends on them.
  bool MayBeLookedInto() const;
  // Adds values of a field: one, or a packed stretch of them. `width` as of
  // ElementType::FixedWidth. False: damaged.
  bool AddTyped(const wire::Field& field, size_t width);
  // "float32 [2, 3]"
  std::string TypeText() const;
  // "tensor 'w' (float32 [2, 3])"
  std::string What() const;
};

// The tensor in memory of its own; MakeValue: a StringTensor for strings. Memory is taken only for
// contents that are there, or, where one value stands for all, for at most 2 GiB. kInvalidArgument:
// the contents do not fit type and dims, or are external; kDataLoss; kUnimplemented;
// kResourceExhausted.
Result<Value> MakeValue(const TensorBytes& data);
Result<Tensor> MakeTensor(const TensorBytes& data);

}  // namespace heddle::formats
