// Reads Paddle's records of tensors from a file, one after another.
//
// A record: u32 version 0 | u64 number of LoD levels, per level u64 byte size and u64 offsets |
// u32 version 0 | i32 size of a TensorDesc | TensorDesc | the data, row-major, without padding.
//
// Data lies at odd places in such a file, so it is read to where it stays; the file is not mapped,
// which would touch another page for each one. Threads: one at a time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/buffer_slab.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

class RecordReader {
 public:
  explicit RecordReader(std::string path) : path_(std::move(path)) {}
  ~RecordReader();
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  Status Open();
  bool at_end() const { return at_ == size_; }
  size_t left() const { return size_ - at_; }
  // The next tensor, in memory of `slab`. `what` names it in messages.
  Result<Tensor> Read(const std::string& what, BufferSlab& slab);

 private:
  // `bytes` from the present place on; moves on.
  Status Take(void* to, size_t bytes, const std::string& what);
  Status Need(size_t bytes, const std::string& what) const;
  Status Fill(void* to, size_t bytes, size_t from) const;
  Status ReadLoD(const std::string& what, LoD* lod);

  const std::string path_;
  int fd_ = -1;
  size_t size_ = 0, at_ = 0;
  std::vector<char> window_;  // what stands in the file from window_at_ on
  size_t window_at_ = 0;
};

}  // namespace heddle
