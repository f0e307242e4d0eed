// Memory for buffers of any size. Large blocks come straight from the system in huge pages where it
// has them: touching memory for the first time in small pages costs a model's parameters, packed
// weights and temporaries more time than filling them does.
#pragma once

#include <cstddef>

namespace heddle {

// `bytes` at a multiple of 64, not initialised; nullptr when there is no memory. Any thread.
void* TakeMemory(size_t bytes);
// Gives back what TakeMemory gave for as many bytes. Any thread.
void ReturnMemory(void* memory, size_t bytes);

// Addresses for `bytes` at a multiple of 64, without memory: touching them ends the process.
// nullptr when there are none left. Any thread.
void* ReserveMemory(size_t bytes);
// Puts memory behind what ReserveMemory gave, all zero; false when there is none.
bool CommitMemory(void* memory, size_t bytes);
// Gives back what ReserveMemory gave, with the memory behind it.
void ReleaseMemory(void* memory, size_t bytes);

}  // namespace heddle
