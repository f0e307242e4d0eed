#include "executor/run/run_state.h"

#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/memory/truths.h"
#include "core/values/step_record.h"
#include "executor/run/interpreter.h"
#include "memory/pool_allocator.h"

namespace heddle {

RunState::RunState(std::shared_ptr<const Plan> plan, const Services& services, bool own_arena)
    : plan_(std::move(plan)),
      services_(services),
      control_(*plan_),
      values_(plan_->slots.size()),
      frame_(plan_->slots.size()),
      readers_(plan_->counted_slots.empty() ? 0 : values_.size()),
      kept_lists_(plan_->kept_lists.size()),
      iterates_(plan_->blocks.size(), 0),
      memos_(plan_->shaped_calls) {
  services_.blocks = this;
  services_.random = &random_;
  services_.packs = plan_->packs.get();
  services_.lean = plan_->lean;
  services_.forced = plan_->forced.get();
  for (size_t i = 0; i < values_.size(); ++i) frame_[i] = &values_[i];
  for (const auto& [slot, value] : plan_->constants) values_[slot] = value;
  // Tensors without elements have offsets even in an arena of no bytes.
  if (own_arena && !plan_->arena_slots.empty()) {
    arena_ = plan_->lean ? services_.allocator->AllocateTight(plan_->arena_bytes)
                         : services_.allocator->Allocate(plan_->arena_bytes);
    BindArena();
  }
  if (!plan_->loose.empty()) tokens_ = std::make_unique<RunTokens>(*plan_, *services_.allocator);
  for (size_t i = 0; i < plan_->scope_slots.size(); ++i)
    frame_[plan_->scope_slots[i]] = plan_->scope_uses[i].stamp.value;
  for (const auto& [slot, value] : plan_->in_file) {
    values_[slot] = value;
    frame_[slot] = &values_[slot];
  }
  if (plan_->dispatch == Dispatch::kLanes) lane_run_ = std::make_unique<LaneRun>(*plan_->lanes);
  if (plan_->body_lanes > 0) {
    body_lanes_.resize(plan_->blocks.size());
    for (size_t b = 0; b < body_lanes_.size(); ++b)
      if (plan_->blocks[b].lanes)
        body_lanes_[b] = std::make_unique<LaneRun>(*plan_->blocks[b].lanes);
  }
  if (plan_->dispatch == Dispatch::kQueue)
    queue_ = std::make_unique<Queue>(plan_->tasks, services_.intra->threads(), plan_->shuffle_seed);
}

RunState::~RunState() {
  GiveBackBlock();
  for (auto& spare : spare_metas_) delete spare.load(std::memory_order_acquire);
}

void RunState::BindArena() {
  services_.arena = &arena_;
  for (uint32_t s : plan_->arena_slots) {
    const Slot& slot = plan_->slots[s];
    Tensor& t = values_[s].tensor();
    t = slot.meta->tensor();
    t.Bind(arena_);
    t.Bind(static_cast<std::byte*>(arena_->data()) + slot.offset);
  }
}

// Mostly it is the block of the last run, and nothing has to be bound again.
void RunState::Borrow(std::shared_ptr<ArenaBlocks> blocks) {
  BufferRef block = blocks->Take(*services_.allocator);
  const bool same = arena_ && arena_->data() == block->data();
  arena_ = std::move(block);
  lender_ = std::move(blocks);
  if (!same) BindArena();
}

void RunState::GiveBackBlock() {
  if (lender_) std::exchange(lender_, nullptr)->GiveBack(arena_);
}

void RunState::PoisonMemory() {
  poison_ = true;
  if (arena_) Poison(arena_->data(), arena_->bytes());
}

namespace {

bool Overlap(const Tensor& a, const Tensor& b) {
  const auto begin = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.raw()); };
  return begin(a) < begin(b) + b.bytes() && begin(b) < begin(a) + a.bytes();
}

// The copy is in the executor's pool: if the caller drops it before the next run, that run's copy
// reuses the memory.
Tensor CopyOf(const Tensor& t, TensorAllocator& allocator) {
  if (!t.is_contiguous()) {
    Tensor copy = t.Clone();
    if (!copy.initialized()) throw std::bad_alloc();
    return copy;
  }
  Tensor copy(t.dtype(), t.shape(), allocator.Allocate(t.bytes()));
  if (t.bytes() > 0) std::memcpy(copy.mutable_raw(), t.raw(), t.bytes());
  if (t.has_lod()) copy.set_lod(t.lod());
  return copy;
}

Status CopyTo(const Tensor& from, const std::string& name, Tensor to) {
  if (from.dtype() != to.dtype() || !(from.shape() == to.shape()))
    return InvalidArgument("output '", name, "' is ", Name(from.dtype()), " ",
                           from.shape().ToString(), "; the memory bound to it is for ",
                           Name(to.dtype()), " ", to.shape().ToString());
  const Tensor whole = from.Contiguous();
  if (!whole.initialized()) return ResourceExhausted("no memory to copy '", name, "'");
  if (to.bytes() > 0) std::memmove(to.mutable_raw(), whole.raw(), to.bytes());
  return Status::Ok();
}

}  // namespace

// Outputs for which the run has memory of its own are written to the caller's memory instead,
// unless a feed lies there, which operators still read.
void RunState::BindOutputs(const std::vector<Tensor>& bound) {
  for (size_t i = 0; i < bound.size(); ++i) {
    const PlanFetch& f = plan_->fetches[i];
    const Slot& slot = plan_->slots[f.slot];
    if (!bound[i].initialized() || !f.move || slot.storage != Storage::kOutput ||
        slot.dtype != bound[i].dtype() || !(slot.shape() == bound[i].shape()))
      continue;
    bool fed = false;
    for (const PlanFeed& feed : plan_->feeds)
      fed = fed || !value(feed.slot).is_tensor() || Overlap(value(feed.slot).tensor(), bound[i]);
    if (!fed) value(f.slot) = bound[i];
  }
}

// Replaces the feed by a copy, since its memory belongs to the caller.
void RunState::HoldTruths(Value* v) const {
  const size_t bytes = v->tensor().bytes();
  if (AreTruths(v->tensor().raw(), bytes)) return;
  *v = CopyOf(v->tensor(), *services_.allocator);
  MakeTruths(v->tensor().mutable_raw(), bytes);
}

// Most runs read what the one before has read: nothing has to be bound again.
void RunState::Hold(std::shared_ptr<const ScopeValues> values) {
  held_ = std::move(values);
  if (held_->number == bound_values_) return;
  for (size_t i = 0; i < plan_->scope_slots.size(); ++i) {
    Value*& at = frame_[plan_->scope_slots[i]];
    if (at == &values_[plan_->scope_slots[i]]) continue;  // contents that stay in their file
    const Value& value = held_->values[i];
    // No instruction writes to the variables that are held.
    at = value.initialized() ? const_cast<Value*>(&value) : plan_->scope_uses[i].stamp.value;
  }
  bound_values_ = held_->number;
}

namespace {

// Makes the view of its base's present memory.
void BindView(uint32_t s, const Plan& plan, Value* const* frame) {
  const Slot& slot = plan.slots[s];
  Tensor& base = frame[slot.base]->tensor();
  Tensor view = slot.is_dense() ? base.Reshaped(slot.shape()) : slot.meta->tensor();
  if (!slot.is_dense() && base.buffer()) view.Bind(base.buffer());
  view.Bind(static_cast<std::byte*>(base.mutable_raw()) + slot.shift);
  *frame[s] = std::move(view);
}

void ClearViews(const Plan& plan, Value* const* frame) {
  for (uint32_t s : plan.view_slots) *frame[s] = Value();
  for (const FunctionPlan& f : plan.functions)
    for (uint32_t s : f.views) *frame[s] = Value();
}

}  // namespace

void RunState::Begin(const std::vector<const Value*>& feeds, const std::vector<Tensor>& bound) {
  for (CallMemo& memo : memos_) memo.Begin();
  for (size_t i = 0; i < plan_->feeds.size(); ++i) {
    Value& v = value(plan_->feeds[i].slot);
    v = *feeds[i];
    if (!v.is_tensor()) continue;
    if (plan_->feeds[i].copied || !v.tensor().is_contiguous())
      v = CopyOf(v.tensor(), *services_.allocator);
    if (v.tensor().dtype() == DType::kBool) HoldTruths(&v);
  }
  if (tokens_) tokens_->Begin(poison_);
  BindOutputs(bound);
  for (uint32_t s : plan_->output_slots) {
    const Slot& slot = plan_->slots[s];
    if (value(s).initialized()) continue;
    value(s) = Tensor(slot.dtype, slot.shape(), services_.allocator->Allocate(slot.bytes()));
  }
  for (uint32_t s : plan_->counted_slots)
    readers_[s].store(static_cast<int>(plan_->consumers[s]), std::memory_order_relaxed);
  for (uint32_t s : plan_->view_slots) BindView(s, *plan_, frame());
}

void RunState::BindCall(const FunctionPlan& function, const BoundOp& call) {
  for (size_t k = 0; k < function.parameters.size(); ++k)
    frame_[function.parameters[k]] = frame_[call.in[k]];
  for (size_t k = 0; k < function.results.size(); ++k)
    frame_[function.results[k]] = frame_[call.out[k]];
  for (uint32_t s : function.views) BindView(s, *plan_, frame());
}

Status RunState::Fetch(size_t count, size_t required, const std::vector<Tensor>& bound,
                       std::vector<Value>* out) {
  out->resize(count);
  ClearViews(*plan_, frame());  // releases memory that may be handed over
  for (size_t i = 0; i < count; ++i) {
    const PlanFetch& f = plan_->fetches[i];
    Value& v = value(f.slot);
    if (!v.initialized() && i >= required) continue;
    if (!v.initialized())
      return InvalidArgument("cannot fetch '", f.name, "': nothing was written to it in this run; ",
                             "the operator that could leaves it out");
    if (!v.is_tensor()) {
      (*out)[i] = v;
      continue;
    }
    const Tensor& t = v.tensor();
    if (i < bound.size() && bound[i].initialized()) {
      if (t.raw() != bound[i].raw()) HEDDLE_RETURN_IF_ERROR(CopyTo(t, f.name, bound[i]));
      (*out)[i] = bound[i];
      if (t.has_lod()) (*out)[i].tensor().set_lod(t.lod());
      continue;
    }
    if (f.move && t.buffer() && t.buffer()->unique() && t.is_contiguous()) {
      (*out)[i] = std::move(v.tensor());
      v = Value();
      continue;
    }
    try {
      (*out)[i] = CopyOf(t, *services_.allocator);
    } catch (const std::bad_alloc& e) {
      return ResourceExhausted("no memory for the fetched copy of '", f.name, "': ", t.bytes(),
                               " bytes: ", e.what());
    }
  }
  return Status::Ok();
}

namespace {

// Removes a list's values and keeps its capacity for the next run.
void Empty(Value* list) {
  if (list->is_array() && list->initialized()) return list->mutable_array().clear();
  if (list->is_rows() && list->initialized()) {
    SelectedRows& rows = list->mutable_rows();
    rows.rows.clear();
    rows.value = Tensor();
    return;
  }
  StepRecord* record = nullptr;
  if (list->kind() == Value::Kind::kOther)
    record = std::any_cast<StepRecord>(&list->mutable_other());
  if (record != nullptr)
    record->Clear();
  else
    *list = Value();
}

}  // namespace

void RunState::End() {
  for (const PlanFeed& f : plan_->feeds) value(f.slot) = Value();
  for (uint32_t s : plan_->output_slots) value(s) = Value();
  ClearViews(*plan_, frame());
  for (uint32_t s : plan_->run_slots) value(s) = Value();
  for (uint32_t s : plan_->list_slots) Empty(&value(s));
  for (size_t k = 0; k < kept_lists_.size(); ++k) {
    Value& list = value(plan_->kept_lists[k]);
    Empty(&list);
    if (list.initialized()) kept_lists_[k] = std::exchange(list, Value());
  }
  if (tokens_) tokens_->End();
  held_.reset();
}

// Looks for an interrupt even if the block is empty: it may be the body of an endless loop.
Status RunState::RunBlock(int block) {
  if (control_.attention()) HEDDLE_RETURN_IF_ERROR(control_.Look());
  if (device_bodies_ != nullptr && device_bodies_->Has(block)) return device_bodies_->Run(block);
  return Interpreter::RunNested(block, IsFirst(block), *this);
}

}  // namespace heddle
