#include "executor/plan_service.h"

#include <xxhash.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/kernel_tuner.h"
#include "core/lock_or_leave.h"
#include "executor/check_claims.h"
#include "executor/follow_plan.h"
#include "executor/plan/dependency_graph.h"
#include "executor/plan/memory_edges.h"
#include "executor/plan/shapes/empty_dims.h"
#include "executor/report/memory_report.h"
#include "executor/tune/propose_ways.h"

namespace heddle::internal {

PlanService::PlanService(RunResources& resources, int capacity)
    : resources_(resources), cache_(static_cast<size_t>(std::max(1, capacity))) {}

Result<PlanService::Planned> PlanService::ForRun(CompiledImpl& c, const std::vector<Feed>& feeds,
                                                 std::string* key) {
  if (c.machine)
    return InvalidArgument("the program was compiled for the machine '", c.machine->name,
                           "' as described: its plans can be shown, not run");
  HEDDLE_RETURN_IF_ERROR(CheckFeeds(c, feeds));
  for (int i = 0; i < kMostTries; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(auto cached, Find(c, feeds, key));
    Propose(c, *cached);
    if (auto values = cached->Held()) return Planned{std::move(cached), std::move(values)};
    LookForInterrupt();
  }
  return TooFast();
}

Status PlanService::TooFast() {
  return Internal("parameters were replaced each time before a run with them could begin");
}

Result<std::shared_ptr<const Plan>> PlanService::Settled(CompiledImpl& c,
                                                         const std::vector<Feed>& feeds) {
  HEDDLE_RETURN_IF_ERROR(CheckFeeds(c, feeds));
  std::string key;
  HEDDLE_ASSIGN_OR_RETURN(const auto cached, Find(c, feeds, &key));
  return cached->variant(cached->policy().settled_variant());
}

Result<MemoryReport> PlanService::Memory(CompiledImpl& c, const std::vector<Feed>& feeds) {
  HEDDLE_RETURN_IF_ERROR(CheckFeeds(c, feeds));
  std::string key;
  HEDDLE_ASSIGN_OR_RETURN(const auto cached, Find(c, feeds, &key));
  const auto plan = cached->variant(cached->policy().settled_variant());
  MemoryReport report = ReportMemory(*plan);
  report.block_bytes = cached->BlockBytes(*plan);
  if (resources_.threads > 1 && report.decided) {
    const auto writes = HoldOrLeave(c.scope->write_mutex());  // parameters are read
    const auto build = [&](const PlanRequest& request) { return Build(request); };
    HEDDLE_ASSIGN_OR_RETURN(report.ways, CompareMemory(cached->request(), plan, build));
  }
  return report;
}

Result<std::shared_ptr<CachedPlan>> PlanService::Find(CompiledImpl& c,
                                                      const std::vector<Feed>& feeds,
                                                      std::string* key) {
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<Form> form, c.Current(feeds));
  auto cached = FindOrMake(c, &form, feeds, key);
  if (!c.options.max_shapes.empty() && cached.ok() && !(*cached)->has_blocks() &&
      !resources_.device)
    HEDDLE_RETURN_IF_ERROR(ShareBlocks(c, form, feeds, **cached));
  return cached;
}

namespace {

// Whether, as far as the plan knows, no operator of block 0 reads a variable of another dtype than
// the program declares.
bool IsAsDeclared(const Plan& plan) {
  for (const Instruction& in : plan.blocks[0].instructions) {
    const auto& defs = in.op.def->inputs();
    for (size_t i = 0; i < defs.size(); ++i) {
      if (defs[i].flags & kNoBuffer) continue;
      for (uint32_t k = in.op.in_begin[i]; k < in.op.in_begin[i + 1]; ++k) {
        if (in.op.in[k] == kNoSlot) continue;
        const Slot& slot = plan.slots[in.op.in[k]];
        const DType declared = plan.program->vars[slot.var].dtype;
        if (slot.is_static && declared != DType::kUnknown && declared != slot.dtype) return false;
      }
    }
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<CachedPlan>> PlanService::FindOrMake(CompiledImpl& c,
                                                            std::shared_ptr<Form>* form,
                                                            const std::vector<Feed>& feeds,
                                                            std::string* key) {
  std::vector<passes::NamedFact> found;
  for (bool insist = false;;) {
    auto cached = FindOrMakeOf(c, **form, feeds, insist, key, &found);
    if (!cached.ok() || *cached != nullptr) return cached;
    // The loop ends, since claims can only become weaker, in finitely many steps.
    const bool weaker = c.NoteFound(found);
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<Form> now, c.Current(feeds));
    insist = !weaker && now == *form;
    *form = std::move(now);
  }
}

Result<std::shared_ptr<CachedPlan>> PlanService::FindOrMakeOf(
    CompiledImpl& c, Form& form, const std::vector<Feed>& feeds, bool insist, std::string* key,
    std::vector<passes::NamedFact>* found) {
  FeedKey(form, feeds, key);
  const auto entry = cache_.EntryOf(XXH64(key->data(), key->size(), 0), *key);
  InterruptibleLock lock(entry->mutex);
  if (entry->plan && entry->plan->UpToDate()) return entry->plan;
  const bool optimized = !c.options.follow && c.options.opt_level > 0;
  if (optimized && !insist && !(*found = FindOtherwise(form, feeds)).empty())
    return std::shared_ptr<CachedPlan>();
  auto made = Make(c, form, feeds);
  if (optimized && made.ok()) *found = FindOtherwise(form, *(*made)->plan());
  if (!found->empty() && !insist) return std::shared_ptr<CachedPlan>();
  if (optimized && !(made.ok() && found->empty() && IsAsDeclared(*(*made)->plan()))) {
    // The passes relied on declarations that do not hold. The program without passes can run, or
    // says what is wrong in terms of the file's operators.
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Form> plain, c.Plain());
    made = Make(c, *plain, feeds);
  }
  HEDDLE_RETURN_IF_ERROR(made.status());
  cache_.DropHeld();  // it may be made since parameters were replaced
  entry->Take(*std::move(made));
  cache_.CountBuilt();
  return entry->plan;
}

// Gives runs of the plan memory blocks that are large enough for the largest feeds.
Status PlanService::ShareBlocks(CompiledImpl& c, const std::shared_ptr<Form>& form,
                                const std::vector<Feed>& feeds, CachedPlan& cached) {
  const std::vector<Feed> largest = LargestFeeds(c, feeds);
  if (largest.empty()) return Status::Ok();
  InterruptibleLock lock(form->blocks_mutex);
  if (!form->blocks) {
    std::string key;
    std::shared_ptr<Form> now = form;
    HEDDLE_ASSIGN_OR_RETURN(const auto bound, FindOrMake(c, &now, largest, &key));
    if (now != form) return Status::Ok();  // the form was replaced; the next run uses the new one
    form->blocks = std::make_shared<ArenaBlocks>(bound->plan()->arena_bytes);
    bound->UseBlocks(form->blocks);
  }
  cached.UseBlocks(form->blocks);
  return Status::Ok();
}

// Whether variants are tried. They may need more memory, so with a memory limit they are not.
bool PlanService::Tuned(const CompiledImpl& c) const {
  return c.options.schedule == Schedule::kAuto && resources_.threads > 1 && !resources_.limited &&
         !resources_.device && !c.options.follow;
}

PlanWay PlanService::FirstWay(const CompiledImpl& c) const {
  PlanWay way;
  way.ask_worth = Tuned(c);
  if (resources_.device)
    way.dispatch = Dispatch::kDevice;
  else if (resources_.threads > 1 && c.options.schedule == Schedule::kParallel)
    way.dispatch = Dispatch::kQueue;
  else if (resources_.threads > 1 && c.options.schedule == Schedule::kLanes)
    way.dispatch = Dispatch::kLanes;
  return way;
}

Result<std::shared_ptr<CachedPlan>> PlanService::Make(CompiledImpl& c, Form& form,
                                                      const std::vector<Feed>& feeds) {
  const auto writes = HoldOrLeave(c.scope->write_mutex());  // parameters are read
  if (const uint64_t now = c.scope->version(); now != form.packs_version) {
    form.source.packs = std::make_shared<PackCache>(c.packed);
    form.packs_version = now;
  }
  for (const std::string& name : form.required) {
    const Value* value = c.scope->Find(name);
    if (value == nullptr || !value->initialized() || !value->is_tensor())
      return NotFound("parameter '", name, "' holds no tensor");
  }
  PlanRequest request{{form.source}, resources_.target(), c.plan_choices(), FirstWay(c), {}};
  request.spoil = c.spoil;
  for (const Feed& f : feeds) {
    if (f.value.is_tensor())
      if (const Status status = CheckEmptyDims(f.value.tensor().shape()); !status.ok())
        return InvalidArgument("input '", f.name, "': ", status.message());
    request.feeds.push_back(SignatureOf(f));
  }
  std::shared_ptr<const Plan> plan;
  if (c.options.follow) {
    PlanDescription here;
    c.FillOrigin(&here);
    here.program = form.source.program->name;
    const auto build = [&](const PlanRequest& r) { return Build(r); };
    HEDDLE_ASSIGN_OR_RETURN(
        plan, BuildAsGiven(request, *c.options.follow, here, resources_.places(), build));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(plan, Build(request));
  }
  DropWaiting(*c.scope, form);
  if (c.tuning) c.tuning->Save();
  if (c.packed) c.packed->Save();
  auto made = std::make_shared<CachedPlan>(std::move(plan), std::move(request),
                                           c.tuning ? LastingKey(form, feeds) : std::string());
  made->IsUpToDate();  // reads what runs hold
  return made;
}

Result<std::shared_ptr<const Plan>> PlanService::Build(PlanRequest request) {
  RandomState random;
  Services services = resources_.ServicesFor(resources_.wide_arena);
  services.packs = request.packs.get();
  services.random = &random;
  services.lean = request.lean;
  services.forced = request.forced.get();
  services.machine = request.machine.get();
  request.services = &services;
  // In the arena where the kernels will run: oneDNN cuts its work for the number of threads there.
  Result<std::shared_ptr<const Plan>> plan = Internal("not built");
  std::optional<TuningCache::Measuring> measuring;  // ends in any case when this returns
  if (request.tuning) {
    TunerOf(*request.packs, request.tuning);
    measuring.emplace(*request.tuning, services);
  }
  resources_.wide_arena.Execute([&] { plan = BuildPlan(request); });
  return plan;
}

void PlanService::Propose(CompiledImpl& c, CachedPlan& cached) {
  RunPolicy::Costs costs;
  if (!cached.policy().WantsCandidates(&costs)) return;
  std::vector<std::shared_ptr<const Plan>> variants = MakeVariants(c, cached, costs);
  const auto count = static_cast<int>(variants.size());
  cached.AddVariants(std::move(variants));
  cached.policy().Candidates(count);
}

namespace {

// The memory of a plan's temporaries without any sharing, in bytes.
size_t TemporaryBytes(const Plan& plan) {
  size_t bytes = 0;
  for (uint32_t s : plan.arena_slots) bytes += plan.slots[s].bytes();
  return bytes;
}

// The dependency graph of the instructions, with memory edges if `reuse` asks for them.
StaticGraph GraphOf(const Plan& plan, Reuse reuse, const RunPolicy::Costs& costs) {
  StaticGraph graph = BuildDependencies(plan, plan.blocks[0].instructions).graph;
  if (reuse != Reuse::kEdges) return graph;
  const std::vector<OrderEdge> edges = FindMemoryEdges(plan, graph, costs.narrow_ns);
  return edges.empty() ? graph : AddEdges(graph, edges);
}

}  // namespace

// Makes plans that run the same instructions in ways that are promising by the measured costs.
std::vector<std::shared_ptr<const Plan>> PlanService::MakeVariants(const CompiledImpl& c,
                                                                   const CachedPlan& cached,
                                                                   const RunPolicy::Costs& costs) {
  // The most bytes of temporaries for a queue, with which memory is shared less well than in an
  // arena.
  constexpr size_t kQueueBytes = 64 << 20;
  std::vector<std::shared_ptr<const Plan>> variants;
  const auto writes = HoldOrLeave(c.scope->write_mutex());  // parameters are read
  const Plan& plain = *cached.plan();
  PlanRequest request = cached.request();
  request.ask_worth = false;
  request.twin = cached.plan();
  const auto add = [&] {
    auto plan = Build(request);
    if (plan.ok() && (*plan)->dispatch == request.dispatch) variants.push_back(*std::move(plan));
  };
  request.dispatch = Dispatch::kLanes;
  for (LaneWay& way : ProposeLaneWays(GraphOf(plain, c.options.reuse, costs), costs,
                                      resources_.threads, resources_.pool.HandOverNs())) {
    request.lanes = std::make_shared<const LaneSchedule>(std::move(way.lanes));
    request.wide = std::move(way.wide);
    add();
  }
  request.lanes = nullptr;
  request.wide.clear();
  if (!variants.empty() && CanAffordQueue(costs) && TemporaryBytes(plain) <= kQueueBytes) {
    request.dispatch = Dispatch::kQueue;
    add();
  }
  if (plain.worth_body_lanes) {
    request.dispatch = Dispatch::kSerial;
    request.body_lanes = true;
    add();
  }
  return variants;
}

}  // namespace heddle::internal
