#include "python/src/interrupt.h"

#include <nanobind/nanobind.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <thread>

#include "core/thread_annotations.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;

constexpr auto kLook = std::chrono::milliseconds(30);
constexpr int kIdleLooks = 30;  // without a run, after which the watcher sleeps

volatile sig_atomic_t signalled = 0;
struct sigaction python_action;  // set before Handler can be called

void Handler(int number, siginfo_t* info, void* context) {
  signalled = 1;
  if (python_action.sa_flags & SA_SIGINFO) {
    python_action.sa_sigaction(number, info, context);
  } else {
    python_action.sa_handler(number);
  }
}

// There is one: signals belong to the process.
class SignalWatcher {
 public:
  void set_main() { main_ = pthread_self(); }
  bool on_main() const { return known_ && pthread_equal(main_, pthread_self()) != 0; }
  void known() { known_ = true; }

  // Of the main thread only.
  std::stop_token Begin() {
    if (stop_.stop_requested()) stop_ = std::stop_source();
    run_.store(++count_, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst)) Wake();
    return stop_.get_token();
  }
  void End() {
    run_.store(0, std::memory_order_seq_cst);
    if (!touched_.load(std::memory_order_acquire)) return;
    MutexLock lock(mutex_);
    touched_.store(false, std::memory_order_relaxed);
    if (!installed_) return;
    struct sigaction now;
    // Somebody may have set another one meanwhile.
    if (sigaction(SIGINT, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
        now.sa_sigaction == Handler)
      sigaction(SIGINT, &python_action, nullptr);
    installed_ = false;
  }
  bool stopped() const { return stop_.stop_requested(); }
  // A child process has no watcher and nothing to end.
  void AfterFork() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {  // it has one thread
    new (&mutex_) Mutex;  // the thread that may have held it is not here
    new (&wake_) CondVar;
    run_ = 0;
    touched_ = false;
    installed_ = started_ = false;
    asleep_ = true;
  }

 private:
  void Wake() {
    MutexLock lock(mutex_);
    if (!started_) {
      started_ = true;
      asleep_ = false;
      std::thread([this] { Loop(); }).detach();
    }
    wake_.NotifyOne();
  }

  [[noreturn]] void Loop() {
    uint64_t last = 0;
    int idle = 0;
    while (true) {
      MutexLock lock(mutex_);
      if (idle > kIdleLooks) {
        asleep_.store(true, std::memory_order_seq_cst);
        while (run_.load(std::memory_order_seq_cst) == 0) wake_.Wait(mutex_);
        asleep_.store(false, std::memory_order_seq_cst);
        idle = 0;
      }
      lock.Unlock();
      std::this_thread::sleep_for(kLook);
      const uint64_t run = run_.load(std::memory_order_seq_cst);
      idle = run == 0 ? idle + 1 : 0;
      if (run != 0 && run == last) Watch(run);
      last = run;
    }
  }

  // A run that has lasted for a look, until it ends.
  void Watch(uint64_t run) {
    if (!PythonsOwn()) return;
    {
      MutexLock lock(mutex_);
      if (run_.load(std::memory_order_seq_cst) != run) return;
      if (!installed_) {
        signalled = 0;
        struct sigaction mine = python_action;
        mine.sa_flags |= SA_SIGINFO;
        mine.sa_sigaction = Handler;
        installed_ = sigaction(SIGINT, &mine, nullptr) == 0;
        touched_.store(true, std::memory_order_seq_cst);
      }
    }
    while (run_.load(std::memory_order_seq_cst) == run) {
      if (signalled != 0) {
        MutexLock lock(mutex_);
        if (run_.load(std::memory_order_seq_cst) == run) stop_.request_stop();
        return;
      }
      std::this_thread::sleep_for(kLook);
    }
  }

  // Whether SIGINT means KeyboardInterrupt, by a handler of Python's own, which is kept.
  bool PythonsOwn() {
    struct sigaction now;
    if (sigaction(SIGINT, nullptr, &now) != 0) return false;
    const bool detailed = (now.sa_flags & SA_SIGINFO) != 0;
    if (detailed ? now.sa_sigaction == Handler
                 : now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)
      return false;
    {
      MutexLock lock(mutex_);
      if (installed_) return false;
      python_action = now;
    }
    nb::gil_scoped_acquire gil;
    try {
      const nb::module_ signal = nb::module_::import_("signal");
      return signal.attr("getsignal")(SIGINT).is(signal.attr("default_int_handler"));
    } catch (const std::exception&) {
      return false;
    }
  }

  pthread_t main_{};
  bool known_ = false;
  std::stop_source stop_;
  uint64_t count_ = 0;
  std::atomic<uint64_t> run_{0};  // the number of the run under way; 0: none
  std::atomic<bool> asleep_{true};
  std::atomic<bool> touched_{false};  // there may be something to put back
  Mutex mutex_;
  CondVar wake_;
  bool started_ HEDDLE_GUARDED_BY(mutex_) = false;
  bool installed_ HEDDLE_GUARDED_BY(mutex_) = false;
};

// Never destroyed: its thread may outlive main.
SignalWatcher& TheWatcher() {
  static auto* watcher = new SignalWatcher();
  return *watcher;
}

}  // namespace

void InitInterrupts() {
  const nb::module_ threading = nb::module_::import_("threading");
  if (!threading.attr("current_thread")().is(threading.attr("main_thread")())) return;
  TheWatcher().set_main();
  TheWatcher().known();
  pthread_atfork(nullptr, nullptr, [] { TheWatcher().AfterFork(); });
}

InterruptScope::InterruptScope() {
  if (!TheWatcher().on_main()) return;
  watched_ = true;
  token_ = TheWatcher().Begin();
}

InterruptScope::~InterruptScope() {
  if (watched_) TheWatcher().End();
}

bool InterruptScope::interrupted() const { return watched_ && token_.stop_requested(); }

}  // namespace heddle::python
