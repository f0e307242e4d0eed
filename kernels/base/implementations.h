// The choice among a family's implementations: by what the caller insists on, by what was measured,
// or else by estimated cost. Each family has one list of them, in its select.cc.
//
// Lists are constants of the program. Threads: any. Errors: an implementation that is insisted on
// and does not cover the case, in one sentence that names those that do.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/kernel_context.h"
#include "core/kernel_tuner.h"
#include "core/machine.h"

namespace heddle {

// One way to compute a case. `covers` says whether it can, `cost_ns` whether it should: a function
// of the case and the machine alone, and neither looks at the processor that asks.
template <typename Case, typename Runner>
struct Implementation {
  const char* name;  // of one word, as --force and tuning files have it
  bool (*covers)(const Case& c, const Machine& m);
  // Expected nanoseconds. Precondition for this and the rest: covers().
  double (*cost_ns)(const Case& c, const Machine& m);
  // The name with what is known without making it: "winograd 4x4, avx2".
  std::string (*describe)(const Case& c, const Machine& m);
  // nullptr: oneDNN has nothing for the case after all. For this process's machine only.
  std::unique_ptr<Runner> (*make)(const PrepareContext& ctx, const Case& c);
};

// Operands of one case, which are kept while its implementations are measured.
template <typename Runner>
class Trial {
 public:
  virtual ~Trial() = default;
  virtual void Run(const KernelContext& ctx, const Runner& runner) = 0;
};

template <typename Case, typename Runner>
struct Family {
  std::string_view name;                               // one of ImplementationFamilies()
  std::span<const Implementation<Case, Runner>> list;  // of equal cost, the first one is taken
  // A runner that has a name and cannot run, for a machine that is only described.
  std::unique_ptr<Runner> (*named)(std::string name);
  // The key of a kept choice: everything that the times depend on besides the machine. Empty: the
  // case is not tuned.
  std::string (*key)(const Case& c);
  std::unique_ptr<Trial<Runner>> (*trial)(const Case& c);
};

// Memory for one operand of a trial, with numbers that are neither 0 nor denormal. Throws
// std::bad_alloc.
Tensor TrialOperand(int64_t elements);

// Those that cover the case, the cheapest first.
template <typename Case, typename Runner>
std::vector<const Implementation<Case, Runner>*> Ranked(
    std::span<const Implementation<Case, Runner>> list, const Case& c, const Machine& m) {
  std::vector<std::pair<double, const Implementation<Case, Runner>*>> costs;
  for (const auto& i : list)
    if (i.covers(c, m)) costs.emplace_back(i.cost_ns(c, m), &i);
  std::ranges::stable_sort(costs, {}, [](const auto& entry) { return entry.first; });
  std::vector<const Implementation<Case, Runner>*> ranked;
  for (const auto& [cost, i] : costs) ranked.push_back(i);
  return ranked;
}

// "force: ...", for a family whose implementations `wanted` are not to be had; `names` are those
// that cover the case.
Status CannotForce(std::string_view family, const std::vector<std::string>& wanted,
                   const std::vector<std::string>& names);

namespace internal {

template <typename Case, typename Runner>
using RankedList = std::vector<const Implementation<Case, Runner>*>;

// Of a case without one: `reason` is empty.
template <typename Case, typename Runner>
ImplementationChoice NewChoice(const Family<Case, Runner>& f, const Case& c, const Machine& m,
                               const RankedList<Case, Runner>& ranked) {
  ImplementationChoice choice;
  choice.family = std::string(f.name);
  for (const auto* i : ranked) choice.candidates.push_back({i->name, i->cost_ns(c, m), 0});
  return choice;
}

inline void Choose(const char* name, const char* reason, ImplementationChoice* choice) {
  choice->chosen = name;
  choice->reason = choice->candidates.size() == 1 ? "only" : reason;
}

template <typename Case, typename Runner>
Result<std::unique_ptr<Runner>> MakeForced(const PrepareContext& ctx, const Family<Case, Runner>& f,
                                           const Case& c, const RankedList<Case, Runner>& ranked,
                                           const std::vector<std::string>& wanted,
                                           ImplementationChoice* choice) {
  std::vector<std::string> names;
  for (const auto* i : ranked) names.emplace_back(i->name);
  for (const std::string& name : wanted) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end()) continue;
    const auto& i = *ranked[static_cast<size_t>(at - names.begin())];
    choice->chosen = name;
    choice->reason = "forced";
    if (ctx.machine() != nullptr) return f.named(i.describe(c, *ctx.machine()));
    if (auto runner = i.make(ctx, c)) return runner;
  }
  return CannotForce(f.name, wanted, names);
}

// The fastest as measured; nullptr when there is no choice. What is estimated to take far longer
// than the cheapest is left out.
template <typename Case, typename Runner>
std::unique_ptr<Runner> Measure(const PrepareContext& ctx, const Family<Case, Runner>& f,
                                const Case& c, const RankedList<Case, Runner>& ranked,
                                KernelTuner& tuner, const std::string& key,
                                ImplementationChoice* choice) {
  constexpr double kHopeless = 5;  // times the cheapest: estimates are not that wrong
  const double least = ranked.front()->cost_ns(c, ThisMachine());
  std::vector<std::unique_ptr<Runner>> runners;
  std::vector<std::string> names;
  for (const auto* i : ranked) {
    if (i->cost_ns(c, ThisMachine()) > kHopeless * least) continue;
    auto runner = i->make(ctx, c);
    if (!runner) continue;
    names.emplace_back(i->name);
    runners.push_back(std::move(runner));
  }
  if (runners.size() < 2) return nullptr;
  const auto trial = f.trial(c);
  // The implementation taken without measuring comes first: it wins ties.
  std::vector<double> ns;
  const auto run = [&](int i, Services& services) {
    const KernelContext one_run(ctx.op(), ctx.frame(), services, nullptr);
    trial->Run(one_run, *runners[static_cast<size_t>(i)]);
  };
  const auto best = static_cast<size_t>(tuner.Measure(key, names, run, &ns));
  for (size_t k = 0; k < ns.size(); ++k)
    for (auto& candidate : choice->candidates)
      if (candidate.name == names[k]) candidate.measured_ns = ns[k];
  Choose(names[best].c_str(), "measured", choice);
  return std::move(runners[best]);
}

// nullptr: nothing is kept for the case, and it is not to be measured.
template <typename Case, typename Runner>
std::unique_ptr<Runner> MakeTuned(const PrepareContext& ctx, const Family<Case, Runner>& f,
                                  const Case& c, const RankedList<Case, Runner>& ranked,
                                  ImplementationChoice* choice) {
  KernelTuner* const tuner = ctx.lean() ? nullptr : TunerOf(ctx.packs());
  const std::string key = tuner != nullptr ? f.key(c) : "";
  if (key.empty()) return nullptr;
  const std::string kept = tuner->Kept(key);
  for (const auto* i : ranked) {
    if (kept != i->name) continue;
    Choose(i->name, "kept", choice);
    return i->make(ctx, c);
  }
  return tuner->measures() ? Measure(ctx, f, c, ranked, *tuner, key, choice) : nullptr;
}

template <typename Case, typename Runner>
Result<std::unique_ptr<Runner>> MakeBest(const PrepareContext& ctx, const Family<Case, Runner>& f,
                                         const Case& c, const RankedList<Case, Runner>& ranked,
                                         ImplementationChoice* choice) {
  if (ctx.forced() != nullptr)
    if (const auto* wanted = ctx.forced()->Find(f.name))
      return MakeForced(ctx, f, c, ranked, *wanted, choice);
  if (ctx.machine() != nullptr && !ranked.empty()) {
    Choose(ranked.front()->name, "cost", choice);
    return f.named(ranked.front()->describe(c, *ctx.machine()));
  }
  if (auto runner = MakeTuned(ctx, f, c, ranked, choice)) return runner;
  for (const auto* i : ranked) {
    Choose(i->name, "cost", choice);
    if (auto runner = i->make(ctx, c)) return runner;
  }
  return Internal("no implementation of ", f.name, " covers this case");
}

}  // namespace internal

// The runner of a case. Where the plan is made for a machine that is only described
// (Services::machine), one that has a name and cannot run.
template <typename Case, typename Runner>
Result<std::unique_ptr<Runner>> MakeBest(const PrepareContext& ctx, const Family<Case, Runner>& f,
                                         const Case& c) {
  const Machine& machine = MachineOr(ctx.machine());
  const auto ranked = Ranked(f.list, c, machine);
  ImplementationChoice choice = internal::NewChoice(f, c, machine, ranked);
  auto runner = internal::MakeBest(ctx, f, c, ranked, &choice);
  if (runner.ok()) LogOf(ctx.packs()).Note(&ctx.op(), std::move(choice));
  return runner;
}

}  // namespace heddle
