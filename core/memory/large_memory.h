// Memory for buffers of any size. Large blocks come straight from the system in huge pages where it
// has them: touching memory for the first time in small pages costs a model's parameters, packed
// weights and temporaries more time than filling them does.
#pragma once

#include <cstddef>

namespace heddle {

inline constexpr size_t kHugePage = 2 << 20;

// Bytes of the system's small pages: what it maps and takes away are multiples of this. Any thread.
size_t PageBytes();

// `bytes` at a multiple of 64, not initialised; nullptr when there is no memory. Any thread.
void* TakeMemory(size_t bytes);
// The same, where only the first `filled` bytes will be written to for now: what lies behind them
// takes no memory, and what no whole huge page holds is put in small pages here. Any thread.
void* TakeTightMemory(size_t bytes, size_t filled);
// Gives back what these gave for as many bytes. Any thread.
void ReturnMemory(void* memory, size_t bytes);

// The same in small pages: what nobody touches takes no memory, which with huge pages may be up to
// two megabytes. Touching it costs more time. ReturnSmallPages gives it back. Any thread.
void* TakeSmallPages(size_t bytes);
void ReturnSmallPages(void* memory, size_t bytes);

// Has what TakeSmallPages gave in huge pages, for whole ones at multiples of kHugePage that nobody
// has touched yet. A wish: it may not be granted. Any thread.
void WantHugePages(void* memory, size_t bytes);

// Puts memory behind the whole pages of [memory, memory + bytes), which are about to be written:
// for all of them in one call it costs less than a fault for each. Where the system cannot, nothing
// happens. Any thread.
void PopulatePages(void* memory, size_t bytes);

// Gives the system what the C heap holds but does not use, which may be as much as was once in use.
// Nothing on systems whose C library cannot. Takes some hundred microseconds, and what is allocated
// next pays for its pages again. Any thread.
void TrimHeap();

// Addresses for `bytes` at a multiple of 64, without memory: touching them ends the process.
// nullptr when there are none left. Any thread.
void* ReserveMemory(size_t bytes);
// Puts memory behind what ReserveMemory gave, all zero; false when there is none.
bool CommitMemory(void* memory, size_t bytes);
// Takes the memory away again from whole pages of what ReserveMemory gave; the addresses stay.
void DecommitMemory(void* memory, size_t bytes);
// Gives back what ReserveMemory gave, with the memory behind it.
void ReleaseMemory(void* memory, size_t bytes);

}  // namespace heddle
