// Memory of a list's small items, several in a block: an item of its own from the executor's pool
// costs three times as much to take and to return.
#pragma once

#include "core/services.h"
#include "heddle/tensor.h"

namespace heddle {

constexpr size_t kSmallItem = 1 << 10;  // bytes; larger items get memory of their own

// Memory of `bytes`, aligned to 64 bytes, in the block of `neighbour` (the memory of another item
// of the list, or an empty reference) if there is room, else in a new block for `count` such items,
// at most 16. A block goes back to the allocator when all memory in it is released. Throws what the
// allocator throws. Threads: any.
BufferRef TakeItem(size_t bytes, const BufferRef& neighbour, size_t count,
                   TensorAllocator& allocator);

}  // namespace heddle
