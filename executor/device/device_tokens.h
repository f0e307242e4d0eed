// DeviceTokens: memory of one device for the values of a run whose sizes are found while it runs,
// planned as RunTokens plans the host's: by the plan's lives and the sizes that earlier runs had.
//
// A block is free when the host has let go of the value in it, which is when the last user is on a
// stream. Work that is given the block next comes behind all that has been put on the other streams
// that used it (CachingAllocator::PassOn). Where somebody still has a block, the allocator helps
// out; where the device has no room for more, blocks that nobody has are given up.
//
// Ownership: has blocks from their first use to End, when the streams are done. Threads: that which
// puts work on the device's streams; Begin and End, between runs.
#pragma once

#include <vector>

#include "executor/device/device_runtime.h"
#include "executor/plan/plan.h"

namespace heddle {

class DeviceTokens {
 public:
  // Both must outlive it. `place`: the device's, see place_instructions.h.
  DeviceTokens(const Plan& plan, uint8_t place, DeviceRuntime& device);

  // Before a run.
  void Begin();
  // Memory for what work on `stream` writes to the slot.
  Result<BufferRef> Take(uint32_t slot, DType dtype, size_t bytes, Stream& stream);
  // After a run: blocks go back, since runs of other plans may need them.
  void End();

 private:
  struct Block {
    size_t planned = 0;
    BufferRef memory;  // none yet, or the allocator's; shared with the value that has it
  };

  // kNoSlot: the slot's memory does not come from here.
  uint32_t ValueOf(uint32_t slot) const { return value_of_.empty() ? kNoSlot : value_of_[slot]; }
  Result<BufferRef> Allocate(size_t bytes, Stream& stream);

  const Plan& plan_;
  const uint8_t place_;
  DeviceRuntime& device_;
  std::vector<uint32_t> values_;    // those of Plan::loose at this place
  std::vector<uint32_t> value_of_;  // per slot: in values_, or kNoSlot; empty: there are none
  std::vector<size_t> seen_;        // per value: the most bytes it had
  std::vector<uint32_t> kinds_;     // per value: by the newest dtype
  bool grown_ = true;
  std::vector<uint32_t> token_;  // per value
  std::vector<Block> blocks_;    // per token
};

}  // namespace heddle
