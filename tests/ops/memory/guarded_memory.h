// Memory for tensors that ends at a page without access: whoever reads or writes behind a tensor
// and the 64 bytes that belong to each crashes, and whoever writes before it is found when the
// memory is returned.
//
// The file replaces the operator new of aligned memory for the program of these tests. Sanitizers
// have their own way to do this; with them nothing is guarded.
#pragma once

#include <cstdint>

namespace heddle::testing {

// While it lives, aligned memory that any thread takes is guarded. One at a time.
class GuardedMemory {
 public:
  GuardedMemory();
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // How many blocks have been guarded so far.
  static int64_t blocks();
  // How many of those that were returned so far had been written to beside their bytes.
  static int64_t damaged();
};

}  // namespace heddle::testing
