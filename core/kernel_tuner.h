// KernelTuner: chooses the fastest of several implementations by measuring them on this machine. A
// kernel with several implementations asks for the one that was kept, and has them measured if
// there is none. Without a tuner it makes its usual choice. Choices and their reasons are noted in
// a log.
//
// Ownership: the maker of a PackCache gives the tuner to it, which keeps the tuner and the log.
// Threads: all methods may be called from any thread; measurements wait for each other.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/function_ref.h"
#include "core/services.h"
#include "core/thread_annotations.h"
#include "heddle/implementation_choice.h"

namespace heddle {

class KernelTuner {
 public:
  virtual ~KernelTuner() = default;
  // The name of the implementation kept for `key`, which states operator, attributes, shapes and
  // dtypes; empty: none is kept.
  virtual std::string Kept(const std::string& key) = 0;
  // Whether keys without a kept choice are to be measured. True only while a plan is made.
  virtual bool measures() const = 0;
  // Measures the implementations called `names`, keeps and returns the fastest; a later one must be
  // clearly faster than the first. run(i, services) computes once with implementation i, as a
  // kernel with these services. `ns` receives the times, by name.
  virtual int Measure(const std::string& key, const std::vector<std::string>& names,
                      FunctionRef<void(int, Services&)> run, std::vector<double>* ns) = 0;
  // The time in ns kept for `key`; 0: none is kept.
  virtual double KeptNs(const std::string& /*key*/) { return 0; }
  // Calls `measure`, keeps the time in ns that it returns, and returns it. 0, which means that
  // nothing could be measured, is not kept.
  virtual double MeasureNs(const std::string& /*key*/, FunctionRef<double()> /*measure*/) {
    return 0;
  }
};

// The tuner of the plans that share `packs`; nullptr: nothing is tuned.
inline KernelTuner* TunerOf(PackCache& packs, std::shared_ptr<KernelTuner> tuner = nullptr) {
  using Held = std::shared_ptr<KernelTuner>;
  return packs.Get<Held>(Tensor(), "kernel_tuner", [&] { return new Held(std::move(tuner)); })
      ->get();
}

// ChoiceLog: the reasons for choices of implementations. The code that prepares an operator opens
// its entry before and takes it afterwards; notes for operators without an open entry are dropped.
class ChoiceLog {
 public:
  void Open(const void* op) {
    MutexLock lock(mutex_);
    choices_[op].clear();
  }
  std::vector<ImplementationChoice> Take(const void* op) {
    MutexLock lock(mutex_);
    auto entry = choices_.extract(op);
    return entry.empty() ? std::vector<ImplementationChoice>() : std::move(entry.mapped());
  }
  void Note(const void* op, ImplementationChoice choice) {
    MutexLock lock(mutex_);
    if (const auto at = choices_.find(op); at != choices_.end())
      at->second.push_back(std::move(choice));
  }

 private:
  Mutex mutex_;
  std::unordered_map<const void*, std::vector<ImplementationChoice>> choices_
      HEDDLE_GUARDED_BY(mutex_);
};

// The log of the plans that share `packs`. An operator is identified by the address of its BoundOp.
inline ChoiceLog& LogOf(PackCache& packs) {
  using Held = std::unique_ptr<ChoiceLog>;
  return **packs.Get<Held>(Tensor(), "choice_log", [] { return new Held(new ChoiceLog); });
}

}  // namespace heddle
