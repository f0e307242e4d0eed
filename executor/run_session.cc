#include "executor/run_session.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/error.h"
#include "core/guard.h"
#include "core/interrupts.h"
#include "core/lock_or_leave.h"
#include "executor/check_claims.h"
#include "executor/device/device_interpreter.h"
#include "executor/find_culprit.h"
#include "executor/report/fill_report.h"
#include "executor/run/interpreter.h"
#include "heddle/generator.h"
#include "scheduler/spin.h"

namespace heddle::internal {
namespace {

// The status for the exception that is being handled.
Status Caught() {
  try {
    throw;
  } catch (const Interrupted& e) {
    return e.status;
  } catch (const std::bad_alloc& e) {
    return ResourceExhausted("no memory for a run: ", e.what());
  } catch (const std::length_error& e) {
    return ResourceExhausted("no memory could hold what a run needs: ", e.what());
  } catch (const std::exception& e) {  // no thread to be had, for example
    return Internal("a run could not be made: ", e.what());
  }
}

bool MayEnd(const RunOptions& o) {
  return o.deadline || o.stop.stop_possible() || o.host != nullptr;
}

bool IsWatched(const RunOptions& o) {
  return MayEnd(o) || o.stall_limit.count() > 0 || o.trace || o.check_nan_inf || o.wait_after_each;
}

// An error if a run that waits for its turn has been cancelled or has passed its deadline.
Status WhileItWaits(const RunOptions& o) {
  if (o.stop.stop_requested())
    return Status(StatusCode::kCancelled, "the run was cancelled before it began");
  if (o.deadline && std::chrono::steady_clock::now() >= *o.deadline)
    return Status(StatusCode::kDeadlineExceeded, "the run's deadline came before its turn");
  return Status::Ok();
}

// Whether the caller ended the run. It is then not repeated, even if a concurrent run has found a
// reason to repeat both.
bool WasEnded(const Status& status) {
  return status.code() == StatusCode::kCancelled || status.code() == StatusCode::kDeadlineExceeded;
}

}  // namespace

Status RunSession::Run(RunResources& resources, PlanService& plans, const RunCall& call) {
  if (!call.compiled.communicates || resources.communicator == nullptr) [[likely]]
    return RunOnce(resources, plans, call);
  Communicator& rank = *resources.communicator;
  HEDDLE_RETURN_IF_ERROR(rank.BeginRun([&] { return WhileItWaits(call.options); }));
  // An error if another rank needs the same scope and one of them alone: each would wait for the
  // lock and for the other rank, even to make a plan.
  Status status = Guard(
      [&] { return rank.Claim(&call.compiled.scope->write_mutex(), call.compiled.writes_scope); });
  if (status.ok()) status = RunOnce(resources, plans, call);
  rank.EndRun(status);
  return status;
}

Status RunSession::RunOnce(RunResources& resources, PlanService& plans, const RunCall& call) try {
  if (HostLine::inside())
    return InvalidArgument("a call that the host makes during a run cannot make another run");
  if (!MayEnd(call.options)) {
    const Interrupts::Scope none(nullptr);
    return PlanAndRun(resources, plans, call);
  }
  LimitLooks looks(call.options.deadline, call.options.stop, call.options.host, "the run");
  const Interrupts::Scope scope(&looks);
  return PlanAndRun(resources, plans, call);
} catch (...) {
  return Caught();
}

Status RunSession::PlanAndRun(RunResources& resources, PlanService& plans, const RunCall& call) {
  call.memory.number.reset();
  for (std::shared_ptr<CachedPlan> last;;) {
    std::shared_ptr<CachedPlan> cached;
    Status status;
    {
      HeldMutex writes;
      HEDDLE_ASSIGN_OR_RETURN(const auto planned, PlanAndLock(plans, call, &writes));
      status = RunPlan(resources, planned, call);
      cached = planned.plan;
    }
    if (status.ok()) [[likely]]
      return status;
    const std::vector<ir::VarId> otherwise = std::exchange(call.memory.otherwise, {});
    // The next plan does not rely on open shapes, so this happens once.
    const bool misjudged = cached->plan()->IsMisjudged();
    if ((otherwise.empty() && !misjudged) || cached == last || WasEnded(status)) return status;
    // Declarations that the passes relied on do not hold. The repetition draws the same random
    // numbers. (Another run may have noted the declarations already.)
    if (!otherwise.empty()) call.compiled.NoteFound(WithoutClaims(*cached->plan(), otherwise));
    last = std::move(cached);
  }
}

Result<PlanService::Planned> RunSession::PlanAndLock(PlanService& plans, const RunCall& call,
                                                     HeldMutex* writes) {
  for (int i = 0; i < PlanService::kMostTries; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(auto planned,
                            plans.ForRun(call.compiled, call.feeds, &call.memory.key));
    if (!planned.plan->plan()->writes_scope) return planned;
    *writes = HoldOrLeave(call.compiled.scope->write_mutex());
    // The variables that the run writes are those of the scope: nobody may have replaced them
    // before it had the lock.
    if (planned.plan->IsUpToDate()) {
      if (auto now = planned.plan->Held()) planned.values = std::move(now);
      return planned;
    }
    *writes = HeldMutex();
    LookForInterrupt();
  }
  return PlanService::TooFast();
}

Status RunSession::RunPlan(RunResources& resources, const PlanService::Planned& planned,
                           const RunCall& call) {
  if (call.options.stop.stop_requested()) return WhileItWaits(call.options);
  Status status;
  // A server of the admission may make the run.
  Interrupts* const mine = Interrupts::Current();
  const auto run = [&](int threads) {
    const Interrupts::Scope scope(mine);
    status = Admitted(resources, planned, call, threads);
  };
  if (!resources.admission.Run(run, call.options.deadline, call.options.stop)) {
    const Status waited = WhileItWaits(call.options);
    return waited.ok() ? Interrupts::Current()->Look() : waited;
  }
  if (status.ok()) [[likely]]
    return status;
  const Plan& plan = *planned.plan->plan();
  if (!call.memory.otherwise.empty() || plan.IsMisjudged()) return status;
  // The search would repeat the run, which is impossible without the other ranks, or without the
  // batch that it has read.
  if (call.compiled.communicates || call.compiled.reads) return status;
  return FindCulprit(resources, call, *plan.program, status);
}

// May be called on another thread than Run.
Status RunSession::Admitted(RunResources& resources, const PlanService::Planned& planned,
                            const RunCall& call, int threads) try {
  const bool alone = resources.threads > 1 && threads == resources.threads;
  return RunSession(resources, planned, call, alone).Make();
} catch (...) {
  return Caught();
}

Status RunSession::Make() {
  // The time of a run that waits after each instruction, that is traced, or whose results are
  // checked says nothing about other runs.
  turn_ = cached_.policy().Next(alone_ && !call_.options.wait_after_each,
                                call_.options.trace || call_.options.check_nan_inf);
  if (turn_.what == RunPolicy::Turn::What::kTryVariant) TrimForTrial();
  HEDDLE_RETURN_IF_ERROR(Acquire());
  state_->Hold(values_);
  SeedRandom();
  const Status status = Execute();
  if (!status.ok()) call_.memory.otherwise = state_->TakeOtherwise();
  intact_ = true;
  succeeded_ = status.ok();
  Report(status.ok());
  return status.ok() ? Fetch() : status;
}

RunSession::~RunSession() {
  if (!intact_) return;
  try {
    state_->End();
    MarkWritten();
    cached_.Release(turn_.variant, std::move(state_));
  } catch (const std::bad_alloc&) {
    // There is no memory for the list of idle states: the state is destroyed, and the next run
    // makes another.
  }
}

// A plan's own runs do not change what the plan relies on, so their writes need no new check.
void RunSession::MarkWritten() {
  const Plan& plan = state_->plan();
  if (!plan.writes_scope) return;
  const uint64_t before = plan.scope->version();
  const uint64_t after = before + plan.MarkWritten();
  if (succeeded_ && plan.scope->version() == after) cached_.NoteOwnWrites(before, after);
}

// Large variants are tried one at a time in the same memory: the idle states of the others are
// freed first. (The first run of each burst is not counted.)
void RunSession::TrimForTrial() {
  constexpr size_t kLargeBytes = 4 << 20;
  if (cached_.plan()->arena_bytes < kLargeBytes) return;
  if (cached_.TrimOthers(turn_.variant)) resources_.allocator.Trim();
}

// Takes a state for the turn's variant or, if there is no memory for another one, for the plan
// itself.
Status RunSession::Acquire() {
  for (;;) {
    try {
      state_ = cached_.Acquire(turn_.variant, resources_.ServicesFor(resources_.wide_arena));
      return Status::Ok();
    } catch (const std::bad_alloc& e) {
      cached_.policy().Drop(turn_);
      if (turn_.variant == 0)
        return cached_.plan()->BlameLargest(
            ResourceExhausted("no memory for the temporaries of a run (",
                              cached_.plan()->arena_bytes, " bytes): ", e.what()));
      turn_ = RunPolicy::Turn();
      cached_.TrimOthers(0);
    }
  }
}

void RunSession::SeedRandom() {
  CompiledImpl& c = call_.compiled;
  std::optional<uint64_t>& number = call_.memory.number;
  if (!number) number = c.runs.fetch_add(1, std::memory_order_relaxed);
  if (!state_->plan().draws_random) return;
  if (call_.options.generator != nullptr)
    state_->random().engine = call_.options.generator->Engine();
  else
    state_->random().engine.seed(c.options.seed + *number);
}

Status RunSession::Execute() {
  RunMemory& memory = call_.memory;
  state_->set_communicator(resources_.communicator.get());
  // Feeds are in the program's order, as in the key by which the plan was found.
  memory.values.clear();
  for (const Feed& f : call_.feeds) memory.values.push_back(&f.value);
  const bool watched = IsWatched(call_.options);
  if (watched)
    state_->control().Arm(call_.options, resources_.threads, resources_.watcher, call_.checked,
                          resources_.crew != nullptr ? resources_.crew->size() : 0, call_.caller);
  Status status;
  try {
    if (resources_.poison) state_->PoisonMemory();
    state_->Begin(memory.values, memory.bound);
    RunTrace* const trace = state_->control().trace();
    if (trace != nullptr) state_->control().StartTrace(state_->frame());
    status = Interpret();
    if (trace != nullptr) trace->Stop();
  } catch (const std::bad_alloc& e) {
    status = state_->plan().BlameLargest(
        ResourceExhausted("no memory for what the run returns: ", e.what()));
  }
  if (!watched) return status;
  // A thread that waited may have called the host when the others had no look left to make.
  if (status.ok()) status = state_->control().HostFailure();
  state_->control().Disarm();
  return status;
}

Status RunSession::Interpret() {
  RunState& run = *state_;
  RunResources& r = resources_;
  const Dispatch dispatch = run.plan().dispatch;
  const bool wide = alone_ && !turn_.narrow;
  const bool in_order = dispatch == Dispatch::kSerial;
  shared_ = wide && !call_.options.wait_after_each && (!in_order || run.plan().body_lanes > 0);
  if (dispatch == Dispatch::kDevice) return InterpretDevice();
  // With one thread, callers need not wait for each other: the wide arena gives each its own.
  KernelArena& arena = wide || r.threads == 1 ? r.wide_arena : r.narrow_arena;
  const bool spread = shared_ && !in_order;
  run.UseArenas(spread ? r.narrow_arena.intra() : arena.intra(), spread ? &r.wide_arena : nullptr);
  const RunState::Helpers helpers{&r.pool, &r.narrow_arena};
  run.UseHelpers(shared_ && in_order ? &helpers : nullptr);
  const uint64_t start = NowNs();
  Status status;
  if (turn_.meter != nullptr) {
    arena.Execute([&] {
      const Interrupts::Scope scope(run.control().interrupts());
      status = Interpreter::RunMeasured(run, *turn_.meter, &ns_);
    });
    return status;
  }
  if (spread && dispatch == Dispatch::kLanes)
    status = Interpreter::RunLanes(run, r.pool, r.narrow_arena);
  else if (spread)
    status = Interpreter::RunQueue(run, r.pool, r.narrow_arena);
  else
    arena.Execute([&] { status = Interpreter::RunOnOneThread(run); });
  ns_ = static_cast<double>(NowNs() - start);
  return status;
}

// Instructions of the host run in the wide arena; the streams' threads are outside of it.
Status RunSession::InterpretDevice() {
  RunResources& r = resources_;
  state_->UseArenas(r.wide_arena.intra(), nullptr);
  const uint64_t start = NowNs();
  const Status status = DeviceInterpreter::Run(
      *state_, r.devices, r.crew.get(), shared_ ? &r.pool : nullptr, r.wide_arena, r.narrow_arena);
  ns_ = static_cast<double>(NowNs() - start);
  return status;
}

void RunSession::Report(bool succeeded) {
  RunPolicy& policy = cached_.policy();
  if (RunReport* report = call_.options.report; report != nullptr) {
    FillReport(*state_, shared_, resources_.threads, resources_.places(), ns_, report);
    report->settled = policy.settled();
  }
  if (!succeeded) return policy.Drop(turn_);
  try {
    if (!policy.Report(turn_, ns_)) return;
  } catch (const Interrupted&) {
    return;  // the run has succeeded; a later one reports to the policy
  }
  // Small idle states are kept for later trials, which then need no memory.
  constexpr size_t kSmallBytes = 1 << 20;
  if (cached_.plan()->arena_bytes > kSmallBytes && cached_.TrimOthers(policy.settled_variant()))
    resources_.allocator.Trim();
  cached_.KeepWay(ns_);
}

// Has a fetched list keep nothing of the feeds' memory, which is the caller's to change and to
// free: lists share their items.
static Status OwnItems(const std::vector<Feed>& feeds, Value* fetched) {
  if (!fetched->is_array()) return Status::Ok();
  const auto in_feeds = [&](const Tensor& item) {
    const auto shares = [&](const Tensor& fed) {
      return fed.buffer().get() == item.buffer().get();
    };
    return item.initialized() && std::ranges::any_of(feeds, [&](const Feed& feed) {
             if (feed.value.is_tensor()) return shares(feed.value.tensor());
             return feed.value.is_array() && std::ranges::any_of(feed.value.array(), shares);
           });
  };
  for (Tensor& item : fetched->mutable_array()) {
    if (!in_feeds(item)) continue;
    item = item.Clone();
    if (!item.initialized()) return ResourceExhausted("no memory for a fetched copy of an item");
  }
  return Status::Ok();
}

Status RunSession::Fetch() {
  const CompiledImpl& c = call_.compiled;
  const RunOptions& options = call_.options;
  std::vector<Value>& out = *call_.out;
  const size_t outputs = c.outputs.size();
  const size_t count = options.kept != nullptr ? c.fetch_names.size() : outputs;
  HEDDLE_RETURN_IF_ERROR(state_->Fetch(count, outputs, call_.memory.bound, &out));
  for (Value& value : out) HEDDLE_RETURN_IF_ERROR(OwnItems(call_.feeds, &value));
  if (state_->plan().draws_random && options.generator != nullptr)
    options.generator->SetEngine(state_->random().engine);
  if (options.kept != nullptr) {
    options.kept->clear();
    for (size_t i = outputs; i < out.size(); ++i)
      options.kept->emplace_back(c.fetch_names[i], std::move(out[i]));
  }
  out.resize(outputs);
  return Status::Ok();
}

}  // namespace heddle::internal
