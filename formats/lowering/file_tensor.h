// A tensor whose elements are a range of a file, read at once or when they are needed.
//
// Ownership: shares the file, which stays open. Threads: any; it is immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "formats/data_file.h"
#include "formats/lowering/tensor_bytes.h"
#include "heddle/params.h"

namespace heddle::formats {

struct FileTensor {
  // Tensors of fewer bytes should be read at once.
  static constexpr size_t kLeastBytes = 16 << 10;

  std::shared_ptr<const DataFile> file;
  size_t offset = 0, bytes = 0;          // position and size of the elements in the file
  const ElementType* element = nullptr;  // has a raw form
  Shape shape;
  // The CRC-32C of the bytes, if known. It is compared once all bytes have been read, at once or in
  // parts. A file that is mapped into memory is not read as a whole, and so not checked.
  std::optional<uint32_t> crc32c = std::nullopt;

  // Reads the tensor; kWhenNeeded may leave the contents in the file. `what` begins messages.
  // kDataLoss: the file was written to, cut short, or damaged; kResourceExhausted: no memory.
  Result<Tensor> Read(ParameterReading reading, const std::string& what) const;
  // The error that the bytes of `what` from `offset` on have another checksum.
  static Status Damaged(const std::string& what, const DataFile& file, size_t offset);
};

}  // namespace heddle::formats
