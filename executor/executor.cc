#include "heddle/executor.h"

#include <xxhash.h>

#include <algorithm>

#include "core/error.h"
#include "executor/compiled.h"
#include "executor/device/device_interpreter.h"
#include "executor/plan/dependency_graph.h"
#include "executor/plan/memory_edges.h"
#include "executor/plan/plan_builder.h"
#include "executor/plan_cache.h"
#include "executor/report/describe_plan.h"
#include "executor/report/fill_report.h"
#include "executor/report/memory_report.h"
#include "executor/run/interpreter.h"
#include "heddle/bound_run.h"
#include "heddle/generator.h"
#include "heddle/host.h"
#include "memory/pool_allocator.h"
#include "scheduler/host_pool.h"
#include "scheduler/kernel_arena.h"
#include "scheduler/propose_lanes.h"
#include "scheduler/run_gate.h"
#include "scheduler/simulate_lanes.h"
#include "scheduler/spin.h"
#include "scheduler/watcher.h"

namespace heddle {
namespace internal {

// What a caller may keep from run to run, so that a run takes no memory for these.
struct RunMemory {
  std::string key;                   // the plan was found by
  std::vector<const Value*> values;  // of the feeds
  std::vector<Tensor> bound;         // the caller's memory for outputs, where there is some
};

// One call of Run.
struct RunCall {
  CompiledImpl& compiled;
  const std::vector<Feed>& feeds;
  const RunOptions& options;
  RunMemory& memory;
  std::vector<Value>* out;
};

class ExecutorImpl {
 public:
  explicit ExecutorImpl(const ExecutorOptions& o)
      : threads(o.threads > 0 ? o.threads : AvailableThreads()),
        limited(o.memory_limit > 0),
        poison(o.poison),
        allocator(o.memory_limit, o.poison),
        pool(threads, &KernelArena::WarmUp),
        wide_arena(threads, true, pool),
        narrow_arena(threads, false, pool),
        gate(threads, std::max(0, o.runs_at_once)),
        device(o.device
                   ? std::make_unique<DeviceRuntime>(o.device, o.device_streams, o.device_capture)
                   : nullptr),
        host_task_ns(o.host_task_ns),
        cache(static_cast<size_t>(std::max(1, o.plan_cache_capacity))) {}

  Result<std::shared_ptr<CachedPlan>> FindPlan(CompiledImpl& c, const std::vector<Feed>& feeds) {
    std::string key;
    return FindPlan(c, feeds, &key);
  }
  // The plan for such feeds that is the fastest as far as is known.
  Result<std::shared_ptr<const Plan>> SettledPlan(CompiledImpl& c, const std::vector<Feed>& feeds) {
    HEDDLE_RETURN_IF_ERROR(CheckFeeds(c, feeds));
    HEDDLE_ASSIGN_OR_RETURN(const auto cached, FindPlan(c, feeds));
    return cached->variant(cached->tuner().settled_variant());
  }
  Result<MemoryReport> PlanMemory(CompiledImpl& c, const std::vector<Feed>& feeds);
  Status Run(const RunCall& call);

  const int threads;
  const bool limited;  // memory is
  const bool poison;   // see ExecutorOptions
  PoolAllocator allocator;
  HostPool pool;
  // Kernels of a run that goes one instruction after another use all threads; those of a run whose
  // threads each have instructions of their own, or that shares the machine with others, use one.
  KernelArena wide_arena, narrow_arena;
  RunGate gate;
  Watcher watcher;
  const std::unique_ptr<DeviceRuntime> device;  // null: none
  const float host_task_ns;
  PlanCache cache;

 private:
  Services ServicesFor(KernelArena& arena) {
    Services s;
    s.intra = &arena.intra();
    s.allocator = &allocator;
    return s;
  }
  Result<std::shared_ptr<CachedPlan>> FindPlan(CompiledImpl& c, const std::vector<Feed>& feeds,
                                               std::string* key);
  Result<std::shared_ptr<CachedPlan>> MakePlan(CompiledImpl& c, CompiledImpl::Form& form,
                                               const std::vector<Feed>& feeds);
  Result<std::shared_ptr<const Plan>> Build(PlanRequest request);
  Status RunUnguarded(const RunCall& call);
  Status RunAdmitted(const RunCall& call, CachedPlan& cached, bool alone);
  void TrimForTrial(CachedPlan& cached, int variant);
  Result<std::unique_ptr<RunState>> AcquireState(CachedPlan& cached, PlanTuner::Turn* turn);
  Status Interpret(RunState& run, const PlanTuner::Turn& turn, bool alone, double* ns);
  void Propose(CompiledImpl& c, CachedPlan& cached);
  Status InterpretDevice(RunState& run, bool alone, double* ns);
};

Result<std::shared_ptr<CachedPlan>> ExecutorImpl::FindPlan(CompiledImpl& c,
                                                           const std::vector<Feed>& feeds,
                                                           std::string* key) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<CompiledImpl::Form> form, c.Current(feeds));
  const auto find = [&](const std::vector<Feed>& of, std::string* by) {
    FeedKey(*form, of, by);
    return cache.Get(XXH64(by->data(), by->size(), 0), *by, [&] { return MakePlan(c, *form, of); });
  };
  auto plan = find(feeds, key);
  if (c.options.max_shapes.empty() || !plan.ok() || (*plan)->has_blocks() || device) return plan;
  const std::vector<Feed> largest = LargestFeeds(c, feeds);
  if (largest.empty()) return plan;
  std::lock_guard lock(form->blocks_mutex);
  if (!form->blocks) {
    std::string largest_key;
    HEDDLE_ASSIGN_OR_RETURN(const auto bound, find(largest, &largest_key));
    form->blocks = std::make_shared<ArenaBlocks>(bound->plan()->arena_bytes);
    bound->UseBlocks(form->blocks);
  }
  (*plan)->UseBlocks(form->blocks);
  return plan;
}

Result<MemoryReport> ExecutorImpl::PlanMemory(CompiledImpl& c, const std::vector<Feed>& feeds) {
  HEDDLE_RETURN_IF_ERROR(CheckFeeds(c, feeds));
  HEDDLE_ASSIGN_OR_RETURN(const auto cached, FindPlan(c, feeds));
  const auto plan = cached->variant(cached->tuner().settled_variant());
  MemoryReport report = ReportMemory(*plan);
  report.block_bytes = cached->BlockBytes(*plan);
  if (threads > 1 && report.decided) {
    std::lock_guard writes(c.scope->write_mutex());  // parameters are read
    const auto build = [&](const PlanRequest& request) { return Build(request); };
    HEDDLE_ASSIGN_OR_RETURN(report.ways, CompareMemory(cached->request(), plan, build));
  }
  return report;
}

Result<std::shared_ptr<CachedPlan>> ExecutorImpl::MakePlan(CompiledImpl& c,
                                                           CompiledImpl::Form& form,
                                                           const std::vector<Feed>& feeds) {
  std::lock_guard writes(c.scope->write_mutex());  // parameters are read
  if (const uint64_t now = c.scope->version(); now != form.packs_version) {
    form.packs = std::make_shared<PackCache>(c.packed);
    form.packs_version = now;
  }
  PlanRequest request;
  request.program = form.optimized.program;
  request.scope = form.optimized.scope;
  request.root_scope = c.scope;
  for (const Feed& f : feeds) {
    FeedSignature s;
    s.name = f.name;
    s.kind = f.value.kind();
    s.dtype = f.value.tensor().dtype();
    s.shape = f.value.tensor().shape();
    s.has_lod = f.value.is_tensor() && f.value.tensor().has_lod();
    request.feeds.push_back(std::move(s));
  }
  request.packs = form.packs;
  request.fetches = form.fetches;
  request.spoil = c.spoil;
  request.threads = threads;
  // Other variants may need more memory; who sets a limit keeps the plan with the least.
  const bool tuned = c.options.schedule == Schedule::kAuto && threads > 1 && !limited && !device;
  request.tokens = !limited;
  request.ask_worth = tuned;
  request.shuffle_seed = c.options.shuffle_seed;
  request.reuse = c.options.reuse;
  request.lean = c.options.lean;
  request.forced = c.forced;
  request.machine = c.machine;
  if (threads > 1 && c.options.schedule == Schedule::kParallel) request.dispatch = Dispatch::kQueue;
  if (threads > 1 && c.options.schedule == Schedule::kLanes) request.dispatch = Dispatch::kLanes;
  if (device) {
    request.dispatch = Dispatch::kDevice;
    request.device = &device->device();
    request.compute_streams = device->compute_streams();
    request.host_task_ns = host_task_ns;
    request.placement = c.options.placement;
    request.placement_seed = c.options.placement_seed;
  }
  request.tuning = c.tuning;
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, Build(request));
  DropWaiting(*c.scope, form);
  if (c.tuning) c.tuning->Save();
  if (c.packed) c.packed->Save();
  return std::make_shared<CachedPlan>(std::move(plan), std::move(request), tuned);
}

Result<std::shared_ptr<const Plan>> ExecutorImpl::Build(PlanRequest request) {
  RandomState random;
  Services services = ServicesFor(wide_arena);
  services.packs = request.packs.get();
  services.random = &random;
  services.lean = request.lean;
  services.forced = request.forced.get();
  services.machine = request.machine.get();
  request.services = &services;
  // Kernels are prepared where they will run: the library cuts its work for the threads there.
  Result<std::shared_ptr<const Plan>> plan = Internal("not built");
  std::optional<TuningCache::Measuring> measuring;  // ends however building ends
  if (request.tuning) {
    TunerOf(*request.packs, request.tuning);
    measuring.emplace(*request.tuning, services);
  }
  wide_arena.Execute([&] { plan = BuildPlan(request); });
  return plan;
}

namespace {

// What a plan's temporaries would take without sharing.
size_t TemporaryBytes(const Plan& plan) {
  size_t bytes = 0;
  for (uint32_t s : plan.arena_slots) bytes += plan.slots[s].bytes();
  return bytes;
}

}  // namespace

// Builds the variants of a plan that the measured costs make look promising.
void ExecutorImpl::Propose(CompiledImpl& c, CachedPlan& cached) {
  // In hand-overs of a signal. With it goes data, and memory that the other lane had in its cache.
  constexpr double kPrices[] = {2, 6};
  constexpr size_t kLanesPerPrice = 2;
  constexpr double kPromising = 0.97;    // of the plain plan's time, as predicted
  constexpr double kQueueTaskNs = 2000;  // instructions this long on average can afford a queue
  // With a queue, memory is shared less well than in an arena: too much for larger ones.
  constexpr size_t kQueueBytes = 64 << 20;
  PlanTuner::Costs costs;
  if (!cached.tuner().WantsCandidates(&costs)) return;
  std::vector<std::shared_ptr<const Plan>> variants;
  std::unique_lock writes(c.scope->write_mutex());  // parameters are read
  const auto& ins = cached.plan()->blocks[0].instructions;
  DependencyGraph dependencies = BuildDependencies(*cached.plan(), ins);
  std::vector<OrderEdge> edges;
  if (c.options.reuse == Reuse::kEdges)
    edges = FindMemoryEdges(*cached.plan(), dependencies.graph, costs.narrow_ns);
  if (!edges.empty()) dependencies.graph = AddEdges(dependencies.graph, edges);
  const double hand_over = pool.HandOverNs();
  double work = 0;
  for (float ns : costs.narrow_ns) work += ns;
  PlanRequest request = cached.request();
  request.ask_worth = false;
  request.twin = cached.plan();
  const auto add = [&] {
    auto plan = Build(request);
    if (plan.ok() && (*plan)->dispatch == request.dispatch) variants.push_back(*std::move(plan));
  };
  request.dispatch = Dispatch::kLanes;
  for (double price : kPrices) {
    for (LaneSchedule& s : ProposeLanes(dependencies.graph, costs.narrow_ns, threads,
                                        price * hand_over, kLanesPerPrice)) {
      std::vector<float> mixed;
      request.wide = FindWide(s, costs, price * hand_over, &mixed);
      s.predicted_ns = SimulateLanes(s, mixed, price * hand_over);
      if (s.predicted_ns > kPromising * costs.plain_ns) continue;
      request.lanes = std::make_shared<const LaneSchedule>(std::move(s));
      add();
    }
  }
  if (!variants.empty() && work > kQueueTaskNs * static_cast<double>(ins.size()) &&
      TemporaryBytes(*cached.plan()) <= kQueueBytes) {
    request.dispatch = Dispatch::kQueue;
    request.lanes = nullptr;
    request.wide.clear();
    add();
  }
  writes.unlock();
  const auto count = static_cast<int>(variants.size());
  cached.AddVariants(std::move(variants));
  cached.tuner().Candidates(count);
}

// `alone`: the run may use all threads.
Status ExecutorImpl::Interpret(RunState& run, const PlanTuner::Turn& turn, bool alone, double* ns) {
  using What = PlanTuner::Turn::What;
  // With one thread, callers need not wait for each other: the wide arena gives each its own.
  const bool narrow = (!alone && threads > 1) || turn.what == What::kTimeNarrow;
  KernelArena& arena = narrow ? narrow_arena : wide_arena;
  const Dispatch dispatch = run.plan().dispatch;
  if (dispatch == Dispatch::kDevice) return InterpretDevice(run, alone, ns);
  const bool shared = alone && dispatch != Dispatch::kSerial;
  run.UseArenas(shared ? narrow_arena.intra() : arena.intra(), shared ? &wide_arena : nullptr);
  const uint64_t start = NowNs();
  Status status;
  if (turn.meter != nullptr) {
    arena.Execute([&] { status = Interpreter::RunMeasured(run, *turn.meter, ns); });
    return status;
  }
  if (shared && dispatch == Dispatch::kLanes)
    status = Interpreter::RunLanes(run, pool, narrow_arena);
  else if (shared)
    status = Interpreter::RunQueue(run, pool, narrow_arena);
  else
    arena.Execute([&] { status = Interpreter::RunOnOneThread(run); });
  *ns = static_cast<double>(NowNs() - start);
  return status;
}

// What the host has to do itself goes in the wide arena; the streams' threads keep to themselves.
Status ExecutorImpl::InterpretDevice(RunState& run, bool alone, double* ns) {
  run.UseArenas(wide_arena.intra(), nullptr);
  const uint64_t start = NowNs();
  const Status status =
      DeviceInterpreter::Run(run, *device, alone ? &pool : nullptr, wide_arena, narrow_arena);
  *ns = static_cast<double>(NowNs() - start);
  return status;
}

namespace {

bool IsWatched(const RunOptions& o) {
  return o.deadline || o.stop.stop_possible() || o.stall_limit.count() > 0 || o.trace ||
         o.check_nan_inf;
}

}  // namespace

// Large variants are tried one at a time in the same memory: the states of the others go before.
// (The first run of each turn is not counted.)
void ExecutorImpl::TrimForTrial(CachedPlan& cached, int variant) {
  constexpr size_t kLargeBytes = 4 << 20;
  if (cached.plan()->arena_bytes < kLargeBytes) return;
  if (cached.TrimOthers(variant)) allocator.Trim();
}

// A state for the turn's variant, or, where there is no memory for another one, for the plan
// itself.
Result<std::unique_ptr<RunState>> ExecutorImpl::AcquireState(CachedPlan& cached,
                                                             PlanTuner::Turn* turn) {
  for (;;) {
    try {
      return cached.Acquire(turn->variant, ServicesFor(wide_arena));
    } catch (const std::bad_alloc& e) {
      cached.tuner().Drop(*turn);
      if (turn->variant == 0)
        return ResourceExhausted("no memory for the temporaries of a run (",
                                 cached.plan()->arena_bytes, " bytes): ", e.what());
      *turn = PlanTuner::Turn();
      cached.TrimOthers(0);
    }
  }
}

Status ExecutorImpl::RunAdmitted(const RunCall& call, CachedPlan& cached, bool alone) {
  CompiledImpl& c = call.compiled;
  const RunOptions& options = call.options;
  RunMemory& memory = call.memory;
  std::vector<Value>& out = *call.out;
  PlanTuner::Turn turn = cached.tuner().Next(alone);
  if (turn.what == PlanTuner::Turn::What::kTry) TrimForTrial(cached, turn.variant);
  WidthChoice* const width = alone && !options.trace ? cached.width(turn) : nullptr;
  const bool wide = alone && (width == nullptr || !width->Next().narrow);
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<RunState> run, AcquireState(cached, &turn));
  // The program's order of feeds is that of the key the plan was found by.
  memory.values.clear();
  for (const Feed& f : call.feeds) memory.values.push_back(&f.value);
  const uint64_t runs_before = c.runs.fetch_add(1, std::memory_order_relaxed);
  const bool draws = run->plan().draws_random;
  if (draws && options.generator != nullptr)
    run->random().engine = options.generator->engine();
  else if (draws)
    run->random().engine.seed(c.options.seed + runs_before);
  const bool watched = IsWatched(options);
  if (watched) run->control().Arm(options, threads, watcher);
  double ns = 0;
  Status status;
  try {
    if (poison) run->PoisonMemory();
    run->Begin(memory.values, memory.bound);
    status = Interpret(*run, turn, wide, &ns);
  } catch (const std::bad_alloc& e) {
    status = ResourceExhausted("while the run was set up: ", e.what());
  }
  if (watched) run->control().Disarm();
  if (options.report != nullptr) {
    FillReport(*run, alone, ns, options.report);
    options.report->settled = cached.tuner().settled();
  }
  if (status.ok()) {
    if (width != nullptr) width->Report(ns);
    if (cached.tuner().Report(turn, ns) && cached.TrimOthers(cached.tuner().settled_variant()))
      allocator.Trim();
    const size_t count = options.kept != nullptr ? c.fetch_names.size() : c.outputs.size();
    status = run->Fetch(count, c.outputs.size(), memory.bound, &out);
    if (status.ok() && draws && options.generator != nullptr)
      options.generator->engine() = run->random().engine;
  } else {
    cached.tuner().Drop(turn);
  }
  run->End();
  run->plan().MarkWritten();
  cached.Release(turn.variant, std::move(run));
  if (!status.ok()) return status;
  if (options.kept != nullptr) {
    options.kept->clear();
    for (size_t i = c.outputs.size(); i < out.size(); ++i)
      options.kept->emplace_back(c.fetch_names[i], std::move(out[i]));
  }
  out.resize(c.outputs.size());
  return status;
}

namespace {

template <typename F>
Status Guarded(F run) {
  try {
    return run();
  } catch (const std::bad_alloc& e) {
    return ResourceExhausted("no memory for a run: ", e.what());
  } catch (const std::exception& e) {  // no thread to be had, for example
    return Internal("a run could not be made: ", e.what());
  }
}

}  // namespace

Status ExecutorImpl::Run(const RunCall& call) {
  return Guarded([&] { return RunUnguarded(call); });
}

Status ExecutorImpl::RunUnguarded(const RunCall& call) {
  CompiledImpl& c = call.compiled;
  const RunOptions& options = call.options;
  if (c.machine)
    return InvalidArgument("the program was compiled for the machine '", c.machine->name,
                           "' as described: its plans can be shown, not run");
  HEDDLE_RETURN_IF_ERROR(CheckFeeds(c, call.feeds));
  auto found = FindPlan(c, call.feeds, &call.memory.key);
  if (!found.ok()) return found.status();
  CachedPlan& cached = **found;
  Propose(c, cached);
  std::unique_lock<std::mutex> writes;
  if (cached.plan()->writes_scope && c.scope) writes = std::unique_lock(c.scope->write_mutex());
  if (options.stop.stop_requested())
    return Status(StatusCode::kCancelled, "the run was cancelled before it began");
  Status status;
  const auto run = [&](int admitted) {
    status = Guarded([&] { return RunAdmitted(call, cached, threads > 1 && admitted == threads); });
  };
  if (!gate.Run(run, options.deadline))
    return Status(StatusCode::kDeadlineExceeded, "the run's deadline came before its turn");
  return status;
}

}  // namespace internal

Executor::Executor(const ExecutorOptions& options)
    : impl_(std::make_unique<internal::ExecutorImpl>(options)) {}
Executor::~Executor() = default;

Result<CompiledProgram> Executor::Compile(const Program& program, std::shared_ptr<Scope> scope,
                                          const CompileOptions& options) {
  HEDDLE_RETURN_IF_ERROR(CheckProcessor());
  if (!program) return InvalidArgument("the program is empty");
  auto c = std::make_shared<internal::CompiledImpl>();
  c->scope = scope ? std::move(scope) : std::make_shared<Scope>();
  c->options = options;
  // Made for a core's caches; other devices have the single convolutions.
  if (impl_->device && !impl_->device->device().has_host_kernels())
    c->options.passes.disable.push_back("fuse_conv_chain");
  c->executor = impl_.get();
  c->inputs = program.inputs();
  c->declared_inputs = !program.ir().feeds.empty();
  std::vector<std::string> names = options.fetches;
  if (names.empty())
    for (const TensorInfo& o : program.outputs()) names.push_back(o.name);
  const size_t outputs = names.size();
  names.insert(names.end(), options.keep.begin(), options.keep.end());
  HEDDLE_RETURN_IF_ERROR(CheckMaxShapes(*c));
  for (size_t i = 0; i < names.size(); ++i)
    if (program.ir().Find(0, names[i]) == ir::kNoVar)
      return NotFound(i < outputs ? "cannot fetch '" : "cannot keep '", names[i],
                      "': the program has no such variable");
  c->source = program;
  c->fetch_names = names;
  if (!options.force.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(auto forced, ForcedImplementations::Parse(options.force));
    c->forced = std::make_shared<const ForcedImplementations>(std::move(forced));
  }
  if (!options.machine.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(auto machine, Machine::Parse(options.machine));
    c->machine = std::make_shared<const Machine>(std::move(machine));
  }
  if (options.tune || !options.tuning_file.empty())
    c->tuning = std::make_shared<TuningCache>(options.tuning_file, options.tune,
                                              TuningEnvironment(threads()));
  if (!options.packed_weights.empty())
    c->packed = std::make_shared<PackedWeights>(options.packed_weights);
  auto form = c->Current();
  if (!form.ok()) return form.status();
  for (size_t i = 0; i < outputs; ++i) {
    const ir::Var& v = program.ir().vars[program.ir().Find(0, names[i])];
    c->outputs.push_back({names[i], v.dtype, v.shape});
  }
  return CompiledProgram(std::move(c));
}

Result<std::vector<Value>> Executor::RunValues(const CompiledProgram& compiled,
                                               const std::vector<Feed>& feeds,
                                               const RunOptions& options) {
  internal::RunMemory memory;
  std::vector<Value> out;
  HEDDLE_RETURN_IF_ERROR(impl_->Run({*compiled.impl(), feeds, options, memory, &out}));
  return out;
}

Result<std::vector<Tensor>> Executor::Run(const CompiledProgram& compiled,
                                          const std::vector<Feed>& feeds,
                                          const RunOptions& options) {
  auto values = RunValues(compiled, feeds, options);
  if (!values.ok()) return values.status();
  std::vector<Tensor> out;
  for (size_t i = 0; i < values->size(); ++i) {
    if (!(*values)[i].is_tensor())
      return InvalidArgument("output '", compiled.outputs()[i].name,
                             "' is not a plain tensor; use RunValues");
    out.push_back(std::move((*values)[i].tensor()));
  }
  return out;
}

Result<PlanStats> Executor::Prepare(const CompiledProgram& compiled,
                                    const std::vector<Feed>& feeds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, impl_->SettledPlan(*compiled.impl(), feeds));
  return plan->stats;
}

Result<PlanDescription> Executor::DescribePlan(const CompiledProgram& compiled,
                                               const std::vector<Feed>& feeds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, impl_->SettledPlan(*compiled.impl(), feeds));
  return heddle::DescribePlan(*plan);
}

Result<std::string> Executor::PlanText(const CompiledProgram& compiled,
                                       const std::vector<Feed>& feeds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, impl_->SettledPlan(*compiled.impl(), feeds));
  return plan->ToString();
}

Result<MemoryReport> Executor::PlanMemory(const CompiledProgram& compiled,
                                          const std::vector<Feed>& feeds) {
  return impl_->PlanMemory(*compiled.impl(), feeds);
}

struct BoundRun::State {
  CompiledProgram compiled;
  std::vector<Feed> feeds;
  internal::RunMemory memory = {};
  std::vector<Value> outputs = {};
};

BoundRun::BoundRun(CompiledProgram compiled, std::vector<Feed> feeds)
    : state_(std::make_unique<State>(State{std::move(compiled), std::move(feeds)})) {}
BoundRun::~BoundRun() = default;
BoundRun::BoundRun(BoundRun&&) noexcept = default;
BoundRun& BoundRun::operator=(BoundRun&&) noexcept = default;

std::vector<Feed>& BoundRun::feeds() { return state_->feeds; }
const std::vector<Value>& BoundRun::outputs() const { return state_->outputs; }

Status BoundRun::BindOutput(size_t index, Tensor memory) {
  const size_t count = state_->compiled.outputs().size();
  if (index >= count) return InvalidArgument("there is no output ", index, " of ", count);
  if (memory.initialized() && !memory.is_contiguous())
    return InvalidArgument("memory for output '", state_->compiled.outputs()[index].name,
                           "' is not contiguous");
  state_->memory.bound.resize(count);
  state_->memory.bound[index] = std::move(memory);
  return Status::Ok();
}

Status BoundRun::Run(const RunOptions& options) {
  State& s = *state_;
  s.outputs.clear();  // their memory is for this run's
  internal::CompiledImpl& c = *s.compiled.impl();
  const Status status = c.executor->Run({c, s.feeds, options, s.memory, &s.outputs});
  if (!status.ok()) s.outputs.clear();
  return status;
}

int Executor::threads() const { return impl_->threads; }
int64_t Executor::plans_built() const { return impl_->cache.built(); }
void Executor::Trim() {
  impl_->cache.Trim();
  impl_->allocator.Trim();
  if (impl_->device) impl_->device->Trim();
}

}  // namespace heddle
