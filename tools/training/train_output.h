// Results of a training job besides parameters and fetched values: metrics, lines on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "heddle/params.h"
#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle::tools {

// One value of a step as a number where it is one.
struct Metric {
  std::string name;
  std::string text;  // as many digits as the dtype holds; empty when it is no single number
};
std::vector<Metric> MetricsOf(const std::vector<std::string>& names,
                              const std::vector<Value>& values);

// A line per step in a CSV file or, for names that end with .jsonl, a JSON object per line.
class MetricsFile {
 public:
  MetricsFile() = default;
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  // Keeps what an earlier process wrote about the first `steps` steps, and drops the rest.
  Status Open(const std::string& path, const std::vector<std::string>& names, int64_t steps);
  // `step` counts from 1.
  void Add(int64_t step, int64_t epoch, double seconds, const std::vector<Metric>& metrics);
  Status Flush();

 private:
  std::string path_;
  bool json_ = false;
  std::FILE* file_ = nullptr;
};

// The progress of training: a bar on a terminal, a line from time to time elsewhere.
class TrainProgress {
 public:
  // `every`: steps between lines; 0 = about ten lines in all. `first`: steps done before.
  TrainProgress(bool quiet, int64_t first, int64_t steps, int64_t steps_per_epoch, int64_t every);
  ~TrainProgress();
  TrainProgress(const TrainProgress&) = delete;
  TrainProgress& operator=(const TrainProgress&) = delete;
  void Step(int64_t done, const std::vector<Metric>& metrics);
  // A line of its own.
  void Say(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  std::string Text(int64_t done, const std::vector<Metric>& metrics, Clock::time_point now) const;
  void DrawBar(int64_t done, const std::vector<Metric>& metrics, Clock::time_point now);

  const bool quiet_, terminal_;
  const int64_t first_, steps_, steps_per_epoch_, every_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_{};
  bool bar_ = false;  // stands on the terminal
};

}  // namespace heddle::tools
