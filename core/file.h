// Whole files, read and replaced.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/status.h"

namespace heddle {

// kInvalidArgument where the path has a NUL, behind which the system would not read on: another
// file than the caller names. All that opens files here asks.
Status CheckPath(const std::string& path);

// kNotFound; kInvalidArgument: no regular file; kDataLoss.
Result<std::string> ReadFile(const std::string& path);
// False, too, where that cannot be told.
bool IsRegularFile(const std::string& path);
// The names of a directory's entries, in no order. kNotFound: it cannot be read.
Result<std::vector<std::string>> NamesIn(const std::string& directory);

// Whether the path names a pipe or a socket ("/dev/stdin", "/dev/fd/3", a FIFO), whose bytes come
// once.
bool IsStream(const std::string& path);

// A whole file in memory that goes back to the system with the object, in less time than in a
// string: nothing is written there before what is read. Files of kLeastMapped bytes and more are
// mapped, so that only the parts that are looked at are read; if such a file is made shorter while
// the object is there, looking at what is gone ends the process (SIGBUS). Threads: any may read.
class FileBytes {
 public:
  static constexpr size_t kLeastMapped = 64 << 20;
  // Errors as ReadFile; kResourceExhausted when there is no memory.
  static Result<FileBytes> Read(const std::string& path);
  // As Read; from a pipe or a socket it reads until the end of what comes, which it waits for.
  // kResourceExhausted also when more comes than half of the machine's memory.
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
  size_t room_;  // bytes taken
  bool mapped_;
};

// A file that stays open, whatever becomes of its name.
//
// Ownership: of the descriptor. Threads: any may read.
class FileHandle {
 public:
  FileHandle() = default;  // none
  // kNotFound, kInvalidArgument.
  static Result<FileHandle> Open(const std::string& path);
  FileHandle(FileHandle&& other) noexcept { *this = std::move(other); }
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();
  explicit operator bool() const { return fd_ >= 0; }
  size_t size() const { return size_; }  // when it was opened
  // Its first size() bytes. kDataLoss, kResourceExhausted.
  Result<FileBytes> ReadAll() const;

 private:
  std::string path_;
  int fd_ = -1;
  size_t size_ = 0;
};

// A file that is written beside the one it replaces. Until Commit() has returned OK the old file is
// there whole, afterwards the new one is, whenever the process or (with kNow) the machine stops. A
// device or a pipe is written to, not replaced.
//
// Ownership: owns the file aside, which is removed with an object that was not committed (a process
// that is killed leaves it: `<path>.tmp.<process>.<number>`). Threads: objects are independent of
// each other, even for the same path; the last one to commit wins.
class FileReplacement {
 public:
  explicit FileReplacement(std::string path) : path_(std::move(path)) {}
  ~FileReplacement();
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;

  // kInvalidArgument: no path, see CheckPath. kNotFound: the file aside cannot be made, or the
  // device or pipe not opened; a pipe that nobody reads from is not waited for. kResourceExhausted:
  // the disk is full or another limit is met. kDataLoss: any other failure to write, as where a
  // pipe's reader has gone (which makes no SIGPIPE). After an error the object is of no more use.
  Status Open();
  Status Append(std::string_view bytes);
  enum Durable {
    kNow,   // the data is flushed before, the new name afterwards; a device's data, if it can be
    kSoon,  // when the system gets to it: for what can be made again, and tells damage by itself
  };
  // Takes the old file's place.
  Status Commit(Durable durable = kNow);

 private:
  Status OpenInPlace(bool pipe);
  Status Fail(const std::string& what, int error);

  std::string path_, aside_;
  int fd_ = -1;
};

// FileReplacement for bytes that are at hand.
Status ReplaceFile(const std::string& path, std::string_view bytes);

}  // namespace heddle
