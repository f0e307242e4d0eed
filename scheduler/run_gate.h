// RunGate: how many runs are under way, so that together they use no more threads than there are.
//
// A run that finds nobody inside goes alone and may use every thread. While others are inside, each
// run keeps to one thread, and at most as many are inside as there are threads; who comes too many
// waits, first come first served. With one thread there is nothing to share out: callers bring
// threads of their own, and nobody waits unless told how many may be inside.
//
// Threads: Enter and Leave from any thread. What was done before a Leave is visible to whom it admits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace heddle {

class RunGate {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `at_once` counts with one thread: how many may be inside; 0 = any number.
  explicit RunGate(int threads, int at_once = 0)
      : threads_(threads), places_(threads > 1 ? threads : at_once) {}

  // Threads this run may use: all of them, or 1; 0 when `until` came first.
  int Enter(const std::optional<Time>& until = std::nullopt);
  void Leave(int threads);

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
  // In a list, on the stack of the thread that waits. Once `admitted` is set it may be gone.
  struct Waiter {
    std::atomic<uint32_t> admitted{0};
    Waiter* next = nullptr;
  };
  bool Remove(Waiter* waiter);

  const int threads_;
  const int places_;  // 0: nobody waits
  std::mutex mutex_;
  int inside_ = 0;  // threads taken
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

}  // namespace heddle
