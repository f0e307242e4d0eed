// TraceStory: turns the raw trace of a run into events, spans and samples on request.
//
// Ownership: keeps the plan alive. Threads: any; each list is made once.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/run/run_trace.h"
#include "heddle/run_report.h"

namespace heddle::internal {

class TraceStory {
 public:
  // `threads`: the number of threads among which the run's instructions were shared out. `places`:
  // the names of the host and the executor's devices.
  TraceStory(std::unique_ptr<RunTrace> trace, std::shared_ptr<const Plan> plan, int threads,
             std::vector<std::string> places)
      : trace_(std::move(trace)),
        plan_(std::move(plan)),
        threads_(threads),
        places_(std::move(places)) {}

  const std::vector<TraceEvent>& events();
  const std::vector<TraceSpan>& spans();
  const std::vector<MemorySample>& memory();
  double Us(uint64_t ticks) const;
  double UsOfNs(uint64_t ns) const;

 private:
  std::vector<TraceEvent> TellEvents() const;
  std::vector<TraceSpan> TellSpans() const;
  void TellIdleStreams(std::vector<TraceSpan>* spans) const;

  const std::unique_ptr<RunTrace> trace_;
  const std::shared_ptr<const Plan> plan_;
  const int threads_;
  const std::vector<std::string> places_;
  std::once_flag events_made_, spans_made_, memory_made_;
  std::vector<TraceEvent> events_;
  std::vector<TraceSpan> spans_;
  std::vector<MemorySample> memory_;
};

// The bytes alive in the course of a traced run, place by place: see MemorySample.
std::vector<MemorySample> MemoryLine(const Plan& plan, const RunTrace& trace,
                                     const TraceStory& clock,
                                     const std::vector<std::string>& places);

}  // namespace heddle::internal
