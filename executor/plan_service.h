// PlanService: the plans of one executor. Finds the plan for a compiled program and feeds of given
// shapes, makes it where there is none, and makes variants of it once RunPolicy asks for them.
//
// Threads: all methods from any thread; a plan is made by one thread while others that want the
// same one wait for it. Making a plan reads parameters: it holds the scope's write_mutex, as runs
// do that write to them. Locks are taken in this order: a cache entry's, the scope's write_mutex, a
// CachedPlan's. Errors: as Executor::Run says; what failed is made anew when it is asked for again.
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
  // `resources` outlives it.
  PlanService(RunResources& resources, int capacity);

  // For a run with these feeds, which are checked. `key`: room that the caller may keep from run to
  // run; a plan that is found takes no other memory.
  Result<std::shared_ptr<CachedPlan>> ForRun(CompiledImpl& compiled, const std::vector<Feed>& feeds,
                                             std::string* key);
  // The plan for such feeds that is the fastest as far as is known.
  Result<std::shared_ptr<const Plan>> Settled(CompiledImpl& compiled,
                                              const std::vector<Feed>& feeds);
  // The memory plan of that plan, beside those of the other ways to share memory.
  Result<MemoryReport> Memory(CompiledImpl& compiled, const std::vector<Feed>& feeds);

  int64_t built() const { return cache_.built(); }
  // Gives up what idle runs hold.
  void Trim() { cache_.Trim(); }

 private:
  using Form = CompiledImpl::Form;

  Result<std::shared_ptr<CachedPlan>> Find(CompiledImpl& c, const std::vector<Feed>& feeds,
                                           std::string* key);
  // `form` becomes another one where the passes went by declarations that do not hold.
  Result<std::shared_ptr<CachedPlan>> FindOrMake(CompiledImpl& c, std::shared_ptr<Form>* form,
                                                 const std::vector<Feed>& feeds, std::string* key);
  // The plan of this form. nullptr: `found` has the claims of the form that do not hold.
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
