// TuningCache: the measured choices of one compiled program and the file that keeps them:
// implementations of kernels, their times on devices, and ways of running plans.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "core/kernel_tuner.h"
#include "core/services.h"
#include "core/thread_annotations.h"
#include "executor/tune/tuning_file.h"
#include "heddle/executor.h"

namespace heddle {

// Threads: all methods may be called from any thread. Errors: a file that cannot be read or written
// becomes a warning in the report, and choices are made as if there were none.
class TuningCache : public KernelTuner {
 public:
  // `path`: the file; empty: choices live as long as the object. `measure`: choices that the file
  // lacks are measured.
  TuningCache(std::string path, bool measure, std::string environment);

  std::string Kept(const std::string& key) override;
  bool measures() const override { return measure_ && services_.load() != nullptr; }
  int Measure(const std::string& key, const std::vector<std::string>& names,
              FunctionRef<void(int, Services&)> run, std::vector<double>* times = nullptr) override;
  double KeptNs(const std::string& key) override;
  double MeasureNs(const std::string& key, FunctionRef<double()> measure) override;
  // While it lives, measurements of `tuning` use `services`. Only one may exist at a time.
  class Measuring {
   public:
    Measuring(TuningCache& tuning, Services& services) : tuning_(tuning) {
      tuning_.UseServices(&services);
    }
    ~Measuring() { tuning_.UseServices(nullptr); }
    Measuring(const Measuring&) = delete;
    Measuring& operator=(const Measuring&) = delete;

   private:
    TuningCache& tuning_;
  };

  // The fastest known way of a plan with this name; empty: none is known.
  std::string KeptWay(const std::string& plan);
  // Keeps the way, and writes it into the file if choices are measured.
  void KeepWay(const std::string& plan, const std::string& way, double ns);

  // Writes choices measured since the last call into the file, and keeps those that other processes
  // have written.
  void Save();
  TuningReport report() const;

 private:
  void UseServices(Services* services) {
    MutexLock lock(mutex_);
    services_ = services;
  }
  TunedChoices Read() HEDDLE_REQUIRES(mutex_);  // the file's present contents

  const std::string path_, environment_;
  const bool measure_;
  std::atomic<Services*> services_{nullptr};
  mutable Mutex mutex_;
  TunedChoices choices_ HEDDLE_GUARDED_BY(mutex_), unsaved_ HEDDLE_GUARDED_BY(mutex_);
  TuningReport report_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle
