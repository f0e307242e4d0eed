// The origin of a constant's contents. Files of packed weights name it, so that a later process
// knows whether they still serve.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "heddle/status.h"

namespace heddle {

// A file as it was when it was opened. Threads: any.
class SourceFile {
 public:
  // Equal stamps: as far as the system can tell, nobody has written to the file in between.
  struct Stamp {
    uint64_t device = 0, inode = 0, bytes = 0;
    int64_t modified_ns = 0, changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  virtual ~SourceFile() = default;
  virtual Stamp stamp() const = 0;
  // XXH3 (64 bits) of all its bytes, which are read for that. kDataLoss.
  virtual Result<uint64_t> Hash() const = 0;
  // The file's bytes can be mapped, by Map.
  virtual bool CanMap() const { return false; }
  // Puts the pages of the file from byte `from` on, a multiple of PageBytes() (large_memory.h), in
  // the place of those at `at`. They are read when they are touched; a write to them stays out of
  // the file. kUnimplemented: it has no pages; kDataLoss: it was written to, or has fewer bytes.
  virtual Status Map(void* at, size_t bytes, size_t from) const;
};

inline Status SourceFile::Map(void*, size_t, size_t) const {
  return Status(StatusCode::kUnimplemented, "these contents cannot be mapped");
}

// The place in a file where contents lie byte for byte.
struct FileStretch {
  std::shared_ptr<const SourceFile> file;  // nullptr: nowhere
  size_t from = 0;
};

// Contents with the same `part` of equal files are equal.
struct ContentsOrigin {
  std::shared_ptr<const SourceFile> file;  // nullptr: nothing is known
  std::string part;                        // which bytes of it, and what was computed from them
};

}  // namespace heddle
