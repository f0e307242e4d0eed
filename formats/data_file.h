// A file from which the contents of tensors are read, at once or when they are needed. It stays
// open, so that another file may take its place; a read after the file was written to is kDataLoss.
//
// Ownership: owns the descriptor; lazy contents share the file. Threads: any may call any function.
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
  // Opens a regular file for reading. kNotFound; kInvalidArgument: not a regular file.
  static Result<std::shared_ptr<const DataFile>> Open(const std::string& path);
  // As Open, but kInvalidArgument if any part of the path is a symbolic link (without openat2: the
  // last part), or the file has a second name (a hard link).
  static Result<std::shared_ptr<const DataFile>> OpenItself(const std::string& path);
  // As Open; of a pipe or a socket all bytes are read and kept in memory.
  static Result<std::shared_ptr<const DataFile>> OpenOrRead(const std::string& path);
  // Opens the file if it is still the one from which `contents` were read, by its size, beginning
  // and end; null otherwise.
  static std::shared_ptr<const DataFile> OpenIfIs(const std::string& path,
                                                  std::string_view contents);
  // Takes contents in memory, which must outlive the object; `name` begins messages.
  static std::shared_ptr<const DataFile> OfMemory(std::string name, std::string_view contents);
  ~DataFile() override;
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  const std::string& path() const { return path_; }
  size_t size() const {
    return is_memory() ? memory_.size() : static_cast<size_t>(opened_.st_size);
  }
  // Reads `bytes` bytes from byte `from` on into `to`.
  Status Fill(void* to, size_t bytes, size_t from) const;
  // OK if the file has not been written to since it was opened. To be called after a read.
  Status CheckUnchanged() const;
  // The whole contents where they are in memory, else an empty view.
  std::string_view memory() const { return memory_; }

  Stamp stamp() const override;
  Result<uint64_t> Hash() const override;
  bool CanMap() const override { return !is_memory(); }
  Status Map(void* at, size_t bytes, size_t from) const override;

 private:
  explicit DataFile(std::string path, std::string_view memory = {})
      : path_(std::move(path)), memory_(memory) {}
  bool is_memory() const { return memory_.data() != nullptr; }
  // Fills opened_. Precondition: fd_ is open, or errno says why it is not.
  Status CheckOpened();

  const std::string path_;
  std::unique_ptr<const FileBytes> read_;  // what was read from a pipe
  std::string_view memory_;                // the contents, if not in a file
  int fd_ = -1;
  struct stat opened_ {};
};

// Whether a tensor of `bytes` bytes is left in its file until it is needed. Precondition: its
// elements have heddle's layout there. `least`: the smallest size in bytes for float32 and for
// bytes, of which weights consist. Small constants of other dtypes are read at once, since kernels
// look at them while they are prepared.
bool StaysInFile(DType dtype, size_t bytes, size_t least);
// Memory for `bytes` bytes of the file from byte `from` on, filled at its first use
// (core/memory/lazy_buffer.h). An empty reference when no address space is left.
BufferRef LeaveInFile(std::shared_ptr<const DataFile> file, size_t bytes, size_t from);
// The same, filled by `fill`.
BufferRef LeaveInFile(std::shared_ptr<const DataFile> file, size_t bytes, size_t from,
                      MakeContents fill);

}  // namespace heddle::formats
