#include "executor/run/run_tokens.h"

#include "executor/plan/loose_values.h"

namespace heddle {

RunTokens::RunTokens(const Plan& plan, TensorAllocator& allocator)
    : plan_(plan), allocator_(allocator), seen_(plan.loose.size(), 0) {
  for (size_t v = 0; v < seen_.size(); ++v)
    if (const Slot& slot = plan.slots[plan.loose[v].slot]; slot.is_static) seen_[v] = slot.bytes();
}

void RunTokens::Begin(bool poison) {
  if (blocks_ && !grown_.load(std::memory_order_relaxed)) return;
  grown_.store(false, std::memory_order_relaxed);
  TokenPlan plan = PlanLooseValues(plan_, seen_);
  blocks_.reset();
  token_ = std::move(plan.token);
  blocks_ = std::make_unique<TokenBlocks>(allocator_, plan.bytes, poison);
}

BufferRef RunTokens::Take(uint32_t slot, size_t bytes) {
  const uint32_t value = plan_.loose_of[slot];
  if (value == kNoSlot) return allocator_.Allocate(bytes);
  if (bytes > seen_[value]) {
    seen_[value] = bytes;
    grown_.store(true, std::memory_order_relaxed);
  }
  const uint32_t token = token_[value];
  return token == kNoToken ? allocator_.Allocate(bytes) : blocks_->Take(token, bytes);
}

void RunTokens::End() {
  constexpr size_t kLarge = 64 << 10;  // taking less costs more than holding it
  if (blocks_) blocks_->GiveBack(kLarge);
}

}  // namespace heddle
