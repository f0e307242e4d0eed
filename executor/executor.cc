#include "heddle/executor.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/ir.h"
#include "executor/interpreter.h"
#include "executor/plan_builder.h"
#include "executor/plan_cache.h"
#include "memory/pool_allocator.h"
#include "passes/pass_manager.h"
#include "scheduler/host_pool.h"
#include "scheduler/kernel_arena.h"

namespace heddle {
namespace internal {

class CompiledImpl {
 public:
  // What the passes made of the program for the parameters as they are now.
  struct Form {
    passes::Optimized optimized;
    // Copies of parameters as they were at `packs_version` of the scope; guarded by its write_mutex.
    std::shared_ptr<PackCache> packs = std::make_shared<PackCache>();
    uint64_t packs_version = 0;
    std::vector<ir::VarId> fetches;
    std::string key;  // everything that plans depend on besides the feeds
    uint64_t version = 0;  // of the scope, when last looked at
  };
  // The current form, made anew when a parameter that was folded into it has been replaced.
  Result<std::shared_ptr<Form>> Current();

  Program source;
  std::shared_ptr<Scope> scope;
  CompileOptions options;
  std::vector<std::string> fetch_names;
  std::vector<TensorInfo> inputs, outputs;
  bool declared_inputs = false;  // the program has feed operators
  std::atomic<uint64_t> runs{0};

 private:
  Result<std::shared_ptr<Form>> Make() const;
  std::mutex mutex_;
  std::shared_ptr<Form> form_;
};

class ExecutorImpl {
 public:
  explicit ExecutorImpl(const ExecutorOptions& o)
      : threads(o.threads > 0 ? o.threads : AvailableThreads()), allocator(o.memory_limit),
        pool(threads), serial_arena(threads, true, pool), parallel_arena(threads, false, pool),
        cache(static_cast<size_t>(std::max(1, o.plan_cache_capacity))) {}

  Services ServicesFor(bool parallel) {
    Services s;
    s.intra = parallel ? &parallel_arena.intra() : &serial_arena.intra();
    s.allocator = &allocator;
    return s;
  }
  Result<std::shared_ptr<CachedPlan>> FindPlan(CompiledImpl& c, const std::vector<Feed>& feeds);
  Result<std::vector<Value>> Run(CompiledImpl& c, const std::vector<Feed>& feeds);
  Status RunOn(RunState& run, CompiledImpl& c, const std::vector<Feed>& feeds,
               std::vector<Value>* out);

  const int threads;
  PoolAllocator allocator;
  HostPool pool;
  KernelArena serial_arena, parallel_arena;
  PlanCache cache;
};

namespace {

template <typename T>
void Append(std::string* key, T value) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

bool Replaced(const Scope& scope, const std::vector<std::pair<std::string, Scope::Stamp>>& used) {
  for (const auto& [name, stamp] : used)
    if (scope.StampOf(name) != stamp) return true;
  return false;
}

// Does what is fed fit what the program declares?
Status CheckFeed(const TensorInfo& info, const Value& value) {
  if (!value.initialized())
    return InvalidArgument("feed '", info.name, "' holds nothing (no tensor was given)");
  if (!value.is_tensor()) return Status::Ok();
  const Tensor& t = value.tensor();
  if (info.dtype != DType::kUnknown && t.dtype() != info.dtype)
    return InvalidArgument("feed '", info.name, "' has dtype ", Name(t.dtype()), "; ",
                           Name(info.dtype), " is expected");
  if (!info.shape.known_rank()) return Status::Ok();
  if (t.rank() != info.shape.rank())
    return InvalidArgument("feed '", info.name, "' has rank ", t.rank(), ", shape ",
                           t.shape().ToString(), "; rank ", info.shape.rank(), ", shape ",
                           info.shape.ToString(), " is expected");
  for (int i = 0; i < t.rank(); ++i)
    if (info.shape[i] >= 0 && info.shape[i] != t.shape()[i])
      return InvalidArgument("feed '", info.name, "' has shape ", t.shape().ToString(),
                             ": dimension ", i, " is ", t.shape()[i], "; ", info.shape.ToString(),
                             " is expected");
  return Status::Ok();
}

const TensorInfo* FindInfo(const std::vector<TensorInfo>& list, const std::string& name) {
  for (const TensorInfo& i : list)
    if (i.name == name) return &i;
  return nullptr;
}

std::string NamesOf(const std::vector<TensorInfo>& list) {
  std::string s;
  for (const TensorInfo& i : list) s += (s.empty() ? "'" : ", '") + i.name + "'";
  return s.empty() ? "none" : s;
}

Status CheckFeeds(const CompiledImpl& c, const std::vector<Feed>& feeds) {
  for (const Feed& f : feeds) {
    const TensorInfo* info = FindInfo(c.inputs, f.name);
    if (c.declared_inputs) {
      if (info == nullptr)
        return InvalidArgument("there is no input '", f.name, "'; the inputs are ",
                               NamesOf(c.inputs));
      HEDDLE_RETURN_IF_ERROR(CheckFeed(*info, f.value));
    } else if (!f.value.initialized()) {
      return InvalidArgument("feed '", f.name, "' holds nothing (no tensor was given)");
    }
  }
  for (const TensorInfo& info : c.inputs) {
    const bool fed = std::any_of(feeds.begin(), feeds.end(),
                                 [&](const Feed& f) { return f.name == info.name; });
    if (!fed && c.declared_inputs)
      return InvalidArgument("input '", info.name, "' is not fed (", Name(info.dtype), " ",
                             info.shape.ToString(), " is expected)");
  }
  return Status::Ok();
}

std::string FeedKey(const CompiledImpl::Form& form, const std::vector<Feed>& feeds) {
  std::string key = form.key;
  for (const Feed& f : feeds) {
    key += f.name;
    key += '\0';
    Append(&key, f.value.kind());
    if (!f.value.is_tensor()) continue;
    const Tensor& t = f.value.tensor();
    Append(&key, t.dtype());
    Append(&key, t.has_lod());
    Append(&key, t.rank());
    for (int64_t d : t.shape()) Append(&key, d);
  }
  return key;
}

}  // namespace

Result<std::shared_ptr<CompiledImpl::Form>> CompiledImpl::Make() const {
  auto form = std::make_shared<Form>();
  std::lock_guard writes(scope->write_mutex());  // parameters are read
  form->version = form->packs_version = scope->version();
  passes::OptimizeOptions optimize;
  optimize.level = options.opt_level;
  optimize.fetches = fetch_names;
  HEDDLE_ASSIGN_OR_RETURN(form->optimized, passes::Optimize(source.ir(), scope, optimize));
  for (const std::string& name : fetch_names)
    form->fetches.push_back(form->optimized.program->Find(0, name));
  Append(&form->key, source.hash());
  Append(&form->key, options.opt_level);
  Append(&form->key, options.schedule);
  Append(&form->key, form->optimized.scope.get());
  for (const std::string& name : fetch_names) form->key += name + '\0';
  return form;
}

Result<std::shared_ptr<CompiledImpl::Form>> CompiledImpl::Current() {
  std::lock_guard lock(mutex_);
  const uint64_t version = scope->version();
  if (form_ && form_->version != version) {
    form_->version = version;
    if (Replaced(*scope, form_->optimized.used)) form_ = nullptr;
  }
  if (!form_) {
    HEDDLE_ASSIGN_OR_RETURN(form_, Make());
  }
  return form_;
}

Result<std::shared_ptr<CachedPlan>> ExecutorImpl::FindPlan(CompiledImpl& c,
                                                           const std::vector<Feed>& feeds) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<CompiledImpl::Form> form, c.Current());
  const std::string key = FeedKey(*form, feeds);
  return cache.Get(XXH64(key.data(), key.size(), 0), key, [&] {
    std::lock_guard writes(c.scope->write_mutex());  // parameters are read
    if (const uint64_t now = c.scope->version(); now != form->packs_version) {
      form->packs = std::make_shared<PackCache>();
      form->packs_version = now;
    }
    PlanRequest request;
    request.program = form->optimized.program;
    request.scope = form->optimized.scope;
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
    request.packs = form->packs;
    request.fetches = form->fetches;
    request.schedule = c.options.schedule;
    request.threads = threads;
    RandomState random;
    Services services = ServicesFor(false);
    services.packs = form->packs.get();
    services.random = &random;
    request.services = &services;
    // Kernels are prepared where they will run: the library cuts its work for the threads there.
    Result<std::shared_ptr<const Plan>> plan = Internal("not built");
    serial_arena.Execute([&] { plan = BuildPlan(request); });
    return plan;
  });
}

Status ExecutorImpl::RunOn(RunState& run, CompiledImpl& c, const std::vector<Feed>& feeds,
                           std::vector<Value>* out) {
  // The program's order of feeds is that of the key the plan was found by.
  std::vector<const Value*> values;
  for (const Feed& f : feeds) values.push_back(&f.value);
  run.random().engine.seed(c.options.seed + c.runs.fetch_add(1, std::memory_order_relaxed));
  Status status;
  try {
    run.Begin(values);
  } catch (const std::bad_alloc& e) {
    return ResourceExhausted("while the run was set up: ", e.what());
  }
  if (run.plan().parallel) {
    status = Interpreter::RunParallel(run, pool, parallel_arena);
  } else {
    const auto& instructions = run.plan().blocks[0].instructions;
    serial_arena.Execute([&] { status = Interpreter::RunSerial(instructions, run); });
  }
  return status.ok() ? run.Fetch(out) : status;
}

Result<std::vector<Value>> ExecutorImpl::Run(CompiledImpl& c, const std::vector<Feed>& feeds) {
  HEDDLE_RETURN_IF_ERROR(CheckFeeds(c, feeds));
  auto found = FindPlan(c, feeds);
  if (!found.ok()) return found.status();
  CachedPlan& cached = **found;
  std::unique_lock<std::mutex> writes;
  if (cached.plan()->writes_scope && c.scope) writes = std::unique_lock(c.scope->write_mutex());
  std::unique_ptr<RunState> run;
  try {
    run = cached.Acquire(ServicesFor(cached.plan()->parallel));
  } catch (const std::bad_alloc& e) {
    return ResourceExhausted("no memory for the temporaries of a run (",
                             cached.plan()->arena_bytes, " bytes): ", e.what());
  }
  std::vector<Value> out;
  Status status = RunOn(*run, c, feeds, &out);
  run->End();
  cached.plan()->MarkWritten();
  cached.Release(std::move(run));
  if (!status.ok()) return status;
  return out;
}

}  // namespace internal

const std::vector<TensorInfo>& CompiledProgram::inputs() const { return impl_->inputs; }
const std::vector<TensorInfo>& CompiledProgram::outputs() const { return impl_->outputs; }
const std::shared_ptr<Scope>& CompiledProgram::scope() const { return impl_->scope; }

Executor::Executor(const ExecutorOptions& options)
    : impl_(std::make_unique<internal::ExecutorImpl>(options)) {}
Executor::~Executor() = default;

Result<CompiledProgram> Executor::Compile(const Program& program, std::shared_ptr<Scope> scope,
                                          const CompileOptions& options) {
  if (!program) return InvalidArgument("the program is empty");
  auto c = std::make_shared<internal::CompiledImpl>();
  c->scope = scope ? std::move(scope) : std::make_shared<Scope>();
  c->options = options;
  c->inputs = program.inputs();
  c->declared_inputs = !program.ir().feeds.empty();
  std::vector<std::string> names = options.fetches;
  if (names.empty())
    for (const TensorInfo& o : program.outputs()) names.push_back(o.name);
  for (const std::string& name : names)
    if (program.ir().Find(0, name) == ir::kNoVar)
      return NotFound("cannot fetch '", name, "': the program has no such variable");
  c->source = program;
  c->fetch_names = names;
  auto form = c->Current();
  if (!form.ok()) return form.status();
  for (size_t i = 0; i < names.size(); ++i) {
    const ir::Var& v = program.ir().vars[program.ir().Find(0, names[i])];
    c->outputs.push_back({names[i], v.dtype, v.shape});
  }
  return CompiledProgram(std::move(c));
}

Result<std::vector<Value>> Executor::RunValues(const CompiledProgram& compiled,
                                               const std::vector<Feed>& feeds) {
  return impl_->Run(*compiled.impl(), feeds);
}

Result<std::vector<Tensor>> Executor::Run(const CompiledProgram& compiled,
                                          const std::vector<Feed>& feeds) {
  auto values = RunValues(compiled, feeds);
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
  HEDDLE_RETURN_IF_ERROR(internal::CheckFeeds(*compiled.impl(), feeds));
  auto plan = impl_->FindPlan(*compiled.impl(), feeds);
  if (!plan.ok()) return plan.status();
  return (*plan)->plan()->stats;
}

Result<std::string> Executor::PlanText(const CompiledProgram& compiled,
                                       const std::vector<Feed>& feeds) {
  HEDDLE_RETURN_IF_ERROR(internal::CheckFeeds(*compiled.impl(), feeds));
  auto plan = impl_->FindPlan(*compiled.impl(), feeds);
  if (!plan.ok()) return plan.status();
  return (*plan)->plan()->ToString();
}

int Executor::threads() const { return impl_->threads; }
int64_t Executor::plans_built() const { return impl_->cache.built(); }
void Executor::Trim() {
  impl_->cache.Trim();
  impl_->allocator.Trim();
}

}  // namespace heddle
