// Interrupts: ends a thread's work before it is complete: for a deadline, a stop, or the host
// program.
//
// The code that begins such work installs an Interrupts for the thread (Interrupts::Scope). The
// code that works looks at it between steps of about a millisecond, and at most some: with
// LookForInterrupt() or a range below. ParallelFor looks by itself, and its helpers use the
// caller's; locks that may be held for long are taken with LockOrLeave (core/lock_or_leave.h). Work
// that is to end throws an Interrupted, which Guard turns into a Status.
//
// A look costs a load and a branch; without limits, the load of a thread-local variable.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "heddle/limits.h"
#include "heddle/status.h"

namespace heddle {

// The exception of LookOrLeave. It does not derive from std::exception, so that no handler of
// failures catches it.
struct Interrupted {
  Status status;
};

// Threads: all methods may be called from any thread.
class Interrupts {
 public:
  enum : uint32_t { kCancel = 1, kDeadline = 2, kAsk = 4 };

  // The calling thread's; nullptr: nothing ends its work.
  static Interrupts* Current() { return current_; }

  bool raised() const {
    return (bits_.load(std::memory_order_relaxed) & (kCancel | kDeadline | kAsk)) != 0;
  }
  // An error if the work is to end, with the reason.
  Status Look() const { return raised() ? LookClosely() : Status::Ok(); }
  // The same, but throws Interrupted.
  void LookOrLeave() const {
    if (raised()) [[unlikely]]
      Leave();
  }
  void Raise(uint32_t why) { bits_.fetch_or(why, std::memory_order_relaxed); }
  void Lower(uint32_t why) { bits_.fetch_and(~why, std::memory_order_relaxed); }

  class Scope {
   public:
    explicit Scope(Interrupts* mine) : outer_(std::exchange(current_, mine)) {}
    ~Scope() { current_ = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interrupts* const outer_;
  };

 protected:
  Interrupts() = default;
  ~Interrupts() = default;
  // Called at every look while kAsk is raised: an error if the work is to end for a reason that has
  // to be asked for. May be called on any thread of the work.
  virtual Status Ask() const = 0;

  // Further bits belong to derived classes.
  std::atomic<uint32_t> bits_{0};

 private:
  Status LookClosely() const;
  void Leave() const;

  static inline thread_local Interrupts* current_ = nullptr;
};

// Throws Interrupted if the calling thread's work is to end.
inline void LookForInterrupt() {
  if (Interrupts* const mine = Interrupts::Current(); mine != nullptr) mine->LookOrLeave();
}

// For public functions: returns what fn returns, a Status or a Result, or the reason for which it
// was ended.
template <typename Fn>
auto EndedInTime(Fn&& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const Interrupted& e) {
    return e.status;
  }
}

// HostLine: makes the calls of a HostCalls during one piece of work. The thread that began the work
// makes them; the others learn if one failed.
class HostLine {
 public:
  HostLine() = default;
  ~HostLine() { End(); }
  HostLine(const HostLine&) = delete;
  HostLine& operator=(const HostLine&) = delete;
  // `host` may be nullptr. Requests for a call raise kAsk in `interrupts`, if given.
  void Begin(HostCalls* host, std::thread::id owner, Interrupts* interrupts);
  void End();
  // Implements Interrupts::Ask.
  Status Serve();
  // What a call since Forgive has failed with: work may be done before another look tells it.
  Status Failure() const;
  // Clears the failure of an earlier call.
  static void Forgive(HostCalls& host) { host.failed_.store(false, std::memory_order_relaxed); }
  // Whether the calling thread is inside such a call.
  static bool inside() { return inside_; }

 private:
  HostCalls* host_ = nullptr;
  Interrupts* interrupts_ = nullptr;
  std::thread::id owner_;
  static inline thread_local bool inside_ = false;
};

// LimitLooks: limits that are checked at each look; no timer is armed. The arguments must outlive
// it.
class LimitLooks final : public Interrupts {
 public:
  // `what` is named in messages as not finished: "the run".
  LimitLooks(const std::optional<std::chrono::steady_clock::time_point>& deadline,
             const std::stop_token& stop, HostCalls* host, const char* what);

 private:
  Status Ask() const override;
  const std::optional<std::chrono::steady_clock::time_point>& deadline_;
  const std::stop_token& stop_;
  const char* const what_;
  mutable HostLine line_;
};

// for (const int64_t i : Watched(n)): 0, 1, … n - 1, with a look before each but the first. For
// steps that take between 10 ns and 10 ms.
class Watched {
 public:
  struct End {
    int64_t at;
  };
  class Iterator {
   public:
    Iterator(int64_t at, const Interrupts* look) : at_(at), look_(look) {}
    int64_t operator*() const { return at_; }
    Iterator& operator++() {
      ++at_;
      if (look_ != nullptr) look_->LookOrLeave();
      return *this;
    }
    bool operator!=(End end) const { return at_ < end.at; }

   private:
    int64_t at_;
    const Interrupts* const look_;
  };
  explicit Watched(int64_t n) : begin_(0), end_(n) {}
  Watched(int64_t begin, int64_t end) : begin_(begin), end_(end) {}
  Iterator begin() const { return {begin_, Interrupts::Current()}; }
  End end() const { return {end_}; }

 private:
  int64_t begin_, end_;
};

// for (const auto [b, e] : Stretches(n)): [0, n) in ranges of `length`, with a look between them.
// For steps so short that a look for each would be too expensive.
class Stretches {
 public:
  static constexpr int64_t kLength = 1 << 15;
  struct Range {
    int64_t begin, end;
  };
  struct End {};
  class Iterator {
   public:
    Iterator(Range all, int64_t length, const Interrupts* look)
        : at_(all.begin), end_(all.end), length_(length), look_(look) {}
    Range operator*() const { return {at_, at_ + Next()}; }
    Iterator& operator++() {
      at_ += Next();
      if (look_ != nullptr) look_->LookOrLeave();
      return *this;
    }
    bool operator!=(End) const { return at_ < end_; }

   private:
    int64_t Next() const { return std::min(length_, end_ - at_); }
    int64_t at_;
    const int64_t end_, length_;
    const Interrupts* const look_;
  };
  explicit Stretches(int64_t n, int64_t length = kLength) : Stretches(Range{0, n}, length) {}
  explicit Stretches(Range all, int64_t length = kLength) : all_(all), length_(length) {}
  Iterator begin() const { return {all_, length_, Interrupts::Current()}; }
  End end() const { return {}; }

 private:
  Range all_;
  int64_t length_;
};

// LookCount: looks for interrupts inside algorithms of the standard library, in the functions that
// they call:
//
//   LookCount looks;
//   std::sort(a, b, looks.In(before));
//
// One in some thousand calls looks. Must outlive what In returns.
class LookCount {
 public:
  template <typename Fn>
  auto In(Fn fn) {
    return [this, fn](const auto&... args) {
      if (++count_ % kBetweenLooks == 0) LookForInterrupt();
      return fn(args...);
    };
  }

 private:
  static constexpr uint32_t kBetweenLooks = 1 << 13;
  uint32_t count_ = 0;
};

}  // namespace heddle
