#include "executor/compiled.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/lock_or_leave.h"
#include "core/memory/lazy_buffer.h"
#include "core/programs/kept_outputs.h"
#include "executor/check_claims.h"
#include "executor/executor_impl.h"
#include "executor/follow_plan.h"
#include "executor/outline_program.h"
#include "executor/own_kernels.h"
#include "heddle/host.h"

namespace heddle::internal {
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

// Whether a feed has the dtype, rank and dimensions that the program declares.
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

}  // namespace

Status CheckFeeds(const CompiledImpl& c, const std::vector<Feed>& feeds) {
  // Up to so many inputs a linear search takes less time than building an index.
  constexpr size_t kFew = 32;
  std::unordered_map<std::string_view, const TensorInfo*> known;
  std::unordered_set<std::string_view> fed;
  const bool indexed = feeds.size() > kFew || c.inputs.size() > kFew;
  if (indexed) {
    for (const TensorInfo& info : c.inputs) known.emplace(info.name, &info);
    for (const Feed& f : feeds) fed.insert(f.name);
  }
  for (const Feed& f : feeds) {
    const TensorInfo* info = nullptr;
    if (!indexed)
      info = FindInfo(c.inputs, f.name);
    else if (const auto at = known.find(f.name); at != known.end())
      info = at->second;
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
    const bool given = indexed ? fed.contains(info.name)
                               : std::any_of(feeds.begin(), feeds.end(),
                                             [&](const Feed& f) { return f.name == info.name; });
    if (!given && c.declared_inputs)
      return InvalidArgument("input '", info.name, "' is not fed (", Name(info.dtype), " ",
                             info.shape.ToString(), " is expected)");
  }
  return Status::Ok();
}

Status CheckMaxShapes(const CompiledImpl& c) {
  for (const auto& [name, shape] : c.options.max_shapes) {
    const TensorInfo* info = FindInfo(c.inputs, name);
    if (info == nullptr)
      return InvalidArgument("largest shapes: there is no input '", name, "'; the inputs are ",
                             NamesOf(c.inputs));
    bool fits =
        shape.is_static() && (!info->shape.known_rank() || shape.rank() == info->shape.rank());
    for (int d = 0; fits && info->shape.known_rank() && d < shape.rank(); ++d)
      fits = info->shape[d] < 0 || info->shape[d] == shape[d];
    if (!fits)
      return InvalidArgument("largest shapes: ", shape.ToString(), " does not fit input '", name,
                             "', ", info->shape.ToString());
  }
  return Status::Ok();
}

// Parameters of one file share a LazyShelf, so the first waiting one stands for all.
void DropWaiting(const Scope& scope, const CompiledImpl::Form& form) {
  for (const auto& [name, stamp] : form.optimized.used) {
    if (scope.StampOf(name) != stamp || !stamp.value->is_tensor() ||
        !LazyShelf::IsWaiting(stamp.value->tensor()))
      continue;
    LazyShelf::DropWaiting(stamp.value->tensor());
    return;
  }
}

std::vector<Feed> LargestFeeds(const CompiledImpl& c, const std::vector<Feed>& feeds) {
  std::vector<Feed> largest;
  for (const Feed& f : feeds) {
    if (!f.value.is_tensor() || f.value.tensor().has_lod()) return {};
    Shape shape = f.value.tensor().shape();
    for (const auto& [name, bound] : c.options.max_shapes) {
      if (name != f.name) continue;
      if (shape.rank() != bound.rank()) return {};
      for (int d = 0; d < shape.rank(); ++d)
        if (shape[d] > bound[d]) return {};
      shape = bound;
    }
    Tensor bare;
    bare.SetMeta(f.value.tensor().dtype(), shape);
    largest.push_back({f.name, Value(std::move(bare))});
  }
  return largest;
}

namespace {

void AppendFeeds(const std::vector<Feed>& feeds, std::string* key) {
  for (const Feed& f : feeds) {
    *key += f.name;
    *key += '\0';
    Append(key, f.value.kind());
    if (!f.value.is_tensor()) continue;
    const Tensor& t = f.value.tensor();
    Append(key, t.dtype());
    Append(key, t.has_lod());
    Append(key, t.rank());
    for (int64_t d : t.shape()) Append(key, d);
  }
}

}  // namespace

void FeedKey(const CompiledImpl::Form& form, const std::vector<Feed>& feeds, std::string* key) {
  *key = form.key;
  AppendFeeds(feeds, key);
}

std::string LastingKey(const CompiledImpl::Form& form, const std::vector<Feed>& feeds) {
  std::string key;
  Append(&key, form.lasting_hash);
  AppendFeeds(feeds, &key);
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx",
                static_cast<unsigned long long>(XXH64(key.data(), key.size(), 0)));
  return hex;
}

FeedSignature SignatureOf(const Feed& feed) {
  FeedSignature s;
  s.name = feed.name;
  s.kind = feed.value.kind();
  s.dtype = feed.value.tensor().dtype();
  s.shape = feed.value.tensor().shape();
  s.has_lod = feed.value.is_tensor() && feed.value.tensor().has_lod();
  return s;
}

namespace {

// Per variable: it is persistable, and some operator requires its value before any operator writes
// it.
std::vector<bool> NeededParameters(const ir::Program& program) {
  std::vector<bool> needed(program.vars.size(), false), written(program.vars.size(), false);
  for (const ir::Block& block : program.blocks) {
    for (const ir::Op& op : block.ops) {
      const auto& slots = op.def->inputs();
      for (size_t s = 0; s < slots.size() && !op.def->has(kControlFlow); ++s)
        for (ir::VarId v : op.inputs[s])
          if (v != ir::kNoVar && !(slots[s].flags & kOptional) && !written[v]) needed[v] = true;
      for (const auto& slot : op.outputs)
        for (ir::VarId v : slot)
          if (v != ir::kNoVar) written[v] = true;
    }
  }
  for (ir::VarId v = 0; v < program.vars.size(); ++v)
    needed[v] = needed[v] && program.vars[v].persistable;
  return needed;
}

std::vector<std::string> OnlyNeededBefore(const ir::Program& before, const ir::Program& after) {
  std::vector<std::string> names;
  if (&before == &after) return names;
  const std::vector<bool> needed = NeededParameters(before), still = NeededParameters(after);
  for (const ir::Block& block : after.blocks)
    for (const ir::Op& op : block.ops)
      for (const auto& slot : op.inputs)
        for (ir::VarId v : slot) {
          if (v == ir::kNoVar || still[v] || !after.vars[v].persistable) continue;
          const ir::VarId was = before.Find(0, after.vars[v].name);
          if (was != ir::kNoVar && needed[was]) names.push_back(after.vars[v].name);
        }
  return names;
}

// Whether some operator writes to a persistable variable, other than what it keeps.
bool WritesScope(const ir::Program& p) {
  for (const ir::Block& block : p.blocks)
    for (const ir::Op& op : block.ops)
      for (size_t slot = 0; slot < op.outputs.size(); ++slot)
        for (ir::VarId v : op.outputs[slot])
          if (v != ir::kNoVar && p.vars[v].persistable && !ir::KeepsOutput(op, slot)) return true;
  return false;
}

bool AnyHas(const ir::Program& p, OpTraits trait) {
  for (const ir::Block& block : p.blocks)
    for (const ir::Op& op : block.ops)
      if (op.def->has(trait)) return true;
  return false;
}

// Whether a run can be repeated: a failed one has no lasting effect.
bool RunsRepeat(const ir::Program& p) {
  return !WritesScope(p) && !AnyHas(p, kSideEffect) && !AnyHas(p, kCommunication) &&
         !AnyHas(p, kReader);
}

}  // namespace

// Appends the part of a plan's key that identifies the form, besides the program. Two forms of one
// program and scope have equal plans if their passes did the same, which follows from the options
// and from the parameters that the passes read. Forms with custom passes, measurements or kept
// files share no plans.
void CompiledImpl::AppendForm(const Form& form, std::string* key) const {
  const PassOptions& o = options.passes;
  if (!o.custom.empty() || tuning || packed || !form.program_is_file) {
    Append(key, form.optimized.scope.get());
    return;
  }
  Append(key, scope.get());
  *key += form.optimized.program->name + '\0';
  Append(key, o.precision);
  Append(key, o.max_rounds);
  Append(key, o.max_folded_bytes);
  for (const auto* names : {&o.disable, &o.only, &fed_}) {
    for (const std::string& name : *names) *key += name + '\0';
    *key += '\0';
  }
  for (const passes::NamedFact& f : found_) {
    *key += f.name + ' ' + f.fact.shape.ToString() + '\0';
    Append(key, f.block);
    Append(key, f.fact.dtype);
  }
  for (const auto& [name, stamp] : form.optimized.used) {
    *key += name + '\0';
    Append(key, stamp.value);
    Append(key, stamp.version);
  }
}

Result<std::shared_ptr<CompiledImpl::Form>> CompiledImpl::MakeForm(int level) const {
  auto form = std::make_shared<Form>();
  const auto writes = HoldOrLeave(scope->write_mutex());  // parameters are read
  form->version = form->packs_version = scope->version();
  const OptimizeOptions optimize{level, fetch_names, options.passes, fed_};
  HEDDLE_ASSIGN_OR_RETURN(const auto given, source_.Get());
  HEDDLE_ASSIGN_OR_RETURN(const auto program,
                          BindOwnKernels(given, executor->options().kernel_creator));
  form->program_is_file = program->as_parsed();
  const bool repeats = RunsRepeat(*program);
  const passes::Target target{.source = !options.lean,
                              .host_caches = host_caches,
                              .devices = DeviceViews(),
                              .found = found_,
                              .repeats = repeats,
                              .compile_options = &options,
                              .executor_options = &executor->options()};
  // The plan of a device has no functions.
  if (options.outline && executor->resources().devices.empty() && !options.dynamic_bodies) {
    std::vector<std::string> kept = fetch_names;
    kept.insert(kept.end(), fed_.begin(), fed_.end());
    HEDDLE_ASSIGN_OR_RETURN(form->optimized,
                            OptimizeAndOutline(program, scope, optimize, target, kept));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(form->optimized, passes::Optimize(program, scope, optimize, target));
  }
  form->source.program = form->optimized.program;
  if (level > 0 && !options.follow && repeats && !WritesScope(*form->source.program))
    form->source.claimed = ClaimedIn(form->optimized);
  form->source.scope = form->optimized.scope;
  form->source.root_scope = scope;
  while (form->source.root_scope->parent())
    form->source.root_scope = form->source.root_scope->parent();
  for (const std::string& name : fetch_names)
    form->source.fetches.push_back(form->optimized.program->Find(0, name));
  form->source.packs = std::make_shared<PackCache>(packed);
  form->source.tuning = tuning;
  if (!declared_inputs)
    for (const auto& [name, stamp] : form->optimized.used) form->constants.insert(name);
  Append(&form->key, source_.hash());
  form->required = OnlyNeededBefore(*program, *form->optimized.program);
  Append(&form->key, level);
  Append(&form->key, options.schedule);
  Append(&form->key, options.shuffle_seed);
  Append(&form->key, options.placement);
  Append(&form->key, options.placement_seed);
  Append(&form->key, options.reuse);
  Append(&form->key, options.in_place);
  Append(&form->key, options.lean);
  Append(&form->key, options.dynamic_bodies);
  Append(&form->key, options.outline);
  for (const auto& [name, shape] : options.max_shapes) form->key += name + shape.ToString() + '\0';
  for (const std::string& name : fetch_names) form->key += name + '\0';
  form->lasting_hash = XXH64(form->key.data(), form->key.size(), 0);
  // Not part of lasting_hash: a way found while tuning also serves runs without tuning.
  Append(&form->key, options.tune);
  form->key += options.tuning_file + '\0';
  form->key += options.packed_weights + '\0';
  form->key += options.force + '\0';
  form->key += options.machine + '\0';
  if (options.follow) Append(&form->key, HashOf(*options.follow));
  AppendForm(*form, &form->key);
  return form;
}

Result<std::shared_ptr<CompiledImpl>> CompiledImpl::Make(ExecutorImpl* executor,
                                                         const Program& program,
                                                         std::shared_ptr<Scope> scope,
                                                         const CompileOptions& options) {
  if (!program) return InvalidArgument("the program is empty");
  auto c = std::make_shared<CompiledImpl>();
  c->executor = executor;
  c->scope = scope ? std::move(scope) : std::make_shared<Scope>();
  c->options = options;
  const auto& device = executor->resources().device;
  c->host_caches = !device || device->device().has_host_kernels();
  HEDDLE_RETURN_IF_ERROR(c->FindPorts(program));
  if (!options.force.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(auto forced, ForcedImplementations::Parse(options.force));
    c->forced = std::make_shared<const ForcedImplementations>(std::move(forced));
  }
  if (!options.machine.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(auto machine, Machine::Parse(options.machine));
    c->machine = std::make_shared<const Machine>(std::move(machine));
  }
  const int threads = executor->resources().threads;
  if (options.tune || !options.tuning_file.empty())
    c->tuning = std::make_shared<TuningCache>(options.tuning_file, options.tune,
                                              TuningEnvironment(threads));
  if (!options.packed_weights.empty()) {
    HEDDLE_RETURN_IF_ERROR(PackedWeights::CheckPlace(options.packed_weights));
    c->packed = std::make_shared<PackedWeights>(options.packed_weights);
  }
  {
    MutexLock lock(c->mutex_);
    c->source_ = program;
    c->program_hash = c->source_.hash();
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Form> form, c->Current());
  // Also the optimised program: passes make writes to variables with shared storage explicit.
  c->writes_scope = WritesScope(program.ir()) || WritesScope(*form->optimized.program);
  c->communicates = AnyHas(program.ir(), kCommunication);
  c->reads = AnyHas(program.ir(), kReader);
  return c;
}

Status CompiledImpl::FindPorts(const Program& program) {
  inputs = program.inputs();
  declared_inputs = !program.ir().feeds.empty();
  HEDDLE_RETURN_IF_ERROR(CheckMaxShapes(*this));
  const ir::Program& p = program.ir();
  const auto add = [&](ir::VarId var, const std::string& name, const char* what) -> Status {
    if (var == ir::kNoVar)
      return NotFound("cannot ", what, " '", name, "': the program has no such variable");
    fetch_names.push_back(p.vars[var].name);
    return Status::Ok();
  };
  const auto add_output = [&](ir::VarId var, const std::string& name) -> Status {
    HEDDLE_RETURN_IF_ERROR(add(var, name, "fetch"));
    outputs.push_back({name, p.vars[var].dtype, p.vars[var].shape});
    return Status::Ok();
  };
  // Names of outputs come first: an output may have the name of another variable.
  std::unordered_map<std::string, ir::VarId> named;
  const std::vector<TensorInfo> infos = program.outputs();
  for (size_t i = 0; i < infos.size(); ++i) {
    named.emplace(infos[i].name, p.fetches[i].var);
    if (options.fetches.empty())
      HEDDLE_RETURN_IF_ERROR(add_output(p.fetches[i].var, infos[i].name));
  }
  for (const std::string& name : options.fetches) {
    const auto output = named.find(name);
    HEDDLE_RETURN_IF_ERROR(
        add_output(output != named.end() ? output->second : p.Find(0, name), name));
  }
  for (const std::string& name : options.keep)
    HEDDLE_RETURN_IF_ERROR(add(p.Find(0, name), name, "keep"));
  return Status::Ok();
}

// Without feed operators any variable may be fed: a fed parameter must not be folded, so its name
// is noted.
bool CompiledImpl::FeedsConstants(const std::vector<Feed>& feeds) {
  if (declared_inputs || form_->constants.empty()) return false;
  bool any = false;
  for (const Feed& f : feeds) {
    if (form_->constants.count(f.name) == 0) continue;
    fed_.push_back(f.name);
    any = true;
  }
  return any;
}

Result<std::shared_ptr<CompiledImpl::Form>> CompiledImpl::Current(const std::vector<Feed>& feeds) {
  InterruptibleLock lock(mutex_);
  const uint64_t version = scope->version();
  if (form_ && form_->version != version) {
    form_->version = version;
    if (Replaced(*scope, form_->optimized.used)) form_ = nullptr;
  }
  while (!form_ || FeedsConstants(feeds)) {
    form_ = nullptr;
    HEDDLE_ASSIGN_OR_RETURN(form_, MakeForm(options.opt_level));
    report_ = form_->optimized.report;
    if (options.lean) source_.LetGo();
  }
  return form_;
}

bool CompiledImpl::NoteFound(const std::vector<passes::NamedFact>& found) {
  MutexLock lock(mutex_);
  bool any = false;
  std::map<std::pair<int, std::string>, size_t> places;
  for (size_t k = 0; k < found_.size(); ++k)
    places.try_emplace({found_[k].block, found_[k].name}, k);
  for (const passes::NamedFact& f : found) {
    const auto [place, is_new] = places.try_emplace({f.block, f.name}, found_.size());
    const auto known = found_.begin() + static_cast<std::ptrdiff_t>(place->second);
    if (is_new) {
      found_.push_back(f);
      any = true;
    } else if (const passes::Fact both = Join(known->fact, f.fact); !(both == known->fact)) {
      known->fact = both;
      any = true;
    }
  }
  if (any) form_ = nullptr;
  return any;
}

Result<std::shared_ptr<CompiledImpl::Form>> CompiledImpl::Plain() {
  InterruptibleLock lock(mutex_);
  if (!plain_) {
    HEDDLE_ASSIGN_OR_RETURN(plain_, MakeForm(0));
    if (options.lean) source_.LetGo();
  }
  return plain_;
}

// Does not wait for the mutex: the caller may be a run that holds the scope's write_mutex, and a
// compilation takes the two locks in the other order.
Result<std::shared_ptr<const ir::Program>> CompiledImpl::Source() const {
  if (!mutex_.try_lock()) return Internal("the program is being compiled");
  Result<std::shared_ptr<const ir::Program>> program = Internal("not read");
  try {
    program = source_.Get();
  } catch (...) {
    mutex_.unlock();
    throw;
  }
  mutex_.unlock();
  if (!program.ok()) return program;
  return BindOwnKernels(*program, executor->options().kernel_creator);
}

// With another Placement, the plan alone decides which operators run on a device.
std::vector<passes::DeviceView> CompiledImpl::DeviceViews() const {
  std::vector<passes::DeviceView> views;
  if (options.placement != Placement::kDevice) return views;
  for (const auto& device : executor->resources().devices)
    views.push_back({device->place(), device->device().memory_bytes(),
                     [d = &device->device()](const BoundOp& op, Value* const* frame) {
                       return d->HasKernel(CallView(op, frame, false));
                     }});
  return views;
}

void CompiledImpl::FillOrigin(PlanDescription* plan) const {
  plan->version = InspectHost().version;
  plan->program_hash = program_hash;
  plan->machine = MachineText(machine.get());
}

PassReport CompiledImpl::pass_report() const {
  MutexLock lock(mutex_);
  return report_;
}

}  // namespace heddle::internal

namespace heddle {

const std::vector<TensorInfo>& CompiledProgram::inputs() const { return impl_->inputs; }
const std::vector<TensorInfo>& CompiledProgram::outputs() const { return impl_->outputs; }
const std::shared_ptr<Scope>& CompiledProgram::scope() const { return impl_->scope; }
PassReport CompiledProgram::pass_report() const { return impl_->pass_report(); }
TuningReport CompiledProgram::tuning_report() const {
  return impl_->tuning ? impl_->tuning->report() : TuningReport();
}
PackedWeightsReport CompiledProgram::packed_weights_report() const {
  return impl_->packed ? impl_->packed->report() : PackedWeightsReport();
}

}  // namespace heddle
