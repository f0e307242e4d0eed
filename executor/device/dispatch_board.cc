#include "executor/device/dispatch_board.h"

#include <utility>

namespace heddle {

// Threads are woken only for barriers and for events that another thread waits for: a device's own
// thread knows its events.
void DispatchBoard::Done(size_t i) {
  const DeviceStep& step = plan_.steps[i];
  const bool barrier = plan_.is_barrier[i];
  if (step.record != DeviceStep::kNone)
    recorded_[step.record].store(true, std::memory_order_release);
  if (barrier) barriers_.fetch_add(1, std::memory_order_release);
  if (barrier || (step.record != DeviceStep::kNone && plan_.crosses[step.record])) TellAll();
}

void DispatchBoard::Fail(DeviceTasks::Error error) {
  {
    MutexLock lock(mutex_);
    if (error_.status.ok()) error_ = std::move(error);
  }
  over_.store(true, std::memory_order_release);
  TellAll();
}

DeviceTasks::Error DispatchBoard::error() {
  MutexLock lock(mutex_);
  return error_;
}

void DispatchBoard::Await(uint64_t seen) {
  while (news() == seen) {
    const uint32_t key = changed_.PrepareWait();
    if (news() != seen) return changed_.CancelWait();
    changed_.Wait(key);
  }
}

void DispatchBoard::Tell() {
  news_.fetch_add(1, std::memory_order_seq_cst);
  changed_.Notify();
}

void DispatchBoard::TellAll() {
  Tell();
  if (on_news_ != nullptr) (*on_news_)();
}

}  // namespace heddle
