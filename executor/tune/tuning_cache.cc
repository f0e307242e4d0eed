#include "executor/tune/tuning_cache.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"

namespace heddle {
namespace {

constexpr int kWarmUps = 5, kRuns = 100, kFewestRuns = 7;
// The most time spent on measuring one choice; long kernels are measured less often, since they are
// disturbed less.
constexpr double kMostNs = 500e6;
// The margin by which another choice must be faster than the usual one.
constexpr double kMargin = 0.03;
constexpr char kPlan[] = "plan ";  // prefix of the keys of plans

double RunNs(FunctionRef<void(int)> run, int i) {
  const auto start = std::chrono::steady_clock::now();
  run(i);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double>& ns) {
  const auto middle = ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2);
  std::nth_element(ns.begin(), middle, ns.end());
  return *middle;
}

// The median times of several choices. They are run in turns, so that a disturbance affects all of
// them.
std::vector<double> Time(size_t ways, FunctionRef<void(int)> run) {
  double round = 0;
  int warm_ups = 0;
  do {
    round = 0;
    for (size_t i = 0; i < ways; ++i) round += RunNs(run, static_cast<int>(i));
  } while (++warm_ups < kWarmUps && round * kFewestRuns < kMostNs);
  const int runs = std::clamp(static_cast<int>(kMostNs / round), kFewestRuns, kRuns);
  std::vector<std::vector<double>> ns(ways);
  for (int k = 0; k < runs; ++k)
    for (size_t i = 0; i < ways; ++i) ns[i].push_back(RunNs(run, static_cast<int>(i)));
  std::vector<double> medians;
  for (auto& times : ns) medians.push_back(Median(times));
  return medians;
}

}  // namespace

TuningCache::TuningCache(std::string path, bool measure, std::string environment)
    : path_(std::move(path)), environment_(std::move(environment)), measure_(measure) {
  choices_ = Read();
}

TunedChoices TuningCache::Read() {
  std::error_code ignored;
  if (path_.empty() || !std::filesystem::exists(path_, ignored)) return {};
  auto text = ReadFile(path_);
  Status status = text.status();
  if (text.ok()) {
    auto choices = ReadTunedChoices(*text);
    if (choices.ok()) return *std::move(choices);
    status = choices.status();
  }
  report_.warnings.push_back(StrCat("tuning file ", path_, " is not used: ", status.message()));
  return {};
}

std::string TuningCache::Kept(const std::string& key) {
  MutexLock lock(mutex_);
  const auto found = choices_.find({environment_, key});
  if (found == choices_.end()) return "";
  ++report_.kept;
  return found->second.name;
}

int TuningCache::Measure(const std::string& key, const std::vector<std::string>& names,
                         FunctionRef<void(int, Services&)> run, std::vector<double>* times) {
  MutexLock lock(mutex_);
  Services* const services = services_;
  if (services == nullptr) return 0;  // the plan has been made
  const std::vector<double> ns = Time(names.size(), [&](int i) { run(i, *services); });
  if (times != nullptr) *times = ns;
  const auto best = std::min_element(ns.begin(), ns.end());
  const int choice = *best < (1 - kMargin) * ns[0] ? static_cast<int>(best - ns.begin()) : 0;
  const auto at = static_cast<size_t>(choice);
  unsaved_[{environment_, key}] = choices_[{environment_, key}] = {names[at], ns[at] * 1e-3};
  ++report_.measured;
  report_.changed += choice != 0;
  return choice;
}

double TuningCache::KeptNs(const std::string& key) {
  MutexLock lock(mutex_);
  const auto found = choices_.find({environment_, key});
  if (found == choices_.end()) return 0;
  ++report_.kept;
  return found->second.us * 1e3;
}

double TuningCache::MeasureNs(const std::string& key, FunctionRef<double()> measure) {
  MutexLock lock(mutex_);
  if (services_ == nullptr) return 0;  // the plan has been made
  const double ns = measure();
  if (ns <= 0) return 0;
  unsaved_[{environment_, key}] = choices_[{environment_, key}] = {"time", ns * 1e-3};
  ++report_.measured;
  return ns;
}

std::string TuningCache::KeptWay(const std::string& plan) {
  MutexLock lock(mutex_);
  const auto found = choices_.find({environment_, kPlan + plan});
  return found == choices_.end() ? "" : found->second.name;
}

void TuningCache::KeepWay(const std::string& plan, const std::string& way, double ns) {
  if (!measure_) return;
  {
    MutexLock lock(mutex_);
    TunedChoice& choice = choices_[{environment_, kPlan + plan}];
    if (choice.name == way) return;
    choice = {way, ns * 1e-3};
    unsaved_[{environment_, kPlan + plan}] = choice;
  }
  Save();
}

void TuningCache::Save() {
  MutexLock lock(mutex_);
  if (path_.empty() || unsaved_.empty()) return;
  TunedChoices all = Read();
  for (const auto& [where, choice] : unsaved_) all[where] = choice;
  const Status status = ReplaceFile(path_, WriteTunedChoices(all));
  if (!status.ok())
    report_.warnings.push_back(
        StrCat("tuning file ", path_, " is not written: ", status.message()));
  unsaved_.clear();
}

TuningReport TuningCache::report() const {
  MutexLock lock(mutex_);
  return report_;
}

}  // namespace heddle
