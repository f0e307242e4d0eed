// PlanTuner: finds out, from the first runs of a plan, how it runs fastest.
//
//   1. One run to get warm, then some in which every instruction is timed while its kernel may use
//      all threads; then some in which kernels keep to one thread.
//   2. With the latter costs lanes are scheduled. Where the prediction promises something, plans
//   with
//      these lanes (and, for long instructions, one with a queue) are built.
//   3. They and the plain plan are run in turns; the fastest stays. Since the machine may have been
//      busy just then, this is repeated after some hundred runs, and after ever more while the
//      choice stays the same; never so often that trying takes more than a fiftieth of the time.
//
// Measured are only runs that have the executor's threads to themselves. Results do not depend on
// which plan runs: kernels cut their work the same way in all of them.
//
// Threads: all methods may be called from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "executor/plan/plan.h"
#include "scheduler/cost_meter.h"
#include "scheduler/trials.h"

namespace heddle {

class PlanTuner {
 public:
  // `base`: variant 0.
  PlanTuner(const Plan& base, bool enabled);

  struct Turn {
    enum class What { kRun, kWarmUp, kTimeWide, kTimeNarrow, kTry };
    What what = What::kRun;
    int variant = 0;
    CostMeter* meter = nullptr;  // kTime…
  };
  // What the coming run is to do; `alone`: it has the executor's threads to itself.
  Turn Next(bool alone);
  // A run that was a measurement has succeeded in `ns`. True when with it the way to run is found.
  bool Report(const Turn& turn, double ns);
  // A run that was a measurement has failed.
  void Drop(const Turn& turn);

  struct Costs {
    // Per instruction, with all threads for its kernel and with one.
    std::vector<float> wide_ns, narrow_ns;
    double plain_ns = 0;  // the fastest plain run
  };
  // Once after the costs are known, to one caller: true, and the costs. The caller answers with
  // Candidates, the plans of variants 1, 2, ….
  bool WantsCandidates(Costs* costs);
  void Candidates(int count);
  // The variant that runs from now on; 0 while that is not known yet.
  int settled_variant() const { return std::max(0, settled_.load(std::memory_order_acquire)); }
  bool settled() const { return settled_.load(std::memory_order_acquire) >= 0; }

 private:
  enum class Stage { kWarmUp, kWide, kNarrow, kProposing, kTrying };
  void EndWide();
  void OpenTrials(int rounds);
  void Settle(int variant);

  const Plan& base_;
  std::atomic<int> settled_{-1};  // the variant to run
  std::mutex mutex_;
  Stage stage_ = Stage::kWarmUp;
  bool asked_ = false;
  int runs_ = 0;  // of the present stage
  int variants_ = 1;
  int chosen_ = 0;                                      // by the last trials
  std::atomic<int64_t> settled_runs_{0}, next_trials_;  // alone, since the last trials
  std::unique_ptr<CostMeter> meter_;
  std::unique_ptr<Trials> trials_;
  Costs costs_;
};

// With lanes, the instructions that have the threads to themselves anyway, and gain from them.
// `mixed` becomes the costs of such a plan.
std::vector<bool> FindWide(const LaneSchedule& lanes, const PlanTuner::Costs& costs,
                           double hand_over, std::vector<float>* mixed);

}  // namespace heddle
