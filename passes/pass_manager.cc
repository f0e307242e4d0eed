#include "passes/pass_manager.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/memory/contents_error.h"
#include "passes/custom_pass.h"
#include "passes/ir_text.h"
#include "passes/nested_blocks.h"
#include "passes/partitions/partitions.h"
#include "passes/pass_dump.h"
#include "passes/role_keeper.h"
#include "passes/storage_aliases.h"
#include "passes/verifier.h"

namespace heddle::passes {
namespace {

using Clock = std::chrono::steady_clock;

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

int CountOps(const ir::Program& p) {
  size_t n = 0;
  for (const ir::Block& b : p.blocks) n += b.ops.size();
  return static_cast<int>(n);
}

bool Contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// A pass has one function, and of partitions where there are some.
Status CheckFunction(const PassDef& pass, const Pipeline& pipeline) {
  if (!pass.run && !pass.run_partitions)
    return InvalidArgument("pass '", pass.name, "' has no function");
  if (pass.run && pass.run_partitions)
    return InvalidArgument("pass '", pass.name, "' has both `run` and `run_partitions`");
  for (int g = 0; g < kGroupings && pass.run_partitions; ++g)
    if (static_cast<PassGrouping>(g) != PassGrouping::kPostPartitioning &&
        Contains(pipeline[g], pass.name))
      return InvalidArgument("pass '", pass.name, "' takes partitions, and runs in ",
                             Name(static_cast<PassGrouping>(g)),
                             ": only POST_PARTITIONING has them");
  return Status::Ok();
}

class Driver {
 public:
  // `given`: what `program` was made of. `pipeline` may name passes that do not run.
  Driver(std::vector<PassDef> passes, Pipeline pipeline,
         const std::shared_ptr<const ir::Program>& given,
         const std::shared_ptr<const ir::Program>& program, PassContext& context,
         const Target& target, int level)
      : passes_(std::move(passes)),
        pipeline_(std::move(pipeline)),
        given_(given),
        original_(program),
        context_(context),
        target_(target),
        level_(level),
        current_(program.get()) {}

  Status Run() {
    HEDDLE_ASSIGN_OR_RETURN(dump_, PassDump::Make(options()));
    for (int g = 0; g < kGroupings; ++g)
      for (const std::string& name : pipeline_[g])
        for (const PassDef& p : passes_)
          if (p.name == name) stages_[g].turns.push_back({&p});
    HEDDLE_RETURN_IF_ERROR(RunGrouping(PassGrouping::kPrePlacement));
    HEDDLE_RETURN_IF_ERROR(FuseAndCleanUp());
    PartitionProgram();
    HEDDLE_RETURN_IF_ERROR(RunGrouping(PassGrouping::kPostPartitioning));
    if (changes_ > 0) LetGo();
    return Status::Ok();
  }

  bool changed() const { return changes_ > 0; }
  std::shared_ptr<const ir::Program> result() const { return changed() ? copy_ : original_; }
  const std::vector<NamedFact>& claims() const { return declared_.claims; }
  PassReport report;

 private:
  // A pass in a grouping, and the value of changes_ at its last run.
  struct Turn {
    const PassDef* pass;
    int seen = -1;
  };
  struct Stage {
    std::vector<Turn> turns;
    int rounds = 0;  // so far
  };
  const PassOptions& options() const { return context_.options(); }

  // The program that the passes get, in which each variable is declared as its writer makes it.
  std::shared_ptr<ir::Program> AsDeclared() const {
    auto program = std::make_shared<ir::Program>(*original_);
    declared_.Declare(program.get());
    return program;
  }
  void MakeCopy() {
    if (copy_) return;
    declared_ = InferDeclarations(*original_, target_.found, target_.repeats, context_);
    copy_ = AsDeclared();
    current_ = copy_.get();
  }

  // Without passes in POST_PARTITIONING this has no reader: the plan assigns the places.
  void PartitionProgram() {
    context_.partitioned = true;
    const Stage& stage = stages_[static_cast<int>(PassGrouping::kPostPartitioning)];
    if (stage.turns.empty() || context_.devices.empty()) return;
    MakeCopy();
    Partition(context_.devices, copy_.get());
    ++changes_;
  }

  // Drops unused variables, unless the file declares no inputs: then any variable may be fed.
  void LetGo() {
    std::vector<ir::VarId> kept(context_.fetched.begin(), context_.fetched.end());
    kept.insert(kept.end(), context_.fed.begin(), context_.fed.end());
    if (!copy_->feeds.empty()) copy_->DropUnusedVars(kept);
    if (!target_.source) copy_->source = nullptr;
    copy_->vars.shrink_to_fit();
    for (ir::Block& block : copy_->blocks) block.ops.shrink_to_fit();
  }

  // Repeats both groupings until nothing changes, since clean-ups after the fusions may enable more
  // fusions.
  Status FuseAndCleanUp() {
    std::set<uint64_t> forms;
    for (int visit = 1; visit <= max_rounds(); ++visit) {
      const int before = changes_;
      HEDDLE_RETURN_IF_ERROR(RunGrouping(PassGrouping::kPostPlacement));
      HEDDLE_RETURN_IF_ERROR(RunGrouping(PassGrouping::kPostRewriteForExec));
      if (changes_ == before) return Status::Ok();
      if (visit > 1 && !forms.insert(ir::Fingerprint(*current_)).second) {
        Warn("passes undo each other's work", visit, "turns of fusions and clean-ups");
        return Status::Ok();
      }
    }
    Warn("the program still changes", max_rounds(), "turns of fusions and clean-ups");
    return Status::Ok();
  }

  Status RunGrouping(PassGrouping grouping) {
    grouping_ = grouping;
    Stage& stage = stages_[static_cast<int>(grouping)];
    if (stage.turns.empty()) return Status::Ok();
    const bool repeats = std::any_of(stage.turns.begin(), stage.turns.end(),
                                     [](const Turn& t) { return t.pass->repeat; });
    if (dump_.enabled()) dump_.BeginGrouping(grouping, *current_);
    std::set<uint64_t> forms;
    bool settled = false;
    const bool again = stage.rounds > 0;
    for (int round = 1; round <= max_rounds() && !settled; ++round) {
      const int before = changes_;
      ++stage.rounds;
      HEDDLE_RETURN_IF_ERROR(RunRound(&stage, round == 1, again));
      settled = changes_ == before || !repeats;
      if (settled || round == 1) continue;
      if (!forms.insert(ir::Fingerprint(*current_)).second) {
        Warn("passes undo each other's work", round, "rounds");
        settled = true;
      }
    }
    if (!settled) Warn("the program still changes", max_rounds(), "rounds");
    return dump_.enabled() ? dump_.EndGrouping(*current_) : Status::Ok();
  }

  // `first`: the first round of this run of the grouping; `again`: the grouping has run before.
  Status RunRound(Stage* stage, bool first, bool again) {
    for (Turn& turn : stage->turns) {
      if (!first && !turn.pass->repeat) continue;
      if (again && turn.pass->once) continue;
      if (turn.seen == changes_) continue;  // nothing changed since its last run
      turn.seen = changes_;
      HEDDLE_RETURN_IF_ERROR(RunPass(*turn.pass, stage->rounds));
    }
    return Status::Ok();
  }

  Status RunPass(const PassDef& pass, int round) {
    MakeCopy();
    const uint64_t fingerprint = options().check_unchanged ? ir::Fingerprint(*copy_) : 0;
    PassReport::Run run{grouping_, pass.name, round, false, 0, CountOps(*copy_), 0};
    if (told_roles_ != changes_) roles_.Before(*copy_);
    told_roles_ = changes_;
    const auto start = Clock::now();
    Result<bool> changed = Guarded(pass);
    run.ms = MsSince(start);
    if (!changed.ok()) return Error(pass, changed.status());
    run.changed = *changed;
    run.ops_after = CountOps(*copy_);
    if (!*changed && (run.ops_after != run.ops_before ||
                      (options().check_unchanged && ir::Fingerprint(*copy_) != fingerprint)))
      return Error(pass, Internal("changed the program, and said that it did not"));
    if (*changed) {
      roles_.After(copy_.get());
      ++changes_;
      if (options().verify) {
        if (!verifier_)
          verifier_ = std::make_unique<Verifier>(declared_.other.empty() ? original_ : AsDeclared(),
                                                 context_.fetched);
        if (Status s = verifier_->Check(*copy_); !s.ok()) return Error(pass, s);
      }
      if (dump_.enabled()) HEDDLE_RETURN_IF_ERROR(dump_.AfterPass(pass.name, *copy_));
    }
    report.runs.push_back(std::move(run));
    return Status::Ok();
  }

  // Updates what the context says about the program.
  void Refresh() {
    if (std::exchange(told_, changes_) == changes_) return;
    context_.uses = FindBlockUses(*copy_);
    context_.lod.reset();
    blocks_ = BlocksThatRun(*copy_);
    present_.clear();
    const OpDef* last = nullptr;
    for (const ir::Block& block : copy_->blocks)
      for (const ir::Op& op : block.ops)
        if (std::exchange(last, op.def) != op.def) present_.insert(op.def);
  }

  // The operators that the program has and that the pass seeks.
  std::unordered_set<const OpDef*> SoughtBy(const PassDef& pass) const {
    std::unordered_set<const OpDef*> sought;
    for (const OpDef* def : present_)
      if (pass.seeks(*def)) sought.insert(def);
    return sought;
  }

  Result<bool> Guarded(const PassDef& pass) {
    LookForInterrupt();
    try {
      Refresh();
      if (pass.run_partitions) return OnPartitions(pass);
      std::unordered_set<const OpDef*> sought;
      if (pass.seeks && (sought = SoughtBy(pass)).empty()) return false;
      return pass.each_block ? EachBlock(pass, sought) : pass.run(*copy_, context_);
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("out of memory");
    } catch (const ContentsError& e) {
      return e.status();
    } catch (const std::exception& e) {
      return Internal(e.what());
    } catch (const Interrupted&) {
      throw;
    } catch (...) {
      return Internal("threw something that is no std::exception");
    }
  }

  // The whole program is the host's.
  Result<bool> OnPartitions(const PassDef& pass) {
    internal::PartitionState state;
    state.Add(PartitionProgram::kHost, "", *copy_, context_);
    state.source = given_;
    state.compile_options = target_.compile_options;
    state.executor_options = target_.executor_options;
    state.level = level_;
    Partitions partitions(state);
    return pass.run_partitions(partitions);
  }

  // `sought`: operators of which a block must have one; empty: any.
  Result<bool> EachBlock(const PassDef& pass, const std::unordered_set<const OpDef*>& sought) {
    constexpr size_t kFewBlocks = 64;  // for which all uses are found again after each change
    // Blocks behind the first 4096 are not optimised: the gain of one more does not show, its time
    // does.
    constexpr size_t kMostBlocks = 4096;
    bool changed = false;
    const size_t count = std::min(blocks_.size(), kMostBlocks);
    for (size_t i = 0; i < count; ++i) {
      LookForInterrupt();
      const int block = blocks_[i];
      const auto& ops = copy_->blocks[static_cast<size_t>(block)].ops;
      if (!sought.empty() && std::none_of(ops.begin(), ops.end(), [&](const ir::Op& op) {
            return sought.contains(op.def);
          }))
        continue;
      context_.block = block;
      HEDDLE_ASSIGN_OR_RETURN(const bool stale, pass.run(*copy_, context_));
      if (stale && count <= kFewBlocks)
        context_.uses = FindBlockUses(*copy_);
      else if (stale)
        AddBlockUses(*copy_, block, &context_.uses);
      changed = changed || stale;
    }
    context_.block = 0;
    return changed;
  }

  std::string Place() const { return Name(grouping_); }
  Status Error(const PassDef& pass, const Status& status) const {
    return Status(status.code(), StrCat(Place(), "/", pass.name, ": ", status.message()));
  }
  void Warn(const char* what, int count, const char* of) {
    report.warnings.push_back(StrCat(Place(), ": ", what, " after ", count, " ", of));
  }
  int max_rounds() const { return std::max(1, options().max_rounds); }

  const std::vector<PassDef> passes_;
  const Pipeline pipeline_;
  const std::shared_ptr<const ir::Program> given_, original_;
  PassContext& context_;
  Declarations declared_;
  const Target& target_;
  const int level_;
  std::shared_ptr<ir::Program> copy_;  // made for the first pass that runs
  const ir::Program* current_;
  PassDump dump_;
  std::unique_ptr<Verifier> verifier_;
  PassGrouping grouping_ = PassGrouping::kPrePlacement;
  Stage stages_[kGroupings];
  int changes_ = 0;
  RoleKeeper roles_;
  int told_roles_ = -1;                       // changes_ when roles_ last looked at the program
  int told_ = -1;                             // changes_ when Refresh() last looked at the program
  std::vector<int> blocks_;                   // those that run
  std::unordered_set<const OpDef*> present_;  // operators of the program
};

}  // namespace

Status ChoosePasses(const OptimizeOptions& options, const Target& target,
                    std::vector<PassDef>* passes, Pipeline* pipeline) {
  for (const CustomPass& custom : options.passes.custom) passes->push_back(FromCustom(custom));
  HEDDLE_RETURN_IF_ERROR(AddCustom(options.passes.custom, pipeline));
  HEDDLE_RETURN_IF_ERROR(CheckPipeline(*pipeline, *passes));
  std::set<std::string> names;
  for (const PassDef& p : *passes) {
    HEDDLE_RETURN_IF_ERROR(CheckFunction(p, *pipeline));
    names.insert(p.name);
  }
  for (const auto* list : {&options.passes.disable, &options.passes.only})
    for (const std::string& name : *list)
      if (names.count(name) == 0) return InvalidArgument("there is no pass '", name, "'");
  std::erase_if(*passes, [&](const PassDef& p) {
    return p.level > options.level || (p.needs == PassNeeds::kHostCaches && !target.host_caches) ||
           (p.needs == PassNeeds::kDeviceKernels && target.host_caches) ||
           (p.targets_only && !target.groups) || Contains(options.passes.disable, p.name) ||
           (!options.passes.only.empty() && !Contains(options.passes.only, p.name));
  });
  return Status::Ok();
}

Result<Optimized> OptimizeWith(std::vector<PassDef> passes, Pipeline pipeline,
                               const std::shared_ptr<const ir::Program>& given,
                               const std::shared_ptr<Scope>& scope, const OptimizeOptions& options,
                               const Target& target) {
  const auto start = Clock::now();
  auto program = given;
  auto folded = std::make_shared<Scope>(scope);
  PassContext context(*scope, *folded, options.passes);
  context.devices = target.devices;
  for (const std::string& name : options.fetches)
    if (ir::VarId v = program->Find(0, name); v != ir::kNoVar) context.fetched.insert(v);
  for (const ir::Port& f : program->fetches)
    if (f.var != ir::kNoVar) context.fetched.insert(f.var);
  for (const std::string& name : options.feeds)
    if (ir::VarId v = program->Find(0, name); v != ir::kNoVar) context.fed.insert(v);
  for (const ir::Port& f : program->feeds)
    if (f.var != ir::kNoVar) context.fed.insert(f.var);
  HEDDLE_ASSIGN_OR_RETURN(program, MakeAliasesExplicit(given, context.fetched));
  HEDDLE_RETURN_IF_ERROR(ChoosePasses(options, target, &passes, &pipeline));
  Driver driver(std::move(passes), std::move(pipeline), given, program, context, target,
                options.level);
  if (const std::string hole = FindHole(*program, context.fed); !hole.empty())
    driver.report.warnings.push_back(StrCat("nothing is optimised: ", hole));
  else
    HEDDLE_RETURN_IF_ERROR(driver.Run());
  // Drops constants that later passes have made unused.
  for (const std::string& name : folded->Names())
    if (driver.result()->Find(0, name) == ir::kNoVar) folded->Erase(name);
  Optimized optimized{
      driver.result(), std::move(folded), context.used(), {}, std::move(driver.report)};
  if (driver.changed()) optimized.claims = driver.claims();
  optimized.report.ms = MsSince(start);
  return optimized;
}

Result<Optimized> Optimize(const std::shared_ptr<const ir::Program>& program,
                           const std::shared_ptr<Scope>& scope, const OptimizeOptions& options,
                           const Target& target) {
  return OptimizeWith(AllPasses(), HeddlePipeline(), program, scope, options, target);
}

}  // namespace heddle::passes
