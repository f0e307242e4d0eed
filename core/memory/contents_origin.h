// The origin of a constant's contents. Files of packed weights store it, so that a later process
// can tell whether they are still valid.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "heddle/status.h"

namespace heddle {

// A file in the state in which it was opened. Threads: any.
class SourceFile {
 public:
  // If two stamps are equal, the file has not been written to in between, as far as the system can
  // tell.
  struct Stamp {
    uint64_t device = 0, inode = 0, bytes = 0;
    int64_t modified_ns = 0, changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  virtual ~SourceFile() = default;
  virtual Stamp stamp() const = 0;
  // The XXH3 hash (64 bits) of the whole file, which is read for that. kDataLoss.
  virtual Result<uint64_t> Hash() const = 0;
  // Whether Map is supported.
  virtual bool CanMap() const { return false; }
  // Maps the file from byte `from` on, a multiple of PageBytes() (large_memory.h), over the pages
  // at `at`. Pages are read when they are touched; writes to them do not change the file.
  // kUnimplemented: not supported; kDataLoss: the file was written to, or is too short.
  virtual Status Map(void* at, size_t bytes, size_t from) const;
};

inline Status SourceFile::Map(void*, size_t, size_t) const {
  return Status(StatusCode::kUnimplemented, "these contents cannot be mapped");
}

// A position in a file from which contents can be copied unchanged.
struct FileStretch {
  std::shared_ptr<const SourceFile> file;  // nullptr: there is none
  size_t from = 0;
};

// Contents with equal files and equal `part` are equal.
struct ContentsOrigin {
  std::shared_ptr<const SourceFile> file;  // nullptr: unknown
  std::string part;  // which bytes of the file, and what was computed from them
};

}  // namespace heddle
