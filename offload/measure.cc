#include "offload/measure.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>

#include "core/error.h"
#include "core/interrupts.h"
#include "heddle/model_files.h"

namespace heddle::offload {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLeastRuns = 5, kMostRuns = 200;
constexpr double kMsEach = 100;  // spent on one thing that is measured
// The whole has to take less than this share of its time without engines: nearer ones may be noise.
constexpr double kWorth = 0.98;
// What takes less than this share of another time is told to be faster.
constexpr double kFaster = 0.9;

double MsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::string MsText(double ms) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", ms);
  return text;
}

// Whether, and why, the work that trial runs are part of is to end. They have no limits of their
// own.
std::function<Status()> StoppedFn() {
  Interrupts* const mine = Interrupts::Current();
  if (mine == nullptr) return nullptr;
  return [mine] { return mine->Look(); };
}
bool HasLimits() { return Interrupts::Current() != nullptr; }
Status LookAtLimits() {
  const Interrupts* const mine = Interrupts::Current();
  return mine == nullptr ? Status::Ok() : mine->Look();
}

// The first operator that a trial run must not execute besides the real ones; empty: none.
std::string WhyNoTrial(const ir::Program& program) {
  for (const ir::Block& block : program.blocks)
    for (const ir::Op& op : block.ops)
      if ((op.def->traits() & (kSideEffect | kReader | kCommunication)) != 0)
        return StrCat("nothing is measured: ", op.type(), " has effects beside its results");
  return "";
}

// What the program writes is copied, everything else shared.
std::shared_ptr<Scope> TrialScope(const Model& model) {
  if (WrittenPersistables(model.program).empty()) return model.scope;
  auto scope = std::make_shared<Scope>();
  for (const std::string& name : model.scope->Names())  // of passes
    if (const Value* value = model.scope->Find(name)) scope->Set(name, *value);
  for (const TensorInfo& info : model.program.persistables())
    if (const Value* value = model.scope->Find(info.name)) scope->Set(info.name, *value);
  for (const TensorInfo& info : WrittenPersistables(model.program))
    if (const Value* value = model.scope->Find(info.name); value != nullptr && value->is_tensor())
      scope->Set(info.name, value->tensor().Clone());
  return scope;
}

// A program that is run again and again.
class Trial {
 public:
  static Result<Trial> Make(const Program& program, std::shared_ptr<Scope> scope,
                            const OffloadOptions& options) {
    Trial trial;
    trial.executor_ = std::make_unique<Executor>(options.executor);
    HEDDLE_ASSIGN_OR_RETURN(trial.compiled_,
                            trial.executor_->Compile(program, std::move(scope), options.compile));
    trial.feeds_ = &options.feeds;
    return trial;
  }
  Result<double> RunMs() {
    const auto begin = Clock::now();
    if (const auto stopped = StoppedFn()) {
      RunWithin within(stopped);
      HEDDLE_RETURN_IF_ERROR(executor_->RunValues(*compiled_, *feeds_, within.options()).status());
    } else {
      HEDDLE_RETURN_IF_ERROR(executor_->RunValues(*compiled_, *feeds_).status());
    }
    return MsSince(begin);
  }
  // Several runs; those after the first few are warm.
  Status Warm() {
    const auto begin = Clock::now();
    for (int run = 0; run < kMostRuns && (run < kLeastRuns || MsSince(begin) < kMsEach); ++run)
      HEDDLE_RETURN_IF_ERROR(RunMs().status());
    return Status::Ok();
  }

 private:
  std::unique_ptr<Executor> executor_;
  std::optional<CompiledProgram> compiled_;
  const std::vector<Feed>* feeds_ = nullptr;
};

Result<double> HostMs(const Candidate& c, const std::vector<Value>& inputs,
                      const OffloadOptions& options) {
  CompileOptions compile = options.compile;
  compile.fetches.clear();
  compile.keep.clear();
  compile.max_shapes.clear();
  compile.follow = nullptr;
  // Without engines heddle computes what the group was before passes.
  const Group& group = c.group->plain != nullptr ? *c.group->plain : *c.group;
  HostGroup host(group, HostGroup::Inputs::kAsDeclared, options.executor, compile);
  double best = -1;
  const auto all = Clock::now();
  for (int run = 0; run < kMostRuns && (run < kLeastRuns || MsSince(all) < kMsEach); ++run) {
    const auto begin = Clock::now();
    HEDDLE_RETURN_IF_ERROR(host.Run(inputs, StoppedFn()).status());
    const double ms = MsSince(begin);
    if (best < 0 || ms < best) best = ms;
  }
  return best;
}

class Measuring {
 public:
  Measuring(const Model& model, const Split& split, const OffloadOptions& options,
            OffloadReport* report)
      : model_(model), split_(split), options_(options), report_(report) {}

  // Runs everything on the engines, and leaves out whose engine fails.
  Status RunOnEngines(std::vector<Candidate>* candidates) {
    while (!candidates->empty()) {
      std::vector<std::shared_ptr<const GroupOp>> ops;
      recorders_.clear();
      for (const Candidate& c : *candidates) {
        recorders_.push_back(std::make_shared<Recorder>());
        ops.push_back(std::make_shared<GroupOp>(
            c.group, c.module,
            GroupOp::Options{.recorder = recorders_.back(), .may_leave = HasLimits()}));
      }
      HEDDLE_ASSIGN_OR_RETURN(const Program joined, split_.Join(ops));
      HEDDLE_ASSIGN_OR_RETURN(Trial trial, Trial::Make(joined, TrialScope(model_), options_));
      const Status status = trial.Warm();
      HEDDLE_RETURN_IF_ERROR(LookAtLimits());
      if (status.ok() || !IsOfGroup(status)) return status;
      DropFailed(status, candidates);
    }
    return Status::Ok();
  }

  Status CompareEach(std::vector<Candidate>* candidates) {
    std::vector<Candidate> faster;
    for (size_t k = 0; k < candidates->size(); ++k) {
      Candidate& c = (*candidates)[k];
      OffloadedGroup& report = *c.report;
      if (!recorders_[k]->called()) {
        report.reason = "no run came to it";
        continue;
      }
      report.engine_ms = recorders_[k]->best_ms();
      HEDDLE_ASSIGN_OR_RETURN(report.host_ms, HostMs(c, recorders_[k]->inputs(), options_));
      if (report.engine_ms < report.host_ms)
        faster.push_back(c);
      else
        report.reason =
            report.host_ms < kFaster * report.engine_ms ? "heddle is faster" : "heddle is as fast";
    }
    *candidates = std::move(faster);
    return Status::Ok();
  }

  // Again without the groups whose engines fail only now.
  Status CompareWhole(std::vector<Candidate>* candidates) {
    while (!candidates->empty()) {
      const Status status = Compare(candidates);
      HEDDLE_RETURN_IF_ERROR(LookAtLimits());
      if (status.ok() || !IsOfGroup(status)) return status;
      DropFailed(status, candidates);
    }
    report_->decision = "no group is taken: their engines failed while the whole was measured";
    return Status::Ok();
  }

 private:
  static bool IsOfGroup(const Status& status) {
    return status.location() && status.location()->op_type == GroupOp::kName;
  }

  // Both in turn, so that what else the machine does meets both.
  Status Compare(std::vector<Candidate>* candidates) {
    std::vector<std::shared_ptr<const GroupOp>> ops;
    for (const Candidate& c : *candidates)
      ops.push_back(std::make_shared<GroupOp>(
          c.group, c.module,
          GroupOp::Options{.cost_ns = c.report->engine_ms * 1e6, .may_leave = HasLimits()}));
    HEDDLE_ASSIGN_OR_RETURN(const Program joined, split_.Join(ops));
    HEDDLE_ASSIGN_OR_RETURN(Trial with, Trial::Make(joined, TrialScope(model_), options_));
    HEDDLE_ASSIGN_OR_RETURN(Trial alone, Trial::Make(model_.program, TrialScope(model_), options_));
    HEDDLE_RETURN_IF_ERROR(with.Warm());
    HEDDLE_RETURN_IF_ERROR(alone.Warm());
    std::vector<double> with_ms, alone_ms;
    const auto begin = Clock::now();
    for (int run = 0; run < kMostRuns && (run < 2 * kLeastRuns || MsSince(begin) < 4 * kMsEach);
         ++run) {
      HEDDLE_ASSIGN_OR_RETURN(const double one, alone.RunMs());
      HEDDLE_ASSIGN_OR_RETURN(const double other, with.RunMs());
      alone_ms.push_back(one);
      with_ms.push_back(other);
    }
    const auto median = [](std::vector<double>& ms) {
      std::nth_element(ms.begin(), ms.begin() + static_cast<long>(ms.size() / 2), ms.end());
      return ms[ms.size() / 2];
    };
    report_->alone_ms = median(alone_ms);
    report_->offloaded_ms = median(with_ms);
    const std::string times = StrCat(MsText(report_->offloaded_ms), " with engines, ",
                                     MsText(report_->alone_ms), " without");
    if (report_->offloaded_ms < kWorth * report_->alone_ms) {
      report_->decision = "the engines' groups are taken: " + times;
      return Status::Ok();
    }
    report_->decision = "no group is taken, since the whole is no faster: " + times;
    for (Candidate& c : *candidates) c.report->reason = "the whole is no faster with it";
    candidates->clear();
    return Status::Ok();
  }

  // Leaves out the group that the error is about; all of them where its place does not tell.
  static void DropFailed(const Status& status, std::vector<Candidate>* candidates) {
    const auto failed = [&](const Candidate& c) {
      const ir::Program& group = *c.group->program;
      return c.group->block == status.location()->block &&
             group.vars[group.fetches[0].var].name == status.location()->output;
    };
    const bool found = std::any_of(candidates->begin(), candidates->end(), failed);
    std::erase_if(*candidates, [&](const Candidate& c) {
      if (found && !failed(c)) return false;
      c.report->reason = status.message();
      return true;
    });
  }

  const Model& model_;
  const Split& split_;
  const OffloadOptions& options_;
  OffloadReport* const report_;
  std::vector<std::shared_ptr<Recorder>> recorders_;
};

}  // namespace

Result<std::vector<Candidate>> TakeFaster(const Model& model, const Split& split,
                                          const OffloadOptions& options,
                                          std::vector<Candidate> candidates,
                                          OffloadReport* report) {
  if (std::string why = WhyNoTrial(model.program.ir()); !why.empty()) {
    report->decision = why;
    for (const Candidate& c : candidates) c.report->reason = why;
    return std::vector<Candidate>();
  }
  Measuring measuring(model, split, options, report);
  HEDDLE_RETURN_IF_ERROR(measuring.RunOnEngines(&candidates));
  HEDDLE_RETURN_IF_ERROR(measuring.CompareEach(&candidates));
  if (candidates.empty())
    report->decision = "no group is taken: none is faster on its engine";
  else
    HEDDLE_RETURN_IF_ERROR(measuring.CompareWhole(&candidates));
  return candidates;
}

}  // namespace heddle::offload
