// Limits for long work: a deadline, a stop, and calls of the host program in between.
//
// A run has its own limits in RunOptions. For all other work (loading, compiling, planning, saving)
// a LimitScope sets them for the calling thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "heddle/status.h"

namespace heddle {

class HostLine;
class Interrupts;

// A function of the host program that is called while heddle works, for example an interpreter's
// signal handlers, which must run on the thread that called heddle.
//
// Ownership: the caller's; must outlive the calls of heddle that it is given to, of which there is
// one at a time. Threads: Request may be called from any thread.
class HostCalls {
 public:
  // `call` is called on the thread that called heddle, between two steps of the work. If it returns
  // an error, the work ends with it. It must not throw, and must not call heddle's Run.
  explicit HostCalls(std::function<Status()> call) : call_(std::move(call)) {}
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  // Requests one call, which follows within some milliseconds, or at the beginning of the next work
  // if there is none at present.
  void Request();

 private:
  friend class HostLine;
  const std::function<Status()> call_;
  std::atomic<bool> asked_{false};
  std::atomic<bool> failed_{false};
  Status why_;  // written before failed_
  std::mutex mutex_;
  Interrupts* interrupts_ = nullptr;  // of the present work; guarded by mutex_
};

struct Limits {
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  std::stop_token stop = {};
  HostCalls* host = nullptr;  // nullptr: none
};

// While it exists, calls of heddle on this thread end with kDeadlineExceeded after the deadline and
// with kCancelled after a stop. Runs use their own options instead. Scopes nest; only the inner one
// counts.
//
// Threads: to be made and destroyed on the same thread.
class LimitScope {
 public:
  explicit LimitScope(const Limits& limits);
  ~LimitScope();
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle
