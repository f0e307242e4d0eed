// Where the contents of a constant come from, for whoever keeps what was computed from them longer
// than a process lives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "heddle/status.h"

namespace heddle {

// A file as it was when it was opened. Threads: any.
class SourceFile {
 public:
  // While these are the same nobody has written to the file, as far as the system can tell.
  struct Stamp {
    uint64_t device = 0, inode = 0, bytes = 0;
    int64_t modified_ns = 0, changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  virtual ~SourceFile() = default;
  virtual Stamp stamp() const = 0;
  // XXH3 (64 bits) of all its bytes, which are read for that. kDataLoss.
  virtual Result<uint64_t> Hash() const = 0;
};

// Contents with the same `part` of equal files are equal.
struct ContentsOrigin {
  std::shared_ptr<const SourceFile> file;  // nullptr: nothing is known
  std::string part;                        // which bytes of it, and what was computed from them
};

}  // namespace heddle
