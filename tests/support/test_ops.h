// Operators that exist in tests only: they misbehave, or tell how they were run.
//
//   [[maybe_unused]] const bool kInstalled = InstallTestOps();   // at namespace scope
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "heddle/status.h"

namespace heddle::testing {

// Adds the operators to the registry; once, before anything uses it.
//   test_call(X: list) -> (Out: list): copies X to Out one by one and calls the hook with attribute
//     "id" before that; what the hook throws or returns is what the kernel throws or returns.
//   test_effect: the same, marked as having side effects.
//   test_jump(X) -> (Out): the first element of X, a vector; the first two if X has seven.
bool InstallTestOps();

// What test_call calls. Set only while no program runs; empty = nothing.
void SetHook(std::function<Status(int64_t id)> hook);

// Sets a hook for the life of the object.
class ScopedHook {
 public:
  explicit ScopedHook(std::function<Status(int64_t id)> hook) { SetHook(std::move(hook)); }
  ~ScopedHook() { SetHook({}); }
  ScopedHook(const ScopedHook&) = delete;
  ScopedHook& operator=(const ScopedHook&) = delete;
};

}  // namespace heddle::testing
