// Counts calls of the C heap: malloc, calloc, realloc and the aligned variants, and so of `new`,
// made by any thread and any library of the process. What allocators of their own take from the
// system in large blocks and hand out themselves (oneTBB's, for example) is not seen. What oneDNN
// calls inside its own functions is put aside: it makes a table of the arguments whenever a
// primitive is executed, which no setting of it avoids.
#pragma once

#include <cstdint>

namespace heddle::tools {

// False where the heap cannot be watched: sanitized builds and C libraries other than glibc.
bool CanCountAllocations();
void StartCountingAllocations();
// Calls since Start…, without those that were put aside; counting ends.
int64_t StopCountingAllocations();

// Those that were put aside since Start…: of threads inside a call of the library, and while there
// is one, of threads that had none since the count began and did not start it: they help the
// library.
int64_t AllocationsPutAside();

}  // namespace heddle::tools
