// RunGate: how many runs are under way, so that together they use no more threads than there are.
//
// A run that finds nobody inside goes alone and may use every thread. While others are inside, each
// run keeps to one thread, and at most as many are inside as there are threads; who comes too many
// waits, first come first served. With one thread there is nothing to share out: callers bring
// threads of their own, and nobody waits.
//
// Threads: Enter and Leave from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>

namespace heddle {

class RunGate {
 public:
  explicit RunGate(int threads) : threads_(threads) {}

  // Threads this run may use: all of them, or 1; 0 when `until` came first.
  int Enter(const std::optional<std::chrono::steady_clock::time_point>& until = std::nullopt) {
    if (threads_ == 1) return 1;
    std::unique_lock lock(mutex_);
    if (inside_ == 0 && waiting_.empty()) return inside_ = threads_;
    if (inside_ < threads_ && waiting_.empty()) {
      ++inside_;
      return 1;
    }
    const auto me = waiting_.emplace(waiting_.end());
    const auto admitted = [&] { return me->admitted; };
    if (!until)
      me->turn.wait(lock, admitted);
    else if (!me->turn.wait_until(lock, *until, admitted)) {
      waiting_.erase(me);
      return 0;
    }
    waiting_.erase(me);
    return 1;
  }
  void Leave(int threads) {
    if (threads_ == 1) return;
    std::lock_guard lock(mutex_);
    inside_ -= threads;
    for (Waiter& w : waiting_) {
      if (inside_ == threads_) break;
      if (w.admitted) continue;
      w.admitted = true;
      ++inside_;
      w.turn.notify_one();
    }
  }

  // What Enter has given, handed back at the end of a scope.
  class Pass {
   public:
    Pass(RunGate& gate, int threads) : gate_(gate), threads_(threads) {}
    ~Pass() {
      if (threads_ > 0) gate_.Leave(threads_);
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    int threads() const { return threads_; }

   private:
    RunGate& gate_;
    const int threads_;
  };

 private:
  struct Waiter {
    std::condition_variable turn;
    bool admitted = false;
  };
  const int threads_;
  std::mutex mutex_;
  int inside_ = 0;  // threads taken
  std::list<Waiter> waiting_;
};

}  // namespace heddle
