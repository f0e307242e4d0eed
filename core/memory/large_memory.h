// Memory for buffers of any size. Large blocks come directly from the system, in huge pages if it
// has them: for parameters, packed weights and temporaries, first touches in small pages would take
// longer than filling the memory.
#pragma once

#include <cstddef>

namespace heddle {

inline constexpr size_t kHugePage = 2 << 20;

// The size of the system's small pages, of which mappings are multiples. Any thread.
size_t PageBytes();

// Memory of `bytes` bytes, aligned to 64 and not initialised; nullptr: there is none. Any thread.
void* TakeMemory(size_t bytes);
// The same if only the first `filled` bytes will be written for now: what follows them takes no
// memory, and the part that does not fill a huge page is in small pages. Any thread.
void* TakeTightMemory(size_t bytes, size_t filled);
// Frees what these functions returned for the same number of bytes. Any thread.
void ReturnMemory(void* memory, size_t bytes);

// The same in small pages: untouched parts take no memory, which with huge pages may be up to two
// megabytes. First touches take more time. To be freed with ReturnSmallPages. Any thread.
void* TakeSmallPages(size_t bytes);
void ReturnSmallPages(void* memory, size_t bytes);

// Asks for huge pages in memory of TakeSmallPages, for whole untouched ones at multiples of
// kHugePage. The system may refuse. Any thread.
void WantHugePages(void* memory, size_t bytes);

// Provides memory for the whole pages of [memory, memory + bytes), which are about to be written:
// one call costs less than a page fault for each. Does nothing if the system cannot. Any thread.
void PopulatePages(void* memory, size_t bytes);

// Returns free memory of the C heap to the system, which may be as much as was ever in use; does
// nothing with C libraries that cannot. Takes some hundred microseconds, and later allocations pay
// for page faults again. Any thread.
void TrimHeap();

// Reserves addresses for `bytes` bytes, aligned to 64, without memory: touching them ends the
// process. nullptr: none are left. Any thread.
void* ReserveMemory(size_t bytes);
// Provides zeroed memory for addresses of ReserveMemory; false: there is none.
bool CommitMemory(void* memory, size_t bytes);
// Removes the memory from whole pages of ReserveMemory; the addresses stay reserved.
void DecommitMemory(void* memory, size_t bytes);
// Frees the addresses of ReserveMemory, and their memory.
void ReleaseMemory(void* memory, size_t bytes);

}  // namespace heddle
