#include <mutex>

#include "core/interrupts.h"
#include "core/lock_or_leave.h"
#include "heddle/params.h"

namespace heddle {

ScopeWrites::ScopeWrites(std::mutex& mutex) : mutex_(&mutex) { HeldMutexes::Add(mutex); }

ScopeWrites::~ScopeWrites() {
  if (mutex_ == nullptr) return;
  HeldMutexes::Remove(*mutex_);
  mutex_->unlock();
}

Result<ScopeWrites> HoldWrites(Scope& scope) {
  return EndedInTime([&]() -> Result<ScopeWrites> {
    std::mutex& mutex = scope.write_mutex();
    LockOrLeave(mutex);
    return ScopeWrites(mutex);
  });
}

}  // namespace heddle
