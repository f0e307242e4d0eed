#include "tools/verbose.h"

#include <glog/logging.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace heddle::tools {
namespace {

std::string TextOf(const std::vector<TraceEvent::Operand>& operands) {
  std::ostringstream text;
  for (const TraceEvent::Operand& o : operands)
    text << (&o == operands.data() ? "" : ", ") << o.slot << " " << Name(o.dtype) << " "
         << o.shape.ToString();
  return text.str();
}

std::string TextOf(const TraceEvent& e) {
  std::ostringstream text;
  text << "block " << e.block << ", " << e.index << ": " << e.op << "(" << TextOf(e.inputs)
       << ") -> " << e.output << " (" << TextOf(e.outputs) << ")";
  if (!e.implementation.empty()) text << ", " << e.implementation;
  if (e.stream.empty())
    text << "; thread " << e.thread;
  else
    text << "; stream " << e.stream;
  text << ", at " << e.begin_us << " us for " << e.end_us - e.begin_us;
  if (e.times > 1) text << ", " << e.times << " times";
  return text.str();
}

}  // namespace

void LogPasses(const PassReport& report) {
  if (!VLOG_IS_ON(1)) return;
  for (const PassReport::Run& run : report.runs)
    if (run.changed)
      VLOG(1) << "pass " << run.name << ", round " << run.round << ": " << run.ops_before << " -> "
              << run.ops_after << " operators, " << run.ms << " ms";
}

void LogPlan(Executor& executor, const CompiledProgram& compiled, const std::vector<Feed>& feeds) {
  if (!VLOG_IS_ON(2)) return;
  const Result<std::string> plan = executor.PlanText(compiled, feeds);
  if (!plan.ok()) return;  // the run says why
  std::istringstream lines(*plan);
  for (std::string line; std::getline(lines, line);) VLOG(2) << line;
}

bool LogsRuns() { return VLOG_IS_ON(3); }

void LogRun(const RunReport& report) {
  std::vector<std::pair<double, std::string>> lines;
  for (const TraceEvent& e : report.events) lines.emplace_back(e.end_us, TextOf(e));
  if (VLOG_IS_ON(4)) {
    for (const TraceSpan& s : report.spans) {
      std::ostringstream text;
      text << s.kind << (s.of.empty() ? "" : " ") << s.of << "; thread " << s.thread << ", at "
           << s.begin_us << " us for " << s.end_us - s.begin_us;
      lines.emplace_back(s.end_us, text.str());
    }
    for (const MemorySample& m : report.memory)
      lines.emplace_back(m.us, std::to_string(m.bytes) + " bytes alive at " + m.place);
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [at, line] : lines) VLOG(3) << line;
}

}  // namespace heddle::tools
