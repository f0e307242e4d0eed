// RunOptions: control over one run. What happened in it is in heddle/run_report.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "heddle/limits.h"
#include "heddle/run_report.h"
#include "heddle/value.h"

namespace heddle {

class Generator;

// Ownership: what `report`, `generator` and `kept` point to must outlive the run. Threads: stop may
// be requested from any thread; on_stall is called on a thread of the executor's.
struct RunOptions {
  // The run ends with kDeadlineExceeded some milliseconds after it, wherever it is.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  // Once a stop is requested, the run ends with kCancelled, as it does after the deadline.
  std::stop_token stop = {};
  // Called in between on the thread that called Run, when somebody asks for it; nullptr: none.
  HostCalls* host = nullptr;
  // When no instruction has ended for so long, on_stall is told which ones are being executed, once
  // for every such period. Zero: nobody looks.
  std::chrono::milliseconds stall_limit{0};
  std::function<void(const std::string&)> on_stall = nullptr;
  RunReport* report = nullptr;
  bool trace = false;  // fill in RunReport::events, spans and memory
  // Operators with seed 0 draw from this generator and advance it; a failed run leaves it
  // unchanged. Null: a generator of the run's own, from CompileOptions::seed and the number of
  // runs before it.
  Generator* generator = nullptr;
  // Every floating-point output is looked through as soon as it is there; at the first NaN or
  // infinity the run ends with kOutOfRange and says which operator made it, in which variable and
  // element. (What operators of a sub-block write is looked at there; what was computed while the
  // plan was made is not.) Later operators, those that update parameters among them, do not run.
  bool check_nan_inf = false;
  // One instruction after another, each of which is waited for, and checked for an error, before
  // the next one starts, those of devices as well.
  bool wait_after_each = false;
  // Receives the variables of CompileOptions::keep after a run that succeeded, in that order; one
  // that nothing was written to in this run holds nothing.
  std::vector<std::pair<std::string, Value>>* kept = nullptr;
};

}  // namespace heddle
