// Passes of POST_PARTITIONING over programs that a caller has split.
#include <algorithm>
#include <chrono>
#include <exception>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/memory/contents_error.h"
#include "core/op_registry.h"
#include "core/own_ops/own_op_def.h"
#include "passes/facts/declarations.h"
#include "passes/ir_text.h"
#include "passes/nested_blocks.h"
#include "passes/partitions/partitions.h"
#include "passes/pass_manager.h"
#include "passes/verifier.h"

namespace heddle::passes {
namespace {

using Clock = std::chrono::steady_clock;
using ir::kNoVar;
using ir::VarId;

std::string NameOf(const PartProgram& part) {
  return part.symbol.empty() ? StrCat("the program of ", part.target)
                             : StrCat(part.symbol, " of ", part.target);
}

// Variables that operators write.
std::vector<bool> WrittenIn(const ir::Program& program) {
  std::vector<bool> written(program.vars.size(), false);
  for (const ir::Block& block : program.blocks)
    for (const ir::Op& op : block.ops)
      for (const auto& slot : op.outputs)
        for (const VarId v : slot)
          if (v != kNoVar) written[v] = true;
  return written;
}

// A program with what its passes work on.
class Part {
 public:
  Part(PartProgram& given, const PassOptions& options)
      : given_(given),
        folded_(std::make_shared<Scope>(given.scope)),
        context_(*given.scope, *folded_, options) {
    context_.partitioned = true;
    for (const ir::Port& port : given.program->fetches)
      if (port.var != kNoVar) context_.fetched.insert(port.var);
    for (const std::string& name : given.keep)
      if (const VarId v = given.program->Find(0, name); v != kNoVar) context_.fetched.insert(v);
    for (const ir::Port& port : given.program->feeds)
      if (port.var != kNoVar) context_.fed.insert(port.var);
  }

  PartProgram& given() { return given_; }
  // Why nothing is to be changed; empty: it may be.
  std::string Hole() const { return FindHole(*given_.program, context_.fed); }

  void Begin(internal::PartitionState* state) {
    const Declarations declared =
        InferDeclarations(*given_.program, {}, /*repeats=*/true, context_);
    auto original = std::make_shared<ir::Program>(*given_.program);
    declared.Declare(original.get());
    copy_ = std::make_shared<ir::Program>(*original);
    original_ = std::move(original);
    form_ = ir::Fingerprint(*copy_);
    state->Add(given_.target, given_.symbol, *copy_, context_, given_.costs);
  }

  // What passes are told of it as it is now.
  void Refresh() {
    context_.uses = FindBlockUses(*copy_);
    context_.lod.reset();
  }

  // Whether it has changed since the last call; an error where it must not have that way.
  Result<bool> Look(bool verify) {
    const uint64_t form = ir::Fingerprint(*copy_);
    if (form == form_) return false;
    form_ = form;
    changed_ = true;
    if (verify) {
      if (!verifier_) verifier_ = std::make_unique<Verifier>(original_, context_.fetched);
      HEDDLE_RETURN_IF_ERROR(verifier_->Check(*copy_));
    }
    HEDDLE_RETURN_IF_ERROR(CheckInterface());
    return true;
  }

  int ops() const {
    size_t n = 0;
    for (const ir::Block& block : copy_->blocks) n += block.ops.size();
    return static_cast<int>(n);
  }

  void Give() {
    if (!changed_) return;
    for (const std::string& name : folded_->Names())
      if (copy_->Find(0, name) == kNoVar) folded_->Erase(name);
    given_.program = copy_;
    if (!folded_->Names().empty()) given_.scope = folded_;
    given_.changed = true;
    given_.form = form_;
  }

 private:
  // A group gives back what it wrote before and leaves its feeds alone; the host calls the groups
  // as before.
  Status CheckInterface() const {
    const bool group = given_.target != PartitionProgram::kHost;
    if (group) {
      const std::vector<bool> before = WrittenIn(*original_), now = WrittenIn(*copy_);
      for (const ir::Port& port : original_->feeds)
        if (now[port.var] && !before[port.var])
          return InvalidArgument("writes its feed '", copy_->vars[port.var].name, "'");
      return Status::Ok();
    }
    const auto calls = [](const ir::Program& program) {
      std::map<const OpDef*, std::vector<const ir::Op*>> found;
      for (const ir::Block& block : program.blocks)
        for (const ir::Op& op : block.ops)
          if (FindOp(op.type()) != op.def && OwnOpDef::From(*op.def) == nullptr)
            found[op.def].push_back(&op);
      return found;
    };
    const auto before = calls(*original_), now = calls(*copy_);
    for (const auto& [def, was] : before) {
      const std::string symbol = std::get<std::string>(was[0]->attrs[0]);
      const auto is = now.find(def);
      const size_t count = is == now.end() ? 0 : is->second.size();
      if (count != was.size())
        return InvalidArgument("calls ", symbol, " ", count, " times, expected ", was.size());
      for (size_t k = 0; k < was[0]->inputs.size(); ++k)
        if (is->second[0]->inputs[k].size() != was[0]->inputs[k].size())
          return InvalidArgument("gives ", symbol, " ", is->second[0]->inputs[k].size(),
                                 " inputs, expected ", was[0]->inputs[k].size());
      for (size_t k = 0; k < was[0]->outputs.size(); ++k)
        if (is->second[0]->outputs[k].size() != was[0]->outputs[k].size())
          return InvalidArgument("takes ", is->second[0]->outputs[k].size(), " outputs of ", symbol,
                                 ", expected ", was[0]->outputs[k].size());
    }
    return Status::Ok();
  }

  PartProgram& given_;
  const std::shared_ptr<Scope> folded_;
  PassContext context_;
  std::shared_ptr<const ir::Program> original_;  // as operators declare it
  std::shared_ptr<ir::Program> copy_;
  std::unique_ptr<Verifier> verifier_;
  uint64_t form_ = 0;
  bool changed_ = false;
};

class Runner {
 public:
  Runner(const PassOptions& options, int level, PartitionSet& set) : options_(options) {
    for (PartProgram& program : set.programs) {
      Part& part = parts_.emplace_back(program, options);
      if (std::string hole = part.Hole(); !hole.empty()) {
        report_.warnings.push_back(
            StrCat("POST_PARTITIONING: ", NameOf(program), " is not optimised: ", hole));
        parts_.pop_back();
        // The host's program is what passes can rely on being there.
        if (program.target == PartitionProgram::kHost) return;
        continue;
      }
      part.Begin(&state_);
    }
    for (const std::string& target : set.targets) state_.targets.push_back({target, true});
    state_.source = set.source;
    state_.compile_options = set.compile_options;
    state_.executor_options = set.executor_options;
    state_.level = level;
  }

  Status Run(const std::vector<const PassDef*>& passes) {
    if (parts_.empty()) return Status::Ok();
    const bool repeats =
        std::any_of(passes.begin(), passes.end(), [](const PassDef* pass) { return pass->repeat; });
    const int most = repeats ? std::max(1, options_.max_rounds) : 1;
    bool changed = true;
    for (int round = 1; round <= most && changed; ++round) {
      changed = false;
      for (const PassDef* pass : passes) {
        if (round > 1 && !pass->repeat) continue;
        HEDDLE_ASSIGN_OR_RETURN(const bool did, RunPass(*pass, round));
        changed = changed || did;
      }
    }
    if (repeats && changed)
      report_.warnings.push_back(
          StrCat("POST_PARTITIONING: the programs still change after ", most, " rounds"));
    for (Part& part : parts_) part.Give();
    return Status::Ok();
  }

  PassReport report() { return std::move(report_); }

 private:
  static Status Error(const PassDef& pass, const std::string& where, const Status& status) {
    return Status(status.code(),
                  StrCat("POST_PARTITIONING/", pass.name, ": ", where, status.message()));
  }

  Result<bool> RunPass(const PassDef& pass, int round) {
    LookForInterrupt();
    PassReport::Run run{PassGrouping::kPostPartitioning, pass.name, round, false, 0, ops(), 0};
    const auto start = Clock::now();
    const Result<bool> said = Guarded(pass);
    run.ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (!said.ok()) return Error(pass, "", said.status());
    bool changed = false;
    for (Part& part : parts_) {
      const Result<bool> looked = part.Look(options_.verify);
      if (!looked.ok()) return Error(pass, NameOf(part.given()) + ": ", looked.status());
      changed = changed || *looked;
    }
    if (changed && !*said)
      return Error(pass, "", Internal("changed the program, and said that it did not"));
    run.changed = changed;
    run.ops_after = ops();
    report_.runs.push_back(std::move(run));
    return changed;
  }

  Result<bool> Guarded(const PassDef& pass) {
    try {
      for (Part& part : parts_) part.Refresh();
      Partitions partitions(state_);
      return pass.run_partitions(partitions);
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

  int ops() const {
    int n = 0;
    for (const Part& part : parts_) n += part.ops();
    return n;
  }

  const PassOptions& options_;
  internal::PartitionState state_;
  std::deque<Part> parts_;
  PassReport report_;
};

}  // namespace

Result<PassReport> RunOnPartitions(const PassOptions& options, int level, PartitionSet* set) {
  std::vector<PassDef> passes = AllPasses();
  Pipeline pipeline = HeddlePipeline();
  HEDDLE_RETURN_IF_ERROR(
      ChoosePasses({.level = level, .passes = options}, {.groups = true}, &passes, &pipeline));
  std::vector<const PassDef*> chosen;
  for (const std::string& name : pipeline[static_cast<int>(PassGrouping::kPostPartitioning)])
    for (const PassDef& pass : passes)
      if (pass.name == name && pass.run_partitions) chosen.push_back(&pass);
  if (chosen.empty()) return PassReport();
  const auto start = Clock::now();
  Runner runner(options, level, *set);
  HEDDLE_RETURN_IF_ERROR(runner.Run(chosen));
  PassReport report = runner.report();
  report.ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return report;
}

}  // namespace heddle::passes
