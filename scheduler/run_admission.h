// RunAdmission: decides which runs are under way, so that together they use no more threads than
// there are, and which thread makes them.
//
// A run that finds nobody inside goes alone and may use every thread. While others are inside, each
// run keeps to one thread, and at most as many runs are inside as there are threads: two runs with
// a thread each are done a little sooner than one after the other with both. Further runs wait,
// first come first served. With one thread there is nothing to share out: callers bring threads of
// their own, and nobody waits unless `at_once` bounds how many may be inside.
//
// When several callers wait, threads of the admission (servers) execute their runs one after
// another while the callers sleep; only a pointer to the run moves. If each caller were woken for
// its own run, threads with cold caches would push each other from processor to processor.
//
// Threads: Run may be called from any thread. What was done in a run is visible to those that are
// let in after it.
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

  // `at_once`: how many runs may be inside. 1: one, with all threads. 0: as many as there are
  // threads, and with one thread any number.
  explicit RunAdmission(int threads, int at_once = 0);
  // No run may be inside or waiting.
  ~RunAdmission();
  RunAdmission(const RunAdmission&) = delete;
  RunAdmission& operator=(const RunAdmission&) = delete;

  // Makes the run once it is let in, on this thread or on a server, then returns true. False:
  // `until` or a stop came first. `run` gets the number of threads that it may use: all of them, or
  // 1. It must not throw.
  bool Run(FunctionRef<void(int threads)> run, const std::optional<Time>& until = std::nullopt,
           const std::stop_token& stop = {});

 private:
  struct Server;
  // A waiting run, in a list, on the stack of its caller. It may be destroyed as soon as `state`
  // says that the run has ended or is the caller's.
  struct Waiter {
    explicit Waiter(FunctionRef<void(int)> r) : run(r) {}
    enum State : uint32_t { kWaiting, kCallers, kEnded, kStopped };
    std::atomic<uint32_t> state{kWaiting};
    FunctionRef<void(int)> run;
    Server* server = nullptr;  // that makes it
    Waiter* next = nullptr;
  };
  // A thread that makes runs for callers. It sleeps while none waits.
  struct Server {
    std::atomic<uint32_t> called{0};
    Waiter* job = nullptr;  // nullptr when called: the thread is to end
    bool idle = true;
    std::thread thread;
  };
  int Enter(Waiter* me);
  bool Remove(Waiter* waiter);
  Waiter* Leave(int threads, Server* server);
  void Serve(Server* server);
  bool HasRoom() const HEDDLE_REQUIRES(mutex_) { return taken_ == 0 || taken_ + share_ <= places_; }
  // Admits waiting runs as far as there are threads; returns their number.
  int Admit(Server* server) HEDDLE_REQUIRES(mutex_);
  Server* IdleServer() HEDDLE_REQUIRES(mutex_);
  static void Call(Waiter* first, int count);
  void ForgetThreads();

  const int threads_;
  const int places_;  // threads that concurrent runs have together; 0: no limit
  const int share_;   // of these, what one of several runs gets
  Mutex mutex_;
  int taken_ HEDDLE_GUARDED_BY(mutex_) = 0;  // threads in use
  Waiter* first_ HEDDLE_GUARDED_BY(mutex_) = nullptr;
  Waiter* last_ HEDDLE_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::unique_ptr<Server>> servers_ HEDDLE_GUARDED_BY(mutex_);
  cpu_set_t processors_;  // affinity of the servers: that of the thread that made this object
  const AtFork at_fork_{mutex_, [this] { ForgetThreads(); }};
};

}  // namespace heddle
