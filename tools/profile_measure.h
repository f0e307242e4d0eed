// Measures the time of every instruction, over many runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/engine.h"
#include "heddle/heddle.h"
#include "heddle/host_peak.h"
#include "tools/options.h"

namespace heddle::tools {

// One instruction over all runs.
struct ProfileLine {
  TraceEvent event;   // of the first run
  int64_t times = 0;  // executions in a run: of a block that a loop runs, one per iteration
  std::vector<double> each_us;          // per run: all executions, without the blocks that they run
  double us = 0, flops = 0, bytes = 0;  // of all executions in a run
  int step = -1;  // its place in Profile::plan.instructions; -1: it is not there
  double gflops() const { return us > 0 ? flops / us * 1e-3 : 0; }
  double gbs() const { return us > 0 ? bytes / us * 1e-3 : 0; }
};

struct EngineChoice;

struct Profile {
  int threads = 0, lanes = 1, runs = 0;
  std::string dispatch;
  double run_us = 0;                      // median, with the clock read around each instruction
  double kernels_us = 0;                  // all instructions together
  double outside = 0;                     // share of the lanes' time in no kernel
  std::map<std::string, double> streams;  // of a device: median of the time they are busy, us
  HostPeak peak;
  std::vector<ProfileLine> lines;  // longest first
  RunReport sample;                // one run of about the median length, with its events
  PlanStats stats;
  PlanDescription plan;
  MemoryReport memory;
  std::vector<PlaceMemory> memory_use;  // after all runs
  OffloadReport engines;

  double Share(double us) const { return kernels_us > 0 ? us / kernels_us : 0; }
  // Fraction of the peak: of arithmetic for operators that compute, of copy bandwidth for the
  // others.
  double PeakShare(double us, double flops, double bytes) const;
};

// Lines added up by operator, longest first.
struct OperatorSum {
  std::string op;
  int count = 0;
  int64_t times = 0;
  double us = 0, flops = 0, bytes = 0;
};
std::vector<OperatorSum> ByOperator(const Profile& profile);

// "[1, 3, 8, 8] [4, 3, 3, 3]"
std::string ShapesText(const std::vector<TraceEvent::Operand>& list);

// Runs for `seconds`, after the runs in which the executor finds out what is fastest.
Result<Profile> MeasureProfile(const ModelOptions& model, const FeedOptions& feeds,
                               const EngineChoice& engines, double seconds);

}  // namespace heddle::tools
