#include "executor/run/run_control.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/values/step_record.h"
#include "executor/plan/block_access.h"
#include "scheduler/spin.h"

namespace heddle {

RunControl::Watch RunControl::BeginInstruction(int thread, const Instruction& in) {
  ThreadView& v = views_[thread];
  if (in.op.def->has(kControlFlow))
    for (int block : BlocksOf(plan_, in)) thread_of_[static_cast<size_t>(block)] = thread;
  Watch watch;
  watch.outer = v.current.load(std::memory_order_relaxed);
  v.current.store(&in, std::memory_order_relaxed);
  if (trace_ == nullptr) return watch;
  RunTrace::Thread& t = trace_->threads[static_cast<size_t>(thread)];
  watch.outer_nested = std::exchange(t.nested, 0);
  const uint64_t last = std::exchange(t.last, 0);
  watch.begin = last != 0 ? last : Ticks();
  return watch;
}

namespace {

using Part = RunTrace::Part;
using Made = RunTrace::Made;

// Records the memory of values that have no planned place.
void NoteMemory(const Plan& plan, const Instruction& in, Value* const* frame, RunTrace::Thread* t) {
  for (uint32_t s : in.op.out) {
    if (s == kNoSlot || plan.slots[s].storage != Storage::kPool || !frame[s]->is_tensor()) continue;
    const BufferRef& memory = frame[s]->tensor().buffer();
    if (memory)
      t->made.push_back({static_cast<uint32_t>(t->events.size() - 1), s, Made::What::kTaken,
                         memory->data(), memory->bytes()});
  }
}

// Lists all memory that a value holds. Precondition: a value that is no tensor belongs to the run
// alone.
void Gather(Value& v, std::vector<RunTrace::Memory>* all) {
  const auto add = [&](const Tensor& t) {
    if (t.buffer()) all->emplace_back(t.buffer()->data(), t.buffer()->bytes());
  };
  if (!v.initialized()) return;
  if (v.is_tensor()) return add(v.tensor());
  if (v.is_rows()) return add(v.rows().value);
  if (v.is_array()) {
    for (const Tensor& t : v.array()) add(t);
    return;
  }
  auto* record = std::any_cast<StepRecord>(&v.mutable_other());
  for (size_t step = 0; record != nullptr && step < record->size(); ++step)
    for (Value& kept : (*record)[step]) Gather(kept, all);
}

// Records the memory that has entered or left the slot's list since the last time.
void NoteList(uint32_t slot, Value& v, RunTrace* trace, RunTrace::Thread* t) {
  if (t->events.empty() || trace->looks.load(std::memory_order_relaxed) <= 0) return;
  const auto event = static_cast<uint32_t>(t->events.size() - 1);
  std::vector<RunTrace::Memory> now;
  if (!v.is_tensor()) Gather(v, &now);
  auto& before = trace->lists[slot];
  trace->looks.fetch_sub(static_cast<int64_t>(now.size()), std::memory_order_relaxed);
  const auto note = [&](Made::What what, const RunTrace::Memory& m) {
    if (!trace->IsForeign(m.first)) t->made.push_back({event, slot, what, m.first, m.second});
  };
  for (size_t k = 0; k < std::max(now.size(), before.size()); ++k) {
    const bool same = k < now.size() && k < before.size() && now[k] == before[k];
    if (!same && k < now.size()) note(Made::What::kPutIn, now[k]);
    if (!same && k < before.size()) note(Made::What::kTakenOut, before[k]);
  }
  before = std::move(now);
}

void NoteLists(const Plan& plan, const Instruction& in, Value* const* frame, RunTrace* trace,
               RunTrace::Thread* t) {
  const auto is_record = [&](uint32_t s) {
    return frame[s]->kind() == Value::Kind::kOther && plan.slots[s].storage != Storage::kScope;
  };
  const auto is_list = [&](uint32_t s) {
    if (s == kNoSlot) return false;
    return frame[s]->is_tensor() ? !trace->lists[s].empty()
                                 : frame[s]->kind() != Value::Kind::kOther || is_record(s);
  };
  for (uint32_t s : in.op.out)
    if (is_list(s)) NoteList(s, *frame[s], trace, t);
  // A loop's gradient removes steps from the record that it reads.
  if (!in.op.def->has(kControlFlow)) return;
  for (uint32_t s : in.op.in)
    if (s != kNoSlot && is_record(s)) NoteList(s, *frame[s], trace, t);
}

}  // namespace

void RunControl::EndInstruction(int thread, const Instruction& in, const Watch& watch,
                                Value* const* frame) {
  ThreadView& v = views_[thread];
  if (trace_ != nullptr) {
    RunTrace::Thread& t = trace_->threads[static_cast<size_t>(thread)];
    const uint64_t end = Ticks(), took = end - watch.begin;
    const bool own =
        trace_->Record(thread, {&in, watch.begin, end, took - std::min(took, t.nested), 1});
    t.nested = watch.outer_nested + took;
    t.last = end;
    if (own) NoteLists(plan_, in, frame, trace_.get(), &t);
    if (own && in.mode != Instruction::Mode::kStatic && in.mode != Instruction::Mode::kWhole) {
      NoteMemory(plan_, in, frame, &t);
      if (watch.infer_begin != 0)
        t.spans.push_back({Part::kInferShape, &in, {}, watch.infer_begin, watch.infer_end});
      if (watch.compute_begin != 0)
        t.spans.push_back({Part::kCompute, &in, {}, watch.compute_begin, end});
    }
  }
  v.current.store(watch.outer, std::memory_order_relaxed);
  v.ended.store(v.ended.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void RunControl::NoteRecords(int thread, Value* const* frame) {
  const Instruction* runner = views_[thread].current.load(std::memory_order_relaxed);
  if (runner == nullptr) return;
  NoteLists(plan_, *runner, frame, trace_.get(), &trace_->threads[static_cast<size_t>(thread)]);
}

void RunControl::StartTrace(Value* const* frame) {
  trace_->lists.resize(plan_.slots.size());
  trace_->foreign.reserve(plan_.slots.size());
  for (size_t s = 0; s < plan_.slots.size(); ++s) {
    Value& v = *frame[s];
    if (!v.initialized() || v.kind() == Value::Kind::kOther) continue;
    if (v.is_tensor()) {
      if (const BufferRef& memory = v.tensor().buffer()) trace_->foreign.push_back(memory->data());
      continue;
    }
    Gather(v, &trace_->lists[s]);
    for (const auto& [memory, bytes] : trace_->lists[s]) trace_->foreign.push_back(memory);
  }
  trace_->Start();
}

bool RunControl::IsAmong(const CheckedOps& ops, const Instruction& in) const {
  const auto block = static_cast<size_t>(in.ir_block);
  if (block >= ops.size()) return false;  // a block that passes made
  const std::vector<bool>& marks = ops[block];
  const ir::Op* const op = plan_.NearestOperator(in);
  const int index = op != nullptr ? op->index : -1;
  return index >= 0 && static_cast<size_t>(index) < marks.size() &&
         marks[static_cast<size_t>(index)];
}

void RunControl::Arm(const RunOptions& options, int threads, Watcher& watcher,
                     const CheckedOps* checked, size_t dispatchers, std::thread::id caller) {
  bits_.store(0, std::memory_order_relaxed);
  checked_ = checked;
  watcher_ = &watcher;
  threads_ = threads;
  may_end_ = options.deadline || options.stop.stop_possible() || options.host != nullptr;
  has_deadline_ = options.deadline.has_value();
  if (options.host != nullptr) host_.Begin(options.host, caller, this);
  const bool traced = options.trace && options.report != nullptr;
  const bool stalls = options.stall_limit.count() > 0 && options.on_stall;
  trace_ =
      traced ? std::make_unique<RunTrace>(static_cast<size_t>(threads) + dispatchers) : nullptr;
  if (traced || stalls) {
    views_ = std::make_unique<ThreadView[]>(static_cast<size_t>(threads));
    thread_of_.assign(plan_.blocks.size(), 0);
    Raise(kObserved);
  }
  if (options.check_nan_inf) Raise(kCheck);
  if (options.wait_after_each) Raise(kWaitEach);
  if (options.stop.stop_possible()) stopper_.emplace(options.stop, Stopper{this});
  if (options.deadline && *options.deadline <= std::chrono::steady_clock::now())
    Raise(kDeadline);  // at once, so that even a short program is ended
  else if (options.deadline)
    deadline_id_ = watcher.At(*options.deadline, [this] { Raise(kDeadline); });
  if (stalls) {
    MutexLock lock(stall_mutex_);
    stall_options_ = &options;
    ended_before_ = 0;
    stall_id_ = watcher.At(std::chrono::steady_clock::now() + options.stall_limit,
                           [this] { LookForStall(); });
  }
}

void RunControl::Disarm() {
  may_end_ = false;
  host_.End();
  stopper_.reset();
  if (deadline_id_ != 0) watcher_->Remove(deadline_id_);
  deadline_id_ = 0;
  uint64_t stall = 0;
  {
    MutexLock lock(stall_mutex_);
    stall_options_ = nullptr;  // no further call of LookForStall is arranged
    std::swap(stall, stall_id_);
  }
  if (stall != 0) watcher_->Remove(stall);
  bits_.store(0, std::memory_order_relaxed);
}

void RunControl::LookForStall() {
  MutexLock lock(stall_mutex_);
  if (stall_options_ == nullptr) return;
  uint64_t ended = 0;
  std::string pending;
  for (int l = 0; l < threads_; ++l) {
    ended += views_[l].ended.load(std::memory_order_relaxed);
    if (const Instruction* in = views_[l].current.load(std::memory_order_relaxed))
      pending += StrCat(pending.empty() ? "" : "; ", Describe(*in), " (thread ", l, ")");
  }
  if (ended == ended_before_)
    stall_options_->on_stall(StrCat("no instruction has ended for ",
                                    stall_options_->stall_limit.count(),
                                    " ms; in execution: ", pending.empty() ? "none" : pending));
  ended_before_ = ended;
  stall_id_ = watcher_->At(std::chrono::steady_clock::now() + stall_options_->stall_limit,
                           [this] { LookForStall(); });
}

std::string RunControl::Describe(const Instruction& in) const {
  const OpLocation where = plan_.Locate(in);
  return StrCat(where.op_type, " (block ", where.block, ", op ", where.op, ", output '",
                where.output, "')");
}

}  // namespace heddle
