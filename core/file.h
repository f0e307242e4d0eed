// Reads and replaces whole files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/status.h"

namespace heddle {

// kInvalidArgument if the path contains a NUL, at which the system would stop reading: it would
// open another file than the one named. All functions here that open files call this.
Status CheckPath(const std::string& path);

// Reads a regular file. kNotFound; kInvalidArgument: not a regular file; kDataLoss.
Result<std::string> ReadFile(const std::string& path);
// Whether the path names a regular file; false also if that cannot be found out.
bool IsRegularFile(const std::string& path);
// The names of a directory's entries, in no particular order. kNotFound: it cannot be read.
Result<std::vector<std::string>> NamesIn(const std::string& directory);

// Whether the path names a pipe or a socket ("/dev/stdin", "/dev/fd/3", a FIFO), which can be read
// only once.
bool IsStream(const std::string& path);

// The contents of a whole file, whose memory goes back to the system with the object. Faster than a
// string, since the memory is not cleared first. Files of at least kLeastMapped bytes are mapped,
// so that only the parts that are looked at are read; if such a file is truncated while the object
// exists, reading the missing part ends the process (SIGBUS). Threads: any may read.
class FileBytes {
 public:
  static constexpr size_t kLeastMapped = 64 << 20;
  // Reads a file. Errors as ReadFile; kResourceExhausted: no memory.
  static Result<FileBytes> Read(const std::string& path);
  // As Read; a pipe or a socket is read to its end. kResourceExhausted also if more arrives than
  // half of the machine's memory.
  static Result<FileBytes> ReadOrReceive(const std::string& path);
  FileBytes(FileBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(other.size_),
        room_(other.room_),
        mapped_(other.mapped_) {}
  FileBytes& operator=(FileBytes&&) = delete;
  ~FileBytes();
  std::string_view view() const { return {data_, size_}; }

 private:
  friend class FileHandle;
  FileBytes(char* data, size_t size, size_t room, bool mapped)
      : data_(data), size_(size), room_(room), mapped_(mapped) {}
  static Result<FileBytes> Receive(const std::string& path);

  char* data_;
  size_t size_;
  size_t room_;  // bytes allocated
  bool mapped_;
};

// An open file, which stays readable whatever happens to its name.
//
// Ownership: owns the descriptor. Threads: any may read.
class FileHandle {
 public:
  FileHandle() = default;  // none
  // kNotFound; kInvalidArgument: not a regular file.
  static Result<FileHandle> Open(const std::string& path);
  FileHandle(FileHandle&& other) noexcept { *this = std::move(other); }
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();
  explicit operator bool() const { return fd_ >= 0; }
  size_t size() const { return size_; }  // at the time of Open
  // Reads the first size() bytes. kDataLoss, kResourceExhausted.
  Result<FileBytes> ReadAll() const;

 private:
  std::string path_;
  int fd_ = -1;
  size_t size_ = 0;
};

// FileReplacement: a file that is written beside the one that it replaces. Until Commit() has
// returned OK the old file is there whole, afterwards the new one is, whenever the process or (with
// kNow) the machine stops. A device or a pipe is written to directly.
//
// Ownership: owns the file beside, which is removed if it was not committed (a killed process
// leaves it behind: `<path>.tmp.<process>.<number>`). Threads: objects are independent of each
// other, even for the same path; the last one to commit wins.
class FileReplacement {
 public:
  explicit FileReplacement(std::string path) : path_(std::move(path)) {}
  ~FileReplacement();
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;

  // kInvalidArgument: not a path, see CheckPath. kNotFound: the file beside cannot be made, or the
  // device or pipe cannot be opened; a pipe without a reader is not waited for. kResourceExhausted:
  // the disk is full, or another limit is reached. kDataLoss: any other write error, such as a pipe
  // whose reader has gone (no SIGPIPE is raised). After an error the object must not be used.
  Status Open();
  Status Append(std::string_view bytes);
  enum Durable {
    kNow,  // flushes the data before, and the new name afterwards; the data of a device if possible
    // Flushed when the system does so: for data that can be made again and detects damage itself.
    kSoon,
  };
  // Replaces the old file.
  Status Commit(Durable durable = kNow);

 private:
  Status OpenInPlace(bool pipe);
  Status Fail(const std::string& what, int error);

  std::string path_, aside_;
  int fd_ = -1;
};

// Replaces a file by these bytes.
Status ReplaceFile(const std::string& path, std::string_view bytes);

}  // namespace heddle
