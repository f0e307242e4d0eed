#include "executor/device/dispatch_crew.h"

#include <system_error>

namespace heddle {

DispatchCrew::~DispatchCrew() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& t : threads_) t.join();
}

bool DispatchCrew::Claim(const FunctionRef<void(size_t)>* job) {
  {
    MutexLock lock(mutex_);
    if (taken_) return false;
    taken_ = true;
  }
  // If the system provides too few threads, those that exist wait for the next job.
  bool all = true;
  try {
    threads_.reserve(size_);
    while (threads_.size() < size_) threads_.emplace_back([this, k = threads_.size()] { Work(k); });
  } catch (const std::exception&) {
    all = false;
  }
  MutexLock lock(mutex_);
  taken_ = all;
  if (!all) return false;
  job_ = job;
  busy_ = size_;
  ++jobs_;
  changed_.NotifyAll();
  return true;
}

bool DispatchCrew::Run(FunctionRef<void(size_t)> job, FunctionRef<void()> meanwhile) {
  if (!Claim(&job)) return false;
  meanwhile();
  MutexLock lock(mutex_);
  while (busy_ > 0) changed_.Wait(mutex_);
  taken_ = false;
  return true;
}

void DispatchCrew::Work(size_t k) {
  uint64_t done = 0;
  MutexLock lock(mutex_);
  for (;;) {
    while (!stop_ && jobs_ == done) changed_.Wait(mutex_);
    if (jobs_ == done) return;
    done = jobs_;
    const auto* job = job_;
    {
      MutexUnlock meanwhile(mutex_);
      (*job)(k);
    }
    if (--busy_ == 0) changed_.NotifyAll();
  }
}

}  // namespace heddle
