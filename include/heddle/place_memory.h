// PlaceMemory: the memory that an executor uses at one place. A plain value.
#pragma once

#include <cstddef>
#include <string>

namespace heddle {

// The memory of runs: temporaries, outputs (until their last owner releases them), work space,
// copies for a device. Parameters belong to their scope and constants to their program: neither
// counts at "cpu"; a device's copies of them count at the device.
struct PlaceMemory {
  std::string place;           // "cpu", or a device such as "emulated:0"
  size_t allocated_bytes = 0;  // in use
  size_t reserved_bytes = 0;   // taken from the system: in use, or kept for later
  // The most allocated_bytes since the executor was made, or since Executor::ResetMemoryPeaks.
  // Blocks of less than 64 KiB that threads allocate at the same moment may be missed.
  size_t peak_bytes = 0;
};

}  // namespace heddle
