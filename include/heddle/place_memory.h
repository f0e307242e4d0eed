// PlaceMemory: the memory that an executor has taken at one place. A plain value.
#pragma once

#include <cstddef>
#include <string>

namespace heddle {

// The memory that runs take: temporaries, outputs (until their last holder drops them), work space,
// copies for a device. Parameters lie in their scope and constants in their program: neither is
// counted at "cpu"; a device's copies of them are counted at the device.
struct PlaceMemory {
  std::string place;           // "cpu", or a device as "emulated:0"
  size_t allocated_bytes = 0;  // handed out and not given back
  size_t reserved_bytes = 0;   // taken from the system: allocated, or kept for what comes next
  // The most that was allocated at one time since the executor was made, or since
  // Executor::ResetMemoryPeaks. Blocks of less than 64 KiB that threads take at the very same time
  // may be missed.
  size_t peak_bytes = 0;
};

}  // namespace heddle
