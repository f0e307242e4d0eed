// RunTokens: memory for the values of a run that have no place in its plan, because their sizes are
// found while it runs or their order is. Blocks are shared by the plan's lives
// (memory/token_planner.h) and the sizes that earlier runs had; they are planned anew when a value
// was larger than ever before. Until a value's size has been seen, its memory is the allocator's.
//
// Lives are those of one order, which a queue or lanes need not follow, and a value may be held
// longer than by its readers, in an array for instance. So a plan of tokens is a hint: a block is
// handed out while nobody has it, and the allocator helps out where somebody does.
//
// Threads: Take, any thread of the run, those of one slot after one another; all else between runs.
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
  // Both must outlive it.
  RunTokens(const Plan& plan, TensorAllocator& allocator);

  // Before a run.
  void Begin(bool poison);
  // Memory for what is written to the slot. Throws std::bad_alloc.
  BufferRef Take(uint32_t slot, size_t bytes);
  // After one: large blocks go back, since runs of other plans may need them.
  void End();

 private:
  const Plan& plan_;
  TensorAllocator& allocator_;
  const std::vector<uint32_t> values_;  // the host's, of Plan::loose
  std::vector<uint32_t> value_of_;      // per slot: its place in values_, or kNoSlot
  std::vector<size_t> seen_;            // per value: the most bytes it had
  std::atomic<bool> grown_{false};
  std::vector<uint32_t> token_;  // per value
  std::unique_ptr<TokenBlocks> blocks_;
};

}  // namespace heddle
