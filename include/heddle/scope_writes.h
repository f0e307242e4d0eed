// Reading and replacing variables that runs write.
#pragma once

#include <mutex>
#include <utility>

#include "heddle/scope.h"
#include "heddle/status.h"

namespace heddle {

// The write_mutex of a scope, held until this goes, which it does on the thread that made it.
class ScopeWrites {
 public:
  ScopeWrites(ScopeWrites&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
  ScopeWrites& operator=(ScopeWrites&&) = delete;
  ~ScopeWrites();

 private:
  friend Result<ScopeWrites> HoldWrites(Scope& scope);
  explicit ScopeWrites(std::mutex& mutex);
  std::mutex* mutex_;
};

// Waits for runs that write to the scope, within the calling thread's limits (heddle/limits.h). An
// error in a call of the host (HostCalls) that is made while the thread holds the mutex itself: the
// call would wait for the work that it is made from.
Result<ScopeWrites> HoldWrites(Scope& scope);

}  // namespace heddle
