#include "scheduler/team.h"

#include <algorithm>

namespace heddle {

bool Team::Run(FunctionRef<void(int)> job, int participants) {
  // Acquire here and release at the end: the slot passes from owner to owner.
  if (busy_.load(std::memory_order_relaxed) || busy_.exchange(true, std::memory_order_acquire))
    return false;
  const int helpers = std::min(participants - 1, helpers_);
  if (dismissed_.load(std::memory_order_relaxed))
    dismissed_.store(false, std::memory_order_relaxed);
  if (helpers > 0) slot_.Open(job, helpers);
  // A thread that is about to leave is still counted; this job then gets less help.
  for (int here = called_.load(std::memory_order_relaxed); here < helpers; ++here) {
    called_.fetch_add(1, std::memory_order_relaxed);
    call_();
  }
  job(0);
  slot_.Withdraw();
  slot_.AwaitHelpers();
  busy_.store(false, std::memory_order_release);
  return true;
}

void Team::Serve() {
  Spin spin(kStayNs);
  do {
    if (slot_.offers()) {
      if (const int ticket = slot_.Enter()) slot_.Call(ticket);
      slot_.Leave();
      spin = Spin(kStayNs);
    }
  } while (!dismissed_.load(std::memory_order_relaxed) && spin.Once());
  Decline();
}

}  // namespace heddle
