#include "formats/lowering/file_tensor.h"

#include <utility>

#include "core/error.h"

namespace heddle::formats {

Result<Tensor> FileTensor::Read(ParameterReading reading, const std::string& what) const {
  const auto fill = [file = file, from = offset](void* to, size_t begin, size_t end) {
    HEDDLE_RETURN_IF_ERROR(file->Fill(to, end - begin, from + begin));
    return file->CheckUnchanged();
  };
  const DType dtype = element->storage;
  if (reading == ParameterReading::kWhenNeeded && element->IsRawStorage() &&
      StaysInFile(dtype, bytes, kLeastBytes)) {
    BufferRef memory = LeaveInFile(file, bytes, offset);
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
