// Limits of work that takes long: a deadline, a stop, and calls of the host program in between.
//
// A run has its own in RunOptions. For all else - loading, compiling, planning, saving - a
// LimitScope sets them for what its thread calls.
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

// A function of the host program that is called while heddle works: an interpreter's handlers of
// signals, for example, which run on the thread that called heddle and on no other.
//
// Ownership: the caller's; outlives the calls of heddle that it is given to, of which there is one
// at a time. Threads: Request from any thread.
class HostCalls {
 public:
  // `call` is called on the thread that called heddle, between two steps of the work. If its status
  // is not OK, the work ends with it. It must not throw, and must not call heddle's Run.
  explicit HostCalls(std::function<Status()> call) : call_(std::move(call)) {}
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  // Asks for one call, within some milliseconds. Without work under way the next one begins with
  // it.
  void Request();

 private:
  friend class HostLine;
  const std::function<Status()> call_;
  std::atomic<bool> asked_{false};
  std::atomic<bool> failed_{false};
  Status why_;  // written before failed_
  std::mutex mutex_;
  Interrupts* interrupts_ = nullptr;  // of the work under way; guarded by mutex_
};

struct Limits {
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  std::stop_token stop = {};
  HostCalls* host = nullptr;  // nullptr: none
};

// While it lives, what the calling thread calls of heddle ends with kDeadlineExceeded after the
// deadline and with kCancelled after a stop. Runs go by their own options. Scopes nest; the inner
// one alone counts.
//
// Threads: made and destroyed on one thread.
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
