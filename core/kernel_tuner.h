// Chooses the fastest of several implementations by measuring them on this machine. A kernel that
// has several asks for the one that was kept, and has them measured when there is none. Without a
// tuner it makes its usual choice. What was chosen and why is noted in a log.
//
// Ownership: whoever makes a PackCache gives the tuner to it, which keeps it, and the log. Threads:
// all methods may be called from any thread; measurements wait for each other.
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
  // The name of the way that is kept for `key`, which says operator, attributes, shapes and dtypes;
  // empty when none is.
  virtual std::string Kept(const std::string& key) = 0;
  // Whether keys that have no kept choice are to be measured. Only while a plan is built.
  virtual bool measures() const = 0;
  // The fastest of the ways called `names`, which is kept from now on; a later one has to be
  // clearly faster than the first. run(i, services) computes once by way i, as a kernel with these
  // services. `ns`: receives the times, by name.
  virtual int Measure(const std::string& key, const std::vector<std::string>& names,
                      FunctionRef<void(int, Services&)> run, std::vector<double>* ns) = 0;
  // The time in ns that is kept for `key`; 0: none is.
  virtual double KeptNs(const std::string& /*key*/) { return 0; }
  // Calls `measure`, keeps the time in ns that it returns, and returns it. 0 is not kept: the time
  // could not be measured.
  virtual double MeasureNs(const std::string& /*key*/, FunctionRef<double()> /*measure*/) {
    return 0;
  }
};

// The tuner of the plans that share these packs; nullptr: nothing is tuned.
inline KernelTuner* TunerOf(PackCache& packs, std::shared_ptr<KernelTuner> tuner = nullptr) {
  using Held = std::shared_ptr<KernelTuner>;
  return packs.Get<Held>(Tensor(), "kernel_tuner", [&] { return new Held(std::move(tuner)); })
      ->get();
}

// Why kernels compute as they do. Whoever prepares an operator opens its entry before and takes it
// afterwards; what is noted for operators without one is dropped.
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

// The log of the plans that share these packs. Operators are known by the address of their BoundOp.
inline ChoiceLog& LogOf(PackCache& packs) {
  using Held = std::unique_ptr<ChoiceLog>;
  return **packs.Get<Held>(Tensor(), "choice_log", [] { return new Held(new ChoiceLog); });
}

}  // namespace heddle
