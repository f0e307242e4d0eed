// Ends work at one of its looks for interrupts (core/interrupts.h), in each way that a caller has.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <thread>

#include "heddle/limits.h"

namespace heddle::testing {

// Limits under which every look calls the host; at one of them the work is to end. For one piece of
// work. Threads: the one that does the work.
class EndsAtLook {
 public:
  enum Way { kHost, kStop, kDeadline, kWays };

  // Ends the work at look `end_at`, counted from 1; 0: at none.
  explicit EndsAtLook(int64_t end_at, Way way = kHost) : end_at_(end_at), way_(way) {
    if (end_at > 0 && way == kDeadline)
      deadline_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    host_.Request();
  }

  Limits limits() { return {.deadline = deadline_, .stop = stop_.get_token(), .host = &host_}; }
  // Of limits(), with which the work may be given its options.
  HostCalls* host() { return &host_; }
  std::stop_token stop() const { return stop_.get_token(); }
  std::optional<std::chrono::steady_clock::time_point> deadline() const { return deadline_; }

  int64_t looks() const { return looks_; }
  // Whether the work may have ended so. It may be done if no look followed the one that ends it; a
  // deadline may come before that look, and its timer late.
  bool EndsWell(const Status& status) const {
    if (end_at_ == 0) return status.ok();
    switch (way_) {
      case kDeadline:
        return status.ok() || status.code() == StatusCode::kDeadlineExceeded;
      case kStop:
        return status.ok() ? looks_ <= end_at_
                           : looks_ >= end_at_ && status.code() == StatusCode::kCancelled;
      default:
        return status.ok() ? looks_ < end_at_
                           : looks_ == end_at_ && status.code() == StatusCode::kCancelled;
    }
  }

 private:
  Status Look() {
    host_.Request();
    if (++looks_ != end_at_) return Status::Ok();
    if (way_ == kHost) return {StatusCode::kCancelled, "the test ends it"};
    if (way_ == kStop) stop_.request_stop();
    if (way_ == kDeadline) std::this_thread::sleep_until(*deadline_);
    return Status::Ok();
  }

  const int64_t end_at_;
  const Way way_;
  int64_t looks_ = 0;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::stop_source stop_;
  HostCalls host_{[this] { return Look(); }};
};

}  // namespace heddle::testing
