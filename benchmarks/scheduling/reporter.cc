#include "benchmarks/scheduling/reporter.h"

#include <iostream>
#include <map>
#include <utility>

namespace heddle::bench {

Reporter::Reporter(const std::string& json_path)
    : json_wanted_(!json_path.empty()), console_(benchmark::ConsoleReporter::OO_Tabular) {
  if (json_wanted_) file_.open(json_path);
  console_.SetOutputStream(&std::cout);
  console_.SetErrorStream(&std::cerr);
  json_.SetOutputStream(&file_);
  json_.SetErrorStream(&std::cerr);
}

Reporter::~Reporter() {
  if (begun_ && json_wanted_) json_.Finalize();
}

bool Reporter::ReportContext(const Context& context) {
  if (begun_) return true;
  begun_ = true;
  Context wide = context;
  wide.name_field_width = 60;
  return console_.ReportContext(wide) && (!json_wanted_ || json_.ReportContext(wide));
}

void Reporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> shown;
  for (Run run : runs) {
    if (run.aggregate_name != "median" && run.repetitions > 1 && !run.error_occurred) continue;
    // The table has room for the two that tell most.
    std::erase_if(run.counters, [](const auto& counter) {
      return counter.first != "ns_per_task" && counter.first != "efficiency";
    });
    shown.push_back(std::move(run));
  }
  if (!shown.empty()) console_.ReportRuns(shown);
  if (json_wanted_) json_.ReportRuns(runs);
}

}  // namespace heddle::bench
