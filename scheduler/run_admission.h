// RunAdmission: which runs are under way, so that together they use no more threads than there are,
// and which thread makes them.
//
// A run that finds nobody inside goes alone and may use every thread. While others are inside, each
// run keeps to one thread, and at most as many are inside as there are threads: two runs with a
// thread each are sooner done than one after the other with both, if only a little. Who comes too
// many waits, first come first served. With one thread there is nothing to share out: callers bring
// threads of their own, and nobody waits unless told how many may be inside.
//
// When several callers wait, threads of its own execute their runs one after another while the
// callers sleep; only a pointer to the run moves. If each caller were woken for its own run,
// threads with cold caches would push each other from processor to processor.
//
// Threads: Run from any thread. What was done in a run is visible to those that are let in after
// it.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/function_ref.h"
#include "core/thread_annotations.h"
#include "core/threads/at_fork.h"

namespace heddle {

class RunAdmission {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `at_once`: how many may be inside; 1 = each with all threads; 0 = as many as there are threads,
  // and with one thread any number.
  explicit RunAdmission(int threads, int at_once = 0);
  // Nobody may be inside, or wait.
  ~RunAdmission();
  RunAdmission(const RunAdmission&) = delete;
  RunAdmission& operator=(const RunAdmission&) = delete;

  // Makes the run once it is let in, on this thread or on another, then returns true. False:
  // `until` or a stop came first. `run` is told how many threads it may use: all of them, or 1; it
  // must not throw.
  bool Run(FunctionRef<void(int threads)> run, const std::optional<Time>& until = std::nullopt,
           const std::stop_token& stop = {});

 private:
  struct Server;
  // In a list, on the stack of the caller. Once `state` says that it has ended or is the caller's,
  // it may be gone.
  struct Waiter {
    explicit Waiter(FunctionRef<void(int)> r) : run(r) {}
    enum State : uint32_t { kWaiting, kCallers, kEnded, kStopped };
    std::atomic<uint32_t> state{kWaiting};
    FunctionRef<void(int)> run;
    Server* server = nullptr;  // that is to make it
    Waiter* next = nullptr;
  };
  // A thread that makes runs of others. It sleeps while nobody waits.
  struct Server {
    std::atomic<uint32_t> called{0};
    Waiter* job = nullptr;  // nullptr, and called: end
    bool idle = true;
    std::thread thread;
  };
  int Enter(Waiter* me);
  bool Remove(Waiter* waiter);
  Waiter* Leave(int threads, Server* server);
  void Serve(Server* server);
  bool HasRoom() const HEDDLE_REQUIRES(mutex_) { return taken_ == 0 || taken_ + share_ <= places_; }
  // Lets in the first of those who wait; returns how many.
  int Admit(Server* server) HEDDLE_REQUIRES(mutex_);
  Server* IdleServer() HEDDLE_REQUIRES(mutex_);
  static void Call(Waiter* first, int count);
  void ForgetThreads();

  const int threads_;
  const int places_;  // threads that runs beside each other have together; 0: nobody waits
  const int share_;   // of these, a run that meets others has
  Mutex mutex_;
  int taken_ HEDDLE_GUARDED_BY(mutex_) = 0;  // threads
  Waiter* first_ HEDDLE_GUARDED_BY(mutex_) = nullptr;
  Waiter* last_ HEDDLE_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::unique_ptr<Server>> servers_ HEDDLE_GUARDED_BY(mutex_);
  cpu_set_t processors_;  // for these: those of the thread that made this object, not of a caller
  const AtFork at_fork_{mutex_, [this] { ForgetThreads(); }};
};

}  // namespace heddle
