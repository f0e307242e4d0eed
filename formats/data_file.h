// A file that tensors' contents are read from, at once or when they are needed. It stays open, so
// that another file may take its place; contents read after it was written to are kDataLoss.
//
// Ownership: of the descriptor; lazy contents share the file. Threads: any.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/file.h"
#include "core/memory/lazy_buffer.h"
#include "heddle/dtype.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle::formats {

class DataFile : public SourceFile {
 public:
  // kNotFound; kInvalidArgument: no regular file.
  static Result<std::shared_ptr<const DataFile>> Open(const std::string& path);
  // As Open, but kInvalidArgument if any part of the path is a symbolic link (without openat2: the
  // last part), or the file has a second name (a hard link).
  static Result<std::shared_ptr<const DataFile>> OpenItself(const std::string& path);
  // As Open, or all that comes through a pipe or a socket, which is kept in memory.
  static Result<std::shared_ptr<const DataFile>> OpenOrRead(const std::string& path);
  // The file, where it still is the one that `contents` were read from, by its size, beginning and
  // end; null.
  static std::shared_ptr<const DataFile> OpenIfIs(const std::string& path,
                                                  std::string_view contents);
  // Contents in memory, which must outlive the file; `name` stands before messages.
  static std::shared_ptr<const DataFile> OfMemory(std::string name, std::string_view contents);
  ~DataFile() override;
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  const std::string& path() const { return path_; }
  size_t size() const {
    return is_memory() ? memory_.size() : static_cast<size_t>(opened_.st_size);
  }
  // `bytes` from byte `from` on.
  Status Fill(void* to, size_t bytes, size_t from) const;
  // OK if nobody has written to the file since it was opened. Call it after a read.
  Status CheckUnchanged() const;
  // All of it, where it is in memory.
  std::string_view memory() const { return memory_; }

  Stamp stamp() const override;
  Result<uint64_t> Hash() const override;
  bool CanMap() const override { return !is_memory(); }
  Status Map(void* at, size_t bytes, size_t from) const override;

 private:
  explicit DataFile(std::string path, std::string_view memory = {})
      : path_(std::move(path)), memory_(memory) {}
  bool is_memory() const { return memory_.data() != nullptr; }
  // Fills opened_. Precondition: where fd_ is negative, errno says why.
  Status CheckOpened();

  const std::string path_;
  std::unique_ptr<const FileBytes> read_;  // what came through a pipe
  std::string_view memory_;                // the contents, where there is no file
  int fd_ = -1;
  struct stat opened_ {};
};

// Whether a tensor of `bytes` stays in its file until somebody needs it, where its elements lie
// there as heddle holds them. Kernels look at small constants of dtypes other than float32 while
// they are prepared, so these are read at once. `least`: of float32.
bool StaysInFile(DType dtype, size_t bytes, size_t least);
// Memory for `bytes` of the file from byte `from` on that is filled when somebody needs it
// (core/memory/lazy_buffer.h). An empty reference when there are no addresses left.
BufferRef LeaveInFile(std::shared_ptr<const DataFile> file, size_t bytes, size_t from);
// The same with a function that reads them.
BufferRef LeaveInFile(std::shared_ptr<const DataFile> file, size_t bytes, size_t from,
                      MakeContents fill);

}  // namespace heddle::formats
