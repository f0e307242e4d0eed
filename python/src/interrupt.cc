#include "python/src/interrupt.h"

#include <nanobind/nanobind.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/thread_annotations.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;

constexpr auto kLook = std::chrono::milliseconds(10);
constexpr int kIdleLooks = 90;  // without a run, after which the watcher sleeps

constexpr int kSignals = 65;  // numbers below it

volatile sig_atomic_t interrupted = 0;  // by SIGINT
volatile sig_atomic_t signalled = 0;    // by any signal

// Somebody who puts a handler during a run (faulthandler, a library in C) keeps ours as the one to
// call next, and goes on calling it when the run is over. If that same handler then called what a
// later run found, which is theirs, the two would call each other for ever. So a handler that is
// still called by somebody keeps what it calls, and later runs put another one of these.
constexpr int kHandlers = 4;
// What each calls next, by signal; set before the handler can be called for it.
struct sigaction next_actions[kHandlers][kSignals];

void Handle(const struct sigaction& next, int number, siginfo_t* info, void* context) {
  signalled = 1;
  if (number == SIGINT) interrupted = 1;
  if (next.sa_flags & SA_SIGINFO) {
    next.sa_sigaction(number, info, context);
  } else if (next.sa_handler != SIG_DFL && next.sa_handler != SIG_IGN) {
    next.sa_handler(number);
  }
}

template <int kWhich>
void Handler(int number, siginfo_t* info, void* context) {
  Handle(next_actions[kWhich][number], number, info, context);
}

using SigAction = void (*)(int, siginfo_t*, void*);
constexpr SigAction kOurs[kHandlers] = {Handler<0>, Handler<1>, Handler<2>, Handler<3>};

// Which of ours it is; -1: none.
int OursIn(const struct sigaction& action) {
  if ((action.sa_flags & SA_SIGINFO) == 0) return -1;
  const auto at = std::find(std::begin(kOurs), std::end(kOurs), action.sa_sigaction);
  return at == std::end(kOurs) ? -1 : static_cast<int>(at - std::begin(kOurs));
}

bool IsSame(const struct sigaction& a, const struct sigaction& b) {
  const int kind = SA_SIGINFO;
  if ((a.sa_flags & kind) != (b.sa_flags & kind)) return false;
  return (a.sa_flags & kind) != 0 ? a.sa_sigaction == b.sa_sigaction : a.sa_handler == b.sa_handler;
}

// A stack for the signal handlers of the calling thread, for good, unless it has one.
void GiveSignalStack() {
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  stack_t own{};
  own.ss_size = 256 << 10;  // of which a frame with all registers takes some 11 KB
  own.ss_sp = std::malloc(own.ss_size);
  if (own.ss_sp != nullptr && sigaltstack(&own, nullptr) != 0) std::free(own.ss_sp);
}

// There is one: signals belong to the process.
class SignalWatcher {
 public:
  void set_main() { main_ = pthread_self(); }
  bool on_main() const { return known_ && pthread_equal(main_, pthread_self()) != 0; }
  void known() { known_ = true; }

  // Of the main thread only.
  std::stop_token Begin() {
    static const bool has_stack = (GiveSignalStack(), true);  // of the main thread
    (void)has_stack;
    if (stop_.stop_requested()) stop_ = std::stop_source();
    raised_.reset();
    run_.store(++count_, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst)) Wake();
    return stop_.get_token();
  }
  void End() {
    run_.store(0, std::memory_order_seq_cst);
    if (!touched_.load(std::memory_order_acquire)) return;
    MutexLock lock(mutex_);
    touched_.store(false, std::memory_order_relaxed);
    TakeAway();
  }
  bool watches() const { return run_.load(std::memory_order_relaxed) != 0; }
  HostCalls& host() { return host_; }
  // Gives away the error that a handler raised in one of the host's calls.
  std::optional<nb::python_error> TakeRaised() { return std::exchange(raised_, std::nullopt); }
  // A child process has no watcher and nothing to end.
  void AfterFork() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {  // it has one thread
    main_ = pthread_self();
    new (&mutex_) Mutex;  // the thread that may have held it is not here
    new (&wake_) CondVar;
    run_ = 0;
    touched_ = false;
    wanted_ = false;
    started_ = false;
    TakeAway();  // sigaction may be called here
    new (&host_) HostCalls([this] { return LookForSignals(); });
    asleep_ = true;
  }

 private:
  // Where ours is on top. Another one that somebody has put there meanwhile may call ours.
  void TakeAway() HEDDLE_REQUIRES(mutex_) {
    for (int number = 1; number < kSignals; ++number) {
      Put& put = put_[number];
      if (!put.there) continue;
      put.there = false;
      struct sigaction now;
      if (sigaction(number, nullptr, &now) != 0) continue;
      if (OursIn(now) == put.which)
        sigaction(number, &next_actions[put.which][number], nullptr);
      else
        put.left = std::max(put.left, put.which + 1);
    }
  }

  void Wake() {
    MutexLock lock(mutex_);
    if (!started_) {
      try {
        std::thread([this] { Loop(); }).detach();
      } catch (const std::system_error&) {
        return;  // no thread to be had: this run is not watched
      }
      started_ = true;
      asleep_ = false;
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

  // Called on the main thread, during a run.
  Status LookForSignals() {
    nb::gil_scoped_acquire gil;
    if (wanted_.exchange(false, std::memory_order_acq_rel)) PutHandlers();
    if (PyErr_CheckSignals() == 0) return Status::Ok();
    raised_.emplace();
    return Status(StatusCode::kCancelled, "a handler of a signal raised an exception");
  }

  // A run that has lasted for a look, until it ends. This thread has nothing to do with Python,
  // which may be at its end: what asks it is asked of the main thread.
  void Watch(uint64_t run) {
    {
      MutexLock lock(mutex_);
      if (run_.load(std::memory_order_seq_cst) != run) return;
      signalled = 0;
      interrupted = 0;
      ends_.store(false, std::memory_order_relaxed);
      wanted_.store(true, std::memory_order_release);
    }
    host_.Request();
    bool ended = false;
    while (run_.load(std::memory_order_seq_cst) == run) {
      if (signalled != 0) {
        signalled = 0;
        host_.Request();
      }
      if (interrupted != 0 && ends_.load(std::memory_order_acquire) && !ended) {
        MutexLock lock(mutex_);
        if (run_.load(std::memory_order_seq_cst) == run) stop_.request_stop();
        ended = true;
      }
      std::this_thread::sleep_for(kLook);
    }
  }

  // Puts a handler before each of Python's own.
  void PutHandlers() {
    bool ends = false;  // SIGINT means KeyboardInterrupt
    std::vector<int> pythons;
    try {
      const nb::module_ signal = nb::module_::import_("signal");
      for (int number = 1; number < kSignals; ++number) {
        struct sigaction now;
        if (sigaction(number, nullptr, &now) != 0) continue;
        // One of ours that somebody has put back is as good as Python's.
        if (OursIn(now) >= 0) {
          if (number == SIGINT) ends = IsDefaultForInt(signal);
          continue;
        }
        if ((now.sa_flags & SA_SIGINFO) == 0 &&
            (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN))
          continue;
        const nb::object handler = signal.attr("getsignal")(number);
        if (PyCallable_Check(handler.ptr()) == 0) continue;
        pythons.push_back(number);
        if (number == SIGINT) ends = IsDefaultForInt(signal);
      }
    } catch (const std::exception&) {
      return;
    }
    MutexLock lock(mutex_);
    for (const int number : pythons) {
      struct sigaction now;
      if (sigaction(number, nullptr, &now) != 0 || OursIn(now) >= 0) continue;
      Put& put = put_[number];
      const int which = WhichFor(number, now, put.left);
      if (which == kHandlers) continue;  // too many call each other: its handler runs after the run
      next_actions[which][number] = now;
      struct sigaction mine = now;
      // On a stack of its own: generated code of the primitives library keeps data where the
      // kernel would put the handler's frame.
      mine.sa_flags |= SA_SIGINFO | SA_ONSTACK;
      mine.sa_sigaction = kOurs[which];
      put.which = which;
      put.there = sigaction(number, &mine, nullptr) == 0;
    }
    touched_.store(true, std::memory_order_seq_cst);
    ends_.store(ends, std::memory_order_release);
  }

  static bool IsDefaultForInt(const nb::module_& signal) {
    return signal.attr("getsignal")(static_cast<int>(SIGINT))
        .is(signal.attr("default_int_handler"));
  }

  // One that calls `next` already, or that nobody calls.
  static int WhichFor(int number, const struct sigaction& next, int left) {
    for (int which = 0; which < left; ++which)
      if (IsSame(next_actions[which][number], next)) return which;
    return left;
  }

  // What became of ours for a signal.
  struct Put {
    bool there = false;
    int which = 0;  // the one put last
    int left = 0;   // so many, from the first on, may be called by what somebody else has put
  };

  pthread_t main_{};
  bool known_ = false;
  std::stop_source stop_;
  HostCalls host_{[this] { return LookForSignals(); }};
  std::optional<nb::python_error> raised_;
  uint64_t count_ = 0;
  std::atomic<uint64_t> run_{0};  // the number of the run under way; 0: none
  std::atomic<bool> asleep_{true};
  std::atomic<bool> touched_{false};  // there may be something to put back
  std::atomic<bool> wanted_{false};   // handlers, by the watcher
  std::atomic<bool> ends_{false};     // SIGINT ends the run under way
  Mutex mutex_;
  CondVar wake_;
  bool started_ HEDDLE_GUARDED_BY(mutex_) = false;
  Put put_[kSignals] HEDDLE_GUARDED_BY(mutex_) = {};
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
  // A handler of a signal may begin something while a run waits for it.
  if (!TheWatcher().on_main() || TheWatcher().watches()) return;
  watched_ = true;
  token_ = TheWatcher().Begin();
}

InterruptScope::~InterruptScope() {
  if (watched_) TheWatcher().End();
}

HostCalls* InterruptScope::host() const { return watched_ ? &TheWatcher().host() : nullptr; }

void InterruptScope::ThrowIfInterrupted() const {
  if (!watched_) return;
  if (auto raised = TheWatcher().TakeRaised()) throw *std::move(raised);
  if (token_.stop_requested() && PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace heddle::python
