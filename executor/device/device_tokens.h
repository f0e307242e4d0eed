// DeviceTokens: memory of one device for values whose sizes are found at run time, planned as
// RunTokens plans the host's: from the plan's live ranges and the sizes seen in earlier runs.
//
// A block is free when the host has dropped the value in it, which happens once its last user is on
// a stream. Work that is given the block next is ordered after all work on other streams that used
// it (CachingAllocator::PassOn). If a block is still held, the allocator provides other memory; if
// the device has no room for that, free blocks are given up.
//
// Ownership: has the blocks from their first use to End, when the streams are finished. Threads:
// the thread that puts work on the device's streams; Begin and End between runs.
#pragma once

#include <vector>

#include "executor/device/device_runtime.h"
#include "executor/plan/plan.h"

namespace heddle {

class DeviceTokens {
 public:
  // Both arguments must outlive it. `place`: the device's, see place_instructions.h.
  DeviceTokens(const Plan& plan, uint8_t place, DeviceRuntime& device);

  // To be called before a run.
  void Begin();
  // Memory for a value that work on `stream` writes to the slot.
  Result<BufferRef> Take(uint32_t slot, DType dtype, size_t bytes, Stream& stream);
  // To be called after a run: gives the blocks back, since runs of other plans may need them.
  void End();

 private:
  struct Block {
    size_t planned = 0;
    BufferRef memory;  // empty: not allocated; shared with the value in it
  };

  // Index in values_; kNoSlot: the slot's memory does not come from here.
  uint32_t ValueOf(uint32_t slot) const { return value_of_.empty() ? kNoSlot : value_of_[slot]; }
  Result<BufferRef> Allocate(size_t bytes, Stream& stream);

  const Plan& plan_;
  const uint8_t place_;
  DeviceRuntime& device_;
  std::vector<uint32_t> values_;  // the values of Plan::loose at this place
  // Per slot: index in values_, or kNoSlot; empty: there are no values.
  std::vector<uint32_t> value_of_;
  std::vector<size_t> seen_;     // per value: its largest size so far, in bytes
  std::vector<uint32_t> kinds_;  // per value: TokenKind of its latest dtype
  bool grown_ = true;
  std::vector<uint32_t> token_;  // per value
  std::vector<Block> blocks_;    // per token
};

}  // namespace heddle
