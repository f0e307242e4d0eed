#include "executor/run/interpreter.h"

#include <cstring>

#include "core/error.h"
#include "core/guard.h"
#include "core/interrupts.h"
#include "core/kernel_context.h"
#include "core/kernel_selector.h"
#include "executor/run/check_finite.h"
#include "executor/run/place_outputs.h"
#include "memory/pool_allocator.h"

namespace heddle {
namespace {

using Mode = Instruction::Mode;

// Moves the hidden slot's value to the variable; a variable with a fixed place gets a copy of the
// bytes.
void Replace(const Instruction::Rewrite& r, const Plan& plan, Value* const* frame) {
  if (plan.slots[r.real].storage == Storage::kPool) {
    *frame[r.real] = std::move(*frame[r.hidden]);
    frame[r.hidden]->Clear();
  } else if (const Tensor& now = frame[r.hidden]->tensor(); now.bytes() > 0) {
    std::memcpy(frame[r.real]->tensor().mutable_raw(), now.raw(), now.bytes());
  }
}

}  // namespace

Status Interpreter::ExecuteShaped(const Instruction& in, const KernelState* state, RunState& run) {
  const Plan& plan = run.plan();
  Value* const* frame = run.frame();
  if (in.mode == Mode::kShare) {
    const uint32_t from = in.op.in[in.takeovers[0]], to = in.op.out[in.takeovers[1]];
    *frame[to] = frame[from]->tensor().Reshaped(plan.slots[to].shape());
    return Status::Ok();
  }
  for (uint32_t k = 0; k < in.op.out.size(); ++k) {
    const uint32_t s = in.op.out[k];
    if (s == kNoSlot) continue;
    const Slot& slot = plan.slots[s];
    // No memory is needed by a slot with planned memory, a variable that is rewritten in place, or
    // an array.
    if (slot.storage != Storage::kPool || !slot.is_static ||
        (!slot.versioned && IsOperand(in.op.in, s)))
      continue;
    bool taken = false;
    for (size_t t = 0; t < in.takeovers.size() && !taken; t += 2) {
      const uint32_t source = in.op.in[in.takeovers[t]];
      if (in.takeovers[t + 1] != k || plan.consumers[source] != 1) continue;
      const Tensor& from = frame[source]->tensor();
      if (!from.buffer() || !from.buffer()->unique()) continue;
      // Only the memory is taken over: the output may have another type.
      Tensor to = from.Reshaped(slot.shape());
      to.SetMeta(slot.dtype, slot.shape());
      *frame[s] = std::move(to);
      taken = true;
    }
    if (!taken) Provide(s, slot.dtype, slot.shape(), run);
  }
  KernelContext ctx(in.op, frame, run.services(), state);
  if (in.mode != Mode::kReplace) return in.fn(ctx);
  HEDDLE_RETURN_IF_ERROR(in.fn(ctx));
  for (const auto& r : in.rewrites) Replace(r, plan, frame);
  return Status::Ok();
}

Status Interpreter::Call(const Instruction& in, const KernelState* state, RunState& run) {
  if (in.whole) {
    const Interrupts::Scope none(nullptr);
    return CallAny(in, state, run);
  }
  return CallAny(in, state, run);
}

Status Interpreter::CallAny(const Instruction& in, const KernelState* state, RunState& run) {
  if (in.mode == Mode::kStatic || in.mode == Mode::kWhole) [[likely]] {
    KernelContext ctx(in.op, run.frame(), run.services(), state);
    return in.fn(ctx);
  }
  if (in.mode == Mode::kWide) return CallWide(in, run);
  if (in.mode != Mode::kDynamic) return ExecuteShaped(in, state, run);
  return in.loop == kNoSlot ? ExecuteDynamic(in, run, nullptr) : RunLoop(in, run);
}

Status Interpreter::CallWide(const Instruction& in, RunState& run) {
  Services services = run.services();
  Status status;
  auto call = [&] {
    KernelContext ctx(in.op, run.frame(), services, in.state);
    status = in.fn(ctx);
  };
  if (run.wide() == nullptr) {
    call();
  } else {
    services.intra = &run.wide()->intra();
    run.wide()->Execute(call);
  }
  return status;
}

// Executes an instruction of a run that is observed, or that is asked to end.
Status Interpreter::CallWatched(const Instruction& in, const KernelState* state, RunState& run,
                                int thread) {
  RunControl& control = run.control();
  HEDDLE_RETURN_IF_ERROR(control.Look());
  const bool observed = control.observed();
  RunControl::Watch watch;
  if (observed) watch = control.BeginInstruction(thread, in);
  const bool is_loop = in.loop != kNoSlot;
  if (is_loop) watch.infer_begin = watch.infer_end = watch.compute_begin = Ticks();
  const Interrupts::Scope scope(in.whole ? nullptr : Interrupts::Current());
  Status status = in.mode == Mode::kDynamic && control.trace() != nullptr && !is_loop
                      ? ExecuteDynamic(in, run, &watch)
                      : Call(in, state, run);
  if (observed) control.EndInstruction(thread, in, watch, run.frame());
  if (status.ok() && control.Checks(in)) return CheckFinite(run.plan(), in, run.frame());
  return status;
}

// A small value, or memory without a value, is kept: the next iteration of a body can mostly reuse
// it, which is cheaper than to free and allocate.
static bool StaysForNextTurn(const Value& v) {
  constexpr size_t kSmall = 16 << 10;
  return v.is_tensor() && v.tensor().buffer() &&
         (v.tensor().raw() == nullptr || v.tensor().buffer()->bytes() <= kSmall);
}

static void GiveBack(const Instruction& in, RunState& run, int thread) {
  const bool all = in.ir_block == 0 || run.plan().dispatch == Dispatch::kDevice;
  for (uint32_t slot : in.release)
    if (all || !StaysForNextTurn(run.value(slot))) run.Release(slot);
  for (uint32_t slot : in.reads) run.CountRead(slot);
  if (RunTrace* trace = run.control().trace(); trace != nullptr && in.ir_block == 0)
    trace->EndSpan(thread, RunTrace::Part::kRelease, 0, &in);
}

// The usual instruction needs no further call: the instructions of a loop's body may be tiny.
inline Status Interpreter::Execute(const Instruction& in, const KernelState* state, RunState& run,
                                   int thread) {
  KernelContext ctx(in.op, run.frame(), run.services(), state);
  Status s = run.control().attention()  ? CallWatched(in, state, run, thread)
             : in.mode == Mode::kStatic ? in.fn(ctx)
                                        : Call(in, state, run);
  if (s.ok() && in.gives_back) GiveBack(in, run, thread);
  return s;
}

// Executes the instructions at(0), at(1), …, at(count - 1); an error or an exception gets the
// instruction's location. `state_of(i)`: the kernel's state of at(i).
template <typename At, typename StateOf>
Status Interpreter::ExecuteAll(size_t count, At&& at, StateOf&& state_of, RunState& run,
                               int thread) {
  const Instruction* in = nullptr;
  Status status = Guard([&] {
    for (size_t i = 0; i < count; ++i) {
      in = &at(i);
      Status s = Execute(*in, state_of(i), run, thread);
      if (!s.ok()) [[unlikely]]
        return s;
    }
    return Status::Ok();
  });
  return status.ok() ? status : run.plan().Blame(status, *in);
}

template <typename At>
Status Interpreter::ExecuteAll(size_t count, At&& at, RunState& run, int thread) {
  const auto state_of = [&at](size_t i) { return at(i).state; };
  return ExecuteAll(count, at, state_of, run, thread);
}

Status Interpreter::RunSerial(std::span<const Instruction> ins, RunState& run, int thread) {
  const auto at = [first = ins.data()](size_t i) -> const Instruction& { return first[i]; };
  return ExecuteAll(ins.size(), at, run, thread);
}

Status Interpreter::RunNested(int block, bool first, RunState& run) {
  const BlockPlan& plan = run.plan().blocks[block];
  for (const uint32_t list : plan.fills) run.GiveList(list);
  const size_t done = first ? 0 : plan.once;
  const Instruction* const all = plan.instructions.data();
  const int thread = run.control().ThreadOf(block);
  // The operator's own work between two iterations counts as the operator's time.
  if (RunTrace* trace = run.control().trace()) {
    trace->threads[static_cast<size_t>(thread)].last = 0;
    run.control().NoteRecords(thread, run.frame());
  }
  const size_t count = plan.instructions.size() - done;
  if (plan.lanes == nullptr) [[likely]] {
    const size_t tail = run.control().attention() ? 0 : plan.tail.size();
    HEDDLE_RETURN_IF_ERROR(RunSerial({all + done, count - tail}, run, thread));
    for (size_t k = 0; k < tail; ++k) plan.tail[k].fn(plan.tail[k], run.frame());
    return Status::Ok();
  }
  for (uint32_t slot : plan.counted_slots) run.CountReadersAnew(slot);
  if (run.helpers() != nullptr) return RunBodyLanes(block, first, run);
  const uint32_t* const order = plan.serial_order.data() + done;
  return ExecuteAll(
      count, [all, order](size_t i) -> const Instruction& { return all[order[i]]; }, run, thread);
}

Status Interpreter::RunCall(const PlannedCall& call, RunState& run) {
  const int block = run.plan().functions[call.function].block;
  const std::vector<Instruction>& ins = run.plan().blocks[static_cast<size_t>(block)].instructions;
  const int thread = run.control().ThreadOf(block);
  if (RunTrace* trace = run.control().trace()) trace->threads[static_cast<size_t>(thread)].last = 0;
  if (call.states.empty()) return RunSerial(ins, run, thread);
  const auto at = [first = ins.data()](size_t i) -> const Instruction& { return first[i]; };
  const auto state_of = [&](size_t i) {
    const KernelState* own = call.states[i].get();
    return own != nullptr ? own : ins[i].state;
  };
  return ExecuteAll(ins.size(), at, state_of, run, thread);
}

namespace {

// Reads a loop's condition.
Status GoesOn(const Value& condition, bool* go_on) {
  const Tensor& t = condition.tensor();
  if (!t.initialized() || t.dtype() != DType::kBool || t.numel() != 1)
    return InvalidArgument("'Condition' must be one bool; it is ", Name(t.dtype()), " ",
                           t.shape().ToString());
  *go_on = *t.data<bool>();
  return Status::Ok();
}

}  // namespace

// Does what the loop's kernel does, with less overhead between iterations.
Status Interpreter::RunLoop(const Instruction& in, RunState& run) {
  const LoopPlan& loop = run.plan().loops[in.loop];
  const BlockPlan& body = run.plan().blocks[static_cast<size_t>(loop.body)];
  const Value& condition = run.value(loop.condition);
  const Instruction* const all = body.instructions.data();
  const size_t end = body.instructions.size() - body.tail.size();
  const Instruction* now = nullptr;  // nullptr: an error is the loop's own
  for (int block : in.loops) run.BeginLoop(block);
  if (!condition.is_tensor()) return InvalidArgument("'Condition' is no tensor");
  const Status status = Guard([&] {
    for (int64_t turn = 0;; ++turn) {
      now = nullptr;
      bool go_on = turn < loop.turns;
      if (loop.turns < 0) HEDDLE_RETURN_IF_ERROR(GoesOn(condition, &go_on));
      if (!go_on) return Status::Ok();
      if (turn == 1 && !loop.may_end)
        return InvalidArgument("never ends: no step changes what 'Condition' depends on");
      if (run.control().attention() || !loop.plain) {
        HEDDLE_RETURN_IF_ERROR(run.RunBlock(loop.body));
        continue;
      }
      for (const uint32_t list : body.fills) run.GiveList(list);
      for (size_t i = run.IsFirst(loop.body) ? 0 : body.once; i < end; ++i) {
        now = &all[i];
        Status s =
            Execute(*now, now->state, run, 0);  // not observed, so the thread's number is not used
        if (!s.ok()) [[unlikely]]
          return s;
      }
      if (loop.turns >= 0) continue;
      for (const ScalarStep& step : body.tail) step.fn(step, run.frame());
    }
  });
  return status.ok() || now == nullptr ? status : run.plan().Blame(status, *now);
}

Status Interpreter::RunOne(const Instruction& instruction, RunState& run, int thread) {
  return RunSerial({&instruction, 1}, run, thread);
}

namespace {

// Notes in the trace that the thread takes part.
void Join(RunState& run, int thread) {
  RunTrace* const trace = run.control().trace();
  if (trace == nullptr) return;
  trace->threads[static_cast<size_t>(thread)].events.reserve(
      run.plan().blocks[0].instructions.size());
  trace->Join(thread);
}

}  // namespace

Status Interpreter::RunOnOneThread(RunState& run) {
  const Interrupts::Scope scope(run.control().interrupts());
  const Plan& plan = run.plan();
  const auto& instructions = plan.blocks[0].instructions;
  Join(run, 0);
  if (plan.dispatch != Dispatch::kLanes) return RunSerial(instructions, run);
  return ExecuteAll(
      instructions.size(),
      [&](size_t i) -> const Instruction& { return instructions[plan.serial_order[i]]; }, run, 0);
}

Status Interpreter::RunMeasured(RunState& run, CostMeter& meter, double* ns) {
  const auto& instructions = run.plan().blocks[0].instructions;
  size_t done = 0;
  meter.Begin();
  Status status = ExecuteAll(
      instructions.size(),
      [&](size_t i) -> const Instruction& {
        if (i > 0) meter.Lap(i - 1);
        done = i;
        return instructions[i];
      },
      run, 0);
  if (!instructions.empty() && status.ok()) meter.Lap(done);
  *ns = meter.End();
  return status;
}

namespace {

// Notes in the trace that a thread joins the lanes of a sub-block. Thread 0 runs the block itself;
// any other thread has waited for work since its last event or span.
void JoinBody(RunState& run, int thread) {
  RunTrace* const trace = run.control().trace();
  if (trace == nullptr || thread == 0) return;
  if (!trace->threads[static_cast<size_t>(thread)].joined)
    trace->Join(thread);
  else
    trace->EndNestedSpan(thread, RunTrace::Part::kWaitWork, trace->start);
}

// Ends the time of dispatching: the next instruction begins now, after predecessors that may have
// ended on other threads.
void BeginPart(RunTrace* trace, int thread) {
  if (trace != nullptr) trace->EndSpan(thread, RunTrace::Part::kDispatch, Ticks(), nullptr);
}

// Calls fn(begin, end) for each maximal range in [begin, end) of instructions that every iteration
// executes. False: a call returned false, which ended the walk.
template <typename Fn>
bool ForRepeated(const Instruction* all, uint32_t begin, uint32_t end, Fn&& fn) {
  while (begin < end) {
    uint32_t stop = begin;
    while (stop < end && !all[stop].once) ++stop;
    if (stop > begin && !fn(begin, stop)) return false;
    begin = stop + 1;
  }
  return true;
}

}  // namespace

// In lanes kernels use one thread each, even if those of block 0 use several. Block 0 runs one
// instruction after another, so the calling thread is the run's thread 0.
Status Interpreter::RunBodyLanes(int block, bool first, RunState& run) {
  const BlockPlan& plan = run.plan().blocks[block];
  const Instruction* const all = plan.instructions.data();
  LaneRun& lanes = *run.body_lanes(block);
  RunTrace* const trace = run.control().trace();
  const auto waited = [&](int thread, const LaneWait* wait, uint64_t begin) {
    if (wait == nullptr)
      trace->EndNestedSpan(thread, RunTrace::Part::kWaitWork, begin);
    else
      trace->EndNestedSpan(thread, RunTrace::Part::kWaitLane, begin, *wait, block);
  };
  const LaneRun::OnWait on_wait = waited;
  lanes.Begin(trace != nullptr ? &on_wait : nullptr);
  const auto execute = [&](int thread, uint32_t begin, uint32_t end) {
    Status s = ExecuteAll(
        end - begin, [at = all + begin](size_t i) -> const Instruction& { return at[i]; }, run,
        thread);
    if (s.ok()) [[likely]]
      return true;
    run.error().Keep(std::move(s));
    return false;
  };
  const bool skips = !first && plan.once > 0;
  const auto participate = [&](int thread) {
    const Interrupts::Scope scope(run.control().interrupts());
    JoinBody(run, thread);
    lanes.Participate(thread, [&](uint32_t, uint32_t begin, uint32_t end) {
      if (trace != nullptr) trace->EndNestedSpan(thread, RunTrace::Part::kDispatch, Ticks());
      if (!skips) return execute(thread, begin, end);
      return ForRepeated(all, begin, end,
                         [&](uint32_t from, uint32_t to) { return execute(thread, from, to); });
    });
  };
  const RunState::Helpers helpers = *run.helpers();
  IntraOp* const intra = std::exchange(run.services().intra, &helpers.arena->intra());
  run.UseHelpers(nullptr);  // blocks inside have no helpers
  helpers.pool->Run([&](int thread) { helpers.arena->Execute([&] { participate(thread); }); },
                    plan.lanes->lanes);
  run.UseHelpers(&helpers);
  run.services().intra = intra;
  return run.error().Take();
}

Status Interpreter::RunLanes(RunState& run, HostPool& pool, KernelArena& arena) {
  const auto& instructions = run.plan().blocks[0].instructions;
  LaneRun& lanes = *run.lane_run();
  RunTrace* const trace = run.control().trace();
  const auto waited = [&](int thread, const LaneWait* wait, uint64_t begin) {
    if (wait != nullptr)
      trace->EndSpan(thread, RunTrace::Part::kWaitLane, begin, nullptr, *wait);
    else
      trace->EndSpan(thread, RunTrace::Part::kWaitWork, begin, nullptr);
  };
  const LaneRun::OnWait on_wait = waited;
  lanes.Begin(trace != nullptr ? &on_wait : nullptr);
  const auto participate = [&](int thread) {
    const Interrupts::Scope scope(run.control().interrupts());
    Join(run, thread);
    lanes.Participate(thread, [&](uint32_t, uint32_t begin, uint32_t end) {
      BeginPart(trace, thread);
      const Instruction* first = &instructions[begin];
      Status s = ExecuteAll(
          end - begin, [first](size_t i) -> const Instruction& { return first[i]; }, run, thread);
      if (s.ok()) [[likely]]
        return true;
      run.error().Keep(std::move(s));
      return false;
    });
  };
  pool.Run([&](int thread) { arena.Execute([&] { participate(thread); }); },
           run.plan().lanes->lanes);
  return run.error().Take();
}

namespace {

// Pushes ready tasks and wakes sleeping threads.
void PublishAll(RunState::Queue& q, const std::vector<uint32_t>& tasks) {
  if (tasks.empty()) return;
  q.ready.PushAll(tasks);
  MutexLock lock(q.mutex);
  if (q.sleeping > 0) q.changed.NotifyAll();
}

// Pushes a ready task and wakes a sleeping thread, if there is one.
void Publish(RunState::Queue& q, int participant, uint32_t task) {
  q.ready.Push(participant, task);
  MutexLock lock(q.mutex);
  if (q.sleeping > 0) q.changed.NotifyOne();
}

void Finish(RunState& run, Status error) {
  RunState::Queue& q = *run.queue();
  run.error().Keep(std::move(error));
  {
    MutexLock lock(q.mutex);
    q.failed.store(true, std::memory_order_release);
  }
  q.changed.NotifyAll();
}

// Waits for a task; false when the run is over. A waiting thread looks for interrupts, so that the
// host's calls are made on the thread that they are meant for; ending the run is left to the
// threads that execute.
bool AwaitTask(RunState::Queue& q, int participant, uint32_t* task) {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(5);
  const Interrupts* const mine = Interrupts::Current();
  for (;;) {
    if (q.failed.load(std::memory_order_acquire)) return false;
    if (q.ready.Pop(participant, task)) return true;
    MutexLock lock(q.mutex);
    if (q.unfinished.load(std::memory_order_acquire) == 0 || q.failed.load()) return false;
    // A publisher pushes its task before it takes the mutex, so a second look under the mutex
    // misses none.
    if (q.ready.Pop(participant, task)) return true;
    ++q.sleeping;
    if (mine == nullptr)
      q.changed.Wait(q.mutex);
    else
      q.changed.WaitUntil(q.mutex, std::chrono::steady_clock::now() + kBetweenLooks);
    --q.sleeping;
    if (mine == nullptr) continue;
    const MutexUnlock unlocked(q.mutex);
    (void)mine->Look();
  }
}

// The next task, ready or awaited; false when the run is over.
bool NextTask(RunState& run, int participant, uint32_t* task) {
  RunState::Queue& q = *run.queue();
  RunTrace* const trace = run.control().trace();
  if (!q.failed.load(std::memory_order_acquire) && q.ready.Pop(participant, task)) {
    BeginPart(trace, participant);
    return true;
  }
  if (trace == nullptr) return AwaitTask(q, participant, task);
  const uint64_t begin = Ticks();
  const bool more = AwaitTask(q, participant, task);
  trace->EndSpan(participant, RunTrace::Part::kWaitWork, begin, nullptr);
  return more;
}

}  // namespace

void Interpreter::RunTasks(int participant, RunState& run) {
  const UnitGraph& tasks = run.plan().tasks;
  const StaticGraph& g = tasks.graph;
  const auto& instructions = run.plan().blocks[0].instructions;
  RunState::Queue& q = *run.queue();
  uint32_t task = 0;
  bool have = false;
  std::vector<uint32_t> ready;
  const Interrupts::Scope scope(run.control().interrupts());
  Join(run, participant);
  while (have || NextTask(run, participant, &task)) {
    const uint32_t* members = &tasks.nodes[tasks.node_begin[task]];
    Status s = ExecuteAll(
        tasks.node_begin[task + 1] - tasks.node_begin[task],
        [&](size_t i) -> const Instruction& { return instructions[members[i]]; }, run, participant);
    if (!s.ok()) return Finish(run, std::move(s));
    // Keeps the most urgent of the successors that became ready, and publishes the others. With
    // priorities all are published, since another ready task may come first.
    uint32_t keep = kNoSlot;
    for (uint32_t e = g.succ_begin[task]; e < g.succ_begin[task + 1]; ++e) {
      uint32_t next = g.succ[e];
      if (q.waiting[next].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      if (q.ready.has_priorities()) {
        ready.push_back(next);
      } else if (keep == kNoSlot) {
        keep = next;
      } else {
        if (tasks.bottom_level_ns[next] > tasks.bottom_level_ns[keep]) std::swap(next, keep);
        Publish(q, participant, next);
      }
    }
    PublishAll(q, ready);
    ready.clear();
    have = keep != kNoSlot;
    if (have) task = keep;
    if (have) BeginPart(run.control().trace(), participant);
    if (q.unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      MutexLock lock(q.mutex);
      q.changed.NotifyAll();
    }
    if (q.failed.load(std::memory_order_acquire)) return;
  }
}

Status Interpreter::RunQueue(RunState& run, HostPool& pool, KernelArena& arena) {
  const StaticGraph& g = run.plan().tasks.graph;
  RunState::Queue& q = *run.queue();
  q.ready.Clear();
  q.failed.store(false, std::memory_order_relaxed);
  q.unfinished.store(g.size, std::memory_order_release);
  for (uint32_t t = 0; t < g.size; ++t)
    q.waiting[t].store(g.in_degree(t), std::memory_order_relaxed);
  for (uint32_t t = g.size; t-- > 0;)
    if (g.in_degree(t) == 0) q.ready.Push(0, t);
  pool.Run([&](int participant) { arena.Execute([&] { RunTasks(participant, run); }); });
  return run.error().Take();
}

}  // namespace heddle
