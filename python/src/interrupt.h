// Signals during a run: Python's handlers are called meanwhile, and Ctrl-C ends the run.
//
// Python learns of signals when control comes back to it, which for a long run may be never. So
// while a run of the main thread lasts longer than a moment, a thread that watches puts a handler
// of its own before each of Python's. When one is called, the run is asked to let Python look for
// signals (HostCalls): Python's handler runs between two steps of the work, and ends it by an
// exception. At Ctrl-C the run is also told to stop, which all its threads see; not so where a
// script handles SIGINT in its own way. Runs that are over sooner pay for two stores and two locks.
#pragma once

#include <stop_token>

#include "heddle/limits.h"

namespace heddle::python {

// To be called with the GIL held, by the module's initialisation.
void InitInterrupts();

// One run of the calling thread, or other work that takes long; it holds no GIL meanwhile. Nothing
// happens on other threads than the main one.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // For the run's options.
  std::stop_token token() const { return token_; }
  HostCalls* host() const;  // likewise; nullptr: none
  // For what is no run.
  Limits limits() const { return {.stop = token_, .host = host()}; }
  // After the work, with the GIL: throws what a handler raised, if a signal ended the work.
  void ThrowIfInterrupted() const;

 private:
  std::stop_token token_;
  bool watched_ = false;
};

}  // namespace heddle::python
