// A tensor whose elements are a stretch of a file, read at once or when somebody needs them.
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
  // Tensors of fewer bytes are better read at once.
  static constexpr size_t kLeastBytes = 16 << 10;

  std::shared_ptr<const DataFile> file;
  size_t offset = 0, bytes = 0;          // of the elements as the file has them
  const ElementType* element = nullptr;  // with a raw form
  Shape shape;
  // The CRC-32C of the bytes, where it is known. Contents are compared with it when all of them
  // have been read, at once or part by part. A mapped file is not read as a whole.
  std::optional<uint32_t> crc32c = std::nullopt;

  // kWhenNeeded may leave the contents in the file. kDataLoss: the file was written to, cut short,
  // or damaged; kResourceExhausted: no memory for `what`, which messages begin with.
  Result<Tensor> Read(ParameterReading reading, const std::string& what) const;
  // That `what`, the bytes from `offset` on, has another checksum.
  static Status Damaged(const std::string& what, const DataFile& file, size_t offset);
};

}  // namespace heddle::formats
