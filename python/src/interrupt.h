// Ctrl-C during a run: the run is told to stop, and Python's KeyboardInterrupt follows.
//
// Python learns of signals when control comes back to it, which for a long run may be never. So
// while a run of the main thread lasts longer than a moment, a thread that watches puts a handler
// of its own before Python's, and asks the run to stop when that is called. Runs that are over
// sooner pay for two stores. A script that handles SIGINT in its own way is left alone.
#pragma once

#include <stop_token>

namespace heddle::python {

// To be called with the GIL held, by the module's initialisation.
void InitInterrupts();

// One run of the calling thread, which holds no GIL meanwhile. Nothing happens on other threads
// than the main one.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // For the run's options.
  std::stop_token token() const { return token_; }
  // Whether a signal was what stopped the run.
  bool interrupted() const;

 private:
  std::stop_token token_;
  bool watched_ = false;
};

}  // namespace heddle::python
