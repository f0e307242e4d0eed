// RunOptions: control over one run, and RunReport: what happened in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "heddle/value.h"

namespace heddle {

class Generator;

// One instruction's execution. Times in microseconds since the run began. The instructions of a
// block have their events within that of the instruction that runs the block, one per iteration;
// once they are 65,536 in a lane, all further executions of an instruction are one event.
struct TraceEvent {
  std::string op;            // operator type
  std::string output;        // its first output variable
  int block = 0, index = 0;  // position in the optimised program
  int lane = 0;              // or the participant, where tasks come from a queue
  std::string stream;        // of the device, whose clock it is then; empty: the host
  double begin_us = 0, end_us = 0;
  double self_us = 0;  // in it, and in no instruction of a block that it runs
  int64_t times = 1;   // how many executions it stands for
  // A variable that the instruction read or wrote; absent operands are left out. dtype and shape
  // are those of the plan, kUnknown and an unknown shape where it does not know them.
  struct Operand {
    std::string slot;  // of the operator's definition
    DType dtype = DType::kUnknown;
    Shape shape = Shape::Unknown();
  };
  std::vector<Operand> inputs, outputs;
  std::string implementation;  // as in PlanDescription::Instruction
};

// Facts about one run. Times are of the run itself, without finding the plan.
struct RunReport {
  std::string
      dispatch;  // "serial", "lanes", "queue"; "device", "graph" where that was a captured one
  int lanes = 1;
  bool settled = true;  // false while the first runs are used to find out what is fastest
  double run_us = 0;
  // Between lanes: waits that did not find the other lane far enough, lanes let go of for another
  // one, threads put to sleep; time spent waiting awake and asleep, all threads together.
  uint64_t waits = 0, switches = 0, parks = 0;
  double spun_us = 0, parked_us = 0;
  // From the costs the schedule was made with: all instructions, and the longest path through them.
  double work_us = 0, critical_path_us = 0;
  // With RunOptions::trace: in the order of begin_us.
  std::vector<TraceEvent> events;

  // The events in the Trace Event format, for chrome://tracing and ui.perfetto.dev.
  std::string ToChromeTrace() const;
};

// Ownership: what `report`, `generator` and `kept` point to must outlive the run. Threads: stop may
// be requested from any thread; on_stall is called on a thread of the executor's.
struct RunOptions {
  // The run ends with kDeadlineExceeded as soon as the instructions in execution then have ended.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  // Likewise with kCancelled.
  std::stop_token stop = {};
  // When no instruction has ended for so long, on_stall is told which ones are being executed, once
  // for every such period. Zero: nobody looks.
  std::chrono::milliseconds stall_limit{0};
  std::function<void(const std::string&)> on_stall = nullptr;
  RunReport* report = nullptr;
  bool trace = false;  // fill in RunReport::events
  // Operators with seed 0 draw from this generator and advance it; a failed run leaves it
  // unchanged. Null: a generator of the run's own, from CompileOptions::seed and the number of
  // runs before it.
  Generator* generator = nullptr;
  // Every floating-point output is looked through as soon as it is there; at the first NaN or
  // infinity the run ends with kOutOfRange and says which operator made it, in which variable and
  // element. (What operators of a sub-block write is looked at there; what was computed while the
  // plan was made is not.) Later operators, those that update parameters among them, do not run.
  bool check_nan_inf = false;
  // Receives the variables of CompileOptions::keep after a run that succeeded, in that order; one
  // that nothing was written to in this run holds nothing.
  std::vector<std::pair<std::string, Value>>* kept = nullptr;
};

}  // namespace heddle
