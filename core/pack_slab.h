// The memory that a program's packed parameters lie in: one slab, shared by all plans of a program.
#pragma once

#include <memory>

#include "core/buffer_slab.h"
#include "core/services.h"

namespace heddle {

// Made by the first to ask, as he says (BufferSlab's arguments); lives as long as the cache or what
// was returned. Threads: any.
inline std::shared_ptr<BufferSlab> PackSlab(PackCache& packs, size_t expected, bool tight) {
  return std::const_pointer_cast<BufferSlab>(
      packs.Get<BufferSlab>(Tensor(), "memory", [&] { return new BufferSlab(expected, tight); }));
}

}  // namespace heddle
