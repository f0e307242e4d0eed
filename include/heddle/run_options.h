// RunOptions: options of one run. heddle/run_report.h has its report.
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

// Ownership: the objects that `report`, `generator` and `kept` point to must outlive the run.
// Threads: a stop may be requested from any thread; on_stall is called on a thread of the executor.
struct RunOptions {
  // The run ends with kDeadlineExceeded within some milliseconds after it.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  // When a stop is requested, the run ends with kCancelled in the same way.
  std::stop_token stop = {};
  // Called on the thread that called Run, on request; nullptr: none.
  HostCalls* host = nullptr;
  // If no instruction ends for so long, on_stall is called with those in execution, once per such
  // period. Zero: never.
  std::chrono::milliseconds stall_limit{0};
  std::function<void(const std::string&)> on_stall = nullptr;
  RunReport* report = nullptr;
  bool trace = false;  // fills RunReport::events, spans and memory
  // The generator from which operators with seed 0 draw; a failed run leaves it unchanged. nullptr:
  // one for this run, from CompileOptions::seed and the number of earlier runs.
  Generator* generator = nullptr;
  // Checks every floating-point output as soon as it is written: at the first NaN or infinity the
  // run ends with kOutOfRange, which names the operator, the variable and the element. (Outputs in
  // sub-blocks are checked there; values that were computed when the plan was made are not
  // checked.) Later operators, including those that update parameters, do not run.
  bool check_nan_inf = false;
  // Executes one instruction after another, and waits for each, and checks it for errors, before
  // the next one starts, on devices as well.
  bool wait_after_each = false;
  // Receives the variables of CompileOptions::keep, in that order, after a successful run; one that
  // the run did not write is empty.
  std::vector<std::pair<std::string, Value>>* kept = nullptr;
};

}  // namespace heddle
