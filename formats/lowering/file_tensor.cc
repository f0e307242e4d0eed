#include "formats/lowering/file_tensor.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/error.h"
#include "formats/lowering/contents_checksum.h"

namespace heddle::formats {

Status FileTensor::Damaged(const std::string& what, const DataFile& file, size_t offset) {
  return DataLoss(what, ": its bytes in ", file.path(), ", from byte ", offset,
                  " on, do not have the checksum that was stored with them");
}

namespace {

// Elements [begin, end), of which several share a byte of what `fill` gives.
Status Unpacked(const ElementType& element, const MakeContents& fill, void* to, size_t begin,
                size_t end) {
  const size_t per_byte = 8 / static_cast<size_t>(element.bits);
  const size_t first = begin / per_byte, last = (end + per_byte - 1) / per_byte;
  std::string packed(last - first, '\0');
  HEDDLE_RETURN_IF_ERROR(fill(packed.data(), first, last));
  const size_t skipped = begin - first * per_byte, count = skipped + end - begin;
  if (skipped == 0) {
    element.Unpack(packed, static_cast<int64_t>(count), to);
    return Status::Ok();
  }
  std::vector<char> wide(count);
  element.Unpack(packed, static_cast<int64_t>(count), wide.data());
  std::memcpy(to, wide.data() + skipped, end - begin);
  return Status::Ok();
}

}  // namespace

Result<Tensor> FileTensor::Read(ParameterReading reading, const std::string& what) const {
  std::shared_ptr<ContentsChecksum> checksum;
  if (crc32c) checksum = std::make_shared<ContentsChecksum>(bytes, *crc32c);
  const MakeContents fill = [file = file, from = offset, checksum, what](void* to, size_t begin,
                                                                         size_t end) {
    HEDDLE_RETURN_IF_ERROR(file->Fill(to, end - begin, from + begin));
    HEDDLE_RETURN_IF_ERROR(file->CheckUnchanged());
    if (checksum == nullptr || checksum->Add(to, begin, end)) return Status::Ok();
    return Damaged(what, *file, from);
  };
  const DType dtype = element->storage;
  if (reading == ParameterReading::kWhenNeeded && element->IsRawStorage() &&
      StaysInFile(dtype, bytes, kLeastBytes)) {
    BufferRef memory = LeaveInFile(file, bytes, offset, fill);
    if (memory) return Tensor(dtype, shape, std::move(memory));
  }
  if (reading == ParameterReading::kWhenNeeded && element->bits > 0 && element->bits < 8) {
    const auto elements = static_cast<size_t>(shape.numel());
    const MakeContents unpack = [fill, element = element](void* to, size_t begin, size_t end) {
      return Unpacked(*element, fill, to, begin, end);
    };
    BufferRef memory;
    if (StaysInFile(dtype, elements, kLeastBytes))
      memory = MakeLazyBuffer(elements, unpack,
                              {file, StrCat(offset, "+", bytes, " of ", element->name)});
    if (memory) return Tensor(dtype, shape, std::move(memory));
  }
  Tensor t = Tensor::Empty(dtype, shape);
  if (!t.initialized() && bytes > 0) return ResourceExhausted(what, ": no memory for it");
  if (element->IsRawStorage()) {
    HEDDLE_RETURN_IF_ERROR(fill(t.mutable_raw(), 0, bytes));
    return t;
  }
  std::string packed(bytes, '\0');
  HEDDLE_RETURN_IF_ERROR(fill(packed.data(), 0, bytes));
  element->Unpack(packed, t.numel(), t.mutable_raw());
  return t;
}

}  // namespace heddle::formats
