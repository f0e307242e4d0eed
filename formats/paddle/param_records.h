// Reads Paddle's tensor records from a file, one after another.
//
//   A record: u32 version 0 | u64 number of LoD levels, per level u64 byte size and u64 offsets |
//   u32 version 0 | i32 size of a TensorDesc | TensorDesc | the data, row-major, without padding.
//
// Data in such a file is not aligned, so it is read to its final place. The file is not mapped:
// that would touch another page for each tensor. Threads: one at a time.
//
// Large weights can be left in the file, which stays open, until they are needed. The file may be
// replaced by another one meanwhile; if it is written to in place, a later read is kDataLoss.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/memory/buffer_slab.h"
#include "core/memory/lazy_buffer.h"
#include "formats/data_file.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle::paddle {

class RecordReader {
 public:
  explicit RecordReader(std::shared_ptr<const formats::DataFile> file)
      : path_(file->path()), file_(std::move(file)) {}
  explicit RecordReader(std::string path) : path_(std::move(path)) {}
  // Leaves weights of at least `least` bytes in the file until they are needed
  // (core/memory/lazy_buffer.h). Smaller ones go to a LazyShelf of `shelf_bytes` bytes, the sum of
  // their ShelfBytes; a tensor that finds no room there is read at once.
  void LeaveInFile(size_t least, size_t shelf_bytes = 0) {
    least_later_ = least;
    shelf_bytes_ = shelf_bytes;
  }
  // Smaller weights are read together with their neighbours: a read and a page for each would cost
  // more than the weights' own bytes.
  static constexpr size_t kLeastLater = 4 << 10;
  // The bytes that a tensor takes on the shelf.
  static size_t ShelfBytes(DType dtype, const Shape& shape);
  // Reads from `bytes`, which must outlive the reader; `name` begins messages.
  RecordReader(std::string name, std::string_view bytes)
      : RecordReader(formats::DataFile::OfMemory(std::move(name), bytes)) {}
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  Status Open();
  bool at_end() const { return at_ == size_; }
  size_t left() const { return size_ - at_; }
  // Reads the next tensor, into memory of `slab`. `what` names it in messages.
  Result<Tensor> Read(const std::string& what, BufferSlab& slab);

 private:
  // Reads the next `bytes` bytes.
  Status Take(void* to, size_t bytes, const std::string& what);
  Status Need(size_t bytes, const std::string& what) const;
  Status ReadLoD(const std::string& what, LoD* lod);

  // Memory with the next `bytes` bytes. An empty reference: no memory.
  Result<BufferRef> TakeData(DType dtype, size_t bytes, const std::string& what, BufferSlab& slab);

  const std::string path_;
  size_t least_later_ = ~size_t{0};
  size_t shelf_bytes_ = 0;
  std::optional<LazyShelf> shelf_;
  std::shared_ptr<const formats::DataFile> file_;
  size_t size_ = 0, at_ = 0;
  std::vector<char> window_;  // bytes of the file from window_at_ on
  size_t window_at_ = 0;
};

}  // namespace heddle::paddle
