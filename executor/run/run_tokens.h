// RunTokens: memory for the loose values of a run, whose sizes, or whose order, are found at run
// time. Blocks are shared according to the values' live ranges in the plan (memory/token_planner.h)
// and their sizes in earlier runs, and planned anew when a value has been larger than ever before.
// A value whose size has not been seen gets its memory from the allocator.
//
// The live ranges are those of one possible order, from which a queue or lanes may deviate, and a
// value may be held after its last reader, in an array for instance. So a plan of tokens is a hint:
// if a block is still held, the allocator provides other memory.
//
// Threads: Take may be called by any thread of the run, for one slot by one at a time; everything
// else between runs.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/services.h"
#include "executor/plan/plan.h"
#include "memory/token_blocks.h"

namespace heddle {

class RunTokens {
 public:
  // Both arguments must outlive it.
  RunTokens(const Plan& plan, TensorAllocator& allocator);

  // To be called before a run.
  void Begin(bool poison);
  // Memory for a value of the slot. Throws std::bad_alloc.
  BufferRef Take(uint32_t slot, size_t bytes);
  // To be called after a run: gives large blocks back, since runs of other plans may need them.
  void End();

 private:
  const Plan& plan_;
  TensorAllocator& allocator_;
  const std::vector<uint32_t> values_;  // the host's values in Plan::loose
  std::vector<uint32_t> value_of_;      // per slot: index in values_, or kNoSlot
  std::vector<size_t> seen_;            // per value: its largest size so far, in bytes
  std::atomic<bool> grown_{false};
  std::vector<uint32_t> token_;  // per value
  std::unique_ptr<TokenBlocks> blocks_;
};

}  // namespace heddle
