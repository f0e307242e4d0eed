// Whole files, read and replaced.
#pragma once

#include <string>
#include <string_view>

#include "heddle/status.h"

namespace heddle {

Result<std::string> ReadFile(const std::string& path);

// A file that is written beside the one it replaces. Until Commit() has returned OK the old file is
// there whole, afterwards the new one is, whenever the process or (with kNow) the machine stops.
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

  // kNotFound when the file aside cannot be made; kResourceExhausted when the disk is full or
  // another limit is met. After an error the object is of no more use.
  Status Open();
  Status Append(std::string_view bytes);
  enum Durable {
    kNow,   // the data is flushed before, the new name afterwards
    kSoon,  // when the system gets to it: for what can be made again, and tells damage by itself
  };
  // Takes the old file's place.
  Status Commit(Durable durable = kNow);

 private:
  Status Fail(const std::string& what, int error);

  std::string path_, aside_;
  int fd_ = -1;
};

// FileReplacement for bytes that are at hand.
Status ReplaceFile(const std::string& path, std::string_view bytes);

}  // namespace heddle
