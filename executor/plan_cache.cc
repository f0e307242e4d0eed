#include "executor/plan_cache.h"

#include "core/error.h"

namespace heddle {

std::unique_ptr<RunState> CachedPlan::Acquire(const Services& services) {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto state = std::move(idle_.back());
      idle_.pop_back();
      return state;
    }
  }
  return std::make_unique<RunState>(plan_, services);
}

void CachedPlan::Release(std::unique_ptr<RunState> state) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(state));
}

void CachedPlan::Trim() {
  std::lock_guard lock(mutex_);
  idle_.clear();
}

bool CachedPlan::UpToDate() {
  if (!plan_->scope) return true;
  const uint64_t version = plan_->scope->version();
  std::lock_guard lock(mutex_);
  if (version == checked_version_) return true;
  for (const auto& [slot, data] : plan_->assumed) {
    const Value* v = plan_->scope->Find(plan_->program->vars[plan_->slots[slot].var].name);
    if (v == nullptr || !v->is_tensor() || v->tensor().raw() != data) return false;
  }
  checked_version_ = version;
  return true;
}

Result<std::shared_ptr<CachedPlan>> PlanCache::Get(
    uint64_t hash, const std::string& key,
    const std::function<Result<std::shared_ptr<const Plan>>()>& build) {
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    auto& slot = entries_[hash];
    if (slot && slot->key != key) {  // two descriptions with one hash: the newer one stays
      by_age_.erase(slot->age);
      slot = nullptr;
    }
    if (!slot) {
      slot = std::make_shared<Entry>();
      slot->key = key;
      by_age_.push_front(hash);
      slot->age = by_age_.begin();
    } else if (slot->age != by_age_.begin()) {
      by_age_.splice(by_age_.begin(), by_age_, slot->age);
    }
    entry = slot;
    while (entries_.size() > capacity_ && by_age_.size() > 1) {
      entries_.erase(by_age_.back());
      by_age_.pop_back();
    }
  }
  std::lock_guard lock(entry->mutex);
  if (entry->plan && entry->plan->UpToDate()) return entry->plan;
  auto plan = build();
  if (!plan.ok()) return plan.status();
  built_.fetch_add(1, std::memory_order_relaxed);
  entry->plan = std::make_shared<CachedPlan>(*std::move(plan));
  return entry->plan;
}

void PlanCache::Trim() {
  std::lock_guard lock(mutex_);
  for (auto& [hash, entry] : entries_) {
    std::lock_guard entry_lock(entry->mutex);
    if (entry->plan) entry->plan->Trim();
  }
}

}  // namespace heddle
