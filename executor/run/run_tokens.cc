#include "executor/run/run_tokens.h"

#include <algorithm>

#include "executor/plan/loose_values.h"

namespace heddle {

RunTokens::RunTokens(const Plan& plan, TensorAllocator& allocator)
    : plan_(plan),
      allocator_(allocator),
      values_(LooseValuesAt(plan, 0)),
      value_of_(plan.slots.size(), kNoSlot),
      seen_(values_.size(), 0) {
  for (uint32_t v = 0; v < seen_.size(); ++v) {
    const uint32_t s = plan.loose[values_[v]].slot;
    if (const Slot& slot = plan.slots[s]; slot.is_static) seen_[v] = slot.bytes();
  }
  for (uint32_t s = 0; s < plan.slots.size(); ++s) {
    if (plan.loose_of[s] == kNoSlot || plan.slots[s].place != 0) continue;
    const auto at = std::lower_bound(values_.begin(), values_.end(), plan.loose_of[s]);
    value_of_[s] = static_cast<uint32_t>(at - values_.begin());
  }
}

void RunTokens::Begin(bool poison) {
  if (blocks_ && !grown_.load(std::memory_order_relaxed)) return;
  grown_.store(false, std::memory_order_relaxed);
  TokenPlan plan = PlanLooseValues(plan_, values_, seen_);
  blocks_.reset();
  token_ = std::move(plan.token);
  blocks_ = std::make_unique<TokenBlocks>(allocator_, plan.bytes, poison);
}

BufferRef RunTokens::Take(uint32_t slot, size_t bytes) {
  const uint32_t value = value_of_[slot];
  if (value == kNoSlot) return allocator_.Allocate(bytes);
  if (bytes > seen_[value]) {
    seen_[value] = bytes;
    grown_.store(true, std::memory_order_relaxed);
  }
  const uint32_t token = token_[value];
  return token == kNoToken ? allocator_.Allocate(bytes) : blocks_->Take(token, bytes);
}

void RunTokens::End() {
  constexpr size_t kLarge = 64 << 10;  // below this, taking memory costs more than keeping it
  if (blocks_) blocks_->GiveBack(kLarge);
}

}  // namespace heddle
