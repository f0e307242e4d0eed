// One report out of many runs of the benchmark library.
#pragma once

#include <benchmark/benchmark.h>

#include <fstream>
#include <string>
#include <vector>

namespace heddle::bench {

// Shows the medians on the console and writes everything to a JSON file. The library is run once
// for each group of benchmarks; here their results become one table and one file.
class Reporter final : public benchmark::BenchmarkReporter {
 public:
  // `json_path` may be empty: no file.
  explicit Reporter(const std::string& json_path);

  // Ends the file.
  ~Reporter() override;

  bool ok() const { return !json_wanted_ || file_.good(); }

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;

 private:
  const bool json_wanted_;
  std::ofstream file_;
  benchmark::ConsoleReporter console_;
  benchmark::JSONReporter json_;
  bool begun_ = false;
};

}  // namespace heddle::bench
