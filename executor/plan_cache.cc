#include "executor/plan_cache.h"

#include <utility>

#include "core/lock_or_leave.h"
#include "executor/plan/dependency_graph.h"
#include "executor/tune/tuning_cache.h"

namespace heddle {

namespace {

// The name of the way in the tuning file.
const char* NameOf(const Plan& plan) {
  if (plan.body_lanes > 0) return "body-lanes";
  switch (plan.dispatch) {
    case Dispatch::kLanes:
      return "lanes";
    case Dispatch::kQueue:
      return "queue";
    default:
      return "serial";
  }
}

// The width is not kept in the tuning file, since what decides it changes within seconds.
RunPolicy::Subject SubjectOf(const Plan& plan, const PlanRequest& request,
                             const std::string& lasting_key) {
  const bool known = request.tuning && request.tuning->KeptWay(lasting_key) == "serial";
  return {.steps = plan.blocks[0].instructions.size(),
          .graph = [&plan] { return BuildDependencies(plan, plan.blocks[0].instructions).graph; },
          .variants = request.ask_worth && plan.worth_measuring && !known,
          .parts = plan.worth_body_lanes,
          .widths = request.ask_worth && plan.dispatch == Dispatch::kSerial};
}

}  // namespace

CachedPlan::CachedPlan(std::shared_ptr<const Plan> plan, PlanRequest request,
                       std::string lasting_key)
    : plan_(std::move(plan)),
      request_(std::move(request)),
      lasting_key_(std::move(lasting_key)),
      policy_(SubjectOf(*plan_, request_, lasting_key_)) {
  request_.services = nullptr;
  variants_.push_back({plan_, {}});
}

void CachedPlan::KeepWay(double ns) {
  if (request_.tuning && policy_.confirmed())
    request_.tuning->KeepWay(lasting_key_, NameOf(*variant(policy_.settled_variant())), ns);
}

std::shared_ptr<const Plan> CachedPlan::variant(int v) {
  MutexLock lock(mutex_);
  return variants_[static_cast<size_t>(v)].plan;
}

void CachedPlan::AddVariants(std::vector<std::shared_ptr<const Plan>> plans) {
  MutexLock lock(mutex_);
  for (auto& p : plans) variants_.push_back({std::move(p), {}});
}

void CachedPlan::UseBlocks(std::shared_ptr<ArenaBlocks> blocks) {
  MutexLock lock(mutex_);
  if (blocks_) return;
  for (Variant& v : variants_) v.idle.clear();  // idle states have memory of their own
  blocks_ = std::move(blocks);
  has_blocks_.store(true, std::memory_order_release);
}

size_t CachedPlan::BlockBytes(const Plan& plan) {
  MutexLock lock(mutex_);
  return Lends(plan) ? blocks_->bytes() : 0;
}

bool CachedPlan::Lends(const Plan& plan) const {
  return blocks_ && !plan.arena_slots.empty() && plan.arena_bytes <= blocks_->bytes();
}

std::unique_ptr<RunState> CachedPlan::Acquire(int variant, const Services& services) {
  std::unique_ptr<RunState> state;
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<ArenaBlocks> blocks;
  {
    MutexLock lock(mutex_);
    Variant& v = variants_[static_cast<size_t>(variant)];
    plan = v.plan;
    if (Lends(*plan)) blocks = blocks_;
    if (!v.idle.empty()) state = v.idle.Take();
  }
  if (!state) state = std::make_unique<RunState>(std::move(plan), services, blocks == nullptr);
  if (blocks) state->Borrow(std::move(blocks));
  return state;
}

void CachedPlan::Release(int variant, std::unique_ptr<RunState> state) {
  state->GiveBackBlock();
  MutexLock lock(mutex_);
  variants_[static_cast<size_t>(variant)].idle.Put(std::move(state));
}

void CachedPlan::Trim() {
  MutexLock lock(mutex_);
  for (Variant& v : variants_) v.idle.clear();
  if (blocks_) blocks_->Trim();
}

bool CachedPlan::TrimOthers(int variant) {
  MutexLock lock(mutex_);
  bool any = false;
  for (size_t v = 0; v < variants_.size(); ++v) {
    if (static_cast<int>(v) == variant || variants_[v].idle.empty()) continue;
    variants_[v].idle.clear();
    any = true;
  }
  return any;
}

bool CachedPlan::UpToDate() {
  if (plan_->IsMisjudged()) return false;
  const auto writes = HoldOrLeave(plan_->root_scope->write_mutex());
  return IsUpToDate();
}

bool CachedPlan::IsUpToDate() {
  // Destroyed without the lock, since the owner of borrowed memory may call back.
  std::shared_ptr<const ScopeValues> before;
  const uint64_t version = plan_->scope->version();
  MutexLock lock(mutex_);
  if (version == checked_version_ && held_ != nullptr) return true;
  before = std::exchange(held_, ReadScope());
  if (held_ != nullptr) checked_version_ = version;
  return held_ != nullptr;
}

std::shared_ptr<const ScopeValues> CachedPlan::ReadScope() {
  const Plan& plan = *plan_;
  auto read = std::make_shared<ScopeValues>();
  read->values.resize(plan.scope_slots.size());
  for (size_t i = 0; i < plan.scope_slots.size(); ++i) {
    const Slot& slot = plan.slots[plan.scope_slots[i]];
    const Plan::ScopeUse& use = plan.scope_uses[i];
    const Scope::Stamp now = plan.scope->StampOf(plan.program->vars[slot.var].name);
    if (now.value != use.stamp.value || (use.contents && now != use.stamp)) return nullptr;
    const bool holds_tensor = now.value->is_tensor() && now.value->initialized();
    if (use.meta && now != use.stamp) {
      if (!holds_tensor) return nullptr;
      const Tensor& t = now.value->tensor();
      if (t.dtype() != slot.dtype || !(t.shape() == slot.shape())) return nullptr;
    }
    if (holds_tensor && !use.written) read->values[i] = *now.value;
  }
  read->number = ++times_held_;
  return read;
}

std::shared_ptr<const ScopeValues> CachedPlan::Held() {
  MutexLock lock(mutex_);
  return held_;
}

void CachedPlan::DropHeld() {
  std::shared_ptr<const ScopeValues> before;
  MutexLock lock(mutex_);
  before = std::move(held_);
}

void CachedPlan::NoteOwnWrites(uint64_t before, uint64_t after) {
  MutexLock lock(mutex_);
  if (checked_version_ == before) checked_version_ = after;
}

std::shared_ptr<PlanCache::Entry> PlanCache::EntryOf(uint64_t hash, const std::string& key) {
  // Destroyed, with their contents, after the lock is released.
  std::vector<std::shared_ptr<Entry>> dropped;
  MutexLock lock(mutex_);
  auto& slot = entries_[hash];
  if (slot && slot->key != key) {  // two keys with one hash: the newer one stays
    by_age_.erase(slot->age);
    dropped.push_back(std::move(slot));
  }
  if (!slot) {
    slot = std::make_shared<Entry>();
    slot->key = key;
    by_age_.push_front(hash);
    slot->age = by_age_.begin();
  } else if (slot->age != by_age_.begin()) {
    by_age_.splice(by_age_.begin(), by_age_, slot->age);
  }
  std::shared_ptr<Entry> entry = slot;
  while (entries_.size() > capacity_ && by_age_.size() > 1) {
    const auto oldest = entries_.find(by_age_.back());
    dropped.push_back(std::move(oldest->second));
    entries_.erase(oldest);
    by_age_.pop_back();
  }
  return entry;
}

void PlanCache::Entry::Take(std::shared_ptr<CachedPlan> made) {
  plan = std::move(made);
  MutexLock lock(last_mutex);
  last = plan;
}

std::shared_ptr<CachedPlan> PlanCache::Entry::Last() {
  MutexLock lock(last_mutex);
  return last.lock();
}

std::vector<std::shared_ptr<CachedPlan>> PlanCache::LastPlans() {
  std::vector<std::shared_ptr<Entry>> entries;
  {
    MutexLock lock(mutex_);
    entries.reserve(entries_.size());
    for (const auto& [hash, entry] : entries_) entries.push_back(entry);
  }
  std::vector<std::shared_ptr<CachedPlan>> plans;
  for (const auto& entry : entries)
    if (std::shared_ptr<CachedPlan> plan = entry->Last()) plans.push_back(std::move(plan));
  return plans;
}

void PlanCache::Trim() {
  for (const auto& plan : LastPlans()) plan->Trim();
}

void PlanCache::DropHeld() {
  for (const auto& plan : LastPlans()) plan->DropHeld();
}

}  // namespace heddle
