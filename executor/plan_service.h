// PlanService: the plans of one executor. It finds the plan for a compiled program and feeds of
// given shapes, makes it if there is none, and makes variants of it when RunPolicy asks for them.
//
// Threads: all methods may be called from any thread; while one thread makes a plan, others that
// want the same one wait for it. Making a plan reads parameters, so it holds the scope's
// write_mutex, as runs that write to the scope do. Locks are taken in this order: a cache entry's,
// the scope's write_mutex, a CachedPlan's. Errors: as Executor::Run says; after a failure, the next
// request tries again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/compiled.h"
#include "executor/plan_cache.h"
#include "executor/run_resources.h"
#include "heddle/memory_report.h"

namespace heddle::internal {

class PlanService {
 public:
  // `resources` must outlive it.
  PlanService(RunResources& resources, int capacity);

  // What a run needs: a plan, and the scope's values with which it is valid.
  struct Planned {
    std::shared_ptr<CachedPlan> plan;
    std::shared_ptr<const ScopeValues> values;
  };
  // The plan for a run with these feeds, which must have been checked. `key`: a buffer that the
  // caller may keep from run to run; finding an existing plan allocates nothing else.
  Result<Planned> ForRun(CompiledImpl& compiled, const std::vector<Feed>& feeds, std::string* key);
  // A plan that is outdated before its run begins is found anew, so many times.
  static constexpr int kMostTries = 100;
  static Status TooFast();
  // The fastest plan known for such feeds.
  Result<std::shared_ptr<const Plan>> Settled(CompiledImpl& compiled,
                                              const std::vector<Feed>& feeds);
  // The memory report of that plan, with those of other ways to share memory.
  Result<MemoryReport> Memory(CompiledImpl& compiled, const std::vector<Feed>& feeds);

  int64_t built() const { return cache_.built(); }
  // Frees what idle runs hold.
  void Trim() { cache_.Trim(); }

 private:
  using Form = CompiledImpl::Form;

  Result<std::shared_ptr<CachedPlan>> Find(CompiledImpl& c, const std::vector<Feed>& feeds,
                                           std::string* key);
  // `form` is replaced if the passes relied on declarations that do not hold.
  Result<std::shared_ptr<CachedPlan>> FindOrMake(CompiledImpl& c, std::shared_ptr<Form>* form,
                                                 const std::vector<Feed>& feeds, std::string* key);
  // The plan of this form. nullptr: claims of the form do not hold, and `found` has what replaces
  // them.
  Result<std::shared_ptr<CachedPlan>> FindOrMakeOf(CompiledImpl& c, Form& form,
                                                   const std::vector<Feed>& feeds, bool insist,
                                                   std::string* key,
                                                   std::vector<passes::NamedFact>* found);
  Status ShareBlocks(CompiledImpl& c, const std::shared_ptr<Form>& form,
                     const std::vector<Feed>& feeds, CachedPlan& cached);
  Result<std::shared_ptr<CachedPlan>> Make(CompiledImpl& c, Form& form,
                                           const std::vector<Feed>& feeds);
  bool Tuned(const CompiledImpl& c) const;
  PlanWay FirstWay(const CompiledImpl& c) const;
  Result<std::shared_ptr<const Plan>> Build(PlanRequest request);
  void Propose(CompiledImpl& c, CachedPlan& cached);
  std::vector<std::shared_ptr<const Plan>> MakeVariants(const CompiledImpl& c,
                                                        const CachedPlan& cached,
                                                        const RunPolicy::Costs& costs);

  RunResources& resources_;
  PlanCache cache_;
};

}  // namespace heddle::internal
