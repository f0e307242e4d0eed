// RunPolicy: finds out, from the runs themselves, in which way a graph of steps runs fastest: one
// step after another with kernels on all threads or on one; lanes; a queue.
//
//   kWarmUp ─► kTimeWide ─► kTimeNarrow ─► kPropose ─► kTryVariants ─► kSettled ◄─► kTryWidth
//                                                           ▲              │
//                                                           └──────────────┘  seldom
//
//   1. One run to get warm, then some in which every step is timed while its kernel may use all
//      threads; then some in which kernels keep to one thread.
//   2. With the latter costs lanes are scheduled (propose_ways.h). The caller builds the variants
//      that promise something.
//   3. They and the plain way, variant 0, are run in turns; the fastest stays. Since the machine
//      may have been busy just then, this is repeated after some hundred runs, and after ever more
//      while the choice stays the same, up to half a minute of runs. It is repeated sooner where
//      the times of a trial lay far apart, and where runs take another time than in the trials.
//   4. While the plain way is the choice, short runs of it are tried with kernels on one thread,
//      too: that is faster where what one thread writes and another reads has a long way, between
//      processors that share no cache or on a machine that others use. Where a virtual machine's
//      processors are moved about it changes within seconds, so it is tried when runs have become
//      slower or faster, and now and then besides.
//
// It knows no plans or programs: the caller that runs the steps learns from it, run by run, what to
// do (executor/run_session.h; benchmarks/scheduling/task_graph.h). Results do not depend on the
// way: kernels cut their work alike in all of them.
//
// Threads: Next(true), and Report and Drop for its result, may be called by one run at a time,
// which sees the effects of the run before (RunAdmission lets in one run alone). All else may be
// called from any thread. Ownership: keeps `graph` until it has been called. Once it has settled it
// allocates nothing, later trials included. Errors: an exception of `graph` leaves Report, which
// may then be called again as if the call had not happened.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "scheduler/cost_meter.h"
#include "scheduler/static_graph.h"
#include "scheduler/trials.h"

namespace heddle {

class RunPolicy {
 public:
  struct Subject {
    size_t steps = 0;
    std::function<StaticGraph()> graph = nullptr;  // of the steps; called once
    bool variants = false;                         // steps may run concurrently
    bool parts = false;                            // so may parts of one step
    bool widths = false;                           // kernels may use several threads
  };
  explicit RunPolicy(const Subject& subject);

  struct Turn {
    enum class What : uint8_t { kRun, kWarmUp, kTime, kTryVariant, kTryWidth };
    What what = What::kRun;
    bool narrow = false;  // kernels keep to one thread
    bool judged = false;  // its time is needed: call Report
    int variant = 0;
    CostMeter* meter = nullptr;  // kTime: measures the steps
  };
  // The variant and width of the coming run. `alone`: it has all threads to itself; other runs use
  // variant 0 on one thread and are not measured. `slowed`: an option of this run alone, such as
  // tracing, slows it down, so that its time says nothing about others; it uses the settled way, or
  // variant 0 before one is settled, and no stage counts it.
  Turn Next(bool alone, bool slowed = false);
  // Reports that a run has succeeded in `ns`. True: it has settled the variant.
  bool Report(const Turn& turn, double ns);
  // Reports that a run has failed.
  void Drop(const Turn& turn);

  struct Costs {
    // Per step, in ns: with all threads for its kernel, and with one.
    std::vector<float> wide_ns, narrow_ns;
    double plain_ns = 0;  // the fastest plain run
  };
  // True for one caller, once the costs are known, which it receives. That caller must answer with
  // Candidates: the number of variants 1, 2, … besides the plain one.
  bool WantsCandidates(Costs* costs);
  void Candidates(int count);

  // The variant for other runs; 0 until it is known.
  int settled_variant() const { return std::max(0, settled_.load(std::memory_order_acquire)); }
  bool settled() const { return settled_.load(std::memory_order_acquire) >= 0; }
  // Whether the settled variant was found twice in a row, or is the only one. For the run that is
  // alone.
  bool confirmed() const { return settled() && (variants_ == 1 || in_a_row_ > 1); }

  // Longer runs gain from all threads wherever short ones may not: widths are not tried.
  static constexpr double kLongNs = 2e6;
  static constexpr int64_t kFirstRuns = 8;  // before the first trials of widths

 private:
  enum class Stage : uint8_t {
    kWarmUp,
    kTimeWide,
    kTimeNarrow,
    kPropose,
    kTryVariants,
    kTryWidth,
    kSettled,
  };
  // The state of the candidates, which another thread makes: kWanted asks for them, kMade answers.
  enum class Proposal : uint8_t { kNone, kWanted, kTaken, kMade };
  enum Width : int { kWide, kNarrow, kWidths };

  Turn NextOf(Stage stage);
  Turn NextWidth();
  void BeginTiming(Stage stage);
  void EndTiming();
  bool PathIsShort(const std::vector<float>& cost_ns);
  void OpenVariantTrials(int rounds);
  void Settle(int variant);
  void Expect(double ns);
  bool TimesHaveChanged() const;
  void Judge(double ns);
  void EndWidthTrials();

  // Constant after construction, except that `graph` is dropped once it has been called.
  Subject subject_;

  // Shared by the run that is alone and the others.
  std::atomic<int> settled_{-1};  // the variant to run
  std::atomic<Proposal> proposal_{Proposal::kNone};
  Costs costs_;       // handed over with kWanted
  int variants_ = 1;  // handed over with kMade

  // The following belong to the run that is alone.
  Stage stage_ = Stage::kWarmUp;
  int timed_ = 0;     // runs of the present stage
  int chosen_ = 0;    // by the last trials
  int in_a_row_ = 0;  // number of trials in a row that chose it
  std::unique_ptr<CostMeter> meter_;
  Trials variant_trials_;
  // Settled runs since the last trials. The next trials come after next_trials_ such runs, or after
  // soonest_trials_ if times have changed.
  int64_t settled_runs_ = 0, next_trials_ = std::numeric_limits<int64_t>::max();
  int64_t soonest_trials_ = 0;
  // Trials of widths, counted in plain runs.
  Trials width_trials_;
  bool narrow_ = false;
  int64_t plain_runs_ = 0, next_width_ = kFirstRuns, soonest_width_ = kFirstRuns;
  // The shortest and the longest run, of the timed ones or since the last trials.
  double least_ns_ = std::numeric_limits<double>::infinity(), most_ns_ = 0;
  double expected_ns_ = 0;             // time of a settled run, by the last trials; 0: not known
  int slow_runs_ = 0, fast_runs_ = 0;  // judged runs in a row that took longer, or less
};

}  // namespace heddle
