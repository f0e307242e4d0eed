#include "executor/device/device_tokens.h"

#include <algorithm>

#include "core/error.h"
#include "executor/plan/loose_values.h"

namespace heddle {

DeviceTokens::DeviceTokens(const Plan& plan, uint8_t place, DeviceRuntime& device)
    : plan_(plan), place_(place), device_(device), values_(LooseValuesAt(plan, place)) {
  if (!values_.empty()) value_of_.assign(plan.slots.size(), kNoSlot);
  for (uint32_t v = 0; v < values_.size(); ++v) value_of_[plan.loose[values_[v]].slot] = v;
  seen_.assign(values_.size(), 0);
  kinds_.assign(values_.size(), TokenKind(place, DType::kUnknown));
}

void DeviceTokens::Begin() {
  if (!grown_ || values_.empty()) return;
  grown_ = false;
  TokenPlan plan = PlanLooseValues(plan_, values_, seen_, kinds_);
  token_ = std::move(plan.token);
  blocks_.clear();
  blocks_.resize(plan.bytes.size());
  for (size_t t = 0; t < blocks_.size(); ++t) blocks_[t].planned = plan.bytes[t];
}

Result<BufferRef> DeviceTokens::Take(uint32_t slot, DType dtype, size_t bytes, Stream& stream) {
  const uint32_t value = ValueOf(slot);
  if (value == kNoSlot) return Allocate(bytes, stream);
  const uint32_t kind = TokenKind(place_, dtype);
  if (bytes > seen_[value] || kind != kinds_[value]) {
    seen_[value] = std::max(bytes, seen_[value]);
    kinds_[value] = kind;
    grown_ = true;
  }
  const uint32_t token = token_[value];
  if (token == kNoToken) return Allocate(bytes, stream);
  Block& block = blocks_[token];
  if (block.memory && !block.memory->unique()) return Allocate(bytes, stream);
  if (block.memory && block.memory->bytes() >= bytes) {
    HEDDLE_RETURN_IF_ERROR(CachingAllocator::PassOn(*block.memory.get(), stream));
  } else {
    block.memory.reset();
    HEDDLE_ASSIGN_OR_RETURN(block.memory, Allocate(std::max(bytes, block.planned), stream));
  }
  return block.memory;
}

Result<BufferRef> DeviceTokens::Allocate(size_t bytes, Stream& stream) {
  auto memory = device_.memory().Allocate(bytes, &stream);
  if (memory.ok() || memory.status().code() != StatusCode::kResourceExhausted) return memory;
  for (Block& block : blocks_)
    if (block.memory && block.memory->unique()) block.memory.reset();
  return device_.memory().Allocate(bytes, &stream);
}

void DeviceTokens::End() {
  for (Block& block : blocks_) block.memory.reset();
}

}  // namespace heddle
